/* The levers beside the live timeline: one panel each, drawn from what the HTTP API says. A panel gets `{group, ask, act}`:
 * `act(method, path, body)` does something and says so if it is refused.
 */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  const { make, words } = Koordinator;

  const TIMERS = {
    session: (who) => `session of ${who}`,
    pending: (who) => `${who}: to come back with its id`,
    initial_delay: () => "initial rebalance delay",
    join: () => "join barrier",
    sync: () => "SyncGroup of all",
    offsets: () => "look for old offsets",
  };

  const EXPIRE = {
    session: "expire_session", pending: "expire_pending", initial_delay: "expire_join_barrier", join: "expire_join_barrier",
    sync: "expire_sync", offsets: "expire_offsets",
  };

  const nameOf = (member) => member.instance_id || member.client_id || member.member_id;

  function button(key, text, label, action, danger = false) {
    return make("button", { type: "button", "data-key": key, "aria-label": label, class: danger ? "d-danger" : null, onclick: action }, text);
  }

  const below = (group) => `/groups/${encodeURIComponent(group)}`;

  const shapeOf = ({ kind, member_id }) => [kind, member_id];

  /** `{name, of(seen), rows(seen, doing)}`: what a panel depends on, and what it shows; it is drawn when that changes. */
  const PANELS = [
    { name: "Group", of: ({ described }) => described, rows: groupRows },
    { name: "Timers", of: ({ timers, described }) => [timers.map(shapeOf), described.members.map(nameOf)], rows: timerRows },
    { name: "Clock", of: ({ clock }) => [clock.mode, clock.ahead_ms], rows: clockRows },
    { name: "Members", of: ({ described }) => described, rows: memberRows },
    { name: "Puppets", of: ({ puppets }) => puppets.map(({ name, group, state }) => [name, group, state]), rows: puppetRows },
    { name: "Rules and holds", of: ({ rules, holds }) => [rules, holds], rows: ruleRows },
    { name: "Offsets and lag", of: ({ offsets, topics }) => [offsets, topics], rows: offsetRows },
  ];

  function groupRows({ group, described }, { act }) {
    const post = (action, body) => () => act("POST", `${below(group)}/actions/${action}`, body);
    return [
      make("p", {}, `${described.state}${described.generation > 0 ? `, generation ${described.generation}` : ""}`
        + `${described.protocol ? `, ${described.protocol}` : ""}, ${words.several(described.members.length, "member")}`),
      make("div", { class: "d-row" }, button("rebalance", "Rebalance", "Begin a rebalance", post("rebalance", { cause: "asked for on the dashboard" })),
        button("freeze", "Freeze", "Let the group stay in this state", post("freeze", {})),
        button("thaw", "Thaw", "Let the group go on", post("thaw", {}))),
    ];
  }

  function timerRows({ group, described, timers }, { act }) {
    const members = new Map(described.members.map((member) => [member.member_id, member]));
    if (!timers.length) return [make("p", { class: "d-none" }, "No timer runs.")];
    return [make("ul", { class: "d-list" }, ...timers.map((timer, n) => {
      const member = members.get(timer.member_id);
      const who = timer.instance_id || (member ? nameOf(member) : timer.member_id || "");
      const said = (TIMERS[timer.kind] || (() => timer.kind))(who);
      const whole = timer.kind === "session" && member ? member.session_timeout_ms : Math.max(timer.remaining_ms, 1);
      const expire = () => act("POST", `${below(group)}/actions/${EXPIRE[timer.kind]}`, timer.member_id ? { member: timer.member_id } : {});
      return make("li", { class: "d-timer" }, make("span", {}, said),
        make("meter", { min: 0, max: whole, low: whole / 4, optimum: whole, value: timer.remaining_ms, "aria-label": said, "data-timer": n }),
        make("output", { "data-timer": n }, words.duration(timer.remaining_ms / 1000)),
        button(`timer-${timer.kind}-${timer.member_id || n}`, "expire now", `Expire now: ${said}`, expire));
    }))];
  }

  function clockRows({ group, clock }, { act, keep }) {
    const by = keep("clock-by", () => make("input", { type: "text", value: "30s", size: "6", "aria-label": "How far: 30s, 5m, 7d" }));
    const alive = keep("clock-alive", () => make("input", { type: "checkbox", checked: true }));
    const mode = make("select", { "data-key": "clock-mode", "aria-label": "How the group's clock runs",
      onchange: (event) => act("PUT", `${below(group)}/clock`, { mode: event.target.value }) },
      ...["real", "manual", "auto"].map((name) => make("option", { value: name, selected: name === clock.mode }, name)));
    const advance = () => act("POST", `${below(group)}/clock/advance`, { by: by.value, keep_alive: alive.checked ? "connected" : "none" });
    return [
      make("p", {}, make("label", {}, "runs ", mode), clock.ahead_ms ? `, ${words.duration(clock.ahead_ms / 1000)} ahead of the wall's` : ", as the wall's does"),
      make("div", { class: "d-row" }, make("label", {}, "by ", by), button("advance", "Advance", "Move the group's clock ahead", advance),
        make("label", {}, alive, " connected members live on")),
    ];
  }

  function memberRows({ group, described }, { act }) {
    if (!described.members.length) return [make("p", { class: "d-none" }, "Nobody is in this group.")];
    return [make("ul", { class: "d-list" }, ...described.members.map((member) => {
      const id = member.member_id;
      const name = nameOf(member);
      const owned = Object.values(member.assignment).reduce((sum, list) => sum + list.length, 0);
      const post = (action, body) => () => act("POST", `${below(group)}/actions/${action}`, body);
      return make("li", {}, make("span", { title: id }, make("strong", {}, name), id === described.leader ? " leader" : "", ` · ${words.several(owned, "partition")}`),
        make("span", { class: "d-row" },
          button(`expire-${id}`, "expire session", `Expire the session of ${name}`, post("expire_session", { member: id })),
          member.instance_id
            ? button(`fence-${id}`, "fence", `Fence ${name}: another process takes its instance id`, post("fence", { instance: member.instance_id }), true)
            : button(`evict-${id}`, "evict", `Evict ${name}, as if it had not polled in time`, post("evict", { member: id }), true)));
    }))];
  }

  function puppetRows({ group, described, puppets }, { act, keep }) {
    const here = puppets.filter((puppet) => puppet.group === undefined || puppet.group === group);
    const tell = (name, verb, body = {}) => act("POST", `${below(group)}/puppets/${encodeURIComponent(name)}/${verb}`, body);
    const name = keep("puppet-name", () => make("input", { type: "text", value: "peer-1", size: "8", "aria-label": "Name of a new puppet" }));
    const assignor = keep("puppet-assignor", () => make("select", { "aria-label": "Its assignor" },
      ...["range", "cooperative-sticky", "sticky", "roundrobin"].map((each) => make("option", { selected: each === described.protocol }, each))));
    const isStatic = keep("puppet-static", () => make("input", { type: "checkbox" }));
    const create = async () => {
      const wanted = { protocols: [assignor.value], ...(isStatic.checked ? { instance_id: name.value } : {}) };
      const made = await act("POST", `${below(group)}/puppets/${encodeURIComponent(name.value)}`, wanted);
      if (!made) return;
      await tell(name.value, "join");
      name.value = name.value.replace(/\d*$/, (number) => String(Number(number || 1) + 1));
    };
    return [
      make("ul", { class: "d-list" }, ...here.map((puppet) => make("li", {}, make("span", {}, make("strong", {}, puppet.name), ` ${puppet.state}`),
        make("span", { class: "d-row" }, ...[["join", "Join"], ["leave", "Leave the group"], ["stop", "Kill: it goes without a word"]].map(([verb, said]) =>
          button(`${verb}-${puppet.name}`, verb === "stop" ? "kill" : verb, `${puppet.name}: ${said}`, () => tell(puppet.name, verb), verb === "stop")))))),
      make("div", { class: "d-row" }, name, assignor, make("label", {}, isStatic, " static"), button("create-puppet", "Add", "Add a puppet, which joins", create)),
    ];
  }

  function ruleRows({ rules, holds }, { act }) {
    const said = (thing) => make("code", {}, brief(thing));
    if (!rules.length && !holds.length) return [make("p", { class: "d-none" }, "None. Tests and the HTTP API make them.")];
    return [make("ul", { class: "d-list" },
      ...rules.map((rule) => make("li", {}, make("span", {}, make("strong", {}, rule.id), " ", said(rule), ` acted ${rule.hits === 1 ? "once" : `${rule.hits} times`}`),
        button(`rule-${rule.id}`, "remove", `Remove rule ${rule.id}`, () => act("DELETE", `/rules/${encodeURIComponent(rule.id)}`), true))),
      ...holds.map((hold) => make("li", {}, make("span", {}, make("strong", {}, hold.id), " ", said(hold), ` has ${words.several(hold.inside.length, "request")} in it`),
        make("span", { class: "d-row" },
          button(`release-${hold.id}`, "release", `Let go on what hold ${hold.id} keeps`, () => act("POST", `/holds/${encodeURIComponent(hold.id)}/release`, {})),
          button(`hold-${hold.id}`, "remove", `Remove hold ${hold.id}`, () => act("DELETE", `/holds/${encodeURIComponent(hold.id)}`), true)))))];
  }

  function brief({ match = {}, action }) {
    return `${words.matchTold(match)}${action ? ` → ${words.actionTold(action)}` : ""}`;
  }

  function offsetRows({ offsets, topics }) {
    if (!offsets.length) return [make("p", { class: "d-none" }, "Nothing is committed.")];
    const ends = new Map(topics.flatMap(({ topic, partitions }) => partitions.map((each) => [`${topic}-${each.partition}`, each.end_offset])));
    const rows = offsets.map(({ topic, partition, offset }) => {
      const end = ends.get(`${topic}-${partition}`);
      return { name: `${topic}-${partition}`, offset, end, lag: end === undefined ? undefined : Math.max(end - offset, 0) };
    }).sort((one, other) => one.name.localeCompare(other.name, undefined, { numeric: true }));
    const lag = rows.reduce((sum, row) => sum + (row.lag || 0), 0);
    return [make("table", {}, make("caption", {}, `lag ${lag} in all`),
      make("thead", {}, make("tr", {}, ...["partition", "committed", "end", "lag"].map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, make("th", { scope: "row" }, row.name),
        ...[row.offset, row.end ?? "–", row.lag ?? "–"].map((value) => make("td", {}, String(value)))))))];
  }

  Object.assign(Koordinator, { PANELS, below });
})();
