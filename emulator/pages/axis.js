// @ts-check
/* Positions on the chart's horizontal axis.
 *
 * A rebalance takes a millisecond and the wait after it seconds, so by default longer waits are shortened more and
 * labelled with their duration. Routine events such as heartbeats do not count; they are placed by time between their
 * neighbours.
 */
/** @import { Model } from "./model.js" */
/** @import { Line } from "./types.js" */
import { firstWithout } from "./spans.js";

const EVENT_WIDTH = 1; // of an event, besides its duration
const LABELLED_WAIT_S = 0.25;
const MARGIN = 0.012;

/** @typedef {{ at: number, us: number, x: number }} Stop */

export class Axis {
  /**
   * @param {Model} model
   * @param {number[]} shown positions of the events that are drawn
   * @param {boolean} shortened shorten waits
   */
  constructor(model, shown, shortened) {
    const { lines } = model;
    this.xs = new Float64Array(lines.length);
    /** @type {{ from: number, to: number, seconds: number }[]} */
    this.waits = [];
    /** @type {number[]} */
    this.stops = [];
    this.from = 0;
    this.to = 1;
    if (!lines.length) return;
    const stops = stopsOf(lines, shown);
    const waits = stops.map((stop, n) => (n ? 1.5 * Math.log2(1 + (stop.us - stops[n - 1].us) / 1000) : 0));
    // thousands of events must not displace the waits
    const event = Math.min(EVENT_WIDTH, waits.reduce((sum, wait) => sum + wait, 1) / stops.length);
    for (let n = 1; n < stops.length; n += 1) {
      const ms = (stops[n].us - stops[n - 1].us) / 1000;
      stops[n].x = stops[n - 1].x + (shortened ? event + waits[n] : ms + 1e-3);
      if (shortened && ms / 1000 >= LABELLED_WAIT_S) {
        this.waits.push({ from: stops[n - 1].at, to: stops[n].at, seconds: ms / 1000 });
      }
    }
    const width = stops[stops.length - 1].x || 1;
    this.stops = stops.map((stop) => stop.at);
    for (const stop of stops) stop.x = MARGIN + (1 - 2 * MARGIN) * (stop.x / width);
    this.place(lines, stops);
  }

  /** @param {Line[]} lines @param {Stop[]} stops */
  place(lines, stops) {
    let next = 0;
    for (let at = 0; at < lines.length; at += 1) {
      while (next < stops.length && stops[next].at < at) next += 1;
      if (next < stops.length && stops[next].at === at) this.xs[at] = stops[next].x;
      else if (next === 0) this.xs[at] = stops[0].x;
      else if (next === stops.length) this.xs[at] = stops[next - 1].x;
      else {
        const [one, other] = [stops[next - 1], stops[next]];
        const share = other.us > one.us ? (lines[at].wall_ts - one.us) / (other.us - one.us) : 0;
        this.xs[at] = one.x + Math.min(Math.max(share, 0), 1) * (other.x - one.x);
      }
    }
  }

  /**
   * Return the pixel of a position on a chart of this width; null is the end.
   * @param {number | null} at @param {number} width
   */
  px(at, width) {
    const x = at === null || at >= this.xs.length ? 1 : this.xs[at];
    return ((x - this.from) / (this.to - this.from)) * width;
  }

  /**
   * Return the position nearest to a pixel.
   * @param {number} px @param {number} width
   */
  at(px, width) {
    const x = this.from + (px / width) * (this.to - this.from);
    const next = firstWithout(Math.max(this.xs.length - 1, 0), (at) => this.xs[at] < x);
    return next > 0 && x - this.xs[next - 1] < this.xs[next] - x ? next - 1 : next;
  }

  /** @param {number} factor @param {number} px @param {number} width */
  zoom(factor, px, width) {
    const x = this.from + (px / width) * (this.to - this.from);
    const span = Math.min(1, Math.max((this.to - this.from) * factor, 1e-5));
    this.move(x - (px / width) * span, span);
  }

  /** @param {number} from @param {number} [span] */
  move(from, span = this.to - this.from) {
    this.from = Math.min(Math.max(from, 0), 1 - span);
    this.to = this.from + span;
  }

  /**
   * Scroll a position into view.
   * @param {number} at
   */
  show(at) {
    const x = this.xs[at];
    if (x < this.from || x > this.to) this.move(x - (this.to - this.from) / 2);
  }
}

/** @param {Line[]} lines @param {number[]} shown */
function stopsOf(lines, shown) {
  /** @type {Stop[]} */
  const stops = [];
  let us = lines[0].wall_ts;
  for (const at of shown) {
    us = Math.max(us, lines[at].wall_ts);
    stops.push({ at, us, x: 0 });
  }
  if (!stops.length) stops.push({ at: 0, us, x: 0 });
  const end = lines.length - 1;
  if (stops[stops.length - 1].at < end) stops.push({ at: end, us: Math.max(us, lines[end].wall_ts), x: 0 });
  return stops;
}
