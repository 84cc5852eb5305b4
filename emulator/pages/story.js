// @ts-check
/* Sentences on one moment: of the group, of a lane, and of a join barrier. */
/** @import { Group } from "./group.js" */
/** @import { Barrier, Lane } from "./types.js" */
import { count, duration } from "./format.js";
import { spanAt } from "./spans.js";

/**
 * States of lanes.
 * @type {Record<string, string>}
 */
export const LANE_STATES = {
  joining: "joined, waiting for other members",
  pending: "received a member id, must rejoin with it",
  unjoined: "must rejoin",
  revoking: "gives partitions up",
  syncing: "waiting for its assignment",
  stable: "member with an assignment",
  away: "member without a connection",
  removed: "removed by the coordinator",
};

/** @param {Group} group @param {Barrier} barrier @param {number} at */
function barrierAt(group, barrier, at) {
  const step = barrier.steps.findLast((each) => each.at <= at) ?? barrier.steps[0];
  if (!step) return "";
  const since = duration(group.model.secondsBetween(barrier.start, at));
  const waiting = step.waiting ? `; waiting for ${step.waiting}` : "";
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
  const members = group.lanes.filter(
    ({ spans }) => !["removed", "pending", undefined].includes(spanAt(spans, at)?.state),
  );
  return `${span.state}, ${span.number} ${span.generation}, ${count(members.length, "member")}`;
}

/**
 * Return one sentence on the state of a lane at a position.
 * @param {Lane} lane @param {number} at
 */
export function laneStateAt(lane, at) {
  const span = spanAt(lane.spans, at);
  const owned = spanAt(lane.owned, at)?.text;
  return span ? `${LANE_STATES[span.state]}${owned ? `: ${owned}` : ""}` : "not in the group";
}

/**
 * Return labels of a join barrier, the longest first.
 * @param {Group} group @param {Barrier} barrier
 */
export function barrierLabels(group, barrier) {
  const last = barrier.steps.at(-1);
  if (!last) return [];
  const joined = last.expected ? `${last.joined} of ${last.expected}` : "no members left";
  const seconds = group.model.secondsBetween(barrier.start, barrier.end);
  return [`${joined}${last.remark} · ${duration(seconds)}`, `${joined}${last.remark}`, joined];
}
