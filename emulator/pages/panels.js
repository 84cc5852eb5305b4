// @ts-check
/* The control panels of the live page. */
/** @import { FaultData, GroupData, Member, PanelActions, Timer } from "./types.js" */
import { make, table } from "./dom.js";
import { count, duration } from "./format.js";

/** @type {Record<string, (member: string) => string>} */
const TIMERS = {
  session: (member) => `session of ${member}`,
  pending: (member) => `return of ${member} with its member id`,
  initial_delay: () => "initial rebalance delay",
  join: () => "join barrier",
  sync: () => "SyncGroup of all members",
  revocation: (member) => `revocation of ${member}`,
  patterns: () => "resolution of patterns",
  offsets: () => "check for expired offsets",
};

/** @type {Record<string, string>} */
const EXPIRE = {
  session: "expire_session",
  pending: "expire_pending",
  initial_delay: "expire_join_phase",
  join: "expire_join_phase",
  sync: "expire_sync",
  revocation: "expire_revocation",
  offsets: "expire_offsets",
};

const ITEMS_MAX = 40;
const OFFSETS_MAX = 200;
const ASSIGNORS = ["range", "cooperative-sticky", "sticky", "roundrobin"];

/** The choice of a puppet whose coordinator assigns (KIP-848). */
const CONSUMER = "consumer";

/** @param {Member} member */
const nameOf = (member) => member.instance_id || member.client_id || member.member_id;

/** @param {string} text */
const empty = (text) => make("p", { class: "d-none" }, text);

/** @param {...(string | HTMLElement)} children */
const row = (...children) => make("div", { class: "d-row" }, ...children);

/** @param {HTMLElement[]} items @param {string} [more] */
const list = (items, more) =>
  make("ul", { class: "d-list" }, ...items, more ? make("li", { class: "d-none" }, more) : null);

/**
 * List the first items; a search for a member shows others.
 * @template T
 * @param {T[]} all @param {string} search @param {(item: T) => string} name @param {(item: T) => HTMLElement} render
 */
function found(all, search, name, render) {
  const items = all.filter((item) => name(item).toLowerCase().includes(search));
  const more = items.length > ITEMS_MAX ? `and ${items.length - ITEMS_MAX} more; find a member above the timeline` : "";
  return list(items.slice(0, ITEMS_MAX).map(render), more);
}

/**
 * @param {string} key identifies the button across redraws, so that it keeps the focus
 * @param {string} text @param {string} label @param {() => void} onclick @param {boolean} [isDangerous]
 */
function button(key, text, label, onclick, isDangerous = false) {
  const style = isDangerous ? "d-danger" : null;
  return make("button", { type: "button", "data-key": key, "aria-label": label, class: style, onclick }, text);
}

/** @param {string} group */
const groupPath = (group) => `/groups/${encodeURIComponent(group)}`;

/**
 * @param {PanelActions} actions @param {string} group
 * @returns {(action: string, body: object) => () => Promise<boolean>}
 */
const groupAction =
  ({ act }, group) =>
  (action, body) =>
  () =>
    act("POST", `${groupPath(group)}/actions/${action}`, body);

/**
 * The panels: each depends on some of the group's data and is redrawn when that changes.
 * @type {{ name: string, dependsOn: (data: GroupData) => unknown, rows: (data: GroupData, actions: PanelActions) => HTMLElement[] }[]}
 */
export const PANELS = [
  { name: "Group", dependsOn: ({ described }) => described, rows: groupRows },
  {
    name: "Timers",
    dependsOn: ({ timers, described }) => [
      timers.map(({ kind, member_id }) => [kind, member_id]),
      described.members.map(nameOf),
    ],
    rows: timerRows,
  },
  { name: "Clock", dependsOn: ({ clock }) => [clock.mode, clock.ahead_ms], rows: clockRows },
  { name: "Members", dependsOn: ({ described }) => described, rows: memberRows },
  {
    name: "Puppets",
    dependsOn: ({ puppets }) => puppets.map(({ name, group, state }) => [name, group, state]),
    rows: puppetRows,
  },
  { name: "Rules and holds", dependsOn: ({ rules, holds }) => [rules, holds], rows: faultRows },
  {
    name: "Offsets and lag",
    dependsOn: ({ described, offsets, topics }) => [described.members, offsets, topics],
    rows: offsetRows,
  },
];

/** @param {GroupData} data @param {PanelActions} actions */
function groupRows({ group, described }, actions) {
  const post = groupAction(actions, group);
  const { state, type, generation, protocol, members } = described;
  const parts = [
    state,
    generation > 0 ? `${type === CONSUMER ? "epoch" : "generation"} ${generation}` : "",
    protocol ?? "",
    count(members.length, "member"),
  ];
  return [
    make("p", {}, parts.filter(Boolean).join(", ")),
    row(
      button("rebalance", "Rebalance", "Start a rebalance", post("rebalance", { cause: "started on the dashboard" })),
      button("freeze", "Freeze", "Keep the group in this state", post("freeze", {})),
      button("thaw", "Thaw", "Unfreeze the group", post("thaw", {})),
    ),
  ];
}

/** @param {GroupData} data @param {PanelActions} actions */
function timerRows({ group, described, timers }, actions) {
  const { search } = actions;
  const post = groupAction(actions, group);
  const members = new Map(described.members.map((member) => [member.member_id, member]));
  if (!timers.length) return [empty("No active timers.")];
  /** @param {Timer} timer */
  const nameOfTimer = ({ instance_id: instance, member_id: id }) => {
    const member = members.get(id ?? "");
    return instance || (member ? nameOf(member) : (id ?? ""));
  };
  /** @param {Timer} timer */
  const item = (timer) => {
    const n = timers.indexOf(timer);
    const member = members.get(timer.member_id ?? "");
    const name = nameOfTimer(timer);
    const text = TIMERS[timer.kind]?.(name) ?? timer.kind;
    const max = timer.kind === "session" && member ? member.session_timeout_ms : Math.max(timer.remaining_ms, 1);
    const meter = { min: 0, max, low: max / 4, optimum: max, value: timer.remaining_ms };
    const verb = EXPIRE[timer.kind];
    const expire = post(verb, timer.member_id ? { member: timer.member_id } : {});
    return make(
      "li",
      { class: "d-timer" },
      make("span", {}, text),
      make("meter", { ...meter, "aria-label": text, "data-timer": n }),
      make("output", { "data-timer": n }, duration(timer.remaining_ms / 1000)),
      verb ? button(`timer-${timer.kind}-${timer.member_id || n}`, "expire now", `Expire now: ${text}`, expire) : "",
    );
  };
  return [found(timers, search, nameOfTimer, item)];
}

/** @param {GroupData} data @param {PanelActions} actions */
function clockRows({ group, clock }, { act, keep }) {
  const path = `${groupPath(group)}/clock`;
  const label = "Duration to advance: 30s, 5m, 7d";
  const by = keep("clock-by", () => make("input", { type: "text", value: "30s", size: "6", "aria-label": label }));
  const alive = keep("clock-alive", () => make("input", { type: "checkbox", checked: true }));
  const options = ["real", "manual", "auto"].map((name) =>
    make("option", { value: name, selected: name === clock.mode }, name),
  );
  const onchange = () => act("PUT", path, { mode: mode.value });
  const mode = make(
    "select",
    { "data-key": "clock-mode", "aria-label": "Mode of the group clock", onchange },
    ...options,
  );
  const advance = () =>
    act("POST", `${path}/advance`, { by: by.value, keep_alive: alive.checked ? "connected" : "none" });
  const offset = clock.ahead_ms ? `, ${duration(clock.ahead_ms / 1000)} ahead of the wall clock` : "";
  return [
    make("p", {}, make("label", {}, "mode ", mode), offset),
    row(
      make("label", {}, "by ", by),
      button("advance", "Advance", "Advance the group clock", advance),
      make("label", {}, alive, " keep connected members alive"),
    ),
  ];
}

/** @param {GroupData} data @param {PanelActions} actions */
function memberRows({ group, described }, actions) {
  const post = groupAction(actions, group);
  if (!described.members.length) return [empty("No members.")];
  /** @param {Member} member */
  const item = (member) => {
    const { member_id: id, instance_id: instance } = member;
    const name = nameOf(member);
    const owned = Object.values(member.assignment).reduce((sum, numbers) => sum + numbers.length, 0);
    const remove = instance
      ? button(`fence-${id}`, "fence", `Fence ${name}: another process takes its id`, post("fence", { instance }), true)
      : button(`evict-${id}`, "evict", `Evict ${name}: its poll timeout expires`, post("evict", { member: id }), true);
    const expire = post("expire_session", { member: id });
    const role = id === described.leader ? " leader" : "";
    return make(
      "li",
      {},
      make("span", { title: id }, make("strong", {}, name), role, ` · ${count(owned, "partition")}`),
      row(button(`expire-${id}`, "expire session", `Expire the session of ${name}`, expire), remove),
    );
  };
  return [found(described.members, actions.search, nameOf, item)];
}

/** @param {GroupData} data @param {PanelActions} actions */
function puppetRows({ group, described, puppets }, { act, keep, search }) {
  const path = (/** @type {string} */ name) => `${groupPath(group)}/puppets/${encodeURIComponent(name)}`;
  const verbs = [
    { verb: "join", text: "join", label: "Join", isDangerous: false },
    { verb: "leave", text: "leave", label: "Leave the group", isDangerous: false },
    { verb: "stop", text: "kill", label: "Kill: stop without leaving", isDangerous: true },
  ];
  /** @param {{ name: string, state: string }} puppet */
  const item = ({ name, state }) => {
    const buttons = verbs.map(({ verb, text, label, isDangerous }) => {
      const onclick = () => act("POST", `${path(name)}/${verb}`, {});
      return button(`${verb}-${name}`, text, `${name}: ${label}`, onclick, isDangerous);
    });
    return make("li", {}, make("span", {}, make("strong", {}, name), ` ${state}`), row(...buttons));
  };
  const own = puppets.filter((puppet) => puppet.group === undefined || puppet.group === group);
  const inputs = { type: "text", value: "peer-1", size: "8", "aria-label": "Name of the new puppet" };
  const name = keep("puppet-name", () => make("input", inputs));
  const assignor = keep("puppet-assignor", () =>
    make(
      "select",
      { "aria-label": "Assignor of the new puppet, or the consumer protocol" },
      ...[...ASSIGNORS, CONSUMER].map((each) =>
        make("option", { selected: each === described.protocol || each === described.type }, each),
      ),
    ),
  );
  const isStatic = keep("puppet-static", () => make("input", { type: "checkbox" }));
  const create = async () => {
    const static_ = isStatic.checked ? { instance_id: name.value } : {};
    const kind = assignor.value === CONSUMER ? { group_protocol: CONSUMER } : { protocols: [assignor.value] };
    if (!(await act("POST", path(name.value), { ...kind, ...static_ }))) return;
    await act("POST", `${path(name.value)}/join`, {});
    name.value = name.value.replace(/\d*$/, (number) => String(Number(number || 1) + 1));
  };
  return [
    found(own, search, (puppet) => puppet.name, item),
    row(
      name,
      assignor,
      make("label", {}, isStatic, " static"),
      button("create-puppet", "Add", "Add a puppet and let it join", create),
    ),
  ];
}

/** @param {GroupData} data @param {PanelActions} actions */
function faultRows({ rules, holds }, { act }) {
  if (!rules.length && !holds.length) return [empty("None. Add them in tests or by the HTTP API.")];
  /** @param {FaultData} fault @param {string} state @param {...HTMLElement} buttons */
  const item = (fault, state, ...buttons) => {
    const text = make("span", {}, make("strong", {}, fault.id), " ", make("code", {}, faultText(fault)), ` ${state}`);
    return make("li", {}, text, row(...buttons));
  };
  const ruleItems = rules.map((rule) => {
    const remove = () => act("DELETE", `/rules/${encodeURIComponent(rule.id)}`);
    const hits = `acted ${rule.hits === 1 ? "once" : `${rule.hits} times`}`;
    return item(rule, hits, button(`rule-${rule.id}`, "remove", `Remove rule ${rule.id}`, remove, true));
  });
  const holdItems = holds.map((hold) => {
    const path = `/holds/${encodeURIComponent(hold.id)}`;
    const release = () => act("POST", `${path}/release`, {});
    const remove = () => act("DELETE", path);
    return item(
      hold,
      `holds ${count(hold.parked.length, "request")}`,
      button(`release-${hold.id}`, "release", `Release the requests of ${hold.id}`, release),
      button(`hold-${hold.id}`, "remove", `Remove hold ${hold.id}`, remove, true),
    );
  });
  return [list([...ruleItems, ...holdItems])];
}

/** @param {FaultData} fault */
function faultText({ match: { api = "any request", ...conditions } = {}, action: { kind = "", ...parameters } = {} }) {
  const texts = Object.entries(conditions).map(([key, value]) => `${key.replaceAll("_", " ")} ${value}`);
  const action = [String(kind).replaceAll("_", " "), ...Object.values(parameters)].join(" ");
  return `${[api, ...texts].join(", ")}${action ? ` → ${action}` : ""}`;
}

/**
 * The lag as in kafka-consumer-groups: assigned partitions have a row, and no lag without a committed offset.
 * @param {GroupData} data
 */
function offsetRows({ described, offsets, topics }) {
  const assigned = described.members.flatMap(({ assignment }) =>
    Object.entries(assignment).flatMap(([topic, numbers]) => numbers.map((number) => `${topic}-${number}`)),
  );
  const committed = new Map(offsets.map(({ topic, partition, offset }) => [`${topic}-${partition}`, offset]));
  const names = [...new Set([...assigned, ...committed.keys()])];
  if (!names.length) return [empty("No assigned partitions, no committed offsets.")];
  names.sort((one, other) => one.localeCompare(other, undefined, { numeric: true }));
  const ends = new Map(
    topics.flatMap(({ topic, partitions }) =>
      partitions.map((each) => [`${topic}-${each.partition}`, each.end_offset]),
    ),
  );
  const rows = names.map((name) => {
    const [offset, end] = [committed.get(name), ends.get(name)];
    return {
      name,
      offset,
      end,
      lag: offset === undefined || end === undefined ? undefined : Math.max(end - offset, 0),
    };
  });
  const lag = rows.reduce((sum, row) => sum + (row.lag ?? 0), 0);
  const without = rows.filter((row) => row.offset === undefined).length;
  const caption = `total lag ${lag}${without ? `; without a commit, so without a lag: ${count(without, "partition")}` : ""}`;
  const body = rows.slice(0, OFFSETS_MAX).map((row) => {
    const cells = [row.offset, row.end, row.lag].map((value) => make("td", {}, String(value ?? "–")));
    return make("tr", {}, make("th", { scope: "row" }, row.name), ...cells);
  });
  const more = rows.length > OFFSETS_MAX ? `The first ${OFFSETS_MAX} of ${rows.length} partitions.` : "";
  return [table(caption, ["partition", "committed", "end", "lag"], body), empty(more)];
}
