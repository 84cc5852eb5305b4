// @ts-check
/** @import { Group } from "./group.js" */
/** @import { ChartRow } from "./types.js" */
import { offsets, recordRows } from "./records.js";

const PARTITIONS_MAX = 400;
const RECORDS_MAX = 100;
const NUMERIC = new Intl.Collator(undefined, { numeric: true });

/**
 * Return the rows of a group's chart; a search selects lanes by name, and partitions by name or owner.
 * @param {Group} group @param {string} search
 */
export function rowsOf(group, search) {
  const has = (/** @type {string} */ name) => name.toLowerCase().includes(search);
  const lanes = group.lanes.filter((lane) => has(lane.name));
  const isOwned = (/** @type {string} */ name) =>
    group.partitions
      .get(name)
      ?.at(-1)
      ?.owners.some((index) => has(group.lanes[index].name));
  /** @type {ChartRow[]} */
  const rows = [
    { part: "top", kind: "ruler", height: 20, label: "time", top: 0 },
    { part: "top", kind: "flags", height: 18, label: "cause", top: 0 },
    { part: "top", kind: "states", height: 28, label: "group", top: 0 },
    { part: "top", kind: "barrier", height: 30, label: "join barrier", top: 0 },
  ];
  if (group.marks.length) rows.push({ part: "top", kind: "test", height: 20, label: "test and timers", top: 0 });
  const laneHeight = lanes.length <= 12 ? 30 : lanes.length <= 30 ? 22 : 17;
  for (const lane of lanes) {
    rows.push({ part: "body", kind: "lane", height: laneHeight, lane, label: lane.name, top: 0 });
  }
  for (const id of [...group.transactions.keys()].filter(has)) {
    rows.push({ part: "body", kind: "transaction", height: 18, name: id, label: id, top: 0 });
  }
  for (const name of [...group.tasks.keys()].filter(has).sort(NUMERIC.compare)) {
    rows.push({ part: "body", kind: "task", height: 18, name, label: `task ${name}`, top: 0 });
  }
  rows.push(...rowsOfRecords(group, has));
  const names = [...group.partitions.keys()].filter((name) => has(name) || isOwned(name)).sort(NUMERIC.compare);
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

/**
 * Return the rows of records, the newest of each partition if there are too many.
 * @param {Group} group @param {(name: string) => boolean} has
 */
function rowsOfRecords(group, has) {
  /** @type {ChartRow[]} */
  const rows = [];
  for (const name of [...group.deliveries.keys()].filter(has).sort(NUMERIC.compare)) {
    const found = recordRows(group.deliveries.get(name)?.values() ?? []);
    const shown = found.slice(-RECORDS_MAX);
    const more = found.length - shown.length;
    const label = `records of ${name}${more ? ` (${more} earlier rows)` : ""}`;
    rows.push({ part: "body", kind: "head", height: 26, label, top: 0 });
    for (const range of shown) {
      const text = offsets(range);
      rows.push({ part: "body", kind: "records", height: 16, name, label: text, deliveries: range.spans, top: 0 });
    }
  }
  return rows;
}
