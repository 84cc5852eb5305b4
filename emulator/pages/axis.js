/* Where a moment is on the picture.
 *
 * A rebalance takes a millisecond and the wait after it seconds, so by default waits are drawn shorter than they are
 * (the longer, the more so) and say how long they were. What only goes on all the time, heartbeats say, does not count
 * for this: it lies between its neighbours as time has it.
 */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const EVENT = 1; // the width of something that happens, beside what its time takes
  const WAIT_NAMED_S = 0.25;

  class Axis {
    /** `model`, and the positions of the events that are drawn; `squeezed`: waits are drawn shorter. */
    constructor(model, shown, squeezed) {
      this.xs = new Float64Array(model.lines.length);
      this.waits = [];
      this.stops = [];
      this.from = 0;
      this.to = 1;
      const lines = model.lines;
      if (!lines.length) return;
      const start = lines[0].wall_ts;
      const stops = [];
      let late = start;
      for (const at of shown) {
        late = Math.max(late, lines[at].wall_ts);
        stops.push({ at, us: late, x: 0 });
      }
      if (!stops.length) stops.push({ at: 0, us: start, x: 0 });
      const end = lines.length - 1;
      if (stops[stops.length - 1].at < end) stops.push({ at: end, us: Math.max(late, lines[end].wall_ts), x: 0 });
      const waits = stops.map((stop, n) => (n ? 1.5 * Math.log2(1 + (stop.us - stops[n - 1].us) / 1000) : 0));
      // where thousands of things happen they do not crowd out the waits
      const event = Math.min(EVENT, waits.reduce((sum, each) => sum + each, 1) / stops.length);
      for (let n = 1; n < stops.length; n += 1) {
        const ms = (stops[n].us - stops[n - 1].us) / 1000;
        stops[n].x = stops[n - 1].x + (squeezed ? event + waits[n] : ms + 1e-3);
        if (squeezed && ms / 1000 >= WAIT_NAMED_S) this.waits.push({ from: stops[n - 1].at, to: stops[n].at, s: ms / 1000 });
      }
      const width = stops[stops.length - 1].x || 1;
      const margin = 0.012;
      this.stops = stops.map((stop) => stop.at);
      for (const stop of stops) stop.x = margin + (1 - 2 * margin) * (stop.x / width);
      this.place(lines, stops);
    }

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

    /** The position's pixel, on a picture `width` pixels wide; null is the end. */
    px(at, width) {
      const x = at === null || at >= this.xs.length ? 1 : this.xs[at];
      return ((x - this.from) / (this.to - this.from)) * width;
    }

    /** The position nearest to a pixel. */
    at(px, width) {
      const x = this.from + (px / width) * (this.to - this.from);
      let low = 0;
      let high = this.xs.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.xs[middle] < x) low = middle + 1;
        else high = middle;
      }
      return low > 0 && x - this.xs[low - 1] < this.xs[low] - x ? low - 1 : Math.max(low, 0);
    }

    zoom(factor, px, width) {
      const x = this.from + (px / width) * (this.to - this.from);
      const span = Math.min(1, Math.max((this.to - this.from) * factor, 1e-5));
      this.move(x - (px / width) * span, span);
    }

    move(from, span = this.to - this.from) {
      this.from = Math.min(Math.max(from, 0), 1 - span);
      this.to = this.from + span;
    }

    /** Bring a position into view. */
    show(at) {
      const x = this.xs[at];
      if (x < this.from || x > this.to) this.move(x - (this.to - this.from) / 2);
    }
  }

  Koordinator.Axis = Axis;
})();
