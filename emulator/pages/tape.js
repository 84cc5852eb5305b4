/* The tape: every event as a row, filtered, of which only those in sight are in the document; and what one of them holds. */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { isError, isRoutine, words } = Koordinator;
  const ROW = 26;
  const TABLE_ROWS = 500;

  /** An element: `make("p", {class: "x"}, "text", child)`. */
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
  }

  class Tape {
    /** `choose(at)` is called when somebody chooses a row. */
    constructor(choose) {
      Object.assign(this, { choose, model: null, group: null, shown: [], chosen: null, what: "matters", search: "", drawn: "" });
      this.select = make("select", { "aria-label": "Which events", onchange: () => this.filter(this.select.value, this.search) });
      this.input = make("input", { type: "search", placeholder: "member, error, reason …", "aria-label": "Search in the events" });
      this.input.addEventListener("input", () => this.filter(this.what, this.input.value));
      this.count = make("span", { class: "k-count", role: "status" });
      this.space = make("div", { class: "k-space", role: "rowgroup" });
      this.list = make("div", { class: "k-rows", role: "grid", tabindex: "0", "aria-label": "Events", "aria-colcount": "3" }, this.space);
      this.list.addEventListener("scroll", () => this.draw());
      this.list.addEventListener("keydown", (event) => this.key(event));
      this.table = make("details", { class: "k-table" }, make("summary", {}, "The same as a plain table"));
      this.table.addEventListener("toggle", () => this.fillTable());
      this.element = make("section", { class: "k-tape", "aria-label": "Tape of events" },
        make("div", { class: "k-bar" }, make("h2", {}, "Tape"), this.select, this.input, this.count), this.list, this.table);
      if (globalThis.ResizeObserver) new ResizeObserver(() => this.draw()).observe(this.list);
    }

    show(model, group) {
      Object.assign(this, { model, group });
      const apis = [...new Set(group.at.map((at) => model.lines[at].api).filter(Boolean))].sort();
      const options = [["matters", "What matters"], ["errors", "Errors"], ["all", "Everything, of all groups"], ...apis.map((api) => [api, `${api} only`])];
      const known = [...this.select.options].map((option) => option.value).join();
      if (known !== options.map(([value]) => value).join()) {
        this.select.replaceChildren(...options.map(([value, text]) => make("option", { value, selected: value === this.what }, text)));
      }
      this.filter(this.what, this.search);
    }

    filter(what, search) {
      Object.assign(this, { what, search });
      const { lines, partner } = this.model;
      const wanted = search.trim().toLowerCase();
      const all = what === "all" ? lines.map((_, at) => at) : [...new Set(this.group.at)];
      this.shown = all.filter((at) => {
        const line = lines[at];
        const merged = line.kind === "request" && partner[at] !== null && partner[at] === at + 1;
        if (merged) return false;
        if (what === "errors" && !isError(line)) return false;
        if (what === "matters" && (isRoutine(line) || (line.kind === "request" && partner[at] !== null && isRoutine(line)))) return false;
        if (!["matters", "errors", "all"].includes(what) && line.api !== what) return false;
        return !wanted || this.textOf(at).toLowerCase().includes(wanted);
      });
      this.space.style.height = `${this.shown.length * ROW}px`;
      this.list.setAttribute("aria-rowcount", String(this.shown.length));
      this.count.textContent = `${words.several(this.shown.length, "event")} of ${lines.length}`;
      this.drawn = "";
      this.draw();
      this.fillTable();
    }

    who(at) {
      const line = this.model.lines[at];
      const lane = this.model.laneOfCall.get(line.kind === "response" ? this.model.partner[at] : at) || this.group.laneOfMember.get(line.member_id);
      if (line.kind === "state") return "group";
      return lane ? lane.name : line.instance_id || line.client_id || line.member_id || line.kind;
    }

    textOf(at) {
      const line = this.model.lines[at];
      return `${this.who(at)} ${words.brief(line)} ${line.rule_id || ""} ${line.client_reason || ""}`;
    }

    cells(at) {
      const line = this.model.lines[at];
      const asked = line.kind === "response" ? this.model.partner[at] : null;
      const waited = asked !== null && asked !== at - 1 && line.latency_us > 1000 ? ` · waited ${words.duration(line.latency_us / 1e6)}` : "";
      return [words.moment(this.model.secondsAt(at)), this.who(at), words.brief(line) + waited];
    }

    level(at) {
      const line = this.model.lines[at];
      if (isError(line)) return "bad";
      if (line.kind === "state") return `state k-${line.state_to}`;
      if (line.kind === "avoided_static") return "good";
      if (line.rule_id || Koordinator.BY_HAND.has(line.kind) || line.kind === "timer") return "hand";
      return line.error ? "notice" : "plain";
    }

    draw() {
      const first = Math.max(0, Math.floor(this.list.scrollTop / ROW) - 6);
      const last = Math.min(this.shown.length, Math.ceil((this.list.scrollTop + this.list.clientHeight) / ROW) + 6);
      const drawn = `${first}-${last}-${this.chosen}`;
      if (drawn === this.drawn) return;
      this.drawn = drawn;
      const rows = [];
      for (let n = first; n < last; n += 1) {
        const at = this.shown[n];
        const row = make("div", {
          class: `k-row k-${this.level(at)}${at === this.model.firstError ? " k-first" : ""}`, role: "row", id: `k-row-${at}`,
          "aria-rowindex": String(n + 1), "aria-selected": String(at === this.chosen), style: `top:${n * ROW}px`,
        }, ...this.cells(at).map((text) => make("span", { role: "gridcell" }, text)));
        row.addEventListener("click", () => this.choose(at));
        rows.push(row);
      }
      this.space.replaceChildren(...rows);
    }

    /** Mark a position's row, or the one before it, and bring it into sight. */
    go(at) {
      let n = this.shown.findIndex((each) => each >= at);
      if (n === -1) n = this.shown.length - 1;
      if (n > 0 && this.shown[n] > at) n -= 1;
      this.chosen = n >= 0 ? this.shown[n] : null;
      const top = n * ROW;
      if (top < this.list.scrollTop || top > this.list.scrollTop + this.list.clientHeight - ROW) {
        this.list.scrollTop = Math.max(0, top - this.list.clientHeight / 2);
      }
      this.draw();
      if (this.chosen === null) this.list.removeAttribute("aria-activedescendant");
      else this.list.setAttribute("aria-activedescendant", `k-row-${this.chosen}`);
    }

    key(event) {
      const page = Math.max(1, Math.floor(this.list.clientHeight / ROW) - 1);
      const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
      const step = steps[event.key];
      if (step === undefined || !this.shown.length) return;
      event.preventDefault();
      event.stopPropagation();
      const now = Math.max(0, this.shown.indexOf(this.chosen));
      this.choose(this.shown[Math.min(this.shown.length - 1, Math.max(0, now + step))]);
    }

    fillTable() {
      if (!this.table.open) return;
      const body = this.shown.slice(0, TABLE_ROWS).map((at) => make("tr", {}, ...this.cells(at).map((text) => make("td", {}, text))));
      const left = this.shown.length - body.length;
      const table = make("table", {},
        make("caption", {}, left ? `The first ${TABLE_ROWS} of ${this.shown.length} events; search to see others` : "Events"),
        make("thead", {}, make("tr", {}, ...["When", "Who", "What"].map((text) => make("th", { scope: "col" }, text)))),
        make("tbody", {}, ...body));
      this.table.replaceChildren(this.table.firstElementChild, table);
    }
  }

  /** One event whole: request and reply, the rule that acted, and the group before and after. */
  class Details {
    constructor() {
      this.element = make("section", { class: "k-details", "aria-label": "The chosen event", "aria-live": "polite" });
    }

    show(model, group, at) {
      const line = model.lines[at];
      const other = model.partner[at] === null || model.partner[at] === undefined ? null : model.lines[model.partner[at]];
      const [asked, answered] = line.kind === "response" ? [other, line] : [line, other];
      const begin = Math.min(at, model.partner[at] ?? at);
      const end = Math.max(at, model.partner[at] ?? at);
      const rule = (answered && answered.rule_id) || (asked && asked.rule_id);
      this.element.replaceChildren(...[
        make("h2", {}, title(line)),
        make("p", { class: "k-when" }, `${words.moment(model.secondsAt(at))} · seq ${line.seq}` + groupTime(model, group, at)
          + (answered && answered.latency_us !== undefined ? ` · answered in ${words.duration(answered.latency_us / 1e6)}` : "")),
        line.reason ? make("p", {}, line.reason) : null,
        rule ? make("p", { class: "k-rule" }, `${rule} acted${answered && answered.synthetic ? "; Kafka would never answer so there" : ""}.`) : null,
        beforeAndAfter(group, begin, end),
        asked && asked.kind === "request" ? block("Request", asked) : block("Event", line),
        answered ? block("Reply", answered) : asked && asked.kind === "request" ? make("p", { class: "k-unanswered" }, "No reply in this trace.") : null,
      ].filter(Boolean));
    }
  }

  /** The group's own clock, where a test has put it ahead of the wall's. */
  function groupTime(model, group, at) {
    const first = model.lines[group.at.find((each) => model.lines[each].group_ts_us !== undefined)];
    const line = model.lines[at];
    if (!first || line.group_ts_us === undefined) return "";
    const own = (line.group_ts_us - first.group_ts_us) / 1e6;
    const ahead = own - (line.wall_ts - first.wall_ts) / 1e6;
    return Math.abs(ahead) < 0.1 ? "" : ` · the group's clock is ${words.duration(ahead)} ${ahead > 0 ? "ahead" : "behind"}`;
  }

  function title(line) {
    if (line.api) return `${line.api} v${line.api_version}${line.error ? ` → ${line.error}` : ""}`;
    return line.kind === "state" ? `${line.state_from} ⇒ ${line.state_to}` : `${line.kind} ${line.change || line.timer || ""}`;
  }

  function beforeAndAfter(group, begin, end) {
    const rows = [["group", words.stateAt(group, begin - 1), words.stateAt(group, end)]];
    for (const lane of group.lanes) {
      const [before, after] = [laneAt(group, lane, begin - 1), laneAt(group, lane, end)];
      if (before !== after) rows.push([lane.name, before, after]);
    }
    return make("table", { class: "k-before" },
      make("caption", {}, "Before and after"),
      make("thead", {}, make("tr", {}, ...["", "before", "after"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...rows.map(([name, before, after]) =>
        make("tr", { class: before === after ? "" : "k-changed" }, make("th", { scope: "row" }, name), make("td", {}, before), make("td", {}, after)))));
  }

  function laneAt(group, lane, at) {
    const span = Koordinator.spanAt(lane.spans, at);
    if (!span) return "not in the group";
    const owned = words.ownedAt(group, lane, at);
    return `${words.STATES[span.state]}${owned.length ? `: ${words.spread(owned)}` : ""}`;
  }

  const HIDDEN = new Set(["seq", "kind", "wall_ts", "group_ts_us", "node", "api", "api_key", "reason"]);

  function block(heading, line) {
    const kept = Object.fromEntries(Object.entries(line).filter(([key]) => !HIDDEN.has(key)));
    return make("div", {}, make("h3", {}, heading), make("pre", { tabindex: "0" }, text(kept)));
  }

  /** JSON, but an array of numbers or names on one line. */
  function text(value) {
    return JSON.stringify(value, null, 2).replace(/\[\s+([^[\]{}]*?)\s+\]/g, (_, inner) => `[${inner.replace(/\s*\n\s*/g, " ")}]`);
  }

  Object.assign(Koordinator, { Tape, Details, make });
})();
