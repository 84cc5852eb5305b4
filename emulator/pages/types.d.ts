/** Types of the timeline. The scripts refer to them in JSDoc comments; they are not shipped. */

import type { Axis } from "./axis.js";
import type { Group } from "./group.js";
import type { Lane } from "./lane.js";

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
  cause?: string;
  reason?: string;
  lane: Lane | null;
}

export interface OwnerSpan extends Span {
  owners: number[];
}

export interface HoldSpan extends Span {
  hold: string;
}

export interface LaneMark {
  at: number;
  kind: "avoided" | "commit" | "error" | "left" | "notice" | "removed" | "test" | "timer";
  text: string;
}

export interface GroupMark {
  at: number;
  kind: string;
}

/** The fill of a join barrier from a position on. */
export interface BarrierStep {
  at: number;
  joined: number;
  expected: number;
  waiting: string[];
}

export interface Barrier extends Span {
  joined: Set<number>;
  steps: BarrierStep[];
  last: Lane | null;
  missed: string[];
}

/** A rebalance: from PreparingRebalance to the next state other than CompletingRebalance. */
export interface Rebalance {
  start: number;
  end: number | null;
  until: number | null;
  cause?: string;
  reason?: string;
  lane: Lane | null;
  state: string | null;
  generation: number | null;
}

/** Partitions by the effect that a rebalance had on them; `longest` is the longest pause in s. */
export interface Effect {
  kept: string[];
  paused: string[];
  moved: string[];
  revoked: string[];
  assigned: string[];
  longest: number;
}

export interface StoryItem {
  at: number;
  level: "rebalance" | "good" | "bad" | "info" | "test";
  title: string;
  text: string;
}

export type Part = "top" | "body";

/** A row of the chart. Rows of part "top" stay in sight; rows of part "body" scroll. */
export interface Row {
  part: Part;
  kind: "ruler" | "flags" | "states" | "barrier" | "test" | "lane" | "head" | "partition";
  top: number;
  height: number;
  label: string;
  lane?: Lane;
  name?: string;
}

export interface View {
  group: Group;
  rows: Row[];
  axis: Axis;
  width: number;
}

export interface TimelineOptions {
  title?: string;
  subtitle?: string;
  live?: boolean;
  onGroup?: (group: string) => void;
}

export interface Vocabulary {
  test_action_kinds: string[];
  rebalance_causes: Record<string, string>;
  other_causes: Record<string, string>;
  removal_causes: string[];
  expected_errors: Record<string, string[]>;
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
  described: { state: string; generation: number; protocol: string | null; leader: string | null; members: Member[] };
  timers: Timer[];
  clock: { mode: string; now_ms: number; ahead_ms: number };
  offsets: { topic: string; partition: number; offset: number }[];
  topics: { topic: string; partitions: { partition: number; end_offset: number }[] }[];
  puppets: { name: string; group?: string; state: string }[];
  rules: (FaultData & { hits: number })[];
  holds: (FaultData & { inside: unknown[] })[];
}

/** The actions that panels need: send a request (true if it succeeded), and keep an input across redraws. */
export interface PanelActions {
  act: (method: string, path: string, body?: object) => Promise<boolean>;
  keep: <Control extends HTMLElement>(key: string, create: () => Control) => Control;
}
