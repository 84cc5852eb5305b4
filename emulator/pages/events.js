// @ts-check
/* Single lines of the trace: classification and short texts. */
/** @import { Line } from "./types.js" */
import { count, duration, partitionRanges, partitionsOf, spaced } from "./format.js";
import { TEST_ACTIONS, vocabulary } from "./vocabulary.js";

/* APIs that clients call all the time; their successful calls say nothing about the group. */
const ROUTINE_APIS = new Set([
  "ApiVersions",
  "Metadata",
  "FindCoordinator",
  "ListOffsets",
  "OffsetFetch",
  "Fetch",
  "Heartbeat",
  "Produce",
  "InitProducerId",
  "OffsetForLeaderEpoch",
  "DescribeCluster",
  "DescribeConfigs",
  "DescribeGroups",
  "ListGroups",
]);

/**
 * Return whether a response has an error that is not part of the normal protocol.
 * @param {Line} line
 */
export const isError = (line) =>
  Boolean(line.error) && !(vocabulary.expected_errors[line.error ?? ""] ?? []).includes(line.api ?? "");

/**
 * Return whether a line is routine traffic.
 * @param {Line} line
 */
export function isRoutine(line) {
  if (line.error || line.rule_id || line.synthetic) return false;
  if (line.kind === "request" || line.kind === "response") return ROUTINE_APIS.has(line.api ?? "");
  if (line.kind === "puppet") return line.change !== "failed";
  return line.kind === "conn" && line.change === "opened";
}

/**
 * Return the key of a call, equal for its request and response.
 * @param {Line} line
 */
export const callOf = (line) => `${line.node}:${line.conn_id}:${line.correlation_id}`;

/** @param {Line} line */
export const isTestAction = (line) => TEST_ACTIONS.has(line.kind);

/** @type {Record<string, (member: string) => string>} */
const TIMERS = {
  SessionExpiry: (member) => `session of ${member} expired`,
  PendingMemberExpiry: (member) => `${member} did not return with its member id in time`,
  InitialDelay: () => "initial rebalance delay ended",
  RebalanceTimeout: () => "rebalance timeout expired",
  PendingSyncExpiry: () => "SyncGroup timeout expired",
  OffsetExpiryCheck: () => "check for expired offsets",
};

/** @param {Line} line @param {string} [member] */
export function timerText(line, member) {
  const text = TIMERS[line.timer ?? ""];
  return text ? text(member ?? line.member_id ?? "a member") : `${line.timer} expired`;
}

/**
 * {"api": "Heartbeat", "client_id": "svc-*"} → "Heartbeat, client id svc-*"
 * @param {Record<string, unknown>} match
 */
export const matchText = ({ api, ...conditions }) =>
  [api || "any request", ...Object.entries(conditions).map(([key, value]) => `${spaced(key)} ${value}`)].join(", ");

/**
 * {"kind": "error", "name": "NOT_COORDINATOR"} → "error NOT_COORDINATOR"
 * @param {Record<string, unknown>} action
 */
export const actionText = ({ kind, ...parameters }) =>
  [spaced(`${kind ?? ""}`), ...Object.values(parameters)].join(" ");

/** @param {Line} line */
function ruleText(line) {
  const body = line.body ?? {};
  if (line.change === "added") {
    return `${line.rule_id} added: ${matchText(body.match ?? {})} → ${actionText(body.action ?? {})}`;
  }
  return line.change === "used"
    ? `${line.rule_id} acts on ${line.api}: ${actionText(body)}`
    : `${line.rule_id} ${line.change}`;
}

/** @param {Line} line */
function holdText(line) {
  switch (line.change) {
    case "added":
      return `${line.hold_id} added: ${matchText(line.body?.match ?? {})}`;
    case "entered":
      return `${line.hold_id} holds ${line.api}`;
    case "behind":
      return `${line.api} waits behind ${line.hold_id}`;
    default:
      return `${line.hold_id} ${line.change}${line.api ? `: ${line.api} continues` : ""}`;
  }
}

/** @param {Line} line */
function clockText(line) {
  const ahead = (line.body.to_ms - line.body.from_ms) / 1000;
  const cause = line.cause ? ` (${spaced(line.cause)})` : "";
  return ahead ? `clock advanced by ${duration(ahead)}${cause}` : `clock mode set to ${line.mode}`;
}

/** @param {Line} line */
function verbText(line) {
  const values = Object.values(line.body ?? {}).filter((value) => value !== null && typeof value !== "object");
  return [spaced(line.verb ?? ""), ...values].join(" ");
}

/**
 * Return a short text for a timer or an action of a test.
 * @param {Line} line
 */
export function actionLineText(line) {
  if (line.kind === "timer") return timerText(line);
  if (line.kind === "clock") return clockText(line);
  if (line.kind === "rule") return ruleText(line);
  if (line.kind === "hold") return holdText(line);
  if (line.kind === "verb") return verbText(line);
  const words = [line.kind, line.change, line.timer, line.rule_id, line.reason || line.cause].filter(Boolean);
  return `${words.join(" ")} ${line.body ? JSON.stringify(line.body) : ""}`.trim();
}

/**
 * Return a short text for any line.
 * @param {Line} line
 */
export function summary(line) {
  const hasGeneration = line.generation !== undefined && line.generation !== -1;
  const generation = hasGeneration ? ` · generation ${line.generation}` : "";
  switch (line.kind) {
    case "request":
      return `${line.api}${generation}${bodySummary(line)}`;
    case "response":
      return `${line.api} → ${line.error || "OK"}${generation}${bodySummary(line)}`;
    case "state":
      return `${line.state_from} ⇒ ${line.state_to}${generation} · ${line.reason || line.cause || ""}`;
    case "member":
      return `${line.change} · ${line.reason || line.cause || ""}`;
    case "conn":
      return `connection ${line.conn_id} ${line.change}${line.reason ? ` · ${line.reason}` : ""}`;
    case "avoided_static":
      return `no rebalance · ${line.reason || ""}`;
    case "dropped":
      return `${line.count} older events were discarded`;
    default:
      return actionLineText(line);
  }
}

/** @param {Line} line */
function bodySummary(line) {
  const body = line.body ?? {};
  if (body.assignment) return ` · ${partitionRanges(partitionsOf(body.assignment)) || "no partitions"}`;
  if (body.offsets) {
    /** @type {[string, number, number][]} */
    const offsets = body.offsets.slice(0, 4);
    return ` · ${offsets.map(([topic, partition, offset]) => `${topic}-${partition}@${offset}`).join(" ")}`;
  }
  if (line.kind === "response" && body.members?.length) return ` · leader of ${count(body.members.length, "member")}`;
  return "";
}
