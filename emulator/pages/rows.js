// @ts-check
/** @import { Group } from "./group.js" */
/** @import { Row } from "./types.js" */
import { topicAndNumber } from "./format.js";

const PARTITIONS_MAX = 400;

/**
 * Return the rows of a group's chart.
 * @param {Group} group
 */
export function rowsOf(group) {
  /** @type {Row[]} */
  const rows = [
    { part: "top", kind: "ruler", height: 20, label: "time", top: 0 },
    { part: "top", kind: "flags", height: 18, label: "cause", top: 0 },
    { part: "top", kind: "states", height: 28, label: "group", top: 0 },
    { part: "top", kind: "barrier", height: 30, label: "join barrier", top: 0 },
  ];
  if (group.marks.length) rows.push({ part: "top", kind: "test", height: 20, label: "test and timers", top: 0 });
  const laneHeight = group.lanes.length <= 12 ? 30 : group.lanes.length <= 30 ? 22 : 17;
  for (const lane of group.lanes) {
    rows.push({ part: "body", kind: "lane", height: laneHeight, lane, label: lane.name, top: 0 });
  }
  const names = [...group.partitions.keys()].sort(byTopicAndNumber);
  const height = names.length <= 16 ? 16 : names.length <= 48 ? 9 : 5;
  if (names.length) {
    rows.push({ part: "body", kind: "head", height: 26, label: `partitions (${names.length})`, top: 0 });
  }
  for (const name of names.slice(0, PARTITIONS_MAX)) {
    rows.push({ part: "body", kind: "partition", height, name, label: height >= 14 ? name : "", top: 0 });
  }
  if (names.length > PARTITIONS_MAX) {
    rows.push({ part: "body", kind: "head", height: 20, label: `${names.length - PARTITIONS_MAX} more`, top: 0 });
  }
  const next = { top: 0, body: 0 };
  for (const row of rows) {
    row.top = next[row.part];
    next[row.part] += row.height;
  }
  return rows;
}

/** @param {string} one @param {string} other */
function byTopicAndNumber(one, other) {
  const [[topicA, numberA], [topicB, numberB]] = [topicAndNumber(one), topicAndNumber(other)];
  return topicA.localeCompare(topicB) || numberA - numberB;
}
