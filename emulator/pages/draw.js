/* The picture: group band, join barrier, swim lanes and partitions over one axis of time, on canvases.
 *
 * `rowsOf` says what there is to draw, and how high; `paint` draws those rows that belong to one canvas. Colours are the
 * style sheet's (`--k-…`), so that light and dark are decided in one place.
 */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { words } = Koordinator;

  const FONT = "11px system-ui, sans-serif";
  const FONT_STRONG = "600 11px system-ui, sans-serif";
  const PARTITIONS_MAX = 400;

  /* What a lane's bar says in short, where there is room. */
  const SHORT = { joining: "joined, waiting", pending: "has id", unjoined: "must rejoin", syncing: "syncing", away: "process gone", removed: "thrown out" };

  const OWNERS = ["#3b6fb6", "#c77c02", "#8e5ea2", "#2a9d8f", "#d0679d", "#6b7a1e", "#5f5fc4", "#8a5a44", "#1c91c0", "#7b8794"];

  /** A lane's own colour, which stands for its partitions; never red, which stands for trouble. */
  function ownerColour(index) {
    if (index < OWNERS.length) return OWNERS[index];
    return `hsl(${30 + ((index * 137.508) % 290)} 45% ${index % 2 ? 42 : 55}%)`;
  }

  /** The rows of a group: `{part, kind, height, label, …}`; part "top" stays in sight, "body" scrolls. */
  function rowsOf(group) {
    const rows = [
      { part: "top", kind: "ruler", height: 20, label: "time" },
      { part: "top", kind: "flags", height: 18, label: "why" },
      { part: "top", kind: "band", height: 28, label: "group" },
      { part: "top", kind: "barrier", height: 30, label: "join barrier" },
    ];
    if (group.marks.length) rows.push({ part: "top", kind: "hand", height: 20, label: "test and timers" });
    const laneHeight = group.lanes.length <= 12 ? 30 : group.lanes.length <= 30 ? 22 : 17;
    for (const lane of group.lanes) rows.push({ part: "body", kind: "lane", height: laneHeight, lane, label: lane.name });
    const names = [...group.partitions.keys()].sort(byTopicAndNumber);
    const height = names.length <= 16 ? 16 : names.length <= 48 ? 9 : 5;
    if (names.length) rows.push({ part: "body", kind: "head", height: 26, label: `partitions (${names.length})` });
    for (const name of names.slice(0, PARTITIONS_MAX)) {
      rows.push({ part: "body", kind: "partition", height, name, label: height >= 14 ? name : "" });
    }
    if (names.length > PARTITIONS_MAX) rows.push({ part: "body", kind: "head", height: 20, label: `${names.length - PARTITIONS_MAX} more` });
    const top = { top: 0, body: 0 };
    for (const row of rows) {
      row.top = top[row.part];
      top[row.part] += row.height;
    }
    return rows;
  }

  function byTopicAndNumber(one, other) {
    const [a, b] = [one.lastIndexOf("-"), other.lastIndexOf("-")];
    return one.slice(0, a).localeCompare(other.slice(0, b)) || Number(one.slice(a + 1)) - Number(other.slice(b + 1));
  }

  class Painter {
    constructor(root) {
      this.root = root;
      this.hatches = new Map();
      this.colours = new Map();
    }

    /** A colour of the style sheet. */
    colour(name) {
      if (!this.colours.has(name)) {
        this.colours.set(name, getComputedStyle(this.root).getPropertyValue(`--k-${name}`).trim() || "#888");
      }
      return this.colours.get(name);
    }

    /** Light has become dark, or the reverse. */
    forget() {
      this.colours.clear();
      this.hatches.clear();
    }

    hatch(colour) {
      if (!this.hatches.has(colour)) {
        const tile = document.createElement("canvas");
        tile.width = tile.height = 7;
        const pen = tile.getContext("2d");
        pen.strokeStyle = colour;
        pen.lineWidth = 1.6;
        pen.beginPath();
        for (const shift of [-7, 0, 7]) {
          pen.moveTo(shift - 1, 8);
          pen.lineTo(shift + 8, -1);
        }
        pen.stroke();
        this.hatches.set(colour, this.pen.createPattern(tile, "repeat"));
      }
      return this.hatches.get(colour);
    }

    /** Draw the rows of one part on its canvas. */
    paint(canvas, part, { group, rows, axis, width }) {
      const mine = rows.filter((row) => row.part === part);
      const height = mine.reduce((sum, row) => sum + row.height, 0);
      const ratio = globalThis.devicePixelRatio || 1;
      canvas.width = Math.max(1, Math.round(width * ratio));
      canvas.height = Math.max(1, Math.round(height * ratio));
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      const pen = canvas.getContext("2d");
      Object.assign(this, { pen, group, axis, width, model: group.model });
      pen.scale(ratio, ratio);
      pen.textBaseline = "middle";
      pen.font = FONT;
      if (part === "body") this.rebalanceShades(height);
      for (const row of mine) this[row.kind](row);
      this.firstError(part, height);
    }

    x(at) {
      return this.axis.px(at, this.width);
    }

    box(from, to, top, height, fill, radius = 3) {
      const left = Math.max(from, -4);
      const right = Math.min(Math.max(to, from + 1.5), this.width + 4);
      if (right < 0 || left > this.width) return false;
      this.pen.fillStyle = fill;
      this.pen.beginPath();
      this.pen.roundRect(left, top, right - left, height, Math.min(radius, (right - left) / 2));
      this.pen.fill();
      return true;
    }

    /** A text inside a box, cut if need be; left out where less than a word would fit. */
    text(words_, from, to, middle, colour, font = FONT) {
      const left = Math.max(from, 0) + 5;
      const room = Math.min(to, this.width) - left - 3;
      if (room < 22) return;
      this.pen.font = font;
      let shown = words_;
      if (this.pen.measureText(shown).width > room) {
        const letters = Math.floor((room / this.pen.measureText(shown).width) * shown.length) - 1;
        if (letters < 3) return;
        shown = `${shown.slice(0, letters)}…`;
      }
      this.pen.fillStyle = colour;
      this.pen.fillText(shown, left, middle);
    }

    /** Where the group is not stable, all the way down. */
    rebalanceShades(height) {
      for (const band of this.group.bands) {
        if (band.state !== "PreparingRebalance" && band.state !== "CompletingRebalance") continue;
        this.box(this.x(band.start), this.x(band.end), 0, height, this.colour(`shade-${band.state}`), 0);
      }
    }

    ruler(row) {
      const middle = row.top + row.height / 2;
      let free = 0;
      const taken = [];
      const colour = this.colour("faint");
      for (const wait of this.axis.waits) {
        const [from, to] = [this.x(wait.from), this.x(wait.to)];
        this.pen.font = FONT;
        let text = `⋯ ${words.duration(wait.s)} ⋯`;
        if (this.pen.measureText(text).width > to - from - 4) text = words.duration(wait.s);
        const room = this.pen.measureText(text).width;
        if (to - from < room + 2 || (from + to) / 2 < 0 || (from + to) / 2 > this.width) continue;
        this.pen.fillStyle = colour;
        this.pen.fillText(text, (from + to - room) / 2, middle);
        taken.push([(from + to - room) / 2, (from + to + room) / 2]);
      }
      for (const at of this.axis.stops) {
        const x = this.x(at);
        if (x < free || x > this.width - 60 || taken.some(([from, to]) => x + 62 > from && x < to)) continue;
        this.pen.fillStyle = this.colour("muted");
        this.pen.fillText(words.moment(this.model.secondsAt(at)), x + 3, middle);
        this.pen.fillRect(x, row.top + 4, 1, row.height - 4);
        free = x + 130;
      }
    }

    flags(row) {
      const middle = row.top + row.height / 2;
      let free = -1;
      this.pen.font = FONT;
      for (const each of words.rebalances(this.group)) {
        const x = this.x(each.start);
        const text = words.whyOf(this.group, each);
        const room = this.pen.measureText(text).width;
        const left = Math.min(x, this.width - room - 8);
        if (left < free || x + room < 0 || x > this.width) continue;
        this.pen.fillStyle = this.colour("PreparingRebalance");
        this.pen.fillRect(x, row.top + 2, 2, row.height - 2);
        this.pen.fillStyle = this.colour("ink");
        this.pen.fillText(text, left + 5, middle);
        free = left + room + 12;
      }
    }

    band(row) {
      for (const band of this.group.bands) {
        const [from, to] = [this.x(band.start), this.x(band.end)];
        if (!this.box(from, to - 0.5, row.top + 2, row.height - 4, this.colour(band.state))) continue;
        const generation = band.generation > 0 ? ` · generation ${band.generation}` : "";
        this.text(`${band.state}${generation}`, from, to, row.top + row.height / 2, this.colour(`on-${band.state}`), FONT_STRONG);
      }
    }

    barrier(row) {
      const top = row.top + 3;
      const height = row.height - 6;
      let free = -1;
      for (const [n, barrier] of this.group.barriers.entries()) {
        const from = this.x(barrier.start);
        const to = Math.max(this.x(barrier.end), from + 6);
        if (to < 0 || from > this.width) continue;
        this.box(from, to, top, height, this.colour("barrier-empty"), 2);
        let share = 0;
        barrier.steps.forEach((step, index) => {
          const until = index + 1 < barrier.steps.length ? this.x(barrier.steps[index + 1].at) : to;
          share = step.expected ? step.joined / step.expected : 1;
          this.pen.fillStyle = this.colour("joining");
          this.pen.fillRect(this.x(step.at), top + height * (1 - share), Math.max(until - this.x(step.at), 1), height * share);
        });
        this.pen.strokeStyle = this.colour("PreparingRebalance");
        this.pen.strokeRect(Math.round(from) + 0.5, top + 0.5, Math.round(to - from) - 1, height - 1);
        const after = this.group.barriers[n + 1];
        free = this.barrierText(barrier, from, to, Math.max(free, 0), after ? this.x(after.start) : this.width, top + height / 2);
      }
    }

    /** In the box or beside it, as much as there is room for; returns what is free after it. */
    barrierText(barrier, from, to, free, end, middle) {
      this.pen.font = FONT;
      for (const text of words.barrierTold(this.group, barrier)) {
        const room = this.pen.measureText(text).width;
        const inside = to - from > room + 10;
        let left = inside ? Math.max(from, free) + 5 : to + 4;
        if (!inside && left + room > end && from - room - 4 > free) left = from - room - 4;
        if (left < free || left + room > (inside ? to : end)) continue;
        this.pen.fillStyle = this.colour(inside && barrier.steps.length < 2 ? "on-PreparingRebalance" : "ink");
        this.pen.fillText(text, left, middle);
        return left + room + 8;
      }
      return Math.max(free, to);
    }

    hand(row) {
      let free = -1;
      for (const mark of this.group.marks) {
        const x = this.x(mark.at);
        if (x < Math.max(-4, free - 8) || x > this.width + 4) continue;
        this.diamond(x, row.top + row.height / 2, this.colour("hand"));
        const text = words.handTold(this.model.lines[mark.at]);
        if (x < free) continue;
        this.pen.font = FONT;
        const shown = text.length > 48 ? `${text.slice(0, 47)}…` : text;
        this.pen.fillStyle = this.colour("hand");
        const room = this.pen.measureText(shown).width;
        const left = x + room + 7 > this.width ? x - room - 7 : x + 7;
        if (left > free) this.pen.fillText(shown, left, row.top + row.height / 2);
        free = x + room + 16;
      }
    }

    lane(row) {
      const { lane, top } = row;
      const height = row.height - 8;
      const middle = top + row.height / 2;
      this.pen.fillStyle = this.colour("line");
      this.pen.fillRect(0, Math.round(middle), this.width, 1);
      for (const span of lane.spans) {
        const [from, to] = [this.x(span.start), this.x(span.end)];
        if (!this.box(from, to - 0.5, top + 4, height, this.colour(span.state))) continue;
        if (span.state === "away" || span.state === "removed") this.box(from, to - 0.5, top + 4, height, this.hatch(this.colour(`hatch-${span.state}`)));
        if (span.state === "stable") this.stable(lane, span, from, to, row);
        else if (row.height >= 20) this.text(SHORT[span.state], from, to, middle, this.colour(`on-${span.state}`));
      }
      this.pen.fillStyle = this.colour("beat");
      let last = -9;
      for (const at of lane.beats) {
        const x = Math.round(this.x(at));
        if (x - last < 2 || x < 0 || x > this.width) continue;
        this.pen.fillRect(x, top + 1, 1.4, 5);
        last = x;
      }
      for (const held of lane.held) this.box(this.x(held.start), this.x(held.end), top + 2, 2.5, this.colour("hand"), 0);
      for (const mark of lane.marks) this.mark(mark, middle, top + row.height - 3);
    }

    stable(lane, span, from, to, row) {
      const owned = words.ownedAt(this.group, lane, span.start);
      if (owned.length) this.box(from, to - 0.5, row.top + row.height - 7, 3, ownerColour(lane.index), 0);
      if (row.height < 20) return;
      this.text(owned.length ? words.spread(owned) : "no partitions", from, to, row.top + row.height / 2 - 1, this.colour("on-stable"));
    }

    mark(mark, middle, bottom) {
      const x = this.x(mark.at);
      if (x < -6 || x > this.width + 6) return;
      switch (mark.kind) {
        case "commit":
          this.pen.fillStyle = this.colour("commit");
          this.pen.fillRect(x - 1.5, bottom - 2, 3, 4);
          break;
        case "error":
        case "expelled":
          this.disc(x, middle, this.colour("bad"));
          this.cross(x, middle);
          break;
        case "notice":
          this.disc(x, bottom - 3, this.colour("joining"), 2.5);
          break;
        case "avoided":
          this.disc(x, middle, this.colour("good"), 6);
          this.tick(x, middle);
          break;
        case "left":
          this.disc(x, middle, this.colour("muted"), 3.5);
          break;
        default:
          this.diamond(x, middle, this.colour(mark.kind === "timer" ? "bad" : "hand"));
      }
    }

    disc(x, y, colour, radius = 5.5) {
      this.pen.fillStyle = colour;
      this.pen.strokeStyle = this.colour("paper");
      this.pen.beginPath();
      this.pen.arc(x, y, radius, 0, 2 * Math.PI);
      this.pen.fill();
      this.pen.stroke();
    }

    stroke(points) {
      this.pen.strokeStyle = "#fff";
      this.pen.lineWidth = 1.5;
      this.pen.beginPath();
      for (const [n, [x, y]] of points.entries()) if (n % points.length === 0 || x === null) this.pen.moveTo(x, y); else this.pen.lineTo(x, y);
      this.pen.stroke();
      this.pen.lineWidth = 1;
    }

    cross(x, y) {
      this.stroke([[x - 2.4, y - 2.4], [x + 2.4, y + 2.4]]);
      this.stroke([[x - 2.4, y + 2.4], [x + 2.4, y - 2.4]]);
    }

    tick(x, y) {
      this.stroke([[x - 3, y], [x - 0.6, y + 2.6], [x + 3, y - 2.6]]);
    }

    diamond(x, y, colour) {
      this.pen.fillStyle = colour;
      this.pen.beginPath();
      this.pen.moveTo(x, y - 5);
      this.pen.lineTo(x + 4, y);
      this.pen.lineTo(x, y + 5);
      this.pen.lineTo(x - 4, y);
      this.pen.fill();
    }

    head() {}

    partition(row) {
      const gap = row.height > 8 ? 2 : 1;
      const [top, height] = [row.top + gap / 2, row.height - gap];
      const spans = this.group.partitions.get(row.name) || [];
      spans.forEach((span, n) => {
        const [from, to] = [this.x(span.start), this.x(span.end)];
        if (to < 0 || from > this.width) return;
        if (span.owners.length === 1) {
          this.box(from, to, top, height, ownerColour(span.owners[0]), 0);
          this.unread(span, from, to, top, height);
          if (height >= 12) this.text(this.group.lanes[span.owners[0]].name, from, to, top + height / 2, "#fff");
          const before = spans.slice(0, n).reverse().find((each) => each.owners.length);
          if (before && before.owners.join() !== span.owners.join()) {
            this.pen.fillStyle = this.colour("moved");
            this.pen.fillRect(from - 1, top - 0.5, 3, height + 1);
          }
        } else this.disowned(span, top, height);
      });
    }

    /** The owner's process is gone, or is joining again with nothing in hand: it owns, but nobody reads. */
    unread(span, from, to, top, height) {
      const lane = this.group.lanes[span.owners[0]];
      for (const pause of lane.spans) {
        if (pause.state !== "away" && (lane.isCooperative || (pause.state !== "joining" && pause.state !== "syncing"))) continue;
        const [left, right] = [Math.max(this.x(pause.start), from), Math.min(this.x(pause.end), to)];
        if (right > left) this.box(left, right, top, height, this.hatch(this.colour("paper")), 0);
      }
    }

    /** Nobody's, or two members': wrong, but in a group without members. */
    disowned(span, top, height) {
      for (const band of this.group.bands) {
        if (!span.owners.length && (band.state === "Empty" || band.state === "Dead")) continue;
        const [from, to] = [Math.max(this.x(band.start), this.x(span.start)), Math.min(this.x(band.end), this.x(span.end))];
        if (to <= from) continue;
        this.box(from, to, top, height, this.colour("none"), 0);
        this.box(from, to, top, height, this.hatch(this.colour("bad")), 0);
      }
    }

    firstError(part, height) {
      const at = this.model.firstError;
      if (at === null || this.model.lines[at].group_id !== this.group.id) return;
      const x = Math.round(this.x(at)) + 0.5;
      this.pen.strokeStyle = this.colour("bad");
      this.pen.setLineDash([4, 3]);
      this.pen.beginPath();
      this.pen.moveTo(x, part === "top" ? 20 : 0);
      this.pen.lineTo(x, height);
      this.pen.stroke();
      this.pen.setLineDash([]);
      if (part !== "top") return;
      this.pen.font = FONT_STRONG;
      const text = `first error: ${this.model.lines[at].error}`;
      const room = this.pen.measureText(text).width + 10;
      const left = Math.min(x, this.width - room);
      this.box(left, left + room, 1, 18, this.colour("bad"));
      this.pen.fillStyle = "#fff";
      this.pen.fillText(text, left + 5, 10);
    }
  }

  Object.assign(Koordinator, { Painter, rowsOf, ownerColour });
})();
