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
    forced: () => "a test made it begin",
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
    if (s === 0) return "0 s";
    if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
    if (s < 1) return `${+(s * 1000).toPrecision(s < 0.01 ? 2 : 3)} ms`;
    if (s < 120) return `${+s.toPrecision(3)} s`;
    if (s < 7200) return `${+(s / 60).toPrecision(3)} min`;
    if (s < 172800) return `${+(s / 3600).toPrecision(3)} h`;
    return `${+(s / 86400).toPrecision(3)} days`;
  }

  /** How long it took, on a clock that may stand still. */
  const lasting = (seconds) => (seconds === 0 ? "at once" : `in ${duration(seconds)}`);

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

  /** What a rebalance did to the partitions, by name: `kept`, `paused`, `moved`, `freed`, `handed`; longest pause in s. */
  function effect(group, each) {
    const model = group.model;
    const settled = settledAt(group, each);
    const told = { kept: [], paused: [], moved: [], freed: [], handed: [], longest: 0 };
    for (const [name, spans] of group.partitions) {
      const before = ownersAt(spans, each.start - 1);
      const after = ownersAt(spans, settled);
      if (!before && !after) continue;
      const idle = idleIn(model, spans, each.start, settled);
      const paused = idle !== null;
      if (!after) told.freed.push(name);
      else if (!before) told.handed.push(name);
      else if (before !== after) told.moved.push(name);
      else if (paused) told.paused.push(name);
      else told.kept.push(name);
      if (before && after) told.longest = Math.max(told.longest, idle || 0);
    }
    return told;
  }

  /** When the last member had its assignment: they get it one after the other. */
  function settledAt(group, each) {
    const until = each.until === null ? group.model.lines.length - 1 : each.until - 1;
    const starts = group.lanes.flatMap((lane) => lane.spans).filter((span) => span.state === "stable").map((span) => span.start);
    return Math.max(each.end, ...starts.filter((start) => start >= each.end && start <= until));
  }

  function ownersAt(spans, at) {
    const span = spanAt(spans, at);
    return span ? span.owners.join() : "";
  }

  /** Seconds without an owner between two positions; null if it always had one. */
  function idleIn(model, spans, from, to) {
    let idle = null;
    for (const span of spans) {
      const [start, end] = [Math.max(span.start, from), Math.min(span.end === null ? to : span.end, to)];
      if (!span.owners.length && start < end) idle = (idle || 0) + model.secondsAt(end) - model.secondsAt(start);
    }
    return idle;
  }

  /** The join barrier in short, the longer text first. */
  function barrierTold(group, barrier) {
    const last = barrier.steps[barrier.steps.length - 1];
    if (!last) return [];
    const model = group.model;
    const took = duration(model.secondsAt(barrier.end === null ? model.lines.length - 1 : barrier.end) - model.secondsAt(barrier.start));
    const count = last.expected ? `${last.joined} of ${last.expected}` : "nobody left";
    let who = "";
    if (barrier.missed.length) who = `, without ${listed(barrier.missed, 2)}`;
    else if (barrier.end === null && last.waiting.length) who = `, waiting for ${listed(last.waiting, 2)}`;
    else if (barrier.last && barrier.joined.size > 1 && last.expected) who = `, ${barrier.last.name} last`;
    return [`${count}${who} · ${took}`, `${count}${who}`, count];
  }

  const TIMERS = {
    SessionExpiry: (who) => `session of ${who} has run out`,
    PendingMemberExpiry: (who) => `${who} did not come back with its member id in time`,
    InitialDelay: () => "the initial rebalance delay is over",
    RebalanceTimeout: () => "the join barrier's time is up (rebalance timeout)",
    PendingSyncExpiry: () => "the time for SyncGroup is up",
    OffsetExpiryCheck: () => "time to look for offsets to expire",
  };

  function timer(line, lane) {
    const wording = TIMERS[line.timer];
    return wording ? wording(lane ? lane.name : line.member_id || "a member") : `${line.timer} is due`;
  }

  /** The story of a group: [{at, level, title, text}], in order. Levels: rebalance, good, bad, info. */
  function story(group) {
    const model = group.model;
    const told = rebalances(group).map((each) => ({ at: each.start, level: "rebalance", ...rebalanceTold(group, each) }));
    for (const lane of group.lanes) {
      for (const span of lane.spans) if (span.state === "away") told.push({ at: span.start, level: "info", ...awayTold(group, lane, span) });
      for (const mark of lane.marks) {
        if (mark.kind === "avoided") told.push({ at: mark.at, level: "good", ...avoidedTold(group, lane, mark) });
        if (mark.kind === "hand") told.push({ at: mark.at, level: "hand", title: `${lane.name}: ${mark.text}`, text: "" });
        if (mark.kind === "expelled") told.push({ at: mark.at, level: "bad", title: `${lane.name} is thrown out`, text: thrownOut(model.lines[mark.at], mark) });
        if (mark.kind === "error") told.push({ at: mark.at, level: "bad", ...errorTold(model, lane, mark) });
      }
    }
    for (const mark of group.marks) told.push({ at: mark.at, level: model.lines[mark.at].kind === "timer" ? "info" : "hand", title: handTold(model.lines[mark.at]), text: "" });
    return told.sort((one, other) => one.at - other.at);
  }

  /** ["orders-0", "orders-3"] → "orders 0, 3 → C3" */
  function received(group, each, names) {
    const at = settledAt(group, each);
    const byOwner = new Map();
    for (const name of names) {
      const owner = listed(spanAt(group.partitions.get(name), at).owners.map((index) => group.lanes[index].name));
      byOwner.set(owner, [...(byOwner.get(owner) || []), name]);
    }
    return [...byOwner].map(([owner, owned]) => `${spread(owned)} → ${owner}`).join("; ");
  }

  /** The cause of a rebalance; a cooperative member that joins again has given up what others are to get. */
  function whyOf(group, each) {
    const second = ["metadata_change", "leader_rejoin"].includes(each.cause) && each.lane && each.lane.isCooperative;
    const freed = second && [...group.partitions.values()].some((spans) => spans.length && !ownersAt(spans, each.start - 1));
    return freed ? `${each.lane.name} joins again: what was given up can be handed out` : cause(each.cause, each.lane, each.reason);
  }

  function rebalanceTold(group, each) {
    const model = group.model;
    const why = whyOf(group, each);
    if (each.end === null) return { title: `A rebalance begins: ${why}`, text: "It has not ended." };
    const took = lasting(model.secondsAt(each.end) - model.secondsAt(each.start));
    if (each.state !== "Stable") return { title: `${why}: the group is ${each.state}`, text: "" };
    const barrier = group.barriers.filter((one) => one.start >= each.start && one.start < each.end).pop();
    const parts = [];
    if (barrier && barrier.missed.length) parts.push(`${listed(barrier.missed)} did not rejoin in time.`);
    else if (barrier && barrier.last && barrier.joined.size > 1) parts.push(`${barrier.last.name} joined last.`);
    const { kept, paused, moved, freed, handed, longest } = effect(group, each);
    if (moved.length) parts.push(`${received(group, each, moved)}${longest > 0 ? `, after ${duration(longest)} without an owner` : ""}.`);
    if (paused.length) parts.push(`${spread(paused)} stood still${longest > 0 ? ` for ${duration(longest)}` : ""} and stayed where ${paused.length === 1 ? "it was" : "they were"}.`);
    if (freed.length) parts.push(`${spread(freed)} given up: nobody's until the next round.`);
    if (handed.length) parts.push(`${received(group, each, handed)}.`);
    if (kept.length) parts.push(`${several(kept.length, "partition")} went on without a pause.`);
    return { title: `${why}: generation ${each.generation}, ${took}`, text: parts.join(" ") };
  }

  const THROWN_OUT = {
    session_expired: "It was silent for its whole session timeout.",
    join_timeout: "It had not rejoined when the join barrier's time was up.",
    sync_timeout: "It had not sent SyncGroup in time.",
    over_capacity: "The group has more members than group.max.size.",
  };

  const thrownOut = (line, mark) => THROWN_OUT[line.cause] || mark.text;

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
    if (line.kind === "timer") return timer(line, null);
    if (line.kind === "clock") return clockTold(line);
    if (line.kind === "rule") return ruleTold(line);
    if (line.kind === "hold") return holdTold(line);
    if (line.kind === "verb") return verbTold(line);
    const words = [line.kind, line.change, line.timer, line.rule_id, line.reason || line.cause];
    const body = line.body ? JSON.stringify(line.body) : "";
    return `${words.filter((word) => word !== undefined && word !== null && word !== "").join(" ")} ${body}`.trim();
  }

  /** {"api": "Heartbeat", "client_id": "svc-*"} → "Heartbeat, client id svc-*" */
  const matchTold = ({ api, ...others }) =>
    [api || "any request", ...Object.entries(others).map(([key, value]) => `${key.replaceAll("_", " ")} ${value}`)].join(", ");

  /** {"kind": "lose_reply"} → "lose reply"; {"kind": "error", "name": "NOT_COORDINATOR"} → "error NOT_COORDINATOR" */
  const actionTold = ({ kind, ...others }) => [(kind || "").replaceAll("_", " "), ...Object.values(others)].join(" ");

  function ruleTold(line) {
    const body = line.body || {};
    switch (line.change) {
      case "added":
        return `${line.rule_id} is set: ${matchTold(body.match || {})} → ${actionTold(body.action || {})}`;
      case "used":
        return `${line.rule_id} acts on ${line.api}: ${actionTold(body)}`;
      default:
        return `${line.rule_id} ${line.change}`;
    }
  }

  function holdTold(line) {
    switch (line.change) {
      case "added":
        return `${line.hold_id} is set: ${matchTold((line.body || {}).match || {})}`;
      case "entered":
        return `${line.hold_id} holds ${line.api}`;
      case "behind":
        return `${line.api} waits behind ${line.hold_id}`;
      default:
        return `${line.hold_id} ${line.change}${line.api ? `: ${line.api} goes on` : ""}`;
    }
  }

  /** A verb with what it was given, as far as that is short. */
  function verbTold(line) {
    const given = Object.values(line.body || {}).filter((value) => value !== null && typeof value !== "object");
    return [line.verb.replaceAll("_", " "), ...given].join(" ");
  }

  function clockTold(line) {
    const ahead = (line.body.to_ms - line.body.from_ms) / 1000;
    const by = line.cause ? ` (${line.cause.replaceAll("_", " ")})` : "";
    return ahead ? `clock put ${duration(ahead)} ahead${by}` : `the group's clock is ${line.mode} now`;
  }

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
      STATES, GROUP_STATES, duration, moment, several, spread, cause, ownedAt, barrierAt, stateAt, matchTold, actionTold, isMemberAt, rebalances, effect,
      story, brief, listed, handTold, timer, barrierTold, whyOf,
    },
  });
})();
