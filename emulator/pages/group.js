// @ts-check
/* A group in a trace, from the rows that koordinator.emulator.pages.lanes derives: states, lanes, barriers, owners.
 *
 * Everything is kept as spans between positions in the trace, so that any moment can be shown again.
 */
/** @import { Model } from "./model.js" */
/** @import { Barrier, DeliverySpan, GroupSpan, Lane, Mark, OwnerSpan, Row, Span, StoryItem, TapeEvent, TaskSpan, TransactionSpan } from "./types.js" */

const HELD_MAX = 1000;

export class Group {
  /** @param {string} id @param {Model} model */
  constructor(id, model) {
    this.id = id;
    this.model = model;
    /** @type {GroupSpan[]} */
    this.states = [];
    /** @type {Lane[]} */
    this.lanes = [];
    /** @type {Barrier[]} */
    this.barriers = [];
    /** @type {Mark[]} */
    this.marks = [];
    /** @type {Map<string, OwnerSpan[]>} */
    this.partitions = new Map();
    /** @type {Map<number, StoryItem>} */
    this.story = new Map();
    /** @type {Map<number, TapeEvent>} */
    this.events = new Map();
    /**
     * The transactions of each transactional id, by the position of their start.
     * @type {Map<string, Map<number, TransactionSpan>>}
     */
    this.transactions = new Map();
    /**
     * The deliveries of each partition, by the position of their acquisition and their first offset.
     * @type {Map<string, Map<string, DeliverySpan>>}
     */
    this.deliveries = new Map();
    /**
     * The stays of each task with its type, by the position of the assignment and the lane.
     * @type {Map<string, Map<string, TaskSpan>>}
     */
    this.tasks = new Map();
    /** @type {number | null} */
    this.firstError = null;
  }

  /** @param {Row[]} rows */
  apply(rows) {
    for (const [kind, key, ...values] of rows) {
      if (kind === "lane") this.lane(key, values);
      else HANDLERS[kind]?.(this, this.model.positionOf(key), values);
    }
  }

  /** @param {number} index @param {any[]} values */
  lane(index, [name, isStatic, isCooperative, user]) {
    const lane = { index, name, isStatic, isCooperative, user };
    this.lanes[index] = Object.assign(
      this.lanes[index] ?? { spans: [], owned: [], heartbeats: [], marks: [], holds: [] },
      lane,
    );
  }

  /** @param {number} at @param {any[]} values */
  state(at, [state, generation, reason, number]) {
    follow(this.states, { start: at, end: null, state, generation, reason, number });
    const last = this.barriers.at(-1);
    if (last && last.end === null) last.end = at;
    if (state === "PreparingRebalance") this.barriers.push({ start: at, end: null, steps: [] });
  }

  /** @param {number} at @param {any[]} values */
  event(at, [subject, text, level]) {
    this.events.set(at, { subject, text, level });
    if (level === "bad") this.firstError ??= at;
  }
}

/**
 * End the last span where the next one starts; the next one may replace it.
 * @template {Span} S
 * @param {S[]} spans @param {S | null} next @param {number} [at]
 */
function follow(spans, next, at = next?.start ?? 0) {
  const last = spans.at(-1);
  if (last && last.end === null) last.end = at;
  if (last && last.start === at) spans.pop();
  if (next) spans.push(next);
}

/**
 * Put a value into the map of a name, which keeps the newest ones.
 * @template V
 * @param {Map<string, Map<string, V>>} maps @param {string} name @param {string} key @param {V} value
 */
function put(maps, name, key, value) {
  if (!maps.has(name)) maps.set(name, new Map());
  const values = maps.get(name) ?? new Map();
  values.set(key, value);
  if (values.size > HELD_MAX) values.delete(values.keys().next().value);
}

/** @type {Record<string, (group: Group, at: number, values: any[]) => void>} */
const HANDLERS = {
  state: (group, at, values) => group.state(at, values),
  event: (group, at, values) => group.event(at, values),
  member: ({ lanes }, at, [index, state]) => follow(lanes[index].spans, state && { start: at, end: null, state }, at),
  owned: ({ lanes }, at, [index, text]) => follow(lanes[index].owned, { start: at, end: null, text }),
  owners: ({ partitions }, at, [name, owners]) => {
    if (!partitions.has(name)) partitions.set(name, []);
    follow(partitions.get(name) ?? [], { start: at, end: null, owners });
  },
  barrier: ({ barriers }, at, [joined, expected, waiting, remark]) =>
    barriers.at(-1)?.steps.push({ at, joined, expected, waiting, remark }),
  heartbeat: ({ lanes }, at, [index]) => lanes[index].heartbeats.push(at),
  mark: ({ lanes, marks }, at, [index, kind, text]) => (lanes[index]?.marks ?? marks).push({ at, kind, text }),
  hold: ({ lanes }, at, [index, hold, isOpen]) => {
    const open = lanes[index].holds.find((each) => each.end === null && each.hold === hold);
    if (isOpen) lanes[index].holds.push({ start: at, end: null, hold });
    else if (open) open.end = at;
  },
  transaction: ({ transactions, model }, at, [id, end, state, text]) => {
    if (!transactions.has(id)) transactions.set(id, new Map());
    const span = { start: at, end: end === null ? null : model.positionOf(end), state, text };
    transactions.get(id)?.set(at, span);
  },
  delivery: ({ deliveries, model }, at, [partition, first, last, lane, count, end, outcome]) => {
    const until = end === null ? null : model.positionOf(end);
    const span = { start: at, end: until, first, last, lane, count, outcome };
    put(deliveries, partition, `${at}:${first}`, span);
  },
  task: ({ tasks, model }, at, [task, type, lane, end]) => {
    const span = { start: at, end: end === null ? null : model.positionOf(end), lane };
    put(tasks, `${task} ${type}`, `${at}:${lane}`, span);
  },
  story: ({ story }, at, [level, title, text, label]) => story.set(at, { at, level, title, text, label }),
};
