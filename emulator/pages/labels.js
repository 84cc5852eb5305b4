// @ts-check
/* The texts around the chart: legend, row labels and tooltips. */
/** @import { Group } from "./group.js" */
/** @import { ChartRow, DeliverySpan, Mark, Span } from "./types.js" */
import { make } from "./dom.js";
import { laneColour } from "./pen.js";
import { spanAt } from "./spans.js";
import { LANE_STATES, laneStateAt, stateAt } from "./story.js";

/** Shape, style class and text. */
const LEGEND = [
  ["band", "Stable", "Stable"],
  ["band", "PreparingRebalance", "PreparingRebalance: members join"],
  ["band", "CompletingRebalance", "CompletingRebalance: waiting for the leader's assignment"],
  ["band", "NotReady", "NotReady: topics of the topology are missing or wrong"],
  ["band", "Assigning", "Assigning: the target of the epoch is not computed yet"],
  ["band", "Reconciling", "Reconciling: members revoke and take partitions"],
  ...Object.entries(LANE_STATES).map(([state, text]) => ["lane", state, text]),
  ["partition", "none", "no owner, or two owners"],
  ["mark", "heartbeat", "heartbeat"],
  ["mark", "commit", "commit"],
  ["mark", "bad", "error"],
  ["mark", "good", "no rebalance"],
  ["mark", "test", "action of the test"],
];

export function legend() {
  const items = LEGEND.map(([shape, name, text]) =>
    make("li", {}, make("i", { class: `k-swatch k-s-${shape} k-is-${name}`, "aria-hidden": "true" }), text),
  );
  return make("ul", { class: "k-legend", "aria-label": "Legend" }, ...items);
}

/** @param {ChartRow} row */
export function rowLabel({ kind, top, height, label, lane, name }) {
  const style = `top:${top}px;height:${height}px`;
  const dot = lane ? { class: "k-dot", style: `background:${laneColour(lane.index)}`, "aria-hidden": "true" } : null;
  return make(
    "div",
    { class: `k-label k-l-${kind}`, style, title: label, "data-name": name ?? null },
    dot ? make("i", dot) : null,
    label,
    lane?.isStatic && height >= 20 ? make("small", {}, "static") : null,
    lane?.user && height >= 20 ? make("small", {}, lane.user) : null,
  );
}

/**
 * Return the tooltip of a row at a position, or of a mark there.
 * @param {Group} group @param {ChartRow} row @param {number} at @param {Mark | null} mark
 */
export function tipText(group, { kind, lane, label, name = "", deliveries = [] }, at, mark) {
  if (lane) return `${lane.name}${lane.user ? ` (${lane.user})` : ""}: ${mark?.text ?? laneStateAt(lane, at)}`;
  if (kind === "partition") {
    const owners = spanAt(group.partitions.get(name) ?? [], at)?.owners ?? [];
    const names = owners.map((index) => group.lanes[index].name);
    return `${name}: ${names.length > 1 ? `owned by ${names.join(" and ")} at once` : names[0] || "no owner"}`;
  }
  if (kind === "transaction") {
    const spans = [...(group.transactions.get(name)?.values() ?? [])];
    const text = spans.findLast(({ start, end }) => start <= at && (end === null || end >= at))?.text;
    return `transaction ${name}: ${text ?? "none open"}`;
  }
  if (kind === "task") return heldText(group, `task ${name}`, [...(group.tasks.get(name)?.values() ?? [])], at);
  if (kind === "records") return heldText(group, `${name}: ${label}`, deliveries, at);
  if (kind === "test") return mark?.text ?? "";
  const reason = spanAt(group.states, at)?.reason;
  return `${stateAt(group, at)}${reason ? `. ${reason}` : ""}`;
}

/**
 * Return who holds something at a position; of records also which delivery it is, and how that ended.
 * @param {Group} group @param {string} what @param {(Span & Partial<DeliverySpan>)[]} spans @param {number} at
 */
function heldText(group, what, spans, at) {
  const span = spans.findLast(({ start, end }) => start <= at && (end === null || end >= at));
  if (!span) return `${what}: no holder`;
  const holder = typeof span.lane === "number" ? group.lanes[span.lane].name : "unknown";
  const delivery = span.count ? `, delivery ${span.count}, ${span.outcome}` : "";
  return `${what}: ${holder}${delivery}`;
}
