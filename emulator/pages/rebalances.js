// @ts-check
/* Rebalances of a group, and their effect on partitions. */
/** @import { Group } from "./group.js" */
/** @import { Lane } from "./lane.js" */
/** @import { Model } from "./model.js" */
/** @import { Effect, OwnerSpan, Rebalance } from "./types.js" */
import { spanAt } from "./spans.js";

/**
 * Return the rebalances of a group; the last one may be unfinished.
 * @param {Group} group
 * @returns {Rebalance[]}
 */
export function rebalancesOf(group) {
  /** @type {Rebalance[]} */
  const rebalances = [];
  /** @type {Rebalance | null} */
  let open = null;
  for (const span of group.states) {
    if (span.state === "PreparingRebalance") {
      const { start, cause, reason, lane } = span;
      open ??= { start, cause, reason, lane, end: null, until: null, state: null, generation: null };
    } else if (open && span.state !== "CompletingRebalance") {
      rebalances.push({ ...open, end: span.start, until: span.end, state: span.state, generation: span.generation });
      open = null;
    }
  }
  return open ? [...rebalances, open] : rebalances;
}

/**
 * Return the position at which the last member received its assignment.
 * @param {Group} group @param {Rebalance} rebalance
 */
export function settledAt(group, rebalance) {
  const last = group.model.lines.length - 1;
  const end = rebalance.end ?? last;
  const until = rebalance.until === null ? last : rebalance.until - 1;
  const stable = group.lanes.flatMap((lane) => lane.spans).filter((span) => span.state === "stable");
  return Math.max(end, ...stable.map((span) => span.start).filter((start) => start >= end && start <= until));
}

/** @param {OwnerSpan[]} spans @param {number} at */
export const ownersAt = (spans, at) => spanAt(spans, at)?.owners.join() ?? "";

/**
 * Return the seconds without an owner between two positions; null if the partition always had one.
 * @param {Model} model @param {OwnerSpan[]} spans @param {number} from @param {number} to
 */
function secondsWithoutOwner(model, spans, from, to) {
  let seconds = null;
  for (const span of spans) {
    const [start, end] = [Math.max(span.start, from), Math.min(span.end ?? to, to)];
    if (!span.owners.length && start < end) seconds = (seconds ?? 0) + model.secondsBetween(start, end);
  }
  return seconds;
}

/** @param {Group} group @param {Rebalance} rebalance */
export function effectOf(group, rebalance) {
  const settled = settledAt(group, rebalance);
  /** @type {Effect} */
  const effect = { kept: [], paused: [], moved: [], revoked: [], assigned: [], longest: 0 };
  for (const [name, spans] of group.partitions) {
    const before = ownersAt(spans, rebalance.start - 1);
    const after = ownersAt(spans, settled);
    if (!before && !after) continue;
    const pause = secondsWithoutOwner(group.model, spans, rebalance.start, settled);
    if (!after) effect.revoked.push(name);
    else if (!before) effect.assigned.push(name);
    else if (before !== after) effect.moved.push(name);
    else if (pause !== null) effect.paused.push(name);
    else effect.kept.push(name);
    if (before && after) effect.longest = Math.max(effect.longest, pause ?? 0);
  }
  return effect;
}

/**
 * Return the partitions of a lane at a position.
 * @param {Group} group @param {Lane} lane @param {number} at
 */
export const ownedAt = (group, lane, at) =>
  [...group.partitions].filter(([, spans]) => spanAt(spans, at)?.owners.includes(lane.index)).map(([name]) => name);

/** @param {Lane} lane @param {number | null} at */
export function isMemberAt(lane, at) {
  const span = at === null ? null : spanAt(lane.spans, at);
  return span !== null && span.state !== "removed" && span.state !== "pending";
}
