// @ts-check
/* The chart of a group: states, join barrier, lanes and partitions over one time axis, on canvases. */
/** @import { Barrier, ChartRow, DeliverySpan, Lane, Mark, OwnerSpan, Part, Span, StateSpan, View } from "./types.js" */
import { duration, moment } from "./format.js";
import { laneColour, Palette, Pen, STRONG_FONT } from "./pen.js";
import { firstWithout, spanAt } from "./spans.js";
import { barrierLabels } from "./story.js";

/**
 * Labels inside the bars of lanes.
 * @type {Record<string, string>}
 */
const BAR_LABELS = {
  joining: "joined, waiting",
  pending: "has id",
  unjoined: "must rejoin",
  revoking: "revoking",
  syncing: "syncing",
  away: "disconnected",
  removed: "removed",
};

/**
 * The colours of transactions, by state.
 * @type {Record<string, { colour: string, ink: string }>}
 */
const TRANSACTIONS = {
  open: { colour: "joining", ink: "on-joining" },
  committing: { colour: "syncing", ink: "on-syncing" },
  aborting: { colour: "syncing", ink: "on-syncing" },
  committed: { colour: "stable", ink: "on-stable" },
  aborted: { colour: "removed", ink: "on-removed" },
};

/**
 * The colours at the ends of deliveries, by outcome.
 * @type {Record<string, string>}
 */
const OUTCOMES = { accepted: "good", released: "joining", gap: "muted" };

/** @param {DeliverySpan} span */
function deliveryText({ count, outcome }) {
  return [count > 1 ? `delivery ${count}` : "", outcome === "open" ? "" : outcome].filter(Boolean).join(" · ");
}

/**
 * Draw the rows of one part that are in sight on its canvas, which is only as high as these.
 * @param {HTMLCanvasElement} canvas @param {Part} part @param {View} view @param {Palette} palette
 */
export function drawPart(canvas, part, view, palette) {
  const [top, bottom] = part === "body" ? view.sight : [0, Number.POSITIVE_INFINITY];
  const rows = view.rows.filter((row) => row.part === part && row.top < bottom && row.top + row.height > top);
  const [from, to] = [rows[0]?.top ?? 0, (rows.at(-1)?.top ?? 0) + (rows.at(-1)?.height ?? 0)];
  canvas.style.top = `${from}px`;
  const pen = new Pen(canvas, view.width, to - from, palette);
  pen.context.translate(0, -from);
  new Chart(pen, view).draw(rows, part, from, to);
}

class Chart {
  /** @param {Pen} pen @param {View} view */
  constructor(pen, { group, axis, width }) {
    this.pen = pen;
    this.group = group;
    this.model = group.model;
    this.axis = axis;
    this.width = width;
  }

  /** @param {ChartRow[]} rows @param {Part} part @param {number} top @param {number} bottom */
  draw(rows, part, top, bottom) {
    if (part === "body") this.rebalanceShades(top, bottom);
    for (const row of rows) if (row.kind !== "head") this[row.kind](row);
    this.firstError(part, top, bottom);
  }

  /** @param {number | null} at */
  x(at) {
    return this.axis.px(at, this.width);
  }

  /** @param {Span} span @returns {[number, number]} */
  range({ start, end }) {
    return [this.x(start), this.x(end)];
  }

  /** @param {string} name */
  colour(name) {
    return this.pen.palette.colour(name);
  }

  /** @param {string} name */
  hatch(name) {
    return this.pen.palette.hatch(name);
  }

  /**
   * Shade the columns of rebalances.
   * @param {number} top @param {number} bottom
   */
  rebalanceShades(top, bottom) {
    for (const span of this.group.states) {
      if (span.state !== "PreparingRebalance" && span.state !== "CompletingRebalance") continue;
      this.pen.box(...this.range(span), top, bottom - top, this.colour(`shade-${span.state}`), 0);
    }
  }

  /** @param {ChartRow} row */
  ruler(row) {
    const middle = row.top + row.height / 2;
    const taken = [];
    for (const wait of this.axis.waits) {
      const [from, to] = [this.x(wait.from), this.x(wait.to)];
      const centre = (from + to) / 2;
      let text = `⋯ ${duration(wait.seconds)} ⋯`;
      if (this.pen.textWidth(text) > to - from - 4) text = duration(wait.seconds);
      const room = this.pen.textWidth(text);
      if (to - from < room + 2 || centre < 0 || centre > this.width) continue;
      this.pen.text(text, centre - room / 2, middle, this.colour("faint"));
      taken.push([centre - room / 2, centre + room / 2]);
    }
    let free = 0;
    for (const at of this.axis.stops) {
      const x = this.x(at);
      if (x < free || x > this.width - 60 || taken.some(([from, to]) => x + 62 > from && x < to)) continue;
      this.pen.text(moment(this.model.secondsAt(at)), x + 3, middle, this.colour("muted"));
      this.pen.rectangle(x, row.top + 4, 1, row.height - 4, this.colour("muted"));
      free = x + 130;
    }
  }

  /** @param {ChartRow} row */
  flags(row) {
    let free = -1;
    for (const { at, label } of this.group.story.values()) {
      if (!label) continue;
      const x = this.x(at);
      const room = this.pen.textWidth(label);
      const left = Math.min(x, this.width - room - 8);
      if (left < free || x + room < 0 || x > this.width) continue;
      this.pen.rectangle(x, row.top + 2, 2, row.height - 2, this.colour("PreparingRebalance"));
      this.pen.text(label, left + 5, row.top + row.height / 2, this.colour("ink"));
      free = left + room + 12;
    }
  }

  /** @param {ChartRow} row */
  states(row) {
    const middle = row.top + row.height / 2;
    for (const span of this.group.states) {
      const [from, to] = this.range(span);
      if (!this.pen.box(from, to - 0.5, row.top + 2, row.height - 4, this.colour(span.state))) continue;
      const generation = span.generation > 0 ? ` · ${span.number} ${span.generation}` : "";
      this.pen.boxText(`${span.state}${generation}`, from, to, middle, this.colour(`on-${span.state}`), STRONG_FONT);
    }
  }

  /** @param {ChartRow} row */
  barrier(row) {
    const top = row.top + 3;
    const height = row.height - 6;
    let free = 0;
    for (const [n, barrier] of this.group.barriers.entries()) {
      const from = this.x(barrier.start);
      const to = Math.max(this.x(barrier.end), from + 6);
      if (to < 0 || from > this.width) continue;
      this.pen.box(from, to, top, height, this.colour("barrier-empty"), 2);
      barrier.steps.forEach((step, index) => {
        const until = index + 1 < barrier.steps.length ? this.x(barrier.steps[index + 1].at) : to;
        const share = step.expected ? step.joined / step.expected : 1;
        const [left, filled] = [this.x(step.at), height * share];
        this.pen.rectangle(left, top + height - filled, Math.max(until - left, 1), filled, this.colour("joining"));
      });
      const { context } = this.pen;
      context.strokeStyle = this.colour("PreparingRebalance");
      context.strokeRect(Math.round(from) + 0.5, top + 0.5, Math.round(to - from) - 1, height - 1);
      const next = this.group.barriers[n + 1];
      free = this.barrierLabel(barrier, [from, to], [free, next ? this.x(next.start) : this.width], top + height / 2);
    }
  }

  /**
   * Label a barrier inside its box or beside it, as far as there is room; return where the free room starts.
   * @param {Barrier} barrier @param {[number, number]} box @param {[number, number]} room @param {number} middle
   */
  barrierLabel(barrier, [from, to], [free, end], middle) {
    for (const text of barrierLabels(this.group, barrier)) {
      const width = this.pen.textWidth(text);
      const isInside = to - from > width + 10;
      let left = isInside ? Math.max(from, free) + 5 : to + 4;
      if (!isInside && left + width > end && from - width - 4 > free) left = from - width - 4;
      if (left < free || left + width > (isInside ? to : end)) continue;
      const colour = isInside && barrier.steps.length < 2 ? "on-PreparingRebalance" : "ink";
      this.pen.text(text, left, middle, this.colour(colour));
      return left + width + 8;
    }
    return Math.max(free, to);
  }

  /** @param {ChartRow} row */
  test(row) {
    const middle = row.top + row.height / 2;
    const colour = this.colour("test");
    let free = -1;
    for (const { at, text } of this.group.marks) {
      const x = this.x(at);
      if (x < Math.max(-4, free - 8) || x > this.width + 4) continue;
      this.pen.diamond(x, middle, colour);
      if (x < free) continue;
      const shown = text.length > 48 ? `${text.slice(0, 47)}…` : text;
      const room = this.pen.textWidth(shown);
      const left = x + room + 7 > this.width ? x - room - 7 : x + 7;
      if (left > free) this.pen.text(shown, left, middle, colour);
      free = x + room + 16;
    }
  }

  /** @param {ChartRow} row */
  lane(row) {
    const { top } = row;
    const lane = /** @type {Lane} */ (row.lane);
    const height = row.height - 8;
    const middle = top + row.height / 2;
    this.pen.rectangle(0, Math.round(middle), this.width, 1, this.colour("line"));
    for (const span of lane.spans) {
      const [from, to] = this.range(span);
      if (!this.pen.box(from, to - 0.5, top + 4, height, this.colour(span.state))) continue;
      const isHatched = span.state === "away" || span.state === "removed";
      if (isHatched) this.pen.box(from, to - 0.5, top + 4, height, this.hatch(`hatch-${span.state}`));
      if (span.state === "stable") this.stable(lane, span, row);
      else if (row.height >= 20) {
        this.pen.boxText(BAR_LABELS[span.state], from, to, middle, this.colour(`on-${span.state}`));
      }
    }
    this.heartbeats(lane.heartbeats, top + 1);
    for (const hold of lane.holds) this.pen.box(...this.range(hold), top + 2, 2.5, this.colour("test"), 0);
    const first = firstWithout(lane.marks.length, (n) => this.x(lane.marks[n].at) < -6);
    for (const mark of lane.marks.slice(first)) this.mark(mark, middle, top + row.height - 3);
  }

  /**
   * Draw strokes with a gap between them; thousands of heartbeats are skipped over.
   * @param {number[]} beats @param {number} top
   */
  heartbeats(beats, top) {
    let next = firstWithout(beats.length, (n) => this.x(beats[n]) < 0);
    while (next < beats.length) {
      const x = Math.round(this.x(beats[next]));
      if (x > this.width) return;
      this.pen.rectangle(x, top, 1.4, 5, this.colour("heartbeat"));
      const from = next + 1;
      next = from + firstWithout(beats.length - from, (n) => this.x(beats[from + n]) < x + 2);
    }
  }

  /** @param {Lane} lane @param {StateSpan} span @param {ChartRow} row */
  stable(lane, span, { top, height }) {
    const [from, to] = this.range(span);
    const owned = spanAt(lane.owned, span.start)?.text;
    if (owned) this.pen.box(from, to - 0.5, top + height - 7, 3, laneColour(lane.index), 0);
    if (height < 20) return;
    this.pen.boxText(owned || "no partitions", from, to, top + height / 2 - 1, this.colour("on-stable"));
  }

  /** @param {Mark} mark @param {number} middle @param {number} bottom */
  mark({ at, kind }, middle, bottom) {
    const { pen } = this;
    const x = this.x(at);
    if (x < -6 || x > this.width + 6) return;
    switch (kind) {
      case "commit":
        pen.rectangle(x - 1.5, bottom - 2, 3, 4, this.colour("commit"));
        break;
      case "error":
      case "removed":
        pen.disc(x, middle, this.colour("bad"));
        pen.cross(x, middle);
        break;
      case "notice":
        pen.disc(x, bottom - 3, this.colour("joining"), 2.5);
        break;
      case "avoided":
        pen.disc(x, middle, this.colour("good"), 6);
        pen.tick(x, middle);
        break;
      case "left":
        pen.disc(x, middle, this.colour("muted"), 3.5);
        break;
      default:
        pen.diamond(x, middle, this.colour(kind === "timer" ? "bad" : "test"));
    }
  }

  /** @param {ChartRow} row */
  transaction(row) {
    for (const span of this.group.transactions.get(row.name ?? "")?.values() ?? []) {
      const [from, to] = this.range(span);
      const { colour, ink } = TRANSACTIONS[span.state];
      if (!this.pen.box(from, Math.max(to, from + 2), row.top + 2, row.height - 4, this.colour(colour))) continue;
      this.pen.boxText(span.text, from, to, row.top + row.height / 2, this.colour(ink));
    }
  }

  /**
   * Draw the deliveries of records in the colours of their members; the end of one shows its outcome.
   * @param {ChartRow} row
   */
  records(row) {
    const [top, height] = [row.top + 1, row.height - 2];
    for (const span of row.deliveries ?? []) {
      const [from, to] = this.range(span);
      if (!this.holding(span.lane, [from, to], [top, height], deliveryText(span))) continue;
      if (span.end !== null) this.pen.rectangle(to - 3, top, 3, height, this.colour(OUTCOMES[span.outcome] ?? "bad"));
    }
  }

  /** @param {ChartRow} row */
  task(row) {
    for (const span of this.group.tasks.get(row.name ?? "")?.values() ?? []) {
      this.holding(span.lane, this.range(span), [row.top + 2, row.height - 4], "");
    }
  }

  /**
   * Draw a bar with the name of the lane that holds something; return whether it is in sight.
   * @param {number | null} index @param {[number, number]} range @param {[number, number]} box @param {string} text
   */
  holding(index, [from, to], [top, height], text) {
    const lane = index === null ? null : this.group.lanes[index];
    const colour = lane ? laneColour(lane.index) : this.colour("muted");
    if (!this.pen.box(from, Math.max(to - 0.5, from + 2), top, height, colour)) return false;
    this.pen.boxText([lane?.name, text].filter(Boolean).join(" · "), from, to, top + height / 2, "#fff");
    return true;
  }

  /** @param {ChartRow} row */
  partition(row) {
    const gap = row.height > 8 ? 2 : 1;
    const [top, height] = [row.top + gap / 2, row.height - gap];
    const spans = this.group.partitions.get(row.name ?? "") ?? [];
    /** @type {string | null} */
    let previous = null;
    for (const span of spans) {
      const [from, to] = this.range(span);
      const isVisible = to >= 0 && from <= this.width;
      const owners = span.owners.join();
      if (isVisible && span.owners.length === 1) {
        const lane = this.group.lanes[span.owners[0]];
        this.pen.box(from, to, top, height, laneColour(lane.index), 0);
        this.pauses(lane, from, to, top, height);
        if (height >= 12) this.pen.boxText(lane.name, from, to, top + height / 2, "#fff");
        if (previous && previous !== owners)
          this.pen.rectangle(from - 1, top - 0.5, 3, height + 1, this.colour("moved"));
      } else if (isVisible) this.wrongOwners(span, top, height);
      if (owners) previous = owners;
    }
  }

  /**
   * Hatch the pauses of an owner: it is disconnected, or an eager consumer that rejoins.
   * @param {Lane} lane @param {number} from @param {number} to @param {number} top @param {number} height
   */
  pauses(lane, from, to, top, height) {
    for (const span of lane.spans) {
      const isRejoin = span.state === "joining" || span.state === "syncing";
      if (span.state !== "away" && (lane.isCooperative || !isRejoin)) continue;
      const [left, right] = [Math.max(this.x(span.start), from), Math.min(this.x(span.end), to)];
      if (right > left) this.pen.box(left, right, top, height, this.hatch("paper"), 0);
    }
  }

  /**
   * Mark a partition with no owner or several, except without members.
   * @param {OwnerSpan} span @param {number} top @param {number} height
   */
  wrongOwners(span, top, height) {
    const [start, end] = this.range(span);
    for (const each of this.group.states) {
      if (!span.owners.length && (each.state === "Empty" || each.state === "Dead")) continue;
      const [from, to] = [Math.max(this.x(each.start), start), Math.min(this.x(each.end), end)];
      if (to <= from) continue;
      this.pen.box(from, to, top, height, this.colour("none"), 0);
      this.pen.box(from, to, top, height, this.hatch("bad"), 0);
    }
  }

  /** @param {Part} part @param {number} top @param {number} bottom */
  firstError(part, top, bottom) {
    const at = this.group.firstError;
    if (at === null) return;
    const x = Math.round(this.x(at)) + 0.5;
    const { context } = this.pen;
    context.strokeStyle = this.colour("bad");
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x, part === "top" ? 20 : top);
    context.lineTo(x, bottom);
    context.stroke();
    context.setLineDash([]);
    if (part !== "top") return;
    const text = `first error: ${this.model.lines[at].error}`;
    const room = this.pen.textWidth(text, STRONG_FONT) + 10;
    const left = Math.max(Math.min(x, this.width - room), 0);
    this.pen.box(left, left + room, 1, 18, this.colour("bad"));
    this.pen.text(text, left + 5, 10, "#fff", STRONG_FONT);
  }
}
