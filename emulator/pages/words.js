/* What happened, in words: for the list beside the picture, for its tooltips, and for who cannot see it. No DOM. */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { spanAt } = Koordinator;

  const CAUSES = {
    member_join: (who) => `${who} joins`,
    member_rejoin: (who) => `${who} joins again`,
    leader_rejoin: (who) => `${who}, the leader, joins again`,
    metadata_change: (who) => `${who} joins again with another subscription`,
    protocol_change: (who) => `${who} changes the group's protocol`,
    member_leave: (who) => `${who} leaves`,
    session_expired: (who) => `${who} was silent for its whole session timeout`,
    join_timeout: () => "members did not rejoin in time",
    sync_timeout: () => "members did not send SyncGroup in time",
    over_capacity: () => "the group has more members than group.max.size",
    fenced: (who) => `${who} was fenced`,
    loaded: () => "the coordinator loaded the group",
    unloaded: () => "the coordinator moved away",
    store_error: () => "the group could not be written",
    emptied: () => "nobody is left",
    joined: () => "everybody has joined",
    assigned: () => "the leader's assignment is in",
  };

  const STATES = {
    joining: "has joined, waits for the others",
    pending: "has got a member id, must come back with it",
    unjoined: "must rejoin",
    syncing: "waits for its assignment",
    stable: "member, with its assignment",
    away: "still a member, but its connection is gone",
    removed: "thrown out; it may not know yet",
  };

  const GROUP_STATES = {
    Empty: "no members",
    PreparingRebalance: "waits until everybody has joined",
    CompletingRebalance: "waits for the leader's assignment",
    Stable: "everybody has its partitions",
    Dead: "the group is gone",
  };

  function duration(seconds) {
    const s = Math.abs(seconds);
    if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
    if (s < 1) return `${+(s * 1000).toPrecision(s < 0.01 ? 2 : 3)} ms`;
    if (s < 120) return `${+s.toPrecision(3)} s`;
    if (s < 7200) return `${+(s / 60).toPrecision(3)} min`;
    if (s < 172800) return `${+(s / 3600).toPrecision(3)} h`;
    return `${+(s / 86400).toPrecision(3)} days`;
  }

  const moment = (seconds) => `+${seconds.toFixed(3)} s`;

  const several = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  /** ["orders-0", "orders-1", "orders-3"] → "orders 0–1, 3" */
  function spread(names) {
    const byTopic = new Map();
    for (const name of names) {
      const cut = name.lastIndexOf("-");
      const topic = name.slice(0, cut);
      if (!byTopic.has(topic)) byTopic.set(topic, []);
      byTopic.get(topic).push(Number(name.slice(cut + 1)));
    }
    return [...byTopic].map(([topic, numbers]) => `${topic} ${runs(numbers)}`).join(", ");
  }

  function runs(numbers) {
    const sorted = [...numbers].sort((one, other) => one - other);
    const parts = [];
    for (let n = 0; n < sorted.length; n += 1) {
      let end = n;
      while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) end += 1;
      parts.push(end === n ? `${sorted[n]}` : `${sorted[n]}–${sorted[end]}`);
      n = end;
    }
    return parts.join(", ");
  }

  function cause(kind, lane, reason) {
    const wording = CAUSES[kind];
    return wording ? wording(lane ? lane.name : "a member") : (kind || reason || "").replaceAll("_", " ");
  }

  /** What a lane owns at a position. */
  function ownedAt(group, lane, at) {
    const names = [];
    for (const [name, spans] of group.partitions) {
      const span = spanAt(spans, at);
      if (span && span.owners.includes(lane.index)) names.push(name);
    }
    return names;
  }

  /** The join barrier in words, at a position. */
  function barrierAt(group, barrier, at) {
    let step = barrier.steps[0];
    for (const each of barrier.steps) if (each.at <= at) step = each;
    if (!step) return "";
    const since = duration(group.model.secondsAt(at) - group.model.secondsAt(barrier.start));
    const waiting = step.waiting.length ? `; waiting for ${listed(step.waiting)}` : "";
    return `${step.joined} of ${step.expected} have joined${waiting} (${since} so far)`;
  }

  const listed = (names, most = 4) =>
    names.length > most ? `${names.slice(0, most).join(", ")} and ${names.length - most} more` : names.join(", ");

  /** One sentence: the group at a position. */
  function stateAt(group, at) {
    const band = spanAt(group.bands, at);
    if (!band) return `Group ${group.id} does not exist yet`;
    const barrier = spanAt(group.barriers, at);
    const members = group.lanes.filter((lane) => isMemberAt(lane, at));
    if (barrier) return `${band.state}: ${barrierAt(group, barrier, at)}`;
    return `${band.state}, generation ${band.generation}, ${several(members.length, "member")}`;
  }

  function isMemberAt(lane, at) {
    const span = spanAt(lane.spans, at);
    return Boolean(span) && span.state !== "removed" && span.state !== "pending";
  }

  /** Rebalances: from the first PreparingRebalance to Stable, Empty or the end. */
  function rebalances(group) {
    const found = [];
    let open = null;
    for (const band of group.bands) {
      if (band.state === "PreparingRebalance") {
        if (open) open.again += 1;
        else open = { start: band.start, cause: band.cause, lane: band.lane, reason: band.reason, again: 0 };
      } else if (open && band.state !== "CompletingRebalance") {
        found.push({ ...open, end: band.start, state: band.state, generation: band.generation, until: band.end });
        open = null;
      }
    }
    if (open) found.push({ ...open, end: null, state: null, generation: null, until: null });
    return found;
  }

  /** What a rebalance did to the partitions: which moved, which stood still and for how long. */
  function effect(group, each) {
    const model = group.model;
    const settled = each.until === null ? model.lines.length - 1 : each.until - 1;
    const moved = [];
    const stopped = [];
    let kept = 0;
    let longest = 0;
    for (const [name, spans] of group.partitions) {
      const before = spanAt(spans, each.start - 1);
      const after = spanAt(spans, settled);
      if (!after || !after.owners.length) continue;
      if (before && before.owners.join() !== after.owners.join()) moved.push(name);
      let idle = 0;
      for (const span of spans) {
        if (span.owners.length || span.start < each.start || span.start > settled) continue;
        idle += model.secondsAt(Math.min(span.end === null ? settled : span.end, model.lines.length - 1)) - model.secondsAt(span.start);
      }
      if (!before || !before.owners.length) continue;
      if (idle > 0 || moved.includes(name)) stopped.push(name);
      else kept += 1;
      longest = Math.max(longest, idle);
    }
    return { moved, stopped, kept, longest };
  }

  /** The story of a group: [{at, level, title, text}], in order. Levels: rebalance, good, bad, info. */
  function story(group) {
    const model = group.model;
    const told = rebalances(group).map((each) => ({ at: each.start, level: "rebalance", ...rebalanceTold(group, each) }));
    for (const lane of group.lanes) {
      for (const span of lane.spans) if (span.state === "away") told.push({ at: span.start, level: "info", ...awayTold(group, lane, span) });
      for (const mark of lane.marks) {
        if (mark.kind === "avoided") told.push({ at: mark.at, level: "good", ...avoidedTold(group, lane, mark) });
        if (mark.kind === "expelled") told.push({ at: mark.at, level: "bad", title: `${lane.name} is thrown out`, text: mark.text });
        if (mark.kind === "error") told.push({ at: mark.at, level: "bad", ...errorTold(model, lane, mark) });
      }
    }
    for (const mark of group.marks) told.push({ at: mark.at, level: "hand", title: handTold(model.lines[mark.at]), text: "" });
    return told.sort((one, other) => one.at - other.at);
  }

  function rebalanceTold(group, each) {
    const model = group.model;
    const why = cause(each.cause, each.lane, each.reason);
    if (each.end === null) return { title: `A rebalance begins: ${why}`, text: "It has not ended." };
    const took = duration(model.secondsAt(each.end) - model.secondsAt(each.start));
    if (each.state !== "Stable") return { title: `${capital(why)}: the group is ${each.state}`, text: "" };
    const { moved, stopped, kept, longest } = effect(group, each);
    const barrier = group.barriers.filter((one) => one.start >= each.start && one.start < each.end).pop();
    const parts = [];
    if (barrier && barrier.missed.length) parts.push(`${listed(barrier.missed)} did not rejoin in time.`);
    else if (barrier && barrier.last && barrier.joined.size > 1) parts.push(`${barrier.last.name} joined last.`);
    if (stopped.length) {
      parts.push(`${several(stopped.length, "partition")} stood still, for ${duration(longest)} at most` + (kept ? `; ${kept} went on.` : "."));
    } else if (kept) parts.push(`All ${several(kept, "partition")} went on.`);
    if (moved.length) parts.push(`Moved: ${spread(moved)}.`);
    else if (stopped.length) parts.push("None of them moved.");
    return { title: `${capital(why)}: generation ${each.generation}, in ${took}`, text: parts.join(" ") };
  }

  function awayTold(group, lane, span) {
    const owned = ownedAt(group, lane, span.start);
    const what = owned.length ? ` Nobody reads ${spread(owned)} meanwhile.` : "";
    const long = lane.sessionMs ? ` for at most ${duration(lane.sessionMs / 1000)}` : "";
    return { title: `${lane.name} is gone without leaving`, text: `The group waits for it${long}.${what}` };
  }

  function avoidedTold(group, lane, mark) {
    const away = lane.spans.filter((span) => span.state === "away" && span.start < mark.at).pop();
    const after = away ? ` after ${duration(group.model.secondsAt(mark.at) - group.model.secondsAt(away.start))}` : "";
    return {
      title: `${lane.name} is back${after}: no rebalance`,
      text: "It is known by its group.instance.id and gets the partitions it had; nobody else notices.",
    };
  }

  function errorTold(model, lane, mark) {
    const line = model.lines[mark.at];
    const first = model.firstError === mark.at ? "First error: " : "";
    return { title: `${first}${lane.name} is refused: ${line.error}`, text: `${line.api} of generation ${line.generation ?? "–"}` };
  }

  function handTold(line) {
    const words = [line.kind, line.change, line.timer, line.rule_id, line.reason || line.cause];
    const body = line.body ? JSON.stringify(line.body) : "";
    return `${words.filter((word) => word !== undefined && word !== null && word !== "").join(" ")} ${body}`.trim();
  }

  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

  /** A line of the trace in a few words. */
  function brief(line) {
    const generation = line.generation === undefined || line.generation === -1 ? "" : ` · generation ${line.generation}`;
    switch (line.kind) {
      case "request":
        return `${line.api}${generation}${bodyBrief(line)}`;
      case "response":
        return `${line.api} → ${line.error || "OK"}${generation}${bodyBrief(line)}`;
      case "state":
        return `${line.state_from} ⇒ ${line.state_to}${generation} · ${line.reason || line.cause || ""}`;
      case "member":
        return `${line.change} · ${line.reason || line.cause || ""}`;
      case "conn":
        return `connection ${line.conn_id} ${line.change}${line.reason ? ` · ${line.reason}` : ""}`;
      case "avoided_static":
        return `no rebalance · ${line.reason || ""}`;
      case "dropped":
        return `${line.count} older events are not kept`;
      default:
        return handTold(line);
    }
  }

  function bodyBrief(line) {
    const body = line.body || {};
    if (body.assignment) {
      const names = Koordinator.partitionsOf(body.assignment);
      return ` · ${names.length ? spread(names) : "no partitions"}`;
    }
    if (body.offsets) return ` · ${body.offsets.slice(0, 4).map(([topic, partition, offset]) => `${topic}-${partition}@${offset}`).join(" ")}`;
    if (line.kind === "response" && body.members && body.members.length) return ` · leader of ${several(body.members.length, "member")}`;
    return "";
  }

  Object.assign(Koordinator, {
    words: {
      STATES, GROUP_STATES, duration, moment, several, spread, cause, ownedAt, barrierAt, stateAt, isMemberAt, rebalances, effect,
      story, brief, listed, handTold, capital,
    },
  });
})();
