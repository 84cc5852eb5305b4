// @ts-check
/** @import { Line } from "./types.js" */
import { firstWithout } from "./spans.js";

/** The lines of a trace, and the pairs of requests and responses. */
export class Model {
  constructor() {
    /** @type {Line[]} */
    this.lines = [];
    /**
     * The position of the response by that of its request, and the reverse.
     * @type {(number | null)[]}
     */
    this.partner = [];
    /** @type {Map<string, number>} */
    this.calls = new Map();
    /** @type {Set<string>} */
    this.names = new Set();
  }

  /** Return the APIs of the requests. */
  apis() {
    return [...this.names].sort();
  }

  /** @param {Line[]} lines */
  append(lines) {
    for (const line of lines) if (line.kind !== "header") this.add(line);
  }

  /** @param {Line} line */
  add(line) {
    const at = this.lines.length;
    const call = `${line.node}:${line.conn_id}:${line.correlation_id}`;
    const request = line.kind === "response" ? (this.calls.get(call) ?? null) : null;
    this.lines.push(line);
    this.partner.push(request);
    if (line.kind === "request") {
      this.calls.set(call, at);
      this.names.add(line.api ?? "");
    }
    if (request === null) return;
    this.calls.delete(call);
    this.partner[request] = at;
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
