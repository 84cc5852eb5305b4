// @ts-check
/* The timeline component: `mount(element, lines, {title, subtitle})` shows a trace, `append(lines)` extends it. */
/** @import { Group } from "./group.js" */
/** @import { GroupMark, LaneMark, Line, Part, Row, TimelineOptions } from "./types.js" */
import { Axis } from "./axis.js";
import { drawPart } from "./chart.js";
import { Details } from "./details.js";
import { copyText, make } from "./dom.js";
import { isError, isRoutine } from "./events.js";
import { count, moment } from "./format.js";
import { legend, rowLabel, tipText } from "./labels.js";
import { Model } from "./model.js";
import { laneColour, Palette } from "./pen.js";
import { rowsOf } from "./rows.js";
import { stateAt, storyOf } from "./story.js";
import { Tape } from "./tape.js";
import { asTest } from "./test_code.js";

const GUTTER_PX = 170;
const MARK_RADIUS_PX = 8;
const ALL_TIME = 1e9;
const PARTS = /** @type {Part[]} */ (["top", "body"]);

/** @param {string} text @param {string} label @param {() => void} onclick */
const button = (text, label, onclick) =>
  make("button", { type: "button", "aria-label": label, title: label, onclick }, text);

export class Timeline {
  /** @param {HTMLElement} root @param {TimelineOptions} options */
  constructor(root, options) {
    this.model = new Model();
    this.root = root;
    this.options = options;
    /** @type {Group | null} */
    this.group = null;
    this.at = 0;
    /** @type {number[]} */
    this.steps = [0];
    /** @type {Row[]} */
    this.rows = [];
    this.isShortened = true;
    this.isFollowing = true;
    this.width = 200;
    this.labelKey = "";
    this.copiedText = "";
    /** @type {Map<string, string>} */
    this.owners = new Map();
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.pending = null;
    this.axis = new Axis(this.model, [], true);
    this.palette = new Palette(root);
    this.tape = new Tape((at) => this.go(at));
    this.details = new Details();
    this.chooser = make("select", { "aria-label": "Group", onchange: () => this.choose(this.chooser.value) });
    this.chooserLabel = make("label", { class: "k-chooser" }, "group ", this.chooser);
    this.copied = make("span", { role: "status", class: "k-copied" });
    this.story = make("ol", { class: "k-story" });
    this.now = make("p", { class: "k-now", role: "status" });
    this.canvases = { top: this.canvas("top"), body: this.canvas("body") };
    this.gutters = { top: make("div", { class: "k-gutter" }), body: make("div", { class: "k-gutter" }) };
    this.parts = {
      top: make("div", { class: "k-part k-top" }, this.gutters.top, this.canvases.top),
      body: make("div", { class: "k-part" }, this.gutters.body, this.canvases.body),
    };
    this.cursor = make("div", { class: "k-cursor", "aria-hidden": "true" });
    this.tip = make("div", { class: "k-tip", role: "tooltip", hidden: true });
    this.scroll = make("div", { class: "k-scroll" }, this.parts.top, this.parts.body, this.cursor);
    this.range = make("input", {
      type: "range",
      min: "0",
      step: "1",
      class: "k-scrub",
      "aria-label": "Moment: step through the events with the arrow keys",
      oninput: () => this.go(this.steps[Number(this.range.value)] ?? 0),
    });
    const onShorten = () => this.rescale(this.shorten.checked);
    this.shorten = make("input", { type: "checkbox", checked: true, onchange: onShorten });
    this.toError = button("first error", "Go to the first error (E)", () => this.go(this.model.firstError));
    this.build();
  }

  build() {
    const { root } = this;
    root.classList.add("k-timeline");
    root.replaceChildren(
      this.header(),
      make("div", { class: "k-main" }, this.aside(), this.chart()),
      make("div", { class: "k-lower" }, this.tape.element, this.details.element),
    );
    root.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => this.draw()).observe(this.scroll);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette.reset();
      this.draw();
    });
    globalThis.addEventListener("hashchange", () => this.goToHash());
  }

  header() {
    const { title, subtitle } = this.options;
    const heading = title ? make("h1", {}, title) : null;
    const paragraph = subtitle ? make("p", { class: "k-subtitle" }, subtitle) : null;
    const link = () => this.copy(`${location.href.split("#")[0]}#seq=${this.seq}`, "link");
    const actions = make(
      "div",
      { class: "k-actions" },
      this.chooserLabel,
      make("button", { type: "button", onclick: link }, "Copy link to this moment"),
      make(
        "button",
        { type: "button", onclick: () => this.group && this.copy(asTest(this.group), "test") },
        "Copy as test",
      ),
      this.copied,
    );
    return make("header", { class: "k-head" }, make("div", {}, heading, paragraph), actions);
  }

  aside() {
    const [events, now] = ["Events of the group", "At this moment"];
    const attributes = { class: "k-aside", "aria-label": events };
    return make("aside", attributes, make("h2", {}, events), this.story, make("h2", {}, now), this.now);
  }

  chart() {
    const bar = [
      button("|◀", "First event", () => this.go(this.steps[0])),
      button("◀", "Previous event", () => this.step(-1)),
      this.range,
      button("▶", "Next event", () => this.step(1)),
      button("▶|", "Last event", () => this.goToEnd()),
      button("−", "Zoom out", () => this.zoom(1.6)),
      button("+", "Zoom in", () => this.zoom(0.6)),
      button("all", "Show all", () => this.zoom(ALL_TIME)),
      this.toError,
      make("label", {}, this.shorten, " shorten waits"),
    ];
    return make(
      "section",
      { class: "k-chart", "aria-label": "Timeline" },
      this.scroll,
      make("div", { class: "k-bar" }, ...bar),
      legend(),
      this.tip,
    );
  }

  /** @param {Part} part */
  canvas(part) {
    const canvas = make("canvas", { role: "img" });
    canvas.addEventListener("click", (event) => this.go(this.pointed(event, part).at));
    canvas.addEventListener("mousemove", (event) => this.showTip(event, part));
    canvas.addEventListener("mouseleave", () => {
      this.tip.hidden = true;
    });
    const onWheel = (/** @type {WheelEvent} */ event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      this.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, event.offsetX);
    };
    canvas.addEventListener("wheel", onWheel, { passive: false });
    return canvas;
  }

  // -- content --------------------------------------------------------------------------------------------------

  /** @param {Line[]} lines */
  append(lines) {
    this.model.append(lines);
    if (this.pending) return;
    // setTimeout also runs in background pages; long traces are redrawn less often
    const delay = this.model.lines.length > 2000 ? 300 : 30;
    this.pending = setTimeout(() => {
      this.pending = null;
      this.update();
    }, delay);
  }

  /** Update everything after new lines. */
  update() {
    const groups = this.model.activeGroups();
    const known = [...this.chooser.options].map((option) => option.value);
    if (groups.some((group) => !known.includes(group.id))) {
      const option = (/** @type {Group} */ group) =>
        make("option", { value: group.id, selected: group === this.group }, group.id);
      this.chooser.replaceChildren(...groups.map(option));
    }
    this.chooserLabel.classList.toggle("k-one", groups.length < 2);
    const group = this.group ?? groups[0];
    if (group) this.choose(group.id);
  }

  /** @param {string} id */
  choose(id) {
    const isOther = this.group?.id !== id;
    const group = this.model.group(id);
    this.group = group;
    if (isOther) this.options.onGroup?.(id);
    const { lines } = this.model;
    const all = [...new Set(group.positions)];
    // expected heartbeat errors, such as REBALANCE_IN_PROGRESS, are shown in their lane only
    const relevant = all.filter((at) => !isRoutine(lines[at]) && (lines[at].api !== "Heartbeat" || isError(lines[at])));
    this.steps = relevant.length ? relevant : all.length ? all : [0];
    this.range.max = String(this.steps.length - 1);
    this.rows = rowsOf(group);
    this.tell(group);
    this.label();
    this.flash(group, isOther);
    this.tape.show(this.model, group);
    this.toError.disabled = this.model.firstError === null;
    this.rescale(this.isShortened);
    if (isOther) this.goToHash();
    else if (this.isFollowing) this.goToEnd();
  }

  /** @param {Group} group */
  tell(group) {
    const story = storyOf(group);
    const items = story.map(({ at, level, title, text }) => {
      const time = make("time", {}, moment(this.model.secondsAt(at)));
      const texts = [make("strong", {}, title), text ? make("span", {}, text) : null];
      const item = make("button", { type: "button", onclick: () => this.go(at) }, time, ...texts);
      return make("li", { class: `k-item k-${level}`, "data-at": at }, item);
    });
    this.story.replaceChildren(...items);
    const titles = story.map((item) => item.title).join("; ");
    const states = `Group ${group.id}: state, generation and join barrier over time. ${titles}`;
    this.canvases.top.setAttribute("aria-label", states);
    const lanes = `${count(group.lanes.length, "lane")}: ${group.lanes.map((lane) => lane.name).join(", ")}`;
    const partitions = count(group.partitions.size, "partition");
    const lists = "The list of events and the tape have the same content as text.";
    this.canvases.body.setAttribute("aria-label", `${lanes}; ${partitions}. ${lists}`);
  }

  label() {
    const key = this.rows.map((row) => `${row.kind} ${row.name || row.label} ${row.top}`).join();
    if (this.labelKey === key) return;
    this.labelKey = key;
    for (const part of PARTS) {
      const rows = this.rows.filter((row) => row.part === part && (row.label || row.name));
      this.gutters[part].replaceChildren(...rows.map(rowLabel));
    }
  }

  /**
   * Highlight partitions with a new owner on a live page.
   * @param {Group} group @param {boolean} isOther
   */
  flash(group, isOther) {
    const owners = new Map([...group.partitions].map(([name, spans]) => [name, spans.at(-1)?.owners.join() ?? ""]));
    const before = this.owners;
    this.owners = owners;
    const isQuiet = isOther || !this.options.live || matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (isQuiet) return;
    for (const label of this.gutters.body.children) {
      const name = label.getAttribute("data-name");
      const owner = name && owners.get(name);
      if (!name || !owner || owner === before.get(name)) continue;
      const colour = laneColour(Number(owner.split(",")[0]));
      label.animate([{ background: colour }, { background: "transparent" }], 1500);
    }
  }

  /** @param {boolean} isShortened */
  rescale(isShortened) {
    this.isShortened = isShortened;
    const { from, to } = this.axis;
    this.axis = new Axis(this.model, this.steps, isShortened);
    if (to - from < 1) Object.assign(this.axis, { from, to });
    this.draw();
  }

  draw() {
    if (!this.group) return;
    this.width = Math.max(200, this.scroll.clientWidth - GUTTER_PX);
    const view = { group: this.group, rows: this.rows, axis: this.axis, width: this.width };
    for (const part of PARTS) drawPart(this.canvases[part], part, view, this.palette);
    const x = this.axis.px(this.at, this.width);
    this.cursor.style.left = `${GUTTER_PX + x}px`;
    this.cursor.style.height = `${this.parts.top.offsetHeight + this.parts.body.offsetHeight}px`;
    this.cursor.hidden = x < 0 || x > this.width;
  }

  // -- position -------------------------------------------------------------------------------------------------

  get seq() {
    return this.model.lines[this.at]?.seq ?? 0;
  }

  goToHash() {
    const seq = /seq=(\d+)/.exec(location.hash);
    if (seq) this.go(this.model.positionOf(Number(seq[1])));
    else if (this.model.firstError !== null && !this.options.live) this.go(this.model.firstError);
    else this.goToEnd();
  }

  goToEnd() {
    this.go(this.steps.at(-1) ?? 0);
  }

  /** @param {number} at */
  stepAt(at) {
    return Math.min(this.steps.filter((each) => each < at).length, this.steps.length - 1);
  }

  /**
   * Move to a position: update cursor, sentence, tape and details.
   * @param {number | null} at
   */
  go(at) {
    if (at === null || !this.group || !this.model.lines.length) return;
    this.at = at;
    const step = this.stepAt(at);
    this.isFollowing = step === this.steps.length - 1;
    this.range.value = String(step);
    const text = `${moment(this.model.secondsAt(at))}: ${stateAt(this.group, at)}`;
    this.range.setAttribute("aria-valuetext", text);
    this.now.textContent = text;
    this.highlightStory(at);
    this.axis.show(at);
    this.draw();
    this.tape.go(at);
    this.details.show(this.model, this.group, at);
  }

  /** @param {number} at */
  highlightStory(at) {
    const list = this.story;
    const items = /** @type {HTMLElement[]} */ ([...list.children]);
    for (const item of items) item.classList.remove("k-current");
    const current = items.findLast((item) => Number(item.dataset.at) <= at);
    if (!current) return;
    current.classList.add("k-current");
    const bottom = current.offsetTop + current.offsetHeight;
    if (current.offsetTop < list.scrollTop || bottom > list.scrollTop + list.clientHeight) {
      list.scrollTop = bottom - list.clientHeight;
    }
  }

  /** @param {number} by */
  step(by) {
    const from = this.stepAt(this.at);
    // between two steps, `from` is already the next one
    const next = this.steps[from] > this.at && by > 0 ? from + by - 1 : from + by;
    this.go(this.steps[Math.min(this.steps.length - 1, Math.max(0, next))]);
  }

  /** @param {number} factor @param {number} [px] */
  zoom(factor, px = this.axis.px(this.at, this.width)) {
    this.axis.zoom(factor, Math.min(Math.max(px, 0), this.width), this.width);
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const target = /** @type {Element} */ (event.target);
    const isTyping = target.closest("input:not([type=range]), select, pre, .k-rows");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      Home: () => this.go(this.steps[0]),
      End: () => this.goToEnd(),
      e: () => this.go(this.model.firstError),
      "+": () => this.zoom(0.6),
      "-": () => this.zoom(1.6),
      0: () => this.zoom(ALL_TIME),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // -- pointer --------------------------------------------------------------------------------------------------

  /**
   * Return the row and position under the pointer, or the nearest mark within a few pixels.
   * @param {MouseEvent} event @param {Part} part
   */
  pointed({ offsetX, offsetY }, part) {
    const isUnder = (/** @type {Row} */ row) => offsetY >= row.top && offsetY < row.top + row.height;
    const row = this.rows.find((each) => each.part === part && isUnder(each));
    let at = this.axis.at(offsetX, this.width);
    const marks = row?.lane?.marks ?? (row?.kind === "test" ? this.group?.marks : null) ?? [];
    let distance = MARK_RADIUS_PX;
    /** @type {LaneMark | GroupMark | null} */
    let mark = null;
    for (const each of marks) {
      const away = Math.abs(this.axis.px(each.at, this.width) - offsetX);
      if (away >= distance) continue;
      distance = away;
      mark = each;
      at = each.at;
    }
    return { row, at, mark };
  }

  /** @param {MouseEvent} event @param {Part} part */
  showTip(event, part) {
    const { row, at, mark } = this.pointed(event, part);
    const text = row && this.group ? tipText(this.group, row, at, mark) : "";
    this.tip.hidden = !text;
    if (!text || !this.tip.parentElement) return;
    this.tip.textContent = `${moment(this.model.secondsAt(at))}  ${text}`;
    const box = this.tip.parentElement.getBoundingClientRect();
    const left = event.clientX - box.left + 14;
    this.tip.style.left = `${Math.min(left, box.width - this.tip.offsetWidth - 8)}px`;
    this.tip.style.top = `${event.clientY - box.top + 16}px`;
  }

  /** @param {string} text @param {string} content */
  async copy(text, content) {
    this.copiedText = text;
    await copyText(text, this.root);
    this.copied.textContent = `${content} copied`;
    if (content === "link") history.replaceState(null, "", `#seq=${this.seq}`);
  }
}

/** @param {HTMLElement} root @param {Line[]} lines @param {TimelineOptions} [options] */
export function mount(root, lines, options = {}) {
  const timeline = new Timeline(root, options);
  timeline.model.append(lines);
  timeline.update();
  return timeline;
}
