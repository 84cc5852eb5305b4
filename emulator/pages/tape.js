// @ts-check
/** @import { Group } from "./group.js" */
/** @import { Model } from "./model.js" */
import { make, table } from "./dom.js";
import { isError, isRoutine, isTestAction, summary } from "./events.js";
import { count, duration, moment } from "./format.js";

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
    /** @type {Model | null} */
    this.model = null;
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
    const onToggle = () => this.fillTable();
    this.table = make(
      "details",
      { class: "k-table", ontoggle: onToggle },
      make("summary", {}, "Show as a plain table"),
    );
    this.element = make(
      "section",
      { class: "k-tape", "aria-label": "Tape of events" },
      make("div", { class: "k-bar" }, make("h2", {}, "Tape"), this.select, this.input, this.count),
      this.list,
      this.table,
    );
    new ResizeObserver(() => this.draw()).observe(this.list);
  }

  /** @param {Model} model @param {Group} group */
  show(model, group) {
    this.model = model;
    this.group = group;
    const apis = new Set(group.positions.map((at) => model.lines[at].api ?? "").filter(Boolean));
    const options = [
      [RELEVANT, "Relevant events"],
      [ERRORS, "Errors"],
      [ALL, "All events of all groups"],
      ...[...apis].sort().map((api) => [api, `${api} only`]),
    ];
    const known = [...this.select.options].map((option) => option.value).join();
    if (known !== options.map(([value]) => value).join()) {
      const selected = this.select.value || RELEVANT;
      const elements = options.map(([value, text]) => make("option", { value, selected: value === selected }, text));
      this.select.replaceChildren(...elements);
    }
    this.filter();
  }

  filter() {
    if (!this.model || !this.group) return;
    const { lines } = this.model;
    const search = this.input.value.trim().toLowerCase();
    const all = this.select.value === ALL ? lines.map((_, at) => at) : [...new Set(this.group.positions)];
    this.shown = all.filter((at) => this.isSelected(at) && (!search || this.searchText(at).includes(search)));
    this.space.style.height = `${this.shown.length * ROW_PX}px`;
    this.list.setAttribute("aria-rowcount", String(this.shown.length));
    this.count.textContent = `${count(this.shown.length, "event")} of ${lines.length}`;
    this.drawn = "";
    this.draw();
    this.fillTable();
  }

  /** @param {number} at */
  isSelected(at) {
    const line = this.line(at);
    const partner = this.model?.partner[at] ?? null;
    // the row of a response stands for its request right before it
    if (line.kind === "request" && partner === at + 1) return false;
    switch (this.select.value) {
      case ALL:
        return true;
      case ERRORS:
        return isError(line);
      case RELEVANT:
        return !isRoutine(line);
      default:
        return line.api === this.select.value;
    }
  }

  /** @param {number} at */
  line(at) {
    return /** @type {Model} */ (this.model).lines[at];
  }

  /** @param {number} at */
  subject(at) {
    const line = this.line(at);
    if (line.kind === "state") return "group";
    const request = line.kind === "response" ? (this.model?.partner[at] ?? -1) : at;
    const lane = this.model?.laneOfCall.get(request) ?? this.group?.laneOfMember.get(line.member_id);
    return lane?.name || line.instance_id || line.client_id || line.member_id || line.kind;
  }

  /** @param {number} at */
  searchText(at) {
    const line = this.line(at);
    const texts = [this.subject(at), summary(line), line.rule_id ?? "", line.client_reason ?? ""];
    return texts.join(" ").toLowerCase();
  }

  /** @param {number} at */
  cells(at) {
    const line = this.line(at);
    const request = line.kind === "response" ? (this.model?.partner[at] ?? null) : null;
    const waited = request !== null && request !== at - 1 && (line.latency_us ?? 0) > 1000;
    const wait = waited ? ` · waited ${duration((line.latency_us ?? 0) / 1e6)}` : "";
    return [moment(this.model?.secondsAt(at) ?? 0), this.subject(at), summary(line) + wait];
  }

  /** @param {number} at */
  rowClass(at) {
    const line = this.line(at);
    if (isError(line)) return "k-bad";
    if (line.kind === "state") return `k-state k-${line.state_to}`;
    if (line.kind === "avoided_static") return "k-good";
    if (line.rule_id || isTestAction(line) || line.kind === "timer") return "k-test";
    return line.error ? "k-notice" : "k-plain";
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
      class: `k-row ${this.rowClass(at)}${at === this.model?.firstError ? " k-first" : ""}`,
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
    let n = this.shown.findIndex((each) => each >= at);
    if (n === -1) n = this.shown.length - 1;
    if (n > 0 && this.shown[n] > at) n -= 1;
    this.selected = n >= 0 ? this.shown[n] : null;
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
