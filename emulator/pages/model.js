/* What a trace tells: the groups in it, their members as lanes, who owned which partition, and when.
 *
 * Input: lines of the trace (koordinator.emulator.trace.trace), the oldest first, as many at a time as come. Everything is kept
 * as spans between positions in `lines`, so any moment can be looked at again. No DOM in here.
 */
"use strict";
globalThis.Koordinator = globalThis.Koordinator || {};

(() => {
  /* Answers that are a part of the protocol, not a mistake of anybody (as in koordinator.handles.timeline). */
  const EXPECTED = {
    MEMBER_ID_REQUIRED: ["JoinGroup"],
    REBALANCE_IN_PROGRESS: ["Heartbeat", "SyncGroup"],
  };

  /* What clients do all the time; when it goes well, it says nothing about the group. */
  const ROUTINE = new Set([
    "ApiVersions", "Metadata", "FindCoordinator", "ListOffsets", "OffsetFetch", "Fetch", "Heartbeat", "Produce", "InitProducerId",
    "OffsetForLeaderEpoch", "DescribeCluster", "DescribeConfigs", "DescribeGroups", "ListGroups",
  ]);

  /* Lines that are a test's own doing. */
  const BY_HAND = new Set(["rule", "hold", "clock", "puppet", "node", "leader", "verb"]);

  /* Kinds with an `on_…` of their own. */
  const HANDLERS = new Set(["request", "response", "member", "state", "avoided_static", "timer", "offsets", "puppet", "rule", "hold"]);

  const EXPELLED = new Set(["session_expired", "join_timeout", "sync_timeout", "fenced", "evicted", "over_capacity"]);

  const isError = (line) => Boolean(line.error) && !(EXPECTED[line.error] || []).includes(line.api);

  /** Whether the line is everyday traffic: not an event of the group's story. */
  function isRoutine(line) {
    if (line.error || line.rule_id || line.synthetic) return false;
    if (line.kind === "request" || line.kind === "response") return ROUTINE.has(line.api);
    if (line.kind === "puppet") return line.change !== "failed";
    return line.kind === "conn" && line.change === "opened";
  }

  const callOf = (line) => `${line.node}:${line.conn_id}:${line.correlation_id}`;

  const partitionsOf = (assignment) =>
    Object.entries(assignment || {}).flatMap(([topic, list]) => list.map((number) => `${topic}-${number}`));

  /** One place in the group: who has this group.instance.id, or client id, now and after every restart. */
  class Lane {
    constructor(name, isStatic, index) {
      Object.assign(this, { name, isStatic, index, spans: [], beats: [], marks: [], owned: new Set() });
      Object.assign(this, { state: null, isMember: false, conn: null, memberId: null, protocols: [], topics: [] });
      this.former = new Set();
      this.held = [];
    }

    become(at, state) {
      if (state === this.state) return;
      const last = this.spans[this.spans.length - 1];
      if (last && last.end === null) last.end = at;
      if (state !== null) this.spans.push({ start: at, end: null, state });
      this.state = state;
    }

    get isCooperative() {
      return this.protocols.length > 0 && this.protocols.every((name) => /cooperative|compatible|sessioned/.test(name));
    }

    mark(at, kind, text) {
      this.marks.push({ at, kind, text });
    }
  }

  class Group {
    constructor(id, model) {
      Object.assign(this, { id, model, bands: [], lanes: [], barriers: [], commits: [], marks: [], at: [] });
      this.partitions = new Map();
      this.laneOfMember = new Map();
      this.joiner = null;
    }

    get state() {
      return this.bands.length ? this.bands[this.bands.length - 1].state : null;
    }

    /** The lane of whoever sent this request: a known member id, else the instance id, else a free lane of its client id. */
    laneOf(line) {
      const known = line.member_id && this.laneOfMember.get(line.member_id);
      if (known) return known;
      const name = line.instance_id || line.client_id || line.member_id;
      if (!name) return null;
      let lane;
      for (let number = 1; ; number += 1) {
        const label = number === 1 ? name : `${name} #${number}`;
        lane = this.lanes.find((each) => each.name === label);
        if (!lane) {
          lane = new Lane(label, Boolean(line.instance_id), this.lanes.length);
          this.lanes.push(lane);
        }
        // a client id may belong to several members; an instance id belongs to one
        if (line.instance_id || [null, "removed", "away"].includes(lane.state) || lane.conn === line.conn_id) break;
      }
      if (line.member_id) this.laneOfMember.set(line.member_id, lane);
      return lane;
    }

    take(line, at) {
      this.at.push(at);
      const handler = HANDLERS.has(line.kind) ? this[`on_${line.kind}`] : null;
      if (handler) handler.call(this, line, at);
      else if (BY_HAND.has(line.kind)) this.marks.push({ at, kind: line.kind });
    }

    on_request(line, at) {
      if (!["JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "LeaveGroup"].includes(line.api)) return;
      const lane = this.laneOf(line);
      if (!lane) return;
      this.model.laneOfCall.set(at, lane);
      // a commit without a member is from outside the group, a tool's say
      if (line.api === "OffsetCommit" && !line.member_id) return;
      if (lane.state === "away" && lane.memberId !== line.member_id && !lane.isStatic) {
        // a new process, and the group still waits for the one that was here before
        lane.former.add(lane.memberId);
        Object.assign(lane, { memberId: null, isMember: false });
      }
      lane.conn = line.conn_id;
      if (line.api !== "JoinGroup") return;
      const body = line.body || {};
      lane.protocols = body.protocols || lane.protocols;
      lane.topics = body.topics || lane.topics;
      lane.sessionMs = body.session_timeout_ms || lane.sessionMs;
      lane.clientId = line.client_id;
      this.joiner = lane;
      lane.become(at, "joining");
      // in a stable group the answer may be that nothing changes: see on_state
      if (this.state !== "Stable") this.giveUp(lane, at);
      this.progress(at, lane);
    }

    on_response(line, at) {
      const lane = this.model.laneOfCall.get(this.model.partner[at]);
      if (!lane) return;
      const body = line.body || {};
      if (isError(line)) lane.mark(at, "error", line.error);
      else if (line.error) lane.mark(at, "notice", line.error);
      switch (line.api) {
        case "JoinGroup":
          if (line.member_id && !["FENCED_INSTANCE_ID", "UNKNOWN_MEMBER_ID"].includes(line.error)) {
            this.laneOfMember.set(line.member_id, lane);
          }
          if (!line.error) {
            lane.memberId = line.member_id;
            lane.isMember = true;
            lane.become(at, "syncing");
            this.protocol = body.protocol || this.protocol;
          } else if (line.error === "MEMBER_ID_REQUIRED") lane.become(at, "pending");
          else if (!lane.isMember) lane.become(at, line.error === "FENCED_INSTANCE_ID" ? "removed" : null);
          break;
        case "SyncGroup":
          if (!line.error) {
            lane.become(at, "stable");
            this.own(lane, partitionsOf(body.assignment), at);
          } else if (line.error === "REBALANCE_IN_PROGRESS" && lane.state === "syncing") lane.become(at, "unjoined");
          break;
        case "Heartbeat":
          if (!line.error) lane.beats.push(at);
          if (!line.error && (lane.state === null || lane.state === "away")) {
            lane.isMember = true;
            lane.become(at, this.state === "PreparingRebalance" ? "unjoined" : "stable");
          }
          break;
        case "OffsetCommit":
          if (!line.error) {
            this.commits.push(at);
            lane.mark(at, "commit", "offsets committed");
          }
          break;
        default:
      }
      if (["UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID"].includes(line.error) && !lane.isMember) {
        this.own(lane, [], at);
      }
    }

    on_member(line, at) {
      let lane = this.laneOfMember.get(line.member_id);
      if (!lane && line.instance_id) lane = this.lanes.find((each) => each.isStatic && each.name === line.instance_id);
      if (!lane) lane = line.change === "added" || line.change === "pending" ? this.joiner : this.laneOf(line);
      if (!lane) return;
      this.laneOfMember.set(line.member_id, lane);
      switch (line.change) {
        case "added":
          lane.memberId = line.member_id;
          lane.isMember = true;
          this.progress(at, lane);
          break;
        case "removed": {
          if (lane.former.delete(line.member_id)) {
            lane.mark(at, "expelled", `the process before this one is removed: ${line.reason || line.cause}`);
            if (line.cause === "join_timeout") this.missed(`${lane.name} (its former process)`);
            this.progress(at, null);
            return;
          }
          const expelled = EXPELLED.has(line.cause);
          lane.isMember = false;
          lane.mark(at, expelled ? "expelled" : "left", line.reason || line.cause);
          lane.become(at, expelled ? "removed" : null);
          this.own(lane, [], at);
          if (line.cause === "join_timeout") this.missed(lane.name);
          this.progress(at, null);
          break;
        }
        case "fenced":
          lane.mark(at, "expelled", line.reason || "fenced");
          break;
        default:
      }
    }

    on_state(line, at) {
      const last = this.bands[this.bands.length - 1];
      if (last) last.end = at;
      else if (line.state_from) this.bands.push({ start: 0, end: at, state: line.state_from, generation: 0 });
      const { state_to: state, generation, cause, reason } = line;
      const lane = this.laneOfMember.get(line.member_id) || null;
      this.bands.push({ start: at, end: null, state, generation, cause, reason, lane, clientReason: line.client_reason });
      const open = this.openBarrier;
      if (open && state !== "PreparingRebalance") {
        open.end = at;
        open.generation = generation;
      }
      if (state === "PreparingRebalance") {
        this.barriers.push({ start: at, end: null, cause, lane, joined: new Set(), steps: [], last: null, missed: [] });
        for (const each of this.lanes) {
          if (each.state === "joining") {
            this.openBarrier.joined.add(each.index);
            this.giveUp(each, at);
          } else if (each.isMember && each.state !== "away") each.become(at, "unjoined");
        }
        this.progress(at, null);
      }
    }

    on_avoided_static(line, at) {
      const lane = this.lanes.find((each) => each.isStatic && each.name === line.instance_id);
      if (!lane) return;
      this.laneOfMember.set(line.member_id, lane);
      lane.isMember = true;
      lane.mark(at, "avoided", "came back without a rebalance");
    }

    on_timer(line, at) {
      // without a delay to wait for, that it is over says nothing
      if (line.timer === "InitialDelay" && line.body && line.body.delay_ms === 0) return;
      const lane = this.laneOfMember.get(line.member_id);
      if (lane) lane.mark(at, "timer", Koordinator.words.timer(line, lane));
      else this.marks.push({ at, kind: "timer" });
    }

    on_offsets(line, at) {
      this.marks.push({ at, kind: "offsets" });
    }

    on_rule(line, at) {
      this.byHand(line, at);
    }

    on_hold(line, at) {
      const lane = this.byHand(line, at);
      if (!lane) return;
      if (line.change === "entered") lane.held.push({ start: at, end: null, hold: line.hold_id });
      const open = lane.held.find((each) => each.end === null && each.hold === line.hold_id);
      if (open && line.change === "released") open.end = at;
    }

    /** Something done to one request is marked in its lane, which is returned; what is done to no one beside the group. */
    byHand(line, at) {
      const lane = this.model.laneOfCall.get(this.model.calls.get(callOf(line)));
      if (lane) lane.mark(at, "hand", Koordinator.words.handTold(line));
      else this.marks.push({ at, kind: line.kind });
      return lane;
    }

    /** What a puppet does is seen in its requests; that it has given up only here. */
    on_puppet(line, at) {
      if (line.change !== "failed") return;
      const lane = this.lanes.find((each) => each.name === (line.instance_id || line.puppet));
      if (lane) lane.mark(at, "hand", `puppet ${line.change}`);
      else this.marks.push({ at, kind: "puppet" });
    }

    /** A connection is gone: a member of it is still a member, until it leaves or its session runs out. */
    closed(line, at) {
      for (const lane of this.lanes) {
        if (lane.conn !== line.conn_id) continue;
        if (lane.isMember) lane.become(at, "away");
        else lane.become(at, null);
        this.at.push(at);
        return;
      }
    }

    get openBarrier() {
      const last = this.barriers[this.barriers.length - 1];
      return last && last.end === null ? last : null;
    }

    /** How full the join barrier is, after somebody came or went. */
    progress(at, lane) {
      const open = this.openBarrier;
      if (!open) return;
      if (lane && lane.state === "joining") {
        if (!open.joined.has(lane.index)) open.last = lane;
        open.joined.add(lane.index);
      }
      const members = this.lanes.filter((each) => each.isMember);
      const waiting = members.filter((each) => !open.joined.has(each.index)).map((each) => each.name);
      const joined = members.length - waiting.length;
      for (const each of this.lanes) for (const _ of each.former) waiting.push(`${each.name} (its former process)`);
      open.steps.push({ at, joined, expected: joined + waiting.length, waiting });
    }

    missed(name) {
      const barrier = this.barriers[this.barriers.length - 1];
      if (barrier) barrier.missed.push(name);
    }

    /** An eager consumer has given up everything before it joins; a cooperative one keeps it meanwhile. */
    giveUp(lane, at) {
      if (!lane.isCooperative) this.own(lane, [], at);
    }

    /** From here on the lane owns exactly these partitions. */
    own(lane, wanted, at) {
      const next = new Set(wanted);
      for (const name of lane.owned) if (!next.has(name)) this.change(name, at, (owners) => owners.filter((o) => o !== lane.index));
      for (const name of next) if (!lane.owned.has(name)) this.change(name, at, (owners) => [...owners, lane.index]);
      lane.owned = next;
    }

    change(name, at, change) {
      if (!this.partitions.has(name)) this.partitions.set(name, []);
      const spans = this.partitions.get(name);
      const last = spans[spans.length - 1];
      const owners = change(last ? last.owners : []);
      if (last && last.start === at) last.owners = owners;
      else {
        if (last) last.end = at;
        spans.push({ start: at, end: null, owners });
      }
    }
  }

  class Model {
    constructor() {
      Object.assign(this, { lines: [], header: null, groups: new Map(), partner: [], firstError: null, dropped: 0 });
      this.calls = new Map();
      this.laneOfCall = new Map();
    }

    append(lines) {
      for (const line of lines) this.take(line);
    }

    take(line) {
      if (line.kind === "header") {
        this.header = line;
        return;
      }
      const at = this.lines.length;
      this.lines.push(line);
      this.partner.push(null);
      if (line.kind === "dropped") this.dropped = line.count;
      const call = callOf(line);
      if (line.kind === "request") this.calls.set(call, at);
      if (line.kind === "response" && this.calls.has(call)) {
        const asked = this.calls.get(call);
        this.calls.delete(call);
        this.partner[at] = asked;
        this.partner[asked] = at;
      }
      if (this.firstError === null && line.kind === "response" && isError(line)) this.firstError = at;
      if (line.kind === "conn" && line.change === "closed") for (const group of this.groups.values()) group.closed(line, at);
      if (line.group_id !== undefined) this.group(line.group_id).take(line, at);
      else if (BY_HAND.has(line.kind)) for (const group of this.groups.values()) group.marks.push({ at, kind: line.kind });
    }

    group(id) {
      if (!this.groups.has(id)) this.groups.set(id, new Group(id, this));
      return this.groups.get(id);
    }

    /** Groups in which something happened, the one with most events first. */
    chosen() {
      const all = [...this.groups.values()];
      const lively = all.filter((group) => group.lanes.length || group.bands.length);
      return (lively.length ? lively : all).sort((one, other) => other.at.length - one.at.length);
    }

    /** The position of a sequence number, or of the event after it. */
    positionOf(seq) {
      let low = 0;
      let high = this.lines.length - 1;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.lines[middle].seq < seq) low = middle + 1;
        else high = middle;
      }
      return Math.max(low, 0);
    }

    secondsAt(at) {
      return this.lines.length ? (this.lines[at].wall_ts - this.lines[0].wall_ts) / 1e6 : 0;
    }
  }

  /** The span that holds at a position: the last that began at or before it, unless it has ended. */
  function spanAt(spans, at) {
    let low = 0;
    let high = spans.length - 1;
    let found = null;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (spans[middle].start <= at) {
        found = spans[middle];
        low = middle + 1;
      } else high = middle - 1;
    }
    return found && (found.end === null || found.end > at) ? found : null;
  }

  Object.assign(Koordinator, { Model, spanAt, isError, isRoutine, partitionsOf, BY_HAND });
})();
