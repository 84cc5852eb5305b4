// @ts-check
/* The overview of all groups: a table with search, and what happened in them, grouped by cause. */
/** @import { GroupRow } from "./types.js" */
import { make } from "./dom.js";
import { count } from "./format.js";

const CAUSES_MAX = 12;

export class Overview {
  /** @param {(id: string) => void} onChoose called with the id of a selected group */
  constructor(onChoose) {
    this.onChoose = onChoose;
    /** @type {Map<string, { row: GroupRow, element: HTMLTableRowElement }>} */
    this.groups = new Map();
    this.chosen = "";
    this.isChanged = false;
    this.search = make("input", {
      type: "search",
      placeholder: "group, state, cause, error …",
      "aria-label": "Search groups",
      oninput: () => this.filter(),
    });
    this.count = make("span", { class: "k-count", role: "status" });
    this.happened = make("div", { class: "k-happened", "aria-label": "What happened, in all groups" });
    this.body = make("tbody", {});
    const headings = ["group", "state", "generation", "members", "what happened"];
    const head = make("tr", {}, ...headings.map((text) => make("th", { scope: "col" }, text)));
    const table = make("table", {}, make("thead", {}, head), this.body);
    this.element = make(
      "section",
      { class: "k-overview", "aria-label": "Groups", hidden: true },
      make("div", { class: "k-bar" }, make("h2", {}, "Groups"), this.search, this.count),
      this.happened,
      make("div", { class: "k-groups", tabindex: "0" }, table),
    );
  }

  /** Return the id of the first group. */
  first() {
    return this.groups.keys().next().value;
  }

  /** @param {GroupRow[]} rows */
  apply(rows) {
    for (const row of rows) {
      const [, id, state, generation, members, happened] = row;
      const element = this.groups.get(id)?.element ?? this.create(id);
      this.groups.set(id, { row, element });
      const texts = [state, generation > 0 ? generation : "", members ?? "unknown", textOf(happened)];
      texts.forEach((text, n) => {
        const cell = element.cells[n + 1];
        if (cell.textContent !== String(text)) cell.textContent = String(text);
      });
      element.dataset.state = state;
    }
    this.isChanged ||= rows.length > 0;
  }

  /** @param {string} id */
  create(id) {
    const button = make("button", { type: "button", onclick: () => this.onChoose(id) }, id);
    const cells = Array.from({ length: 4 }, () => make("td", {}));
    const element = make("tr", {}, make("th", { scope: "row" }, button), ...cells);
    this.body.append(element);
    return element;
  }

  /**
   * Show the overview of several groups, with a mark at one of them.
   * @param {string} chosen
   */
  show(chosen) {
    this.groups.get(this.chosen)?.element.removeAttribute("aria-current");
    this.groups.get(chosen)?.element.setAttribute("aria-current", "true");
    this.chosen = chosen;
    this.element.hidden = this.groups.size < 2;
    if (!this.isChanged) return;
    this.isChanged = false;
    /** @type {Map<string, [number, number]>} */
    const causes = new Map();
    for (const { row } of this.groups.values()) {
      for (const [cause, times] of Object.entries(row[5])) {
        const [groups, all] = causes.get(cause) ?? [0, 0];
        causes.set(cause, [groups + 1, all + times]);
      }
    }
    const most = [...causes].sort(([, one], [, other]) => other[1] - one[1]).slice(0, CAUSES_MAX);
    const chips = most.map(([cause, [groups, times]]) => {
      const onclick = () => {
        this.search.value = this.search.value === cause ? "" : cause;
        this.filter();
      };
      return make("button", { type: "button", onclick }, `${cause}: ${times} × in ${count(groups, "group")}`);
    });
    this.happened.replaceChildren(...chips);
    this.filter();
  }

  filter() {
    const search = this.search.value.trim().toLowerCase();
    let shown = 0;
    for (const { row, element } of this.groups.values()) {
      const texts = [row[1], row[2], ...Object.keys(row[5])];
      element.hidden = !texts.some((text) => text.toLowerCase().includes(search));
      shown += element.hidden ? 0 : 1;
    }
    this.count.textContent = `${shown} of ${count(this.groups.size, "group")}`;
  }
}

/** @param {Record<string, number>} happened */
const textOf = (happened) =>
  Object.entries(happened)
    .map(([cause, times]) => (times > 1 ? `${cause} (${times} ×)` : cause))
    .join("; ");
