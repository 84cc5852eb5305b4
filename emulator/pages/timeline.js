// @ts-check
/* The timeline component: `mount(element, options)` shows a trace, `append(change)` extends it. */
/** @import { Change, ChartRow, Mark, Part, TimelineOptions } from "./types.js" */
import { Axis } from "./axis.js";
import { drawPart } from "./chart.js";
import { Details } from "./details.js";
import { copyText, make } from "./dom.js";
import { count, moment } from "./format.js";
import { Group } from "./group.js";
import { legend, rowLabel, tipText } from "./labels.js";
import { Model } from "./model.js";
import { Moves } from "./moves.js";
import { Overview } from "./overview.js";
import { Palette } from "./pen.js";
import { rowsOf } from "./rows.js";
import { firstWithout, spanAt } from "./spans.js";
import { stateAt } from "./story.js";
import { Tape } from "./tape.js";

const MARK_RADIUS_PX = 8;
const ALL_TIME = 1e9;
const STORY_MAX = 300;
const OWNERS_MAX = 20;
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
    /** @type {ChartRow[]} */
    this.rows = [];
    this.isShortened = true;
    this.isFollowing = true;
    this.width = 200;
    this.labelKey = "";
    this.copiedText = "";
    this.moves = new Moves();
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.pending = null;
    this.axis = new Axis(this.model, [], true);
    this.palette = new Palette(root);
    this.tape = new Tape((at) => this.go(at));
    this.details = new Details();
    this.overview = new Overview((id) => this.choose(id));
    this.search = make("input", {
      type: "search",
      placeholder: "find a member",
      "aria-label": "Show only members and partitions with this name",
      oninput: () => this.update(),
    });
    this.copied = make("span", { role: "status", class: "k-copied" });
    this.story = make("ol", { class: "k-story" });
    this.now = make("p", { class: "k-now", role: "status" });
    this.owners = make("ul", { class: "k-owners", "aria-label": "Owners at this moment" });
    this.canvases = { top: this.canvas("top"), body: this.canvas("body") };
    this.gutters = { top: make("div", { class: "k-gutter" }), body: make("div", { class: "k-gutter" }) };
    this.parts = {
      top: make("div", { class: "k-part k-top" }, this.gutters.top, this.canvases.top),
      body: make("div", { class: "k-part" }, this.gutters.body, this.canvases.body),
    };
    this.cursor = make("div", { class: "k-cursor", "aria-hidden": "true" });
    this.tip = make("div", { class: "k-tip", role: "tooltip", hidden: true });
    const onscroll = () => this.draw();
    this.scroll = make("div", { class: "k-scroll", onscroll }, this.parts.top, this.parts.body, this.cursor);
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
    this.toError = button("first error", "Go to the first error (E)", () => this.go(this.firstError));
    this.build();
  }

  build() {
    const { root } = this;
    root.classList.add("k-timeline");
    root.replaceChildren(
      this.header(),
      this.overview.element,
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
      this.search,
      make("button", { type: "button", onclick: link }, "Copy link to this moment"),
      make("button", { type: "button", onclick: () => this.copyTest() }, "Copy as test"),
      this.copied,
    );
    return make("header", { class: "k-head" }, make("div", {}, heading, paragraph), actions);
  }

  aside() {
    const [events, now] = ["Events of the group", "At this moment"];
    const attributes = { class: "k-aside", "aria-label": events };
    return make("aside", attributes, make("h2", {}, events), this.story, make("h2", {}, now), this.now, this.owners);
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

  /** @param {Change} change what is new in the trace; its rows belong to the chosen group */
  append({ lines, groups, rows = [] }) {
    this.model.append(lines);
    this.group?.apply(rows);
    this.overview.apply(groups);
    // setTimeout also runs in background pages; long traces are redrawn less often
    const delay = this.model.lines.length > 2000 ? 300 : 30;
    this.pending ??= setTimeout(() => {
      this.pending = null;
      this.update();
    }, delay);
  }

  /**
   * Show a group. A live page has the lines of one group only, and gets those of another one anew.
   * @param {string} id
   */
  choose(id) {
    if (this.group?.id === id) return;
    if (this.options.live) this.model = new Model();
    this.group = new Group(id, this.model);
    this.group.apply(this.options.drawings?.[id].rows ?? []);
    clearTimeout(this.moves.fading);
    this.moves = new Moves();
    this.isFollowing = true;
    this.options.onGroup?.(id);
    this.update();
    if (!this.options.live) this.goToHash();
  }

  /** Update everything after new lines. */
  update() {
    const known = Object.keys(this.options.drawings ?? {})[0] ?? this.overview.first();
    if (!this.group && known) this.choose(known);
    const { group } = this;
    this.overview.show(group?.id ?? "");
    if (!group) return;
    const { lines } = this.model;
    const all = [...group.events.keys()];
    // expected heartbeat errors, such as REBALANCE_IN_PROGRESS, are shown in their lane only
    const relevant = all.filter((at) => lines[at].api !== "Heartbeat" || group.events.get(at)?.level === "bad");
    this.steps = relevant.length ? relevant : [0];
    this.range.max = String(this.steps.length - 1);
    this.search.hidden = group.lanes.length < 8;
    this.rows = rowsOf(group, this.search.hidden ? "" : this.search.value.trim().toLowerCase());
    this.tell(group);
    this.label();
    if (this.options.live) this.moves.show(group, this.gutters.body);
    this.tape.show(group);
    this.toError.disabled = this.firstError === null;
    this.scale();
    if (this.isFollowing) this.goToEnd();
    else this.draw();
  }

  get firstError() {
    return this.group?.firstError ?? null;
  }

  /** @param {Group} group */
  tell(group) {
    const story = [...group.story.values()].sort((one, other) => one.at - other.at);
    const items = story.slice(-STORY_MAX).map(({ at, level, title, text }) => {
      const time = make("time", {}, moment(this.model.secondsAt(at)));
      const texts = [make("strong", {}, title), text ? make("span", {}, text) : null];
      const item = make("button", { type: "button", onclick: () => this.go(at) }, time, ...texts);
      return make("li", { class: `k-item k-${level}`, "data-at": at }, item);
    });
    this.story.replaceChildren(...items);
    const titles = items.map((item) => item.querySelector("strong")?.textContent).join("; ");
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

  /** @param {boolean} isShortened */
  rescale(isShortened) {
    this.isShortened = isShortened;
    this.scale();
    this.draw();
  }

  /** Place the events on a new axis, with the zoom of the old one. */
  scale() {
    const { from, to } = this.axis;
    this.axis = new Axis(this.model, this.steps, this.isShortened);
    if (to - from < 1) Object.assign(this.axis, { from, to });
  }

  draw() {
    if (!this.group) return;
    const gutter = this.gutters.top.offsetWidth;
    this.width = Math.max(200, this.scroll.clientWidth - gutter);
    const hidden = this.parts.top.offsetHeight;
    const { scrollTop, clientHeight } = this.scroll;
    /** @type {[number, number]} */
    const sight = [scrollTop, scrollTop + Math.max(clientHeight - hidden, 300)];
    const view = { group: this.group, rows: this.rows, axis: this.axis, width: this.width, sight };
    const last = this.rows.at(-1);
    this.parts.body.style.height = `${last?.part === "body" ? last.top + last.height : 0}px`;
    for (const part of PARTS) drawPart(this.canvases[part], part, view, this.palette);
    const x = this.axis.px(this.at, this.width);
    this.cursor.style.left = `${gutter + x}px`;
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
    else if (this.firstError !== null && !this.options.live) this.go(this.firstError);
    else this.goToEnd();
  }

  goToEnd() {
    this.go(this.steps.at(-1) ?? 0);
  }

  /** @param {number} at */
  stepAt(at) {
    return Math.min(
      firstWithout(this.steps.length, (n) => this.steps[n] < at),
      this.steps.length - 1,
    );
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
    this.owners.replaceChildren(...ownersAt(this.group, at));
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
      e: () => this.go(this.firstError),
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
    const y = offsetY + this.canvases[part].offsetTop;
    const row = this.rows.find((each) => each.part === part && y >= each.top && y < each.top + each.height);
    let at = this.axis.at(offsetX, this.width);
    const marks = row?.lane?.marks ?? (row?.kind === "test" ? this.group?.marks : null) ?? [];
    let distance = MARK_RADIUS_PX;
    /** @type {Mark | null} */
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

  async copyTest() {
    const { group, options } = this;
    if (group) this.copy(options.drawings?.[group.id].test ?? (await options.testOf?.(group.id)) ?? "", "test");
  }

  /** @param {string} text @param {string} content */
  async copy(text, content) {
    this.copiedText = text;
    await copyText(text, this.root);
    this.copied.textContent = `${content} copied`;
    if (content === "link") history.replaceState(null, "", `#seq=${this.seq}`);
  }
}

/** @param {HTMLElement} root @param {TimelineOptions & Partial<Change>} options the options and what is known so far */
export function mount(root, { lines = [], groups = [], ...options }) {
  const timeline = new Timeline(root, options);
  timeline.model.append(lines);
  timeline.overview.apply(groups);
  timeline.update();
  return timeline;
}

/**
 * Return what each member owns at a position; members without partitions are left out.
 * @param {Group} group @param {number} at
 */
function ownersAt(group, at) {
  const items = group.lanes.flatMap(({ name, owned }) => {
    const text = spanAt(owned, at)?.text;
    return text ? [make("li", {}, make("strong", {}, name), ` ${text}`)] : [];
  });
  if (items.length > OWNERS_MAX)
    items.splice(OWNERS_MAX, Number.POSITIVE_INFINITY, make("li", {}, `and ${items.length - OWNERS_MAX} more`));
  return items;
}
