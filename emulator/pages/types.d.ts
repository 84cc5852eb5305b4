/** Types of the timeline. The scripts refer to them in JSDoc comments; they are not shipped. */

import type { Axis } from "./axis.js";
import type { Group } from "./group.js";

/** A line of the trace: the fields that the timeline reads. */
export interface Line {
  kind: string;
  seq: number;
  wall_ts: number;
  group_ts_us?: number;
  node?: number;
  conn_id?: number;
  correlation_id?: number;
  api?: string;
  api_version?: number;
  error?: string;
  latency_us?: number;
  client_id?: string;
  group_id?: string;
  member_id?: string;
  instance_id?: string;
  generation?: number;
  cause?: string;
  reason?: string;
  client_reason?: string;
  change?: string;
  state_from?: string;
  state_to?: string;
  timer?: string;
  rule_id?: string;
  hold_id?: string;
  synthetic?: boolean;
  puppet?: string;
  verb?: string;
  mode?: string;
  count?: number;
  // biome-ignore lint/suspicious/noExplicitAny: the shape depends on the kind and the API
  body?: any;
}

/** A range of positions in the trace; `end` is exclusive, and null for a span that is still open. */
export interface Span {
  start: number;
  end: number | null;
}

export interface StateSpan extends Span {
  state: string;
}

export interface GroupSpan extends StateSpan {
  generation: number;
  /** The name of the generation: "epoch" in a consumer group. */
  number: string;
  reason?: string;
}

export interface TextSpan extends Span {
  text: string;
}

export interface OwnerSpan extends Span {
  owners: number[];
}

/** A transaction that concerns the group. */
export interface TransactionSpan extends StateSpan {
  text: string;
}

export interface HoldSpan extends Span {
  hold: string;
}

/** A mark in a lane or, of a timer or an action of a test, in the group. */
export interface Mark {
  at: number;
  kind: string;
  text: string;
}

/** The place of one group.instance.id or client id in the group, across restarts of its client. */
export interface Lane {
  name: string;
  index: number;
  isStatic: boolean;
  isCooperative: boolean;
  /** The user of an authenticated client. */
  user: string | null;
  spans: StateSpan[];
  owned: TextSpan[];
  heartbeats: number[];
  marks: Mark[];
  holds: HoldSpan[];
}

/** The fill of a join barrier from a position on. */
export interface BarrierStep {
  at: number;
  joined: number;
  expected: number;
  waiting: string;
  remark: string;
}

export interface Barrier extends Span {
  steps: BarrierStep[];
}

export interface StoryItem {
  at: number;
  level: string;
  title: string;
  text: string;
  label: string;
}

/** An event on the tape. */
/** Records that a member of a share group acquired together. */
export interface DeliverySpan extends Span {
  first: number;
  last: number;
  lane: number | null;
  count: number;
  outcome: string;
}

/** A task of a member of a streams group. */
export interface TaskSpan extends Span {
  lane: number | null;
}

export interface TapeEvent {
  subject: string;
  text: string;
  level: string;
}

// biome-ignore lint/suspicious/noExplicitAny: koordinator.emulator.pages.lanes declares the rows
export type Row = [kind: string, key: any, ...values: any[]];

/** Kind, id, state, generation, number of members, and how often something happened (…pages.overview). */
export type GroupRow = ["group", string, string, number, number | null, Record<string, number>];

/** What is new in a trace (…pages.feed). */
export interface Change {
  lines: Line[];
  groups: GroupRow[];
  rows?: Row[];
}

export type Part = "top" | "body";

/** A row of the chart. Rows of part "top" stay in sight; rows of part "body" scroll. */
export interface ChartRow {
  part: Part;
  kind:
    | "ruler"
    | "flags"
    | "states"
    | "barrier"
    | "test"
    | "lane"
    | "head"
    | "partition"
    | "transaction"
    | "records"
    | "task";
  top: number;
  height: number;
  label: string;
  lane?: Lane;
  name?: string;
  deliveries?: DeliverySpan[];
}

/** What a chart shows; `sight` is the visible range of the rows that scroll, in pixels. */
export interface View {
  group: Group;
  rows: ChartRow[];
  axis: Axis;
  width: number;
  sight: [number, number];
}

/** Options of a timeline. A live one asks for the lines of a group (`onGroup`) and for its test (`testOf`). */
export interface TimelineOptions {
  title?: string;
  subtitle?: string;
  live?: boolean;
  drawings?: Record<string, { rows: Row[]; test: string }>;
  onGroup?: (group: string) => void;
  testOf?: (group: string) => Promise<string>;
}

/** A member as the HTTP API describes it. */
export interface Member {
  member_id: string;
  client_id: string;
  instance_id: string | null;
  session_timeout_ms: number;
  assignment: Record<string, number[]>;
}

export interface Timer {
  kind: string;
  member_id?: string;
  instance_id?: string;
  deadline_ms: number;
  remaining_ms: number;
}

/** A rule or hold as the HTTP API describes it. */
export interface FaultData {
  id: string;
  match?: Record<string, unknown>;
  action?: Record<string, unknown>;
}

/** The state of a group in the event stream. */
export interface GroupData {
  group: string;
  described: {
    state: string;
    type: string;
    generation: number;
    protocol: string | null;
    leader: string | null;
    members: Member[];
  };
  timers: Timer[];
  clock: { mode: string; now_ms: number; ahead_ms: number };
  offsets: { topic: string; partition: number; offset: number }[];
  topics: { topic: string; partitions: { partition: number; end_offset: number }[] }[];
  puppets: { name: string; group?: string; state: string }[];
  rules: (FaultData & { hits: number })[];
  holds: (FaultData & { parked: unknown[] })[];
}

/** What panels need: send a request (true if it succeeded), keep an input across redraws, and the member search. */
export interface PanelActions {
  search: string;
  act: (method: string, path: string, body?: object) => Promise<boolean>;
  keep: <Control extends HTMLElement>(key: string, create: () => Control) => Control;
}
