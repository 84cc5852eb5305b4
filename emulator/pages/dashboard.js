// @ts-check
/* The live page: the timeline of a cluster, with control panels for the selected group.
 *
 * One event stream delivers both the trace and the state of the selected group.
 */
/** @import { Change, GroupData } from "./types.js" */
import { Api } from "./api.js";
import { make } from "./dom.js";
import { duration } from "./format.js";
import { PANELS } from "./panels.js";
import { mount, Timeline } from "./timeline.js";

const TICK_MS = 500;
const RECONNECT_MS = 1000;

class Dashboard {
  /** @param {HTMLElement} root */
  constructor(root) {
    this.root = root;
    this.api = new Api(() => this.askToken());
    /** @type {Map<string, HTMLElement>} */
    this.kept = new Map();
    /** @type {Map<string, string>} */
    this.shown = new Map();
    /** @type {Map<string, { id: string, bootstrap_servers: string }>} */
    this.known = new Map();
    this.cluster = "";
    /** @type {Timeline | null} */
    this.timeline = null;
    /** @type {GroupData | null} */
    this.data = null;
    this.receivedAt = 0;
    this.isPressed = false;
    this.since = 0;
    /** Ends the connection of the event stream. */
    this.connection = new AbortController();
    this.clusters = make("select", { "aria-label": "Cluster", onchange: () => this.choose(this.clusters.value) });
    this.address = make("code", {});
    this.named = make("span", {});
    this.status = make("span", { class: "d-live", role: "status" }, "connecting");
    this.error = make("p", { class: "d-error", role: "alert", hidden: true });
    this.container = make("div", {});
    this.hint = make("p", { class: "d-hint" });
    this.panels = new Map(PANELS.map(({ name }) => [name, make("div", {})]));
    this.dialog = make("dialog", { class: "d-token" });
    this.controls = make("aside", { class: "d-controls", "aria-label": "Controls" }, this.error);
    this.build();
  }

  build() {
    for (const [name, panel] of this.panels) {
      this.controls.append(make("details", { open: true, class: "d-panel" }, make("summary", {}, name), panel));
    }
    this.controls.addEventListener("pointerdown", () => {
      this.isPressed = true;
    });
    globalThis.addEventListener("pointerup", () => {
      this.isPressed = false;
    });
    this.root.classList.add("k-timeline", "d-page");
    this.root.replaceChildren(
      make(
        "header",
        { class: "d-head" },
        make("strong", {}, "koordinator"),
        make("label", {}, "cluster ", this.clusters),
        this.named,
        make("span", {}, "bootstrap servers ", this.address),
        this.status,
      ),
      make("div", { class: "d-main" }, make("div", { class: "d-content" }, this.hint, this.container), this.controls),
      this.dialog,
    );
    setInterval(() => this.tick(), TICK_MS);
  }

  /** @returns {Promise<string>} */
  askToken() {
    return new Promise((resolve) => {
      const input = make("input", { type: "password", autocomplete: "off", "aria-label": "Token" });
      const text = make("p", {}, "This server requires the token of --control-token.");
      const onsubmit = () => resolve(input.value);
      this.dialog.replaceChildren(
        make("form", { method: "dialog", onsubmit }, text, input, make("button", {}, "Continue")),
      );
      if (!this.dialog.open) this.dialog.showModal();
    });
  }

  async start() {
    /** @type {{ id: string, bootstrap_servers: string }[]} */
    const clusters = await this.api.request("GET", "/v1/clusters");
    this.known = new Map(clusters.map((cluster) => [cluster.id, cluster]));
    this.clusters.replaceChildren(...clusters.map(({ id }) => make("option", {}, id)));
    const selected = new URLSearchParams(location.search).get("cluster") ?? "";
    if (clusters.length) this.choose(this.known.has(selected) ? selected : clusters[0].id);
    else this.hint.textContent = "There are no clusters. Start one with POST /v1/clusters, then reload this page.";
  }

  /** @param {string} id */
  choose(id) {
    this.cluster = id;
    this.clusters.value = id;
    const address = this.known.get(id)?.bootstrap_servers ?? "";
    this.address.textContent = address;
    this.hint.textContent = "Loading …";
    this.named.textContent = "";
    document.title = "koordinator";
    this.hint.hidden = false;
    this.container.hidden = true;
    this.shown.clear();
    this.kept.clear();
    this.data = null;
    this.since = 0;
    const testOf = (/** @type {string} */ group) => this.testOf(group);
    this.timeline = mount(this.container, { live: true, onGroup: () => this.onGroup(), testOf });
    this.follow();
    this.sayIfEmpty(id, address);
  }

  /**
   * Say that the cluster has no groups, once that is known.
   * @param {string} id @param {string} address
   */
  async sayIfEmpty(id, address) {
    const groups = await this.api.request("GET", this.path("/groups"));
    if (groups.length || this.cluster !== id || this.timeline?.group) return;
    this.hint.textContent = `Waiting for the first group: connect a consumer to ${address}.`;
  }

  onGroup() {
    const id = this.timeline?.group?.id ?? "";
    this.named.replaceChildren("group ", make("strong", {}, id));
    document.title = `${id} - koordinator`;
    this.container.hidden = false;
    this.hint.hidden = true;
    this.since = 0;
    this.follow();
  }

  /** @param {string} group */
  async testOf(group) {
    const response = await this.api.fetch(this.path(`/trace?${new URLSearchParams({ format: "test", group })}`));
    return response.text();
  }

  /** @param {string} rest */
  path(rest) {
    return `/v1/clusters/${encodeURIComponent(this.cluster)}${rest}`;
  }

  /** Follow the event stream in place of an earlier one; reconnect after errors, at the last event received. */
  async follow() {
    this.connection.abort();
    const connection = new AbortController();
    this.connection = connection;
    while (!connection.signal.aborted) {
      try {
        const query = new URLSearchParams({ watch: this.timeline?.group?.id ?? "" });
        const onOpen = () => this.setStatus("live", true);
        for await (const events of this.api.events(this.path(`/trace?${query}`), connection.signal, onOpen)) {
          if (connection.signal.aborted) return;
          this.receive(events);
        }
      } catch (error) {
        if (connection.signal.aborted) return;
        console.info(`event stream: ${error}`);
      }
      this.setStatus("connection lost, reconnecting", false);
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }

  /** @param {{ name: string, data: any }[]} events */
  receive(events) {
    for (const { data } of events.filter(({ name }) => name === "page")) this.timeline?.append(this.fresh(data));
    const state = events.findLast(({ name }) => name === "group");
    if (!state) return;
    this.data = state.data;
    this.receivedAt = performance.now();
    this.show(state.data);
  }

  /**
   * Leave out what arrived before a lost connection; rows with a key of their own replace the earlier ones.
   * @param {Change} change @returns {Change}
   */
  fresh({ lines, groups, rows = [] }) {
    const { since } = this;
    this.since = Math.max(since, lines.at(-1)?.seq ?? 0);
    const isFresh = (/** @type {any[]} */ [kind, seq]) => kind === "lane" || kind === "story" || seq > since;
    return { lines: lines.filter(({ seq }) => seq > since), groups, rows: rows.filter(isFresh) };
  }

  /** @param {string} text @param {boolean} isLive */
  setStatus(text, isLive) {
    this.status.textContent = text;
    this.status.classList.toggle("d-lost", !isLive);
  }

  /**
   * Redraw changed panels and keep the focus; draw nothing while the pointer is pressed.
   * @param {GroupData} data
   */
  show(data) {
    if (this.isPressed) return;
    const search = this.timeline?.search.hidden ? "" : (this.timeline?.search.value.trim().toLowerCase() ?? "");
    const actions = { act: this.act.bind(this), keep: this.keep.bind(this), search };
    for (const { name, dependsOn, rows } of PANELS) {
      const key = JSON.stringify([data.group, search, dependsOn(data)]);
      const panel = this.panels.get(name);
      if (!panel || this.shown.get(name) === key) continue;
      this.shown.set(name, key);
      const active = document.activeElement;
      const focused = active instanceof HTMLElement && panel.contains(active) ? active : null;
      panel.replaceChildren(...rows(data, actions));
      if (focused) focusAgain(panel, focused);
    }
    this.tick();
  }

  /**
   * Return an input that keeps its value when its panel is redrawn.
   * @template {HTMLElement} Control
   * @param {string} key @param {() => Control} create
   */
  keep(key, create) {
    const control = /** @type {Control | undefined} */ (this.kept.get(key)) ?? create();
    this.kept.set(key, control);
    return control;
  }

  /**
   * Send a request and show its error; return whether it succeeded.
   * @param {string} method @param {string} path @param {object} [body]
   */
  async act(method, path, body) {
    try {
      await this.api.request(method, this.path(path), body);
      this.error.hidden = true;
      return true;
    } catch (error) {
      this.error.textContent = error instanceof Error ? error.message : String(error);
      this.error.hidden = false;
      return false;
    }
  }

  /** Count timers down between two states of the group. */
  tick() {
    if (!this.data) return;
    const { clock, timers } = this.data;
    const passed = clock.mode === "manual" ? 0 : performance.now() - this.receivedAt;
    for (const element of this.controls.querySelectorAll("[data-timer]")) {
      const timer = timers[Number(element.getAttribute("data-timer"))];
      if (!timer) continue;
      const left = Math.max(timer.deadline_ms - clock.now_ms - passed, 0);
      if (element instanceof HTMLMeterElement) element.value = left;
      else element.textContent = duration(Math.round(left / 100) / 10);
    }
  }
}

/**
 * Focus the element that was focused before a redraw, or its successor with the same key.
 * @param {HTMLElement} panel @param {HTMLElement} focused
 */
function focusAgain(panel, focused) {
  const { key } = focused.dataset;
  const elements = /** @type {HTMLElement[]} */ ([...panel.querySelectorAll("[data-key]")]);
  const successor = key ? elements.find((element) => element.dataset.key === key) : focused;
  if (successor?.isConnected) successor.focus({ preventScroll: true });
}

const root = /** @type {HTMLElement} */ (document.getElementById("dashboard"));
const dashboard = new Dashboard(root);
/* For the browser's console. */
Object.assign(globalThis, { Koordinator: { dashboard } });
dashboard.start().catch((error) => dashboard.setStatus(String(error), false));
