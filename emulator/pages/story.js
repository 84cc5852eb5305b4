// @ts-check
/* The story of a group in words: the list beside the chart, tooltips, and the text for screen readers. */
/** @import { Group } from "./group.js" */
/** @import { Lane } from "./lane.js" */
/** @import { Model } from "./model.js" */
/** @import { Barrier, LaneMark, Line, Rebalance, StateSpan, StoryItem } from "./types.js" */
import { actionLineText } from "./events.js";
import { count, duration, listed, partitionRanges, spaced } from "./format.js";
import { effectOf, isMemberAt, ownedAt, ownersAt, rebalancesOf, settledAt } from "./rebalances.js";
import { spanAt } from "./spans.js";
import { CAUSES } from "./vocabulary.js";

/**
 * States of lanes.
 * @type {Record<string, string>}
 */
export const LANE_STATES = {
  joining: "joined, waiting for other members",
  pending: "received a member id, must rejoin with it",
  unjoined: "must rejoin",
  syncing: "waiting for its assignment",
  stable: "member with an assignment",
  away: "member without a connection",
  removed: "removed by the coordinator",
};

/** @param {string | undefined} cause @param {Lane | null} lane @param {string | undefined} reason */
function causeText(cause, lane, reason) {
  const text = CAUSES[cause ?? ""] ?? spaced(cause || reason || "");
  return lane ? `${text} (${lane.name})` : text;
}

/** @param {Group} group @param {Barrier} barrier @param {number} at */
function barrierAt(group, barrier, at) {
  const step = barrier.steps.findLast((each) => each.at <= at) ?? barrier.steps[0];
  if (!step) return "";
  const since = duration(group.model.secondsBetween(barrier.start, at));
  const waiting = step.waiting.length ? `; waiting for ${listed(step.waiting)}` : "";
  return `${step.joined} of ${step.expected} members joined${waiting} (${since} so far)`;
}

/**
 * Return one sentence on the state of the group at a position.
 * @param {Group} group @param {number} at
 */
export function stateAt(group, at) {
  const span = spanAt(group.states, at);
  if (!span) return `Group ${group.id} does not exist yet`;
  const barrier = spanAt(group.barriers, at);
  if (barrier) return `${span.state}: ${barrierAt(group, barrier, at)}`;
  const members = group.lanes.filter((lane) => isMemberAt(lane, at));
  return `${span.state}, generation ${span.generation}, ${count(members.length, "member")}`;
}

/**
 * Return one sentence on the state of a lane at a position.
 * @param {Group} group @param {Lane} lane @param {number} at
 */
export function laneStateAt(group, lane, at) {
  const span = spanAt(lane.spans, at);
  if (!span) return "not in the group";
  const owned = ownedAt(group, lane, at);
  return `${LANE_STATES[span.state]}${owned.length ? `: ${partitionRanges(owned)}` : ""}`;
}

/**
 * Return labels of a join barrier, the longest first.
 * @param {Group} group @param {Barrier} barrier
 */
export function barrierLabels(group, barrier) {
  const last = barrier.steps.at(-1);
  if (!last) return [];
  const joined = last.expected ? `${last.joined} of ${last.expected}` : "no members left";
  let detail = "";
  if (barrier.missed.length) detail = `, without ${listed(barrier.missed, 2)}`;
  else if (barrier.end === null && last.waiting.length) detail = `, waiting for ${listed(last.waiting, 2)}`;
  else if (barrier.last && barrier.joined.size > 1 && last.expected) detail = `, ${barrier.last.name} last`;
  const seconds = group.model.secondsBetween(barrier.start, barrier.end);
  return [`${joined}${detail} · ${duration(seconds)}`, `${joined}${detail}`, joined];
}

/**
 * Return the story of a group, in order.
 * @param {Group} group
 */
export function storyOf(group) {
  const { lines } = group.model;
  /** @type {StoryItem[]} */
  const story = rebalancesOf(group).map((rebalance) => ({
    at: rebalance.start,
    level: "rebalance",
    ...rebalanceItem(group, rebalance),
  }));
  for (const lane of group.lanes) {
    for (const span of lane.spans) if (span.state === "away") story.push(awayItem(group, lane, span));
    for (const mark of lane.marks) {
      const item = markItem(group, lane, mark);
      if (item) story.push(item);
    }
  }
  for (const { at } of group.marks) {
    const level = lines[at].kind === "timer" ? "info" : "test";
    story.push({ at, level, title: actionLineText(lines[at]), text: "" });
  }
  return story.sort((one, other) => one.at - other.at);
}

/**
 * ["orders-0", "orders-3"] → "orders 0, 3 → C3"
 * @param {Group} group @param {Rebalance} rebalance @param {string[]} names
 */
function newOwners(group, rebalance, names) {
  const at = settledAt(group, rebalance);
  /** @type {Map<string, string[]>} */
  const byOwner = new Map();
  for (const name of names) {
    const owners = spanAt(group.partitions.get(name) ?? [], at)?.owners ?? [];
    const owner = listed(owners.map((index) => group.lanes[index].name));
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), name]);
  }
  return [...byOwner].map(([owner, owned]) => `${partitionRanges(owned)} → ${owner}`).join("; ");
}

/**
 * Return the cause of a rebalance. A cooperative member rejoins to release its revoked partitions.
 * @param {Group} group @param {Rebalance} rebalance
 */
export function whyOf(group, rebalance) {
  const { cause, lane, reason, start } = rebalance;
  const isRejoin = cause === "metadata_change" || cause === "leader_rejoin";
  const hasRevoked = [...group.partitions.values()].some((spans) => spans.length && !ownersAt(spans, start - 1));
  if (isRejoin && lane?.isCooperative && hasRevoked) return `${lane.name} rejoins: revoked partitions are assigned`;
  return causeText(cause, lane, reason);
}

/** @param {Group} group @param {Rebalance} rebalance */
function rebalanceItem(group, rebalance) {
  const { start, end } = rebalance;
  const why = whyOf(group, rebalance);
  if (end === null) return { title: `Rebalance: ${why}`, text: "It has not ended." };
  if (rebalance.state !== "Stable") return { title: `${why}: the group is ${rebalance.state}`, text: "" };
  const seconds = group.model.secondsBetween(start, end);
  const took = seconds === 0 ? "at once" : `in ${duration(seconds)}`;
  const barrier = group.barriers.findLast((each) => each.start >= start && each.start < end);
  const parts = [];
  if (barrier?.missed.length) parts.push(`${listed(barrier.missed)} did not rejoin in time.`);
  else if (barrier?.last && barrier.joined.size > 1) parts.push(`${barrier.last.name} joined last.`);
  const { kept, paused, moved, revoked, assigned, longest } = effectOf(group, rebalance);
  const pause = longest > 0 ? duration(longest) : "";
  if (moved.length) {
    parts.push(`${newOwners(group, rebalance, moved)}${pause ? `, after ${pause} without an owner` : ""}.`);
  }
  if (paused.length) {
    parts.push(`${partitionRanges(paused)} paused${pause ? ` for ${pause}` : ""} and kept the same owner.`);
  }
  if (revoked.length) parts.push(`${partitionRanges(revoked)} revoked, without an owner until the next rebalance.`);
  if (assigned.length) parts.push(`${newOwners(group, rebalance, assigned)}.`);
  if (kept.length) parts.push(`${count(kept.length, "partition")} continued without a pause.`);
  return { title: `${why}: generation ${rebalance.generation}, ${took}`, text: parts.join(" ") };
}

/** @param {Group} group @param {Lane} lane @param {StateSpan} span @returns {StoryItem} */
function awayItem(group, lane, span) {
  const owned = ownedAt(group, lane, span.start);
  const unread = owned.length ? ` No member reads ${partitionRanges(owned)} meanwhile.` : "";
  const limit = lane.sessionMs ? ` for at most ${duration(lane.sessionMs / 1000)}` : "";
  const title = `${lane.name} disconnected without leaving`;
  return { at: span.start, level: "info", title, text: `The group waits for it${limit}.${unread}` };
}

/** @param {Group} group @param {Lane} lane @param {LaneMark} mark @returns {StoryItem | null} */
function markItem(group, lane, mark) {
  const { at, kind, text } = mark;
  switch (kind) {
    case "avoided":
      return avoidedItem(group, lane, at);
    case "test":
      return { at, level: "test", title: `${lane.name}: ${text}`, text: "" };
    case "removed":
      return { at, level: "bad", title: `${lane.name} was removed`, text: removalText(group.model.lines[at], text) };
    case "error":
      return errorItem(group.model, lane, at);
    default:
      return null;
  }
}

/** @param {Line} line @param {string} text */
function removalText(line, text) {
  const cause = CAUSES[line.cause ?? ""];
  return cause ? `${cause[0].toUpperCase()}${cause.slice(1)}.` : text;
}

/** @param {Group} group @param {Lane} lane @param {number} at @returns {StoryItem} */
function avoidedItem(group, lane, at) {
  const away = lane.spans.findLast((span) => span.state === "away" && span.start < at);
  const after = away ? ` after ${duration(group.model.secondsBetween(away.start, at))}` : "";
  const title = `${lane.name} returned${after}: no rebalance`;
  const text =
    "The coordinator knows its group.instance.id and returns its partitions; other members are not affected.";
  return { at, level: "good", title, text };
}

/** @param {Model} model @param {Lane} lane @param {number} at @returns {StoryItem} */
function errorItem(model, lane, at) {
  const line = model.lines[at];
  const first = model.firstError === at ? "First error: " : "";
  const title = `${first}${lane.name} received ${line.error}`;
  return { at, level: "bad", title, text: `${line.api} of generation ${line.generation ?? "–"}` };
}
