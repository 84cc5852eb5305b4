// @ts-check
/** @import { Lane } from "./lane.js" */
/** @import { Line } from "./types.js" */
import { callOf, isError, isTestAction } from "./events.js";
import { Group } from "./group.js";
import { firstWithout } from "./spans.js";

/** The lines of a trace, its groups, and the pairs of requests and responses. */
export class Model {
  constructor() {
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Map<string, Group>} */
    this.groups = new Map();
    /**
     * The position of the response by that of its request, and the reverse.
     * @type {(number | null)[]}
     */
    this.partner = [];
    /** @type {number | null} */
    this.firstError = null;
    /** @type {Map<string, number>} */
    this.calls = new Map();
    /** @type {Map<number, Lane>} */
    this.laneOfCall = new Map();
  }

  /** @param {Line[]} lines */
  append(lines) {
    for (const line of lines) if (line.kind !== "header") this.add(line);
  }

  /** @param {Line} line */
  add(line) {
    const at = this.lines.length;
    this.lines.push(line);
    this.partner.push(null);
    const call = callOf(line);
    if (line.kind === "request") this.calls.set(call, at);
    if (line.kind === "response") {
      const request = this.calls.get(call);
      if (request !== undefined) {
        this.calls.delete(call);
        this.partner[at] = request;
        this.partner[request] = at;
      }
      if (this.firstError === null && isError(line)) this.firstError = at;
    }
    const groups = [...this.groups.values()];
    if (line.kind === "conn" && line.change === "closed") for (const group of groups) group.onClosed(line, at);
    if (line.group_id !== undefined) this.group(line.group_id).add(line, at);
    else if (isTestAction(line)) for (const group of groups) group.marks.push({ at, kind: line.kind });
  }

  /** @param {string} id */
  group(id) {
    const group = this.groups.get(id) ?? new Group(id, this);
    this.groups.set(id, group);
    return group;
  }

  /** Return the groups with activity, the one with most events first. */
  activeGroups() {
    const all = [...this.groups.values()];
    const active = all.filter((group) => group.lanes.length || group.states.length);
    return (active.length ? active : all).sort((one, other) => other.positions.length - one.positions.length);
  }

  /**
   * Return the position of a sequence number, or of the next event.
   * @param {number} seq
   */
  positionOf(seq) {
    return firstWithout(Math.max(this.lines.length - 1, 0), (at) => this.lines[at].seq < seq);
  }

  /** @param {number} at */
  secondsAt(at) {
    return this.lines.length ? (this.lines[at].wall_ts - this.lines[0].wall_ts) / 1e6 : 0;
  }

  /**
   * Return the seconds between two positions; null is the end of the trace.
   * @param {number} from @param {number | null} to
   */
  secondsBetween(from, to) {
    return this.secondsAt(to ?? this.lines.length - 1) - this.secondsAt(from);
  }
}
