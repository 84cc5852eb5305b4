// @ts-check
/* "Copy as test": the joins, leaves and stops of a trace as a pytest test with puppets. */
/** @import { Group } from "./group.js" */
/** @import { Lane } from "./lane.js" */
import { moment, topicAndNumber } from "./format.js";
import { isMemberAt, rebalancesOf } from "./rebalances.js";

/** @param {string} text */
const quoted = (text) => JSON.stringify(text);

/** @param {string[]} names */
const tuple = (names) => `(${names.map(quoted).join(", ")}${names.length === 1 ? "," : ""})`;

/** @param {string} name */
function identifier(name) {
  const plain =
    name
      .replace(/[^A-Za-z0-9]+/g, "_")
      .replace(/^_+|_+$/g, "")
      .toLowerCase() || "member";
  return /^[0-9]/.test(plain) ? `m_${plain}` : plain;
}

/**
 * Return the number of partitions by topic, as far as the trace shows it.
 * @param {Group} group
 */
function topicsOf(group) {
  /** @type {Map<string, number>} */
  const topics = new Map();
  for (const lane of group.lanes) for (const topic of lane.topics) topics.set(topic, topics.get(topic) ?? 1);
  for (const [topic, number] of [...group.partitions.keys()].map(topicAndNumber)) {
    topics.set(topic, Math.max(topics.get(topic) ?? 1, number + 1));
  }
  return topics;
}

/**
 * Return when a member joined, disconnected, left or was removed, in order.
 * @param {Lane} lane
 */
function changesOf(lane) {
  const spans = lane.spans.filter(({ state }) => ["joining", "away", "removed"].includes(state));
  const left = lane.marks.filter(({ kind }) => kind === "left");
  return [
    ...spans.map(({ start, state }) => ({ at: start, change: state })),
    ...left.map(({ at }) => ({ at, change: "left" })),
  ].sort((one, other) => one.at - other.at);
}

/** @param {Group} group */
function stepsOf(group) {
  /** @type {{ at: number, code: string, note?: string }[]} */
  const steps = [];
  for (const lane of group.lanes) {
    const name = identifier(lane.name);
    let isOut = true;
    for (const { at, change } of changesOf(lane)) {
      if (change === "joining" && isOut) steps.push({ at, code: `${name}.join()` });
      if (change === "away") steps.push({ at, code: `${name}.stop()`, note: "stopped without leaving" });
      if (change === "left") steps.push({ at, code: `${name}.leave()` });
      isOut = change !== "joining";
    }
  }
  for (const { state, end, generation } of rebalancesOf(group)) {
    if (state !== "Stable" || end === null) continue;
    const members = group.lanes.filter((lane) => isMemberAt(lane, end)).length;
    steps.push({ at: end, code: `group.wait_stable(members=${members})`, note: `generation ${generation}` });
  }
  return steps.sort((one, other) => one.at - other.at);
}

/**
 * Return the source of a test; it does not include rules and holds.
 * @param {Group} group
 */
export function asTest(group) {
  const lines = [`def test_${identifier(group.id)}(koordinator):`];
  for (const [topic, partitions] of topicsOf(group)) {
    lines.push(`    koordinator.create_topic(${quoted(topic)}, partitions=${partitions})`);
  }
  lines.push(`    group = koordinator.group(${quoted(group.id)})`);
  for (const lane of group.lanes) {
    const options = [quoted(lane.name)];
    if (lane.protocols.length) options.push(`protocols=${tuple(lane.protocols)}`);
    if (lane.isStatic) options.push(`instance_id=${quoted(lane.name)}`);
    if (lane.topics.length) options.push(`topics=${tuple(lane.topics)}`);
    lines.push(`    ${identifier(lane.name)} = group.puppet(${options.join(", ")})`);
  }
  for (const { at, code, note } of stepsOf(group)) {
    lines.push(`    ${code}  # ${moment(group.model.secondsAt(at))}${note ? `: ${note}` : ""}`);
  }
  return `${lines.join("\n")}\n`;
}
