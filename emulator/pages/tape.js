// @ts-check
/** @import { Group } from "./group.js" */
/** @import { TapeEvent } from "./types.js" */
import { make, table } from "./dom.js";
import { count, duration, moment } from "./format.js";
import { firstWithout } from "./spans.js";

const ROW_PX = 26;
const TABLE_ROWS = 500;
const RELEVANT = "relevant";
const ERRORS = "errors";
const ALL = "all";

/** The list of events, with a filter. Only visible rows are in the document. */
export class Tape {
  /** @param {(at: number) => void} onSelect called with the position of a selected row */
  constructor(onSelect) {
    this.onSelect = onSelect;
    /** @type {Group | null} */
    this.group = null;
    /**
     * Positions of the filtered events.
     * @type {number[]}
     */
    this.shown = [];
    /** @type {number | null} */
    this.selected = null;
    this.drawn = "";
    const onFilter = () => this.filter();
    this.select = make("select", { "aria-label": "Filter events", onchange: onFilter });
    this.input = make("input", {
      type: "search",
      placeholder: "member, error, reason …",
      "aria-label": "Search events",
      oninput: onFilter,
    });
    this.count = make("span", { class: "k-count", role: "status" });
    this.space = make("div", { class: "k-space", role: "rowgroup" });
    this.list = make(
      "div",
      {
        class: "k-rows",
        role: "grid",
        tabindex: "0",
        "aria-label": "Events",
        "aria-colcount": "3",
        onscroll: () => this.draw(),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      },
      this.space,
    );
    const attributes = { class: "k-table", ontoggle: () => this.fillTable() };
    this.table = make("details", attributes, make("summary", {}, "Show as a plain table"));
    this.element = make(
      "section",
      { class: "k-tape", "aria-label": "Tape of events" },
      make("div", { class: "k-bar" }, make("h2", {}, "Tape"), this.select, this.input, this.count),
      this.list,
      this.table,
    );
    new ResizeObserver(() => this.draw()).observe(this.list);
  }

  /** @param {Group} group */
  show(group) {
    this.group = group;
    const options = [
      [RELEVANT, "Relevant events"],
      [ERRORS, "Errors"],
      [ALL, "All events"],
      ...group.model.apis().map((api) => [api, `${api} only`]),
    ];
    if (this.select.options.length !== options.length) {
      const selected = this.select.value || RELEVANT;
      const elements = options.map(([value, text]) => make("option", { value, selected: value === selected }, text));
      this.select.replaceChildren(...elements);
    }
    this.filter();
  }

  filter() {
    if (!this.group) return;
    const { model, events, id } = this.group;
    const search = this.input.value.trim().toLowerCase();
    const filter = this.select.value;
    const isFew = filter === RELEVANT || filter === ERRORS;
    const all = isFew ? [...events.keys()] : model.lines.map((_, at) => at);
    /** @param {number} at */
    const isSelected = (at) => {
      const line = model.lines[at];
      // the row of a response stands for its request right before it
      if (line.kind === "request" && model.partner[at] === at + 1) return false;
      if (filter === ERRORS) return events.get(at)?.level === "bad";
      return isFew || filter === ALL || (line.api === filter && line.group_id === id);
    };
    this.shown = all.filter((at) => isSelected(at) && (!search || this.searchText(at).includes(search)));
    this.space.style.height = `${this.shown.length * ROW_PX}px`;
    this.list.setAttribute("aria-rowcount", String(this.shown.length));
    this.count.textContent = `${count(this.shown.length, "event")} of ${model.lines.length}`;
    this.drawn = "";
    this.draw();
    this.fillTable();
  }

  /**
   * Return what a row shows; routine events have no text of their own.
   * @param {number} at
   * @returns {TapeEvent}
   */
  event(at) {
    const line = this.line(at);
    const text = line.api ? `${line.api}${line.kind === "response" ? ` → ${line.error || "OK"}` : ""}` : "";
    const subject = line.instance_id || line.client_id || line.member_id || line.kind;
    return this.group?.events.get(at) ?? { subject, text: text || `${line.kind} ${line.change ?? ""}`, level: "plain" };
  }

  /** @param {number} at */
  line(at) {
    return /** @type {Group} */ (this.group).model.lines[at];
  }

  /** @param {number} at */
  searchText(at) {
    const { subject, text } = this.event(at);
    return [subject, text, this.line(at).rule_id, this.line(at).client_reason].join(" ").toLowerCase();
  }

  /** @param {number} at */
  cells(at) {
    const { subject, text } = this.event(at);
    const { kind, latency_us: latency = 0 } = this.line(at);
    const model = this.group?.model;
    const waited = kind === "response" && latency > 1000 && model?.partner[at] !== at - 1;
    return [moment(model?.secondsAt(at) ?? 0), subject, waited ? `${text} · waited ${duration(latency / 1e6)}` : text];
  }

  draw() {
    const first = Math.max(0, Math.floor(this.list.scrollTop / ROW_PX) - 6);
    const bottom = this.list.scrollTop + this.list.clientHeight;
    const last = Math.min(this.shown.length, Math.ceil(bottom / ROW_PX) + 6);
    const drawn = `${first}-${last}-${this.selected}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.space.replaceChildren(...this.shown.slice(first, last).map((at, n) => this.row(at, first + n)));
  }

  /** @param {number} at @param {number} n */
  row(at, n) {
    const attributes = {
      class: `k-row k-${this.event(at).level}${at === this.group?.firstError ? " k-first" : ""}`,
      role: "row",
      id: `k-row-${at}`,
      "aria-rowindex": String(n + 1),
      "aria-selected": String(at === this.selected),
      style: `top:${n * ROW_PX}px`,
      onclick: () => this.onSelect(at),
    };
    return make("div", attributes, ...this.cells(at).map((text) => make("span", { role: "gridcell" }, text)));
  }

  /**
   * Select the row of a position, or the row before it, and scroll it into view.
   * @param {number} at
   */
  go(at) {
    const n = Math.max(firstWithout(this.shown.length, (each) => this.shown[each] <= at) - 1, 0);
    this.selected = this.shown[n] ?? null;
    const top = n * ROW_PX;
    if (top < this.list.scrollTop || top > this.list.scrollTop + this.list.clientHeight - ROW_PX) {
      this.list.scrollTop = Math.max(0, top - this.list.clientHeight / 2);
    }
    this.draw();
    if (this.selected === null) this.list.removeAttribute("aria-activedescendant");
    else this.list.setAttribute("aria-activedescendant", `k-row-${this.selected}`);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const page = Math.max(1, Math.floor(this.list.clientHeight / ROW_PX) - 1);
    /** @type {Record<string, number>} */
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.shown.length) return;
    event.preventDefault();
    event.stopPropagation();
    const now = this.selected === null ? 0 : Math.max(0, this.shown.indexOf(this.selected));
    this.onSelect(this.shown[Math.min(this.shown.length - 1, Math.max(0, now + step))]);
  }

  fillTable() {
    if (!this.table.open) return;
    const body = this.shown
      .slice(0, TABLE_ROWS)
      .map((at) => make("tr", {}, ...this.cells(at).map((text) => make("td", {}, text))));
    const isCut = this.shown.length > body.length;
    const caption = isCut ? `The first ${TABLE_ROWS} of ${this.shown.length} events; search to see others` : "Events";
    const heading = /** @type {Element} */ (this.table.firstElementChild);
    this.table.replaceChildren(heading, table(caption, ["Time", "Subject", "Event"], body));
  }
}
