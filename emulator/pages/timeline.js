/* The component: `Koordinator.mount(element, lines, {title, subtitle})` shows a trace, `append(lines)` goes on with it. */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { Axis, Details, Model, Painter, Tape, asTest, isError, isRoutine, make, ownerColour, rowsOf, spanAt, words } = Koordinator;

  const GUTTER = 170;

  const LEGEND = [
    ["band", "Stable", "Stable: everybody has its partitions"],
    ["band", "PreparingRebalance", "PreparingRebalance: waits until all have joined"],
    ["band", "CompletingRebalance", "CompletingRebalance: waits for the leader's assignment"],
    ["lane", "stable", "member, with these partitions"],
    ["lane", "unjoined", "must rejoin"],
    ["lane", "pending", "has got a member id"],
    ["lane", "joining", "has joined, waits for the others"],
    ["lane", "syncing", "waits for its assignment"],
    ["lane", "away", "process gone, still a member"],
    ["lane", "removed", "thrown out"],
    ["partition", "none", "nobody owns it, or two do"],
    ["mark", "beat", "heartbeat"],
    ["mark", "commit", "commit"],
    ["mark", "bad", "error"],
    ["mark", "good", "no rebalance"],
    ["mark", "hand", "the test's hand"],
  ];

  class Timeline {
    constructor(root, options) {
      this.model = new Model();
      this.root = root;
      this.options = options;
      this.group = null;
      this.at = 0;
      this.squeezed = true;
      this.followed = true;
      this.painter = new Painter(root);
      this.tape = new Tape((at) => this.go(at));
      this.details = new Details();
      root.classList.add("k-timeline");
      root.replaceChildren(this.head(options), make("div", { class: "k-main" }, this.aside(), this.chart()),
        make("div", { class: "k-lower" }, this.tape.element, this.details.element));
      root.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.paint()).observe(this.scroll);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        this.painter.forget();
        this.paint();
      });
      globalThis.addEventListener("hashchange", () => this.goToHash());
    }

    // -- what it is made of ------------------------------------------------------------------------------------

    head({ title, subtitle }) {
      this.chooser = make("select", { "aria-label": "Group", onchange: () => this.choose(this.chooser.value) });
      this.chooserLabel = make("label", { class: "k-chooser" }, "group ", this.chooser);
      this.copied = make("span", { role: "status", class: "k-copied" });
      return make("header", { class: "k-head" },
        make("div", {}, title ? make("h1", {}, title) : null, subtitle ? make("p", { class: "k-subtitle" }, subtitle) : null),
        make("div", { class: "k-actions" }, this.chooserLabel,
          make("button", { type: "button", onclick: () => this.copy(`${location.href.split("#")[0]}#seq=${this.seq}`, "link") }, "Copy link to this moment"),
          make("button", { type: "button", onclick: () => this.copy(asTest(this.group), "test") }, "Copy as test"), this.copied));
    }

    aside() {
      this.story = make("ol", { class: "k-story" });
      this.now = make("p", { class: "k-now", role: "status" });
      return make("aside", { class: "k-aside", "aria-label": "What happened" },
        make("h2", {}, "What happened"), this.story, make("h2", {}, "At this moment"), this.now);
    }

    chart() {
      this.canvases = { top: make("canvas", { role: "img" }), body: make("canvas", { role: "img" }) };
      this.gutters = { top: make("div", { class: "k-gutter" }), body: make("div", { class: "k-gutter" }) };
      this.cursor = make("div", { class: "k-cursor", "aria-hidden": "true" });
      this.tip = make("div", { class: "k-tip", role: "tooltip", hidden: true });
      this.parts = {
        top: make("div", { class: "k-part k-top" }, this.gutters.top, this.canvases.top),
        body: make("div", { class: "k-part" }, this.gutters.body, this.canvases.body),
      };
      this.scroll = make("div", { class: "k-scroll" }, this.parts.top, this.parts.body, this.cursor);
      for (const part of ["top", "body"]) this.watch(this.canvases[part], part);
      this.range = make("input", { type: "range", min: "0", step: "1", class: "k-scrub", "aria-label": "Moment: the arrow keys step through the events" });
      this.range.addEventListener("input", () => this.go(this.steps[Number(this.range.value)] ?? 0));
      this.squeeze = make("input", { type: "checkbox", checked: true, onchange: () => this.rescale(this.squeeze.checked) });
      const button = (text, label, action) => make("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
      return make("section", { class: "k-chart", "aria-label": "Timeline" }, this.scroll,
        make("div", { class: "k-bar" }, button("|◀", "First event", () => this.go(this.steps[0])), button("◀", "Previous event", () => this.step(-1)),
          this.range, button("▶", "Next event", () => this.step(1)), button("▶|", "Last event", () => this.go(this.steps[this.steps.length - 1])),
          button("−", "Zoom out", () => this.zoom(1.6)), button("+", "Zoom in", () => this.zoom(0.6)), button("all", "Show everything", () => this.zoom(1e9)),
          (this.toError = button("first error", "Go to the first error (E)", () => this.go(this.model.firstError))),
          make("label", {}, this.squeeze, " shorten waits")),
        this.legend(), this.tip);
    }

    legend() {
      return make("ul", { class: "k-legend", "aria-label": "Legend" }, ...LEGEND.map(([shape, name, text]) =>
        make("li", {}, make("i", { class: `k-swatch k-s-${shape} k-is-${name}`, "aria-hidden": "true" }), text)));
    }

    // -- what it shows ------------------------------------------------------------------------------------------

    append(lines) {
      this.model.append(lines);
      // a page in the background has no frames, and many lines are not drawn at every one that comes
      if (!this.pending) this.pending = setTimeout(() => {
        this.pending = null;
        this.renew();
      }, this.model.lines.length > 2000 ? 300 : 30);
    }

    /** Everything anew, after lines have come. */
    renew() {
      const groups = this.model.chosen();
      const known = [...this.chooser.options].map((option) => option.value);
      if (groups.some((group) => !known.includes(group.id))) {
        this.chooser.replaceChildren(...groups.map((group) => make("option", { value: group.id, selected: group === this.group }, group.id)));
        this.chooserLabel.hidden = false;
      }
      this.chooserLabel.classList.toggle("k-one", groups.length < 2);
      this.choose(this.group ? this.group.id : groups.length ? groups[0].id : null);
    }

    choose(id) {
      if (id === null) return;
      const other = !this.group || this.group.id !== id;
      this.group = this.model.group(id);
      if (other && this.options.chosen) this.options.chosen(id);
      const { lines } = this.model;
      // a heartbeat that is told to rejoin, again and again, is a matter of its lane
      const isStep = (line) => !isRoutine(line) && (line.api !== "Heartbeat" || isError(line));
      this.steps = [...new Set(this.group.at)].filter((at) => isStep(lines[at]));
      if (!this.steps.length) this.steps = [...new Set(this.group.at)];
      if (!this.steps.length) this.steps = [0];
      this.range.max = String(this.steps.length - 1);
      this.rows = rowsOf(this.group);
      this.tell();
      this.label();
      this.flash(other);
      this.tape.show(this.model, this.group);
      this.toError.disabled = this.model.firstError === null;
      this.rescale(this.squeezed);
      if (other) this.goToHash();
      else if (this.followed) this.go(this.steps[this.steps.length - 1]);
    }

    tell() {
      const told = words.story(this.group);
      this.story.replaceChildren(...told.map(({ at, level, title, text }) =>
        make("li", { class: `k-tale k-${level}`, "data-at": at }, make("button", { type: "button", onclick: () => this.go(at) },
          make("time", {}, words.moment(this.model.secondsAt(at))), make("strong", {}, title), text ? make("span", {}, text) : null))));
      const said = told.map((each) => each.title).join("; ");
      this.canvases.top.setAttribute("aria-label", `Group ${this.group.id}: state, generation and join barrier over time. ${said}`);
      this.canvases.body.setAttribute("aria-label",
        `${words.several(this.group.lanes.length, "lane")}: ${this.group.lanes.map((lane) => lane.name).join(", ")}; ${words.several(this.group.partitions.size, "partition")}. The list "What happened" and the tape say the same in words.`);
    }

    label() {
      const wanted = this.rows.map((row) => `${row.kind} ${row.name || row.label} ${row.top}`).join();
      if (this.labelled === wanted) return;
      this.labelled = wanted;
      for (const part of ["top", "body"]) {
        this.gutters[part].replaceChildren(...this.rows.filter((row) => row.part === part && (row.label || row.name)).map((row) => {
          const kids = [];
          if (row.lane) kids.push(make("i", { class: "k-dot", style: `background:${ownerColour(row.lane.index)}`, "aria-hidden": "true" }));
          kids.push(row.label);
          if (row.lane && row.lane.isStatic && row.height >= 20) kids.push(make("small", {}, "static"));
          const place = { style: `top:${row.top}px;height:${row.height}px`, title: row.label, "data-name": row.name || null };
          return make("div", { class: `k-label k-l-${row.kind}`, ...place }, ...kids);
        }));
      }
    }

    /** Partitions that have another owner than when we looked last light up, where somebody watches. */
    flash(quietly) {
      const owners = new Map([...this.group.partitions].map(([name, spans]) => [name, spans[spans.length - 1].owners.join()]));
      const before = this.owners || new Map();
      this.owners = owners;
      if (quietly || !this.options.live || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      for (const label of this.gutters.body.querySelectorAll("[data-name]")) {
        const owner = owners.get(label.dataset.name);
        if (!owner || owner === before.get(label.dataset.name)) continue;
        label.animate([{ background: ownerColour(Number(owner.split(",")[0])) }, { background: "transparent" }], 1500);
      }
    }

    rescale(squeezed) {
      this.squeezed = squeezed;
      const { from, to } = this.axis || { from: 0, to: 1 };
      this.axis = new Axis(this.model, this.steps, squeezed);
      if (to - from < 1) Object.assign(this.axis, { from, to });
      this.paint();
    }

    paint() {
      if (!this.axis) return;
      const width = Math.max(200, this.scroll.clientWidth - GUTTER);
      const view = { group: this.group, rows: this.rows, axis: this.axis, width };
      for (const part of ["top", "body"]) this.painter.paint(this.canvases[part], part, view);
      this.width = width;
      this.place();
    }

    place() {
      const x = this.axis.px(this.at, this.width);
      this.cursor.style.left = `${GUTTER + x}px`;
      this.cursor.style.height = `${this.parts.top.offsetHeight + this.parts.body.offsetHeight}px`;
      this.cursor.hidden = x < 0 || x > this.width;
    }

    // -- where one looks -----------------------------------------------------------------------------------------

    get seq() {
      return this.model.lines.length ? this.model.lines[this.at].seq : 0;
    }

    goToHash() {
      const wanted = /seq=(\d+)/.exec(location.hash);
      if (wanted) this.go(this.model.positionOf(Number(wanted[1])));
      else if (this.model.firstError !== null && !this.options.live) this.go(this.model.firstError);
      else this.go(this.steps[this.steps.length - 1]);
    }

    /** Look at a position: cursor, sentence, tape and details follow. */
    go(at) {
      if (at === null || at === undefined || !this.model.lines.length) return;
      this.at = at;
      const nearest = this.steps.findIndex((each) => each >= at);
      const step = nearest === -1 ? this.steps.length - 1 : nearest;
      this.followed = step === this.steps.length - 1;
      this.range.value = String(step);
      const said = `${words.moment(this.model.secondsAt(at))}: ${words.stateAt(this.group, at)}`;
      this.range.setAttribute("aria-valuetext", said);
      this.now.textContent = said;
      for (const item of this.story.children) item.classList.remove("k-current");
      const current = [...this.story.children].filter((item) => Number(item.dataset.at) <= at).pop();
      if (current) {
        current.classList.add("k-current");
        const [top, bottom] = [current.offsetTop, current.offsetTop + current.offsetHeight];
        const list = this.story;
        if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
      }
      this.axis.show(at);
      this.paint();
      this.tape.go(at);
      this.details.show(this.model, this.group, at);
    }

    step(by) {
      const now = this.steps.findIndex((each) => each >= this.at);
      const from = now === -1 ? this.steps.length - 1 : now;
      // between two steps the next one is where `from` is already
      const next = this.steps[from] > this.at && by > 0 ? from + by - 1 : from + by;
      this.go(this.steps[Math.min(this.steps.length - 1, Math.max(0, next))]);
    }

    zoom(factor, px = this.axis.px(this.at, this.width)) {
      this.axis.zoom(factor, Math.min(Math.max(px, 0), this.width), this.width);
      this.paint();
    }

    key(event) {
      if (event.target.closest("input:not([type=range]), select, pre, .k-rows") || event.ctrlKey || event.metaKey || event.altKey) return;
      const actions = {
        ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1), Home: () => this.go(this.steps[0]),
        End: () => this.go(this.steps[this.steps.length - 1]), e: () => this.go(this.model.firstError), "+": () => this.zoom(0.6),
        "-": () => this.zoom(1.6), 0: () => this.zoom(1e9),
      };
      const action = actions[event.key];
      if (!action) return;
      event.preventDefault();
      action();
    }

    watch(canvas, part) {
      canvas.addEventListener("click", (event) => this.go(this.under(event, part).at));
      canvas.addEventListener("mousemove", (event) => this.point(event, part));
      canvas.addEventListener("mouseleave", () => (this.tip.hidden = true));
      canvas.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, event.offsetX);
      }, { passive: false });
    }

    /** The row and the position under the pointer; in a lane the nearest mark within a few pixels. */
    under(event, part) {
      const row = this.rows.find((each) => each.part === part && event.offsetY >= each.top && event.offsetY < each.top + each.height);
      let at = this.axis.at(event.offsetX, this.width);
      const marks = row && (row.lane ? row.lane.marks : row.kind === "hand" ? this.group.marks : []);
      let near = 8;
      let mark = null;
      for (const each of marks || []) {
        const away = Math.abs(this.axis.px(each.at, this.width) - event.offsetX);
        if (away < near) [near, mark, at] = [away, each, each.at];
      }
      return { row, at, mark };
    }

    point(event, part) {
      const { row, at, mark } = this.under(event, part);
      const text = row ? this.tipText(row, at, mark) : "";
      this.tip.hidden = !text;
      if (!text) return;
      this.tip.textContent = `${words.moment(this.model.secondsAt(at))}  ${text}`;
      const box = this.tip.parentElement.getBoundingClientRect();
      const left = event.clientX - box.left + 14;
      this.tip.style.left = `${Math.min(left, box.width - this.tip.offsetWidth - 8)}px`;
      this.tip.style.top = `${event.clientY - box.top + 16}px`;
    }

    tipText(row, at, mark) {
      if (row.lane) {
        const span = spanAt(row.lane.spans, at);
        const owned = words.ownedAt(this.group, row.lane, at);
        const state = span ? `${words.STATES[span.state]}${owned.length ? `: ${words.spread(owned)}` : ""}` : "not in the group";
        return `${row.lane.name}: ${mark ? mark.text : state}`;
      }
      if (row.kind === "partition") {
        const span = spanAt(this.group.partitions.get(row.name), at);
        const owners = span ? span.owners.map((index) => this.group.lanes[index].name) : [];
        return `${row.name}: ${owners.length > 1 ? `owned by ${owners.join(" and ")} at once` : owners[0] || "owned by nobody"}`;
      }
      if (row.kind === "hand") return mark ? words.handTold(this.model.lines[at]) : "";
      const band = spanAt(this.group.bands, at);
      return `${words.stateAt(this.group, at)}${band && band.reason ? `. ${band.reason}` : ""}`;
    }

    async copy(text, what) {
      this.copiedText = text;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        // a page from a file may not have the clipboard
        const area = make("textarea", { class: "k-offscreen" });
        area.value = text;
        this.root.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      this.copied.textContent = `${what} copied`;
      if (what === "link") history.replaceState(null, "", `#seq=${this.seq}`);
    }
  }

  Koordinator.mount = (root, lines, options = {}) => {
    const timeline = new Timeline(root, options);
    timeline.model.append(lines);
    timeline.renew();
    return timeline;
  };
})();
