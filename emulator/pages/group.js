// @ts-check
/* A group in a trace: its states, members as lanes, join barriers and owners of partitions.
 *
 * Everything is kept as spans between positions in the trace, so that any moment can be shown again.
 */
/** @import { Model } from "./model.js" */
/** @import { Barrier, GroupMark, GroupSpan, Line, OwnerSpan } from "./types.js" */
import { actionLineText, callOf, isError, isTestAction, timerText } from "./events.js";
import { partitionsOf } from "./format.js";
import { Lane } from "./lane.js";
import { REMOVAL_CAUSES } from "./vocabulary.js";

const MEMBER_APIS = ["JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup"];

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
    /** @type {GroupMark[]} */
    this.marks = [];
    /**
     * Positions of the group's lines.
     * @type {number[]}
     */
    this.positions = [];
    /** @type {Map<string, OwnerSpan[]>} */
    this.partitions = new Map();
    /** @type {Map<string | undefined, Lane>} */
    this.laneOfMember = new Map();
    /** @type {Lane | null} */
    this.joiner = null;
  }

  get state() {
    return this.states.at(-1)?.state ?? null;
  }

  /** @param {string | undefined} instanceId */
  staticLane(instanceId) {
    return this.lanes.find((lane) => lane.isStatic && lane.name === instanceId);
  }

  /**
   * Return the lane of a request's sender: by member id, instance id, or a free lane of its client id.
   * @param {Line} line
   */
  laneOf(line) {
    const known = line.member_id && this.laneOfMember.get(line.member_id);
    if (known) return known;
    const name = line.instance_id || line.client_id || line.member_id;
    if (!name) return null;
    for (let number = 1; ; number += 1) {
      const label = number === 1 ? name : `${name} #${number}`;
      let lane = this.lanes.find((each) => each.name === label);
      if (!lane) {
        lane = new Lane(label, Boolean(line.instance_id), this.lanes.length);
        this.lanes.push(lane);
      }
      const isFree = [null, "removed", "away"].includes(lane.state) || lane.connection === line.conn_id;
      // several members can share a client id, but not an instance id
      if (!line.instance_id && !isFree) continue;
      if (line.member_id) this.laneOfMember.set(line.member_id, lane);
      return lane;
    }
  }

  /** @param {Line} line @param {number} at */
  add(line, at) {
    this.positions.push(at);
    const handle = HANDLERS[line.kind];
    if (handle) handle(this, line, at);
    else if (line.kind === "offsets" || isTestAction(line)) this.marks.push({ at, kind: line.kind });
  }

  /** @param {Line} line @param {number} at */
  onRequest(line, at) {
    const lane = MEMBER_APIS.includes(line.api ?? "") ? this.laneOf(line) : null;
    if (!lane) return;
    this.model.laneOfCall.set(at, lane);
    // a commit without a member id comes from outside the group, such as from a tool
    if (line.api === "OffsetCommit" && !line.member_id) return;
    if (lane.state === "away" && lane.memberId !== line.member_id && !lane.isStatic) {
      // a new process; the group still waits for the former one
      lane.former.add(lane.memberId);
      lane.memberId = undefined;
      lane.isMember = false;
    }
    lane.connection = line.conn_id;
    if (line.api !== "JoinGroup") return;
    const body = line.body ?? {};
    lane.protocols = body.protocols || lane.protocols;
    lane.topics = body.topics || lane.topics;
    lane.sessionMs = body.session_timeout_ms || lane.sessionMs;
    this.joiner = lane;
    lane.become(at, "joining");
    // a stable group may answer without a rebalance: see onState
    if (this.state !== "Stable") this.revokeEagerly(lane, at);
    this.addBarrierStep(at, lane);
  }

  /** @param {Line} line @param {number} at */
  onResponse(line, at) {
    const lane = this.model.laneOfCall.get(this.model.partner[at] ?? -1);
    if (!lane) return;
    const { error = "" } = line;
    const body = line.body ?? {};
    if (error) lane.mark(at, isError(line) ? "error" : "notice", error);
    switch (line.api) {
      case "JoinGroup":
        if (line.member_id && !["FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"].includes(error)) {
          this.laneOfMember.set(line.member_id, lane);
        }
        if (!error) {
          lane.memberId = line.member_id;
          lane.isMember = true;
          lane.become(at, "syncing");
        } else if (error === "MEMBER_ID_REQUIRED") lane.become(at, "pending");
        else if (!lane.isMember) lane.become(at, error === "FENCED_INSTANCE_ID" ? "removed" : null);
        break;
      case "SyncGroup":
        if (!error) {
          lane.become(at, "stable");
          this.own(lane, partitionsOf(body.assignment), at);
        } else if (error === "REBALANCE_IN_PROGRESS" && lane.state === "syncing") lane.become(at, "unjoined");
        break;
      case "Heartbeat":
        if (error) break;
        lane.heartbeats.push(at);
        if (lane.state === null || lane.state === "away") {
          lane.isMember = true;
          lane.become(at, this.state === "PreparingRebalance" ? "unjoined" : "stable");
        }
        break;
      case "OffsetCommit":
        if (!error) lane.mark(at, "commit", "offsets committed");
        break;
      default:
    }
    if (["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID"].includes(error) && !lane.isMember) {
      this.own(lane, [], at);
    }
  }

  /** @param {Line} line @param {number} at */
  onMember(line, at) {
    const isNew = line.change === "added" || line.change === "pending";
    const known = this.laneOfMember.get(line.member_id) ?? this.staticLane(line.instance_id);
    const lane = known ?? (isNew ? this.joiner : this.laneOf(line));
    if (!lane) return;
    this.laneOfMember.set(line.member_id, lane);
    if (line.change === "added") {
      lane.memberId = line.member_id;
      lane.isMember = true;
      this.addBarrierStep(at, lane);
    } else if (line.change === "removed") this.onRemoved(line, at, lane);
    else if (line.change === "fenced") lane.mark(at, "removed", line.reason || "fenced");
  }

  /** @param {Line} line @param {number} at @param {Lane} lane */
  onRemoved(line, at, lane) {
    const text = line.reason || line.cause || "";
    const isFormer = lane.former.delete(line.member_id);
    if (isFormer) lane.mark(at, "removed", `the former process is removed: ${text}`);
    else {
      const isRemoval = REMOVAL_CAUSES.has(line.cause ?? "");
      lane.isMember = false;
      lane.mark(at, isRemoval ? "removed" : "left", text);
      lane.become(at, isRemoval ? "removed" : null);
      this.own(lane, [], at);
    }
    if (line.cause === "join_timeout") this.barriers.at(-1)?.missed.push(isFormer ? formerName(lane) : lane.name);
    this.addBarrierStep(at, null);
  }

  /** @param {Line} line @param {number} at */
  onState(line, at) {
    const { state_to: state = "", generation = -1, cause, reason } = line;
    const last = this.states.at(-1);
    if (last) last.end = at;
    else if (line.state_from) {
      this.states.push({ start: 0, end: at, state: line.state_from, generation: 0, lane: null });
    }
    const lane = this.laneOfMember.get(line.member_id) ?? null;
    this.states.push({ start: at, end: null, state, generation, cause, reason, lane });
    if (state !== "PreparingRebalance") {
      if (this.openBarrier) this.openBarrier.end = at;
      return;
    }
    /** @type {Set<number>} */
    const joined = new Set();
    this.barriers.push({ start: at, end: null, joined, steps: [], last: null, missed: [] });
    for (const each of this.lanes) {
      if (each.state === "joining") {
        joined.add(each.index);
        this.revokeEagerly(each, at);
      } else if (each.isMember && each.state !== "away") each.become(at, "unjoined");
    }
    this.addBarrierStep(at, null);
  }

  /** @param {Line} line @param {number} at */
  onAvoidedRebalance(line, at) {
    const lane = this.staticLane(line.instance_id);
    if (!lane) return;
    this.laneOfMember.set(line.member_id, lane);
    lane.isMember = true;
    lane.mark(at, "avoided", "returned without a rebalance");
  }

  /** @param {Line} line @param {number} at */
  onTimer(line, at) {
    // the end of an initial delay of 0 ms is no event
    if (line.timer === "InitialDelay" && line.body?.delay_ms === 0) return;
    const lane = this.laneOfMember.get(line.member_id);
    if (lane) lane.mark(at, "timer", timerText(line, lane.name));
    else this.marks.push({ at, kind: "timer" });
  }

  /** @param {Line} line @param {number} at */
  onHold(line, at) {
    const lane = this.onFault(line, at);
    if (!lane) return;
    if (line.change === "entered") lane.holds.push({ start: at, end: null, hold: line.hold_id ?? "" });
    const open = lane.holds.find((each) => each.end === null && each.hold === line.hold_id);
    if (open && line.change === "released") open.end = at;
  }

  /**
   * Mark a fault in the lane of its request and return the lane, or mark it in the group.
   * @param {Line} line @param {number} at
   */
  onFault(line, at) {
    const lane = this.model.laneOfCall.get(this.model.calls.get(callOf(line)) ?? -1);
    if (lane) lane.mark(at, "test", actionLineText(line));
    else this.marks.push({ at, kind: line.kind });
    return lane;
  }

  /**
   * Mark the failure of a puppet; its requests show everything else.
   * @param {Line} line @param {number} at
   */
  onPuppet(line, at) {
    if (line.change !== "failed") return;
    const lane = this.lanes.find((each) => each.name === (line.instance_id || line.puppet));
    if (lane) lane.mark(at, "test", `puppet ${line.change}`);
    else this.marks.push({ at, kind: "puppet" });
  }

  /**
   * Mark the member of a closed connection as away: it stays a member until it leaves or its session expires.
   * @param {Line} line @param {number} at
   */
  onClosed(line, at) {
    const lane = this.lanes.find((each) => each.connection === line.conn_id);
    if (!lane) return;
    lane.become(at, lane.isMember ? "away" : null);
    this.positions.push(at);
  }

  get openBarrier() {
    const last = this.barriers.at(-1);
    return last && last.end === null ? last : null;
  }

  /**
   * Record how full the join barrier is.
   * @param {number} at @param {Lane | null} lane
   */
  addBarrierStep(at, lane) {
    const open = this.openBarrier;
    if (!open) return;
    if (lane && lane.state === "joining") {
      if (!open.joined.has(lane.index)) open.last = lane;
      open.joined.add(lane.index);
    }
    const members = this.lanes.filter((each) => each.isMember);
    const waiting = members.filter((each) => !open.joined.has(each.index)).map((each) => each.name);
    const joined = members.length - waiting.length;
    for (const each of this.lanes) for (const _ of each.former) waiting.push(formerName(each));
    open.steps.push({ at, joined, expected: joined + waiting.length, waiting });
  }

  /**
   * Revoke the partitions of an eager consumer before its join; a cooperative one keeps them.
   * @param {Lane} lane @param {number} at
   */
  revokeEagerly(lane, at) {
    if (!lane.isCooperative) this.own(lane, [], at);
  }

  /**
   * Set the partitions of a lane from a position on.
   * @param {Lane} lane @param {string[]} names @param {number} at
   */
  own(lane, names, at) {
    const next = new Set(names);
    for (const name of lane.owned) {
      if (!next.has(name)) this.setOwners(name, at, (owners) => owners.filter((owner) => owner !== lane.index));
    }
    for (const name of next) {
      if (!lane.owned.has(name)) this.setOwners(name, at, (owners) => [...owners, lane.index]);
    }
    lane.owned = next;
  }

  /** @param {string} name @param {number} at @param {(owners: number[]) => number[]} change */
  setOwners(name, at, change) {
    const spans = this.partitions.get(name) ?? [];
    this.partitions.set(name, spans);
    const last = spans.at(-1);
    const owners = change(last ? last.owners : []);
    if (last && last.start === at) last.owners = owners;
    else {
      if (last) last.end = at;
      spans.push({ start: at, end: null, owners });
    }
  }
}

/** @param {Lane} lane */
const formerName = (lane) => `${lane.name} (its former process)`;

/** @type {Record<string, (group: Group, line: Line, at: number) => unknown>} */
const HANDLERS = {
  request: (group, line, at) => group.onRequest(line, at),
  response: (group, line, at) => group.onResponse(line, at),
  member: (group, line, at) => group.onMember(line, at),
  state: (group, line, at) => group.onState(line, at),
  avoided_static: (group, line, at) => group.onAvoidedRebalance(line, at),
  timer: (group, line, at) => group.onTimer(line, at),
  puppet: (group, line, at) => group.onPuppet(line, at),
  rule: (group, line, at) => group.onFault(line, at),
  hold: (group, line, at) => group.onHold(line, at),
};
