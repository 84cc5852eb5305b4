/* The live page: follows the trace of a cluster over HTTP, mounts the timeline, and has the levers beside it. */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { PANELS, below, make, mount, words } = Koordinator;

  const LOOK_MS = 400;
  const TICK_MS = 500;
  const AGAIN_MS = 1000;
  const TOKEN = "koordinator-token";

  class Refused extends Error {}

  /** The HTTP API; the token, if one is wanted, is kept for this tab. */
  class Api {
    constructor(askToken) {
      this.askToken = askToken;
    }

    async fetch(path, options = {}) {
      for (;;) {
        const token = sessionStorage.getItem(TOKEN);
        const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
        const response = await fetch(path, { ...options, headers });
        if (response.status !== 401) return response;
        sessionStorage.setItem(TOKEN, await this.askToken());
      }
    }

    /** What the API answers; Refused with its words if it does not do it. */
    async ask(method, path, body) {
      const options = body === undefined ? { method } : { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
      const response = await this.fetch(path, options);
      if (response.status === 204) return null;
      const given = await response.json();
      if (!response.ok) throw new Refused(given.detail || `${response.status}`);
      return given;
    }
  }

  /** The events of a stream, in the batches they come in. */
  async function* batches(response) {
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n\n");
      rest = parts.pop();
      const lines = parts.flatMap((part) => part.split("\n").filter((line) => line.startsWith("data: ")));
      if (lines.length) yield lines.map((line) => JSON.parse(line.slice(6)));
    }
  }

  class Dashboard {
    constructor(root) {
      this.root = root;
      this.api = new Api(() => this.token());
      this.kept = new Map();
      this.shown = new Map();
      this.cluster = null;
      this.timeline = null;
      this.following = 0;
      this.build();
    }

    build() {
      this.clusters = make("select", { "aria-label": "Cluster", onchange: () => this.choose(this.clusters.value) });
      this.address = make("code", {});
      this.live = make("span", { class: "d-live", role: "status" }, "connecting");
      this.said = make("p", { class: "d-said", role: "alert", hidden: true });
      this.place = make("div", {});
      this.hint = make("p", { class: "d-hint" });
      this.panels = new Map(PANELS.map(({ name }) => [name, make("div", {})]));
      this.levers = make("aside", { class: "d-levers", "aria-label": "Levers" }, this.said, ...PANELS.map(({ name }) =>
        make("details", { open: true, class: "d-panel" }, make("summary", {}, name), this.panels.get(name))));
      this.levers.addEventListener("pointerdown", () => (this.pressed = true));
      globalThis.addEventListener("pointerup", () => (this.pressed = false));
      this.dialog = make("dialog", { class: "d-token" });
      this.root.classList.add("k-timeline", "d-page");
      this.root.replaceChildren(
        make("header", { class: "d-head" }, make("strong", {}, "koordinator"), make("label", {}, "cluster ", this.clusters),
          make("span", {}, "clients connect to ", this.address), this.live),
        make("div", { class: "d-main" }, make("div", { class: "d-place" }, this.hint, this.place), this.levers), this.dialog);
      setInterval(() => this.tick(), TICK_MS);
    }

    /** Ask for the token that the server wants. */
    token() {
      return new Promise((resolve) => {
        const input = make("input", { type: "password", autocomplete: "off", "aria-label": "Token" });
        const form = make("form", { method: "dialog" }, make("p", {}, "This server wants the token of --control-token."), input, make("button", {}, "Go on"));
        form.addEventListener("submit", () => resolve(input.value));
        this.dialog.replaceChildren(form);
        if (!this.dialog.open) this.dialog.showModal();
      });
    }

    async start() {
      const known = await this.api.ask("GET", "/v1/clusters");
      this.known = new Map(known.map((cluster) => [cluster.id, cluster]));
      this.clusters.replaceChildren(...known.map(({ id }) => make("option", {}, id)));
      const wanted = new URLSearchParams(location.search).get("cluster");
      if (known.length) this.choose(this.known.has(wanted) ? wanted : known[0].id);
      else this.hint.textContent = "There is no cluster. POST /v1/clusters starts one; then load this page again.";
    }

    choose(id) {
      this.cluster = id;
      this.clusters.value = id;
      this.address.textContent = this.known.get(id).bootstrap_servers;
      this.hint.textContent = `Waiting for the first group: let a consumer connect to ${this.address.textContent}.`;
      this.shown.clear();
      this.kept.clear();
      this.timeline = mount(this.place, [], { title: "", live: true, chosen: () => this.soon() });
      this.place.hidden = true;
      this.follow(++this.following);
    }

    path(rest) {
      return `/v1/clusters/${encodeURIComponent(this.cluster)}${rest}`;
    }

    /** Every event there is, and then each as it comes; when the connection is lost, from where it was. */
    async follow(turn) {
      let since = 0;
      while (turn === this.following) {
        try {
          const response = await this.api.fetch(this.path(`/trace?since=${since}`), { headers: { Accept: "text/event-stream" } });
          if (!response.ok) throw new Refused(`the trace: ${response.status}`);
          this.say("live", true);
          for await (const lines of batches(response)) {
            if (turn !== this.following) return;
            since = lines[lines.length - 1].seq;
            this.timeline.append(lines);
            this.soon();
          }
        } catch (error) {
          console.info(`the trace is not to be had: ${error.message}`);
        }
        this.say("connection lost, trying again", false);
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }

    say(text, isLive) {
      this.live.textContent = text;
      this.live.classList.toggle("d-lost", !isLive);
    }

    /** Look at the group anew, soon, and once for many events. */
    soon() {
      if (this.looking) return;
      this.looking = setTimeout(async () => {
        try {
          await this.look();
        } catch (error) {
          console.info(`the group is not to be seen: ${error.message}`);
        }
        this.looking = null;
      }, LOOK_MS);
    }

    async look() {
      const chosen = this.timeline.group;
      this.place.hidden = !chosen;
      this.hint.hidden = Boolean(chosen);
      if (!chosen) return;
      const group = chosen.id;
      const get = (rest) => this.api.ask("GET", this.path(rest));
      const [described, timers, clock, offsets, topics, puppets, rules, holds] = await Promise.all([
        get(below(group)), get(`${below(group)}/timers`), get(`${below(group)}/clock`), get(`${below(group)}/offsets`), get("/topics"),
        get("/puppets"), get("/rules"), get("/holds"),
      ]);
      this.clock = { ...clock, read_at: performance.now() };
      this.show({ group, described, timers, clock, offsets, topics, puppets, rules, holds });
    }

    /** Draw the panels that have changed, but nothing under a pressed pointer; who had the keyboard keeps it. */
    show(seen) {
      if (this.pressed) return;
      this.timers = seen.timers;
      const doing = { act: (...wanted) => this.act(...wanted), keep: (key, create) => this.keep(key, create) };
      for (const { name, of, rows } of PANELS) {
        const key = JSON.stringify([seen.group, of(seen)]);
        if (this.shown.get(name) === key) continue;
        this.shown.set(name, key);
        const place = this.panels.get(name);
        const focused = place.contains(document.activeElement) ? document.activeElement : null;
        place.replaceChildren(...rows(seen, doing));
        const again = focused && focused.dataset.key ? [...place.querySelectorAll("[data-key]")].find((each) => each.dataset.key === focused.dataset.key) : focused;
        if (again && again.isConnected) again.focus({ preventScroll: true });
      }
      this.tick();
    }

    /** A field that stays as it is while its panel is drawn anew. */
    keep(key, create) {
      if (!this.kept.has(key)) this.kept.set(key, create());
      return this.kept.get(key);
    }

    /** Do something; true if it was done. */
    async act(method, path, body) {
      try {
        await this.api.ask(method, this.path(path), body);
        this.said.hidden = true;
        return true;
      } catch (error) {
        this.said.textContent = error.message;
        this.said.hidden = false;
        return false;
      } finally {
        this.soon();
      }
    }

    /** Let the deadlines come nearer between two looks. */
    tick() {
      if (!this.clock || this.shown.size === 0) return;
      const passed = this.clock.mode === "manual" ? 0 : performance.now() - this.clock.read_at;
      for (const each of this.levers.querySelectorAll("[data-timer]")) {
        const left = Math.max(this.timers[Number(each.dataset.timer)].deadline_ms - this.clock.now_ms - passed, 0);
        if (each.localName === "meter") each.value = left;
        else each.textContent = words.duration(Math.round(left / 100) / 10);
      }
      if (performance.now() - this.clock.read_at > 2000) this.soon();
    }
  }

  Koordinator.dashboard = new Dashboard(document.getElementById("dashboard"));
  Koordinator.dashboard.start().catch((error) => Koordinator.dashboard.say(error.message, false));
})();
