// @ts-check
/** @import { Group } from "./group.js" */
/** @import { Model } from "./model.js" */
/** @import { Line } from "./types.js" */
import { make, table } from "./dom.js";
import { duration, moment } from "./format.js";
import { laneStateAt, stateAt } from "./story.js";

const HIDDEN = new Set(["seq", "kind", "wall_ts", "group_ts_us", "node", "api", "api_key", "reason"]);

/** One event in full: request and response, the rule that acted, and the group before and after. */
export class Details {
  constructor() {
    this.element = make("section", { class: "k-details", "aria-label": "The selected event", "aria-live": "polite" });
  }

  /** @param {Model} model @param {Group} group @param {number} at */
  show(model, group, at) {
    const line = model.lines[at];
    const partner = model.partner[at] ?? at;
    const other = partner === at ? null : model.lines[partner];
    const [request, response] = line.kind === "response" ? [other, line] : [line, other];
    const rule = response?.rule_id || request?.rule_id;
    const latency = response?.latency_us === undefined ? "" : ` · answered in ${duration(response.latency_us / 1e6)}`;
    const when = `${moment(model.secondsAt(at))} · seq ${line.seq}${clockOffset(model, group, at)}${latency}`;
    const synthetic = response?.synthetic ? "; Kafka never returns this here" : "";
    const isRequest = request?.kind === "request";
    const parts = [
      make("h2", {}, titleOf(line)),
      make("p", { class: "k-when" }, when),
      line.reason ? make("p", {}, line.reason) : null,
      rule ? make("p", { class: "k-rule" }, `${rule} acted${synthetic}.`) : null,
      beforeAndAfter(group, Math.min(at, partner), Math.max(at, partner)),
      request && isRequest ? block("Request", request) : block("Event", line),
      response ? block("Response", response) : null,
      isRequest && !response ? make("p", { class: "k-unanswered" }, "This trace has no response.") : null,
    ];
    this.element.replaceChildren(...parts.filter((part) => part !== null));
  }
}

/**
 * Return the lead of the group clock over the wall clock in words, if there is one.
 * @param {Model} model @param {Group} group @param {number} at
 */
function clockOffset({ lines }, group, at) {
  const first = lines.find((each) => each.group_id === group.id && each.group_ts_us !== undefined);
  const line = lines[at];
  if (first?.group_ts_us === undefined || line.group_ts_us === undefined) return "";
  const ahead = (line.group_ts_us - first.group_ts_us - (line.wall_ts - first.wall_ts)) / 1e6;
  return Math.abs(ahead) < 0.1 ? "" : ` · the group clock is ${duration(ahead)} ${ahead > 0 ? "ahead" : "behind"}`;
}

/** @param {Line} line */
function titleOf(line) {
  if (line.api) return `${line.api} v${line.api_version}${line.error ? ` → ${line.error}` : ""}`;
  if (line.kind === "state") return `${line.state_from} ⇒ ${line.state_to}`;
  return `${line.kind} ${line.change || line.timer || ""}`;
}

/** @param {Group} group @param {number} begin @param {number} end */
function beforeAndAfter(group, begin, end) {
  const rows = [["group", stateAt(group, begin - 1), stateAt(group, end)]];
  for (const lane of group.lanes) {
    const [before, after] = [laneStateAt(lane, begin - 1), laneStateAt(lane, end)];
    if (before !== after) rows.push([lane.name, before, after]);
  }
  const body = rows.map(([name, before, after]) => {
    const cells = [make("th", { scope: "row" }, name), make("td", {}, before), make("td", {}, after)];
    return make("tr", { class: before === after ? "" : "k-changed" }, ...cells);
  });
  return table("Before and after", ["", "before", "after"], body, { class: "k-before" });
}

/** @param {string} heading @param {Line} line */
function block(heading, line) {
  const shown = Object.fromEntries(Object.entries(line).filter(([key]) => !HIDDEN.has(key)));
  return make("div", {}, make("h3", {}, heading), make("pre", { tabindex: "0" }, jsonText(shown)));
}

/**
 * Return indented JSON, with arrays of plain values on one line.
 * @param {unknown} value
 */
function jsonText(value) {
  const oneLine = (/** @type {string} */ _, /** @type {string} */ inner) => `[${inner.replace(/\s*\n\s*/g, " ")}]`;
  return JSON.stringify(value, null, 2).replace(/\[\s+([^[\]{}]*?)\s+\]/g, oneLine);
}
