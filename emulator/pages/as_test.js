/* "Copy as test": the same joins and leaves, at the same places, as a pytest test with puppets. */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { words } = Koordinator;

  const quoted = (text) => JSON.stringify(text);

  function identifier(name) {
    const plain = name.replace(/[^A-Za-z0-9]+/g, "_").replace(/^_+|_+$/g, "").toLowerCase() || "member";
    return /^[0-9]/.test(plain) ? `m_${plain}` : plain;
  }

  const tuple = (names) => `(${names.map(quoted).join(", ")}${names.length === 1 ? "," : ""})`;

  /** Partitions by topic, as far as somebody owned them. */
  function topicsOf(group) {
    const topics = new Map();
    for (const lane of group.lanes) for (const topic of lane.topics) topics.set(topic, topics.get(topic) || 1);
    for (const name of group.partitions.keys()) {
      const cut = name.lastIndexOf("-");
      const topic = name.slice(0, cut);
      topics.set(topic, Math.max(topics.get(topic) || 1, Number(name.slice(cut + 1)) + 1));
    }
    return topics;
  }

  /** When a member came and went, in order. */
  function turns(lane) {
    const spans = lane.spans.filter(({ state }) => ["joining", "away", "removed"].includes(state));
    const left = lane.marks.filter(({ kind }) => kind === "left");
    return [...spans.map(({ start, state }) => ({ at: start, what: state })), ...left.map(({ at }) => ({ at, what: "left" }))]
      .sort((one, other) => one.at - other.at);
  }

  /** What members did: they came, closed without leaving, left, were thrown out. */
  function steps(group) {
    const found = [];
    for (const lane of group.lanes) {
      const name = identifier(lane.name);
      let isGone = true;
      for (const { at, what } of turns(lane)) {
        if (what === "joining" && isGone) found.push({ at, code: `${name}.join()` });
        if (what === "away") found.push({ at, code: `${name}.stop()`, note: "gone without leaving" });
        if (what === "left") found.push({ at, code: `${name}.leave()` });
        isGone = what !== "joining";
      }
    }
    for (const each of words.rebalances(group)) {
      if (each.state !== "Stable") continue;
      const members = group.lanes.filter((lane) => words.isMemberAt(lane, each.end)).length;
      found.push({ at: each.end, code: `group.wait_stable(members=${members})`, note: `generation ${each.generation}` });
    }
    return found.sort((one, other) => one.at - other.at);
  }

  /** The text of a test. What rules and holds did is left to whoever writes on. */
  function asTest(group) {
    const lines = [`def test_${identifier(group.id)}(koordinator):`];
    for (const [topic, partitions] of topicsOf(group)) lines.push(`    koordinator.create_topic(${quoted(topic)}, partitions=${partitions})`);
    lines.push(`    group = koordinator.group(${quoted(group.id)})`);
    for (const lane of group.lanes) {
      const more = [];
      if (lane.protocols.length) more.push(`protocols=${tuple(lane.protocols)}`);
      if (lane.isStatic) more.push(`instance_id=${quoted(lane.name)}`);
      if (lane.topics.length) more.push(`topics=${tuple(lane.topics)}`);
      lines.push(`    ${identifier(lane.name)} = group.puppet(${[quoted(lane.name), ...more].join(", ")})`);
    }
    for (const { at, code, note } of steps(group)) {
      lines.push(`    ${code}  # ${words.moment(group.model.secondsAt(at))}${note ? `: ${note}` : ""}`);
    }
    return `${lines.join("\n")}\n`;
  }

  Koordinator.asTest = asTest;
})();
