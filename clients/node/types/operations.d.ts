import { Handle } from "./handle.js";
export type Offset = {
    topic: string;
    partition: number;
    offset: number;
};
export type ClientConnection = {
    connection: number;
    node: number;
    clientId: string;
    clientHost: string;
};
/**
 * The committed offset of a partition.
 * @typedef {object} Offset
 * @property {string} topic
 * @property {number} partition
 * @property {number} offset
 */
/**
 * An open connection of a client, by its number in the trace. Puppets have none.
 * @typedef {object} ClientConnection
 * @property {number} connection
 * @property {number} node
 * @property {string} clientId
 * @property {string} clientHost
 */
/** @param {any} value @returns {ClientConnection} */
export declare const toClientConnection: (value: any) => ClientConnection;
export type ClockReading = {
    mode: string;
    nowMs: number;
    aheadMs: number;
};
/**
 * A group's clock: its mode, its time in ms since the epoch, and its lead over the node's clock in ms.
 * @typedef {object} ClockReading
 * @property {string} mode
 * @property {number} nowMs
 * @property {number} aheadMs
 */
/** @param {any} value @returns {ClockReading} */
export declare const toClockReading: (value: any) => ClockReading;
export type ConformanceCheck = {
    ok: boolean;
    message: string;
    checks: Verdict[];
};
/**
 * The result of the client checks C01 to C14, or of the checks of transactions T01 to T03, one verdict each.
 * @typedef {object} ConformanceCheck
 * @property {boolean} ok
 * @property {string} message
 * @property {Verdict[]} checks
 */
/** @param {any} value @returns {ConformanceCheck} */
export declare const toConformanceCheck: (value: any) => ConformanceCheck;
export type Fired = {
    kind: string;
    memberId: string | null;
    instanceId: string | null;
    deadlineMs: number;
    generation: number;
};
/**
 * A timer that fired: `kind` is session, pending, initial_delay, join, sync, revocation, patterns or offsets.
 * `deadlineMs` is in the group's time, in ms since the epoch. `memberId` and `instanceId` name the timer's member, if
 * it has one. `generation` is the group's generation before the timer fired.
 * @typedef {object} Fired
 * @property {string} kind
 * @property {string | null} memberId
 * @property {string | null} instanceId
 * @property {number} deadlineMs
 * @property {number} generation
 */
/** @param {any} value @returns {Fired} */
export declare const toFired: (value: any) => Fired;
export type GroupCheck = {
    ok: boolean;
    message: string;
};
/**
 * The result of a check: `message` has the expectation, the observation and the closest miss, or is empty.
 * @typedef {object} GroupCheck
 * @property {boolean} ok
 * @property {string} message
 */
/** @param {any} value @returns {GroupCheck} */
export declare const toGroupCheck: (value: any) => GroupCheck;
export type GroupInfo = {
    state: string;
    generation: number;
    protocolType: string | null;
    protocol: string | null;
    leader: string | null;
    members: Member[];
    waitingFor: string[];
    type: string;
    epoch: number;
};
/**
 * A group at one moment. A group that does not exist is Dead, in generation -1, as in DescribeGroups. The `type` is
 * "classic" or "consumer" (KIP-848). The generation of a consumer group is the epoch of its target, its protocol the
 * server's assignor; `epoch` is that of the group, and it has no leader.
 * @typedef {object} GroupInfo
 * @property {string} state
 * @property {number} generation
 * @property {string | null} protocolType
 * @property {string | null} protocol
 * @property {string | null} leader
 * @property {Member[]} members
 * @property {string[]} waitingFor
 * @property {string} type
 * @property {number} epoch
 */
/** @param {any} value @returns {GroupInfo} */
export declare const toGroupInfo: (value: any) => GroupInfo;
export type HoldEntry = {
    ok: boolean;
    first: Request | null;
    deadlock: string | null;
};
/**
 * The `first` request that a hold parked, or the reason why none can arrive (`deadlock`).
 * @typedef {object} HoldEntry
 * @property {boolean} ok
 * @property {Request | null} first
 * @property {string | null} deadlock
 */
/** @param {any} value @returns {HoldEntry} */
export declare const toHoldEntry: (value: any) => HoldEntry;
export type HoldInfo = {
    id: string;
    match: Record<string, unknown>;
    clients: string[];
    entered: number;
    parked: Request[];
    behind: Request[];
    rounds: number;
    isOpen: boolean;
};
/**
 * A hold or a lock-step: `parked` are the parked requests, `behind` the requests queued on their connections.
 * `entered` counts every request that was parked; `rounds` counts the completed rounds of a lock-step, whose
 * participants are `clients`. `isOpen`: the hold was released.
 * @typedef {object} HoldInfo
 * @property {string} id
 * @property {Record<string, unknown>} match
 * @property {string[]} clients
 * @property {number} entered
 * @property {Request[]} parked
 * @property {Request[]} behind
 * @property {number} rounds
 * @property {boolean} isOpen
 */
/** @param {any} value @returns {HoldInfo} */
export declare const toHoldInfo: (value: any) => HoldInfo;
export type LockstepRound = {
    ok: boolean;
    rounds: number;
    missing: string[];
};
/**
 * The completed rounds of a lock-step, and the clients that the current round lacks.
 * @typedef {object} LockstepRound
 * @property {boolean} ok
 * @property {number} rounds
 * @property {string[]} missing
 */
/** @param {any} value @returns {LockstepRound} */
export declare const toLockstepRound: (value: any) => LockstepRound;
export type Member = {
    memberId: string;
    instanceId: string | null;
    clientId: string;
    clientHost: string;
    assignment: Record<string, number[]>;
    protocols: string[];
    sessionTimeoutMs: number;
    rebalanceTimeoutMs: number;
    type: string;
    epoch: number;
    target: Record<string, number[]>;
    pendingRevocation: Record<string, number[]>;
};
/**
 * A member of a group at one moment. `assignment` has the partitions of each topic; it is empty unless the group's
 * protocol type is "consumer". `protocols` are the names of the offered protocols, most preferred first. A Kafka
 * broker does not report protocols and timeouts: there they are empty and -1. The last four are those of a consumer
 * group (KIP-848), whose members use the protocol "consumer" or "classic": `target` is what the member is to have,
 * `pendingRevocation` what it has to give up first.
 * @typedef {object} Member
 * @property {string} memberId
 * @property {string | null} instanceId
 * @property {string} clientId
 * @property {string} clientHost
 * @property {Record<string, number[]>} assignment
 * @property {string[]} protocols
 * @property {number} sessionTimeoutMs
 * @property {number} rebalanceTimeoutMs
 * @property {string} type
 * @property {number} epoch
 * @property {Record<string, number[]>} target
 * @property {Record<string, number[]>} pendingRevocation
 */
/** @param {any} value @returns {Member} */
export declare const toMember: (value: any) => Member;
export type NodeState = {
    node: number;
    state: string;
    rack: string | null;
};
/**
 * A node, its state (up, paused or down), and its rack (`broker.rack`), if any.
 * @typedef {object} NodeState
 * @property {number} node
 * @property {string} state
 * @property {string | null} rack
 */
/** @param {any} value @returns {NodeState} */
export declare const toNodeState: (value: any) => NodeState;
export type PartitionInfo = {
    partition: number;
    leader: number;
    endOffset: number;
};
/**
 * A partition: its leader's node id (-1 without a leader) and the offset after its last record.
 * @typedef {object} PartitionInfo
 * @property {number} partition
 * @property {number} leader
 * @property {number} endOffset
 */
/** @param {any} value @returns {PartitionInfo} */
export declare const toPartitionInfo: (value: any) => PartitionInfo;
export type PartitionOffset = {
    topic: string;
    partition: number;
    offset: number;
    leaderEpoch: number;
    metadata: string | null;
    commitTimestamp: number;
};
/**
 * The committed offset of a partition. A Kafka broker is not asked for the last three fields.
 * @typedef {object} PartitionOffset
 * @property {string} topic
 * @property {number} partition
 * @property {number} offset
 * @property {number} leaderEpoch
 * @property {string | null} metadata
 * @property {number} commitTimestamp
 */
/** @param {any} value @returns {PartitionOffset} */
export declare const toPartitionOffset: (value: any) => PartitionOffset;
export type PendingOffset = {
    group: string;
    topic: string;
    partition: number;
    offset: number;
};
/**
 * An offset of a group that an open transaction will commit.
 * @typedef {object} PendingOffset
 * @property {string} group
 * @property {string} topic
 * @property {number} partition
 * @property {number} offset
 */
/** @param {any} value @returns {PendingOffset} */
export declare const toPendingOffset: (value: any) => PendingOffset;
export type ProducerInfo = {
    name: string;
    transactionalId: string;
    clientId: string;
    producerId: number;
    producerEpoch: number;
    waitsFor: string | null;
    error: string | null;
};
/**
 * A puppet producer at one moment. Producer id and epoch are -1 before its first InitProducerId. `waitsFor` is the API
 * of its pending request, `error` the error of its last step; both may be null.
 * @typedef {object} ProducerInfo
 * @property {string} name
 * @property {string} transactionalId
 * @property {string} clientId
 * @property {number} producerId
 * @property {number} producerEpoch
 * @property {string | null} waitsFor
 * @property {string | null} error
 */
/** @param {any} value @returns {ProducerInfo} */
export declare const toProducerInfo: (value: any) => ProducerInfo;
export type PuppetInfo = {
    name: string;
    group: string;
    clientId: string;
    instanceId: string | null;
    protocolType: string;
    groupProtocol: string;
    behaviour: Record<string, unknown>;
    state: string;
    memberId: string;
    generation: number;
    protocol: string | null;
    isLeader: boolean;
    assignment: Record<string, number[]>;
    waitsFor: string | null;
    error: string | null;
};
/**
 * A puppet at one moment. `state` is out, joining, joined (SyncGroup is still to be sent), syncing, reconciling (the
 * assignment is still to be acknowledged, KIP-848), stable, leaving or failed. `generation` is also the epoch of a
 * member. `assignment` are its partitions by topic; of a Connect worker the tasks by connector, where -1 is the
 * connector itself. `waitsFor` is the API of its pending request, `error` the error of the last response; both may be
 * null.
 * @typedef {object} PuppetInfo
 * @property {string} name
 * @property {string} group
 * @property {string} clientId
 * @property {string | null} instanceId
 * @property {string} protocolType
 * @property {string} groupProtocol
 * @property {Record<string, unknown>} behaviour
 * @property {string} state
 * @property {string} memberId
 * @property {number} generation
 * @property {string | null} protocol
 * @property {boolean} isLeader
 * @property {Record<string, number[]>} assignment
 * @property {string | null} waitsFor
 * @property {string | null} error
 */
/** @param {any} value @returns {PuppetInfo} */
export declare const toPuppetInfo: (value: any) => PuppetInfo;
export type Rebalance = {
    number: number;
    cause: string;
    subCause: string | null;
    reason: string;
    clientReason: string | null;
    trigger: string | null;
    generationBefore: number;
    generation: number | null;
    members: string[];
    straggler: string | null;
    stragglerWaitMs: number | null;
    timedOut: string[];
    joinMs: number | null;
    syncMs: number | null;
    outcome: string;
    startSeq: number;
    joinSeq: number | null;
    endSeq: number | null;
};
/**
 * One rebalance. Static members appear by `group.instance.id`, dynamic members by member id. `cause` is one of
 * `REBALANCECauses`, `subCause` the kind of the client's own reason (KIP-800). Durations are milliseconds on the
 * group's clock: `joinMs` lasts from the start to the end of the join barrier, `syncMs` from there to the assignment.
 * A consumer group has targets in place of join barriers, and ends when all members have theirs (KIP-848). `straggler`
 * is the last member to join, and `stragglerWaitMs` the time that the others waited for it; if members missed the
 * barrier (`timedOut`), it is the first of those. `outcome` is completed, emptied, superseded (the next rebalance
 * began before the assignment), gone (the coordinator moved) or open.
 * @typedef {object} Rebalance
 * @property {number} number
 * @property {string} cause
 * @property {string | null} subCause
 * @property {string} reason
 * @property {string | null} clientReason
 * @property {string | null} trigger
 * @property {number} generationBefore
 * @property {number | null} generation
 * @property {string[]} members
 * @property {string | null} straggler
 * @property {number | null} stragglerWaitMs
 * @property {string[]} timedOut
 * @property {number | null} joinMs
 * @property {number | null} syncMs
 * @property {string} outcome
 * @property {number} startSeq
 * @property {number | null} joinSeq
 * @property {number | null} endSeq
 */
/** @param {any} value @returns {Rebalance} */
export declare const toRebalance: (value: any) => Rebalance;
export type RebalanceCheck = {
    ok: boolean;
    message: string;
    rebalance: Rebalance | null;
};
/**
 * The result of a check for a rebalance, and the completed rebalance.
 * @typedef {object} RebalanceCheck
 * @property {boolean} ok
 * @property {string} message
 * @property {Rebalance | null} rebalance
 */
/** @param {any} value @returns {RebalanceCheck} */
export declare const toRebalanceCheck: (value: any) => RebalanceCheck;
export type RecordsInFlight = {
    firstOffset: number;
    lastOffset: number;
    state: string;
    deliveryCount: number;
    memberId: string | null;
    lockRemainingMs: number | null;
};
/**
 * Records of a share group with one state: available, acquired, acknowledged or archived (KIP-932). Acquired records
 * have the id of their member, and the rest of its lock in ms of the group's clock.
 * @typedef {object} RecordsInFlight
 * @property {number} firstOffset
 * @property {number} lastOffset
 * @property {string} state
 * @property {number} deliveryCount
 * @property {string | null} memberId
 * @property {number | null} lockRemainingMs
 */
/** @param {any} value @returns {RecordsInFlight} */
export declare const toRecordsInFlight: (value: any) => RecordsInFlight;
export type Request = {
    api: string;
    version: number;
    connection: number;
    correlationId: number;
    clientId: string | null;
    group: string | null;
    memberId: string | null;
    node: number;
};
/**
 * A request that a rule acted on, or that a hold has parked. Numbers are those of the trace.
 * @typedef {object} Request
 * @property {string} api
 * @property {number} version
 * @property {number} connection
 * @property {number} correlationId
 * @property {string | null} clientId
 * @property {string | null} group
 * @property {string | null} memberId
 * @property {number} node
 */
/** @param {any} value @returns {Request} */
export declare const toRequest: (value: any) => Request;
export type RequestCheck = {
    ok: boolean;
    message: string;
    seqs: number[];
};
/**
 * The result of a check of requests, and the sequence numbers of the matching requests in the trace.
 * @typedef {object} RequestCheck
 * @property {boolean} ok
 * @property {string} message
 * @property {number[]} seqs
 */
/** @param {any} value @returns {RequestCheck} */
export declare const toRequestCheck: (value: any) => RequestCheck;
export type Right = {
    principal: string;
    permission: string;
    operation: string;
    resource: string;
    name: string;
    host: string;
};
/**
 * An ACL: a principal (`User:alice`) may or may not do an operation with a resource, from a host or from any (`*`). A
 * name with `*` at its end stands for all names that begin so.
 * @typedef {object} Right
 * @property {string} principal
 * @property {string} permission
 * @property {string} operation
 * @property {string} resource
 * @property {string} name
 * @property {string} host
 */
/** @param {any} value @returns {Right} */
export declare const toRight: (value: any) => Right;
export type RuleInfo = {
    id: string;
    match: Record<string, unknown>;
    action: Record<string, unknown>;
    trigger: Record<string, unknown>;
    optional: boolean;
    text: string;
    hits: number;
    matched: number;
    requests: Request[];
};
/**
 * A rule and its counters: `matched` requests, `hits` (it acted), and the last `requests` it acted on.
 * @typedef {object} RuleInfo
 * @property {string} id
 * @property {Record<string, unknown>} match
 * @property {Record<string, unknown>} action
 * @property {Record<string, unknown>} trigger
 * @property {boolean} optional
 * @property {string} text
 * @property {number} hits
 * @property {number} matched
 * @property {Request[]} requests
 */
/** @param {any} value @returns {RuleInfo} */
export declare const toRuleInfo: (value: any) => RuleInfo;
export type SharePosition = {
    topic: string;
    partition: number;
    startOffset: number;
    endOffset: number;
    records: RecordsInFlight[];
};
/**
 * Where a share group is in a partition: all before the start is finished, nothing after the end was delivered.
 * @typedef {object} SharePosition
 * @property {string} topic
 * @property {number} partition
 * @property {number} startOffset
 * @property {number} endOffset
 * @property {RecordsInFlight[]} records
 */
/** @param {any} value @returns {SharePosition} */
export declare const toSharePosition: (value: any) => SharePosition;
export type SilentMember = {
    memberId: string;
    instanceId: string | null;
    clientId: string;
    isConnected: boolean;
    silentMs: number;
    sessionEndsMs: number | null;
};
/**
 * A member whose client is gone or silent. Its last request came `silentMs` ago. `isConnected`: whether the connection
 * of that request is open. `sessionEndsMs` is the remaining time of its session, in the group's time; null if none
 * runs, as in a rebalance.
 * @typedef {object} SilentMember
 * @property {string} memberId
 * @property {string | null} instanceId
 * @property {string} clientId
 * @property {boolean} isConnected
 * @property {number} silentMs
 * @property {number | null} sessionEndsMs
 */
/** @param {any} value @returns {SilentMember} */
export declare const toSilentMember: (value: any) => SilentMember;
export type StoredRecord = {
    partition: number;
    offset: number;
    timestamp: number;
    key: Buffer | null;
    value: Buffer | null;
    headers: ([string, Buffer | null])[];
};
/**
 * A record of a log; the timestamp is in ms.
 * @typedef {object} StoredRecord
 * @property {number} partition
 * @property {number} offset
 * @property {number} timestamp
 * @property {Buffer | null} key
 * @property {Buffer | null} value
 * @property {([string, Buffer | null])[]} headers
 */
/** @param {any} value @returns {StoredRecord} */
export declare const toStoredRecord: (value: any) => StoredRecord;
export type Timer = {
    kind: string;
    memberId: string | null;
    instanceId: string | null;
    deadlineMs: number;
    remainingMs: number;
    generation: number;
};
/**
 * A running timer; `remainingMs` is in the group's time. The other fields are those of `Fired`.
 * @typedef {object} Timer
 * @property {string} kind
 * @property {string | null} memberId
 * @property {string | null} instanceId
 * @property {number} deadlineMs
 * @property {number} remainingMs
 * @property {number} generation
 */
/** @param {any} value @returns {Timer} */
export declare const toTimer: (value: any) => Timer;
export type TopicInfo = {
    topic: string;
    partitions: PartitionInfo[];
    topicId: string;
    configs: Record<string, string>;
};
/**
 * A topic, its partitions by number, its id, and the configs that were set (not the defaults). A Kafka broker's
 * configs are not read: there they are empty.
 * @typedef {object} TopicInfo
 * @property {string} topic
 * @property {PartitionInfo[]} partitions
 * @property {string} topicId
 * @property {Record<string, string>} configs
 */
/** @param {any} value @returns {TopicInfo} */
export declare const toTopicInfo: (value: any) => TopicInfo;
export type TransactionInfo = {
    transactionalId: string;
    state: string;
    producerId: number;
    producerEpoch: number;
    timeoutMs: number;
    startedMs: number;
    updatedMs: number;
    clientId: string;
    coordinator: number;
    partitions: Record<string, number[]>;
    pendingOffsets: PendingOffset[];
};
/**
 * A transactional id at one moment. One that does not exist is Dead, with producer id and epoch -1. `partitions` are
 * those of the open transaction, by topic; once it is decided, those that still lack their marker. `startedMs` and
 * `updatedMs` are in ms since the epoch, `startedMs` -1 before the first transaction. `clientId` is that of the last
 * InitProducerId, or empty after the coordinator has moved. `coordinator` is a node id.
 * @typedef {object} TransactionInfo
 * @property {string} transactionalId
 * @property {string} state
 * @property {number} producerId
 * @property {number} producerEpoch
 * @property {number} timeoutMs
 * @property {number} startedMs
 * @property {number} updatedMs
 * @property {string} clientId
 * @property {number} coordinator
 * @property {Record<string, number[]>} partitions
 * @property {PendingOffset[]} pendingOffsets
 */
/** @param {any} value @returns {TransactionInfo} */
export declare const toTransactionInfo: (value: any) => TransactionInfo;
export type UnusedRule = {
    rule: Record<string, unknown>;
    text: string;
    near: string;
};
/**
 * A rule that never acted, its description, and the closest miss.
 * @typedef {object} UnusedRule
 * @property {Record<string, unknown>} rule
 * @property {string} text
 * @property {string} near
 */
/** @param {any} value @returns {UnusedRule} */
export declare const toUnusedRule: (value: any) => UnusedRule;
export type Verdict = {
    id: string;
    title: string;
    status: string;
    evidence: number[];
    message: string;
};
/**
 * The outcome of a check: `status` is pass, fail, inconclusive or not_applicable. `evidence` has the sequence numbers
 * of the trace lines that decide the status.
 * @typedef {object} Verdict
 * @property {string} id
 * @property {string} title
 * @property {string} status
 * @property {number[]} evidence
 * @property {string} message
 */
/** @param {any} value @returns {Verdict} */
export declare const toVerdict: (value: any) => Verdict;
export type Conditions = {
    version?: string | number;
    clientId?: string;
    group?: string;
    member?: string;
    instanceId?: string;
    broker?: number;
    generation?: number;
    state?: string;
    transaction?: string;
};
export type RuleOptions = {
    version?: string | number;
    clientId?: string;
    group?: string;
    member?: string;
    instanceId?: string;
    broker?: number;
    generation?: number;
    state?: string;
    transaction?: string;
    once?: boolean;
    times?: number;
    nth?: number;
    every?: number;
    probability?: number;
    /**
     * the rule's id
     */
    id?: string;
    /**
     * whether the rule may stay unused
     */
    optional?: boolean;
};
export type Action = Record<string, unknown> & {
    kind: string;
};
/**
 * Conditions on requests; texts are globs (`svc-*`).
 * @typedef {object} Conditions
 * @property {string | number} [version]
 * @property {string} [clientId]
 * @property {string} [group]
 * @property {string} [member]
 * @property {string} [instanceId]
 * @property {number} [broker]
 * @property {number} [generation]
 * @property {string} [state]
 * @property {string} [transaction]
 */
/**
 * Conditions, at most one trigger (`once` to `probability`), id.
 * @typedef {object} RuleOptions
 * @property {string | number} [version]
 * @property {string} [clientId]
 * @property {string} [group]
 * @property {string} [member]
 * @property {string} [instanceId]
 * @property {number} [broker]
 * @property {number} [generation]
 * @property {string} [state]
 * @property {string} [transaction]
 * @property {boolean} [once]
 * @property {number} [times]
 * @property {number} [nth]
 * @property {number} [every]
 * @property {number} [probability]
 * @property {string} [id] the rule's id
 * @property {boolean} [optional] whether the rule may stay unused
 */
/** An action of a rule, of `faults`. @typedef {Record<string, unknown> & { kind: string }} Action */
/** The actions of rules. Times are in milliseconds, sizes in bytes. */
export declare const faults: {
    /**
     * Return an error without applying the request. `at` defaults to the API's first error level. `name` may be a
     * number, in the numbering of the cluster (`error.codes`); the cluster replaces it by the name.
     * @param {string | number} name
     * @param {{ at?: string }} [options]
     * @returns {Action}
     */
    error: (name: string | number, { at }?: {
        at?: string;
    }) => Action;
    /**
     * Apply the request at once and delay the response. The delay is `ms`, or is drawn from `uniformMs` (low, high) or
     * `lognormalMs` (median, sigma). `clock` selects node time ("wall") or group time ("group").
     * @param {{ ms?: number, uniformMs?: number[], lognormalMs?: number[], clock?: string }} [options]
     * @returns {Action}
     */
    delay: ({ ms, uniformMs, lognormalMs, clock }?: {
        ms?: number;
        uniformMs?: number[];
        lognormalMs?: number[];
        clock?: string;
    }) => Action;
    /**
     * Close the connection; the request is not applied.
     * @returns {Action}
     */
    drop: () => Action;
    /**
     * Apply the request and close the connection instead of responding.
     * @returns {Action}
     */
    loseReply: () => Action;
    /**
     * Send no response and leave the connection open; later requests on the connection get no response either. `apply`
     * controls whether the request is applied.
     * @param {{ apply?: boolean }} [options]
     * @returns {Action}
     */
    neverAnswer: ({ apply }?: {
        apply?: boolean;
    }) => Action;
    /**
     * Apply the request, send the first `at` bytes of the response frame, and close the connection.
     * @param {number} at
     * @returns {Action}
     */
    truncate: (at: number) => Action;
    /**
     * Apply the request and send the response in pieces of `pieceBytes` bytes, one every `everyMs` milliseconds.
     * @param {number} pieceBytes
     * @param {number} everyMs
     * @returns {Action}
     */
    drip: (pieceBytes: number, everyMs: number) => Action;
    /**
     * Apply the request and respond with a wrong correlation id. Kafka never does this.
     * @returns {Action}
     */
    wrongCorrelationId: () => Action;
    /**
     * Set `throttleTimeMs` in the response, as on an exceeded quota. The response is not delayed. With `mute` the
     * connection's next request waits for that time, also in versions without the field (KIP-219).
     * @param {number} ms
     * @param {{ mute?: boolean }} [options]
     * @returns {Action}
     */
    throttle: (ms: number, { mute }?: {
        mute?: boolean;
    }) => Action;
    /**
     * Remove a member, by default the request's sender, just before the request is processed. The member leaves as if
     * `max.poll.interval.ms` had elapsed ("poll_timeout"), or its "session" expires.
     * @param {{ member?: string, asIf?: string }} [options]
     * @returns {Action}
     */
    evict: ({ member, asIf }?: {
        member?: string;
        asIf?: string;
    }) => Action;
    /**
     * Fence a static member, by default the request's sender, just before the request is processed.
     * @param {{ instance?: string }} [options]
     * @returns {Action}
     */
    fence: ({ instance }?: {
        instance?: string;
    }) => Action;
    /**
     * Start a rebalance just before the request is processed. The trace records `cause`.
     * @param {{ cause?: string }} [options]
     * @returns {Action}
     */
    rebalance: ({ cause }?: {
        cause?: string;
    }) => Action;
};
/** A running cluster. */
export declare class ClusterOperations extends Handle {
    /** @param {import('./handle.js').Control} control */
    constructor(control: import('./handle.js').Control);
    /** @param {string} name */
    topic(name: string): Topic;
    /** @param {number} id */
    node(id: number): Node;
    /** @param {string} id */
    transaction(id: string): Transaction;
    /**
     * Return all topics.
     * @returns {Promise<TopicInfo[]>}
     */
    topics(): Promise<TopicInfo[]>;
    /**
     * Return the ids of all groups, sorted.
     * @returns {Promise<string[]>}
     */
    groupIds(): Promise<string[]>;
    /**
     * Return every node with its state and rack, by id.
     * @returns {Promise<NodeState[]>}
     */
    nodeStates(): Promise<NodeState[]>;
    /**
     * Return the connected clients, without puppets.
     * @returns {Promise<ClientConnection[]>}
     */
    connections(): Promise<ClientConnection[]>;
    /**
     * Replace groups with those of a groups file (`emulator.formats.groups_file`). Fails with 422 at the first invalid
     * line.
     * @param {(string | Buffer)[]} lines
     * @param {{ source?: string }} [options]
     * @returns {Promise<void>}
     */
    loadGroups(lines: (string | Buffer)[], { source, ...unknown }?: {
        source?: string;
    }): Promise<void>;
    /**
     * Return all groups in `ConsumerOffsets`, as the lines of a groups file.
     * @returns {Promise<Record<string, unknown>[]>}
     */
    dumpGroups(): Promise<Record<string, unknown>[]>;
    /**
     * Return topics, records, groups, offsets and clocks as one JSON document.
     * @returns {Promise<Record<string, unknown>>}
     */
    snapshot(): Promise<Record<string, unknown>>;
    /**
     * Replace the cluster's content with a snapshot. Fails with 409 for an invalid document or cluster.
     * @param {Record<string, unknown>} document
     * @returns {Promise<void>}
     */
    restore(document: Record<string, unknown>): Promise<void>;
    /**
     * Empty the cluster: some of rules, holds, puppets, acls, groups, topics and trace. Connections stay open.
     * @param {{ scope?: string[] }} [options]
     * @returns {Promise<void>}
     */
    reset({ scope, ...unknown }?: {
        scope?: string[];
    }): Promise<void>;
    /**
     * Return all puppets, in order of creation.
     * @returns {Promise<PuppetInfo[]>}
     */
    puppets(): Promise<PuppetInfo[]>;
    /**
     * Return all rules, oldest first.
     * @returns {Promise<RuleInfo[]>}
     */
    rules(): Promise<RuleInfo[]>;
    /**
     * Return the required rules that never acted: `rule`, its `text`, and `near`, the closest request seen.
     * @returns {Promise<UnusedRule[]>}
     */
    unusedRules(): Promise<UnusedRule[]>;
    /**
     * Add small random delays, drawn from `seed`, to requests and responses of group APIs. The jitter varies the order
     * in which clients reach the coordinator. null turns it off.
     * @param {number | null} seed
     * @returns {Promise<void>}
     */
    addJitter(seed: number | null): Promise<void>;
    /**
     * Return all holds and lock-steps, oldest first.
     * @returns {Promise<HoldInfo[]>}
     */
    holds(): Promise<HoldInfo[]>;
    /**
     * Describe the held requests of a group, or of all groups, for the message of a failed wait.
     * @param {{ group?: string | null }} [options]
     * @returns {Promise<string[]>}
     */
    parked({ group, ...unknown }?: {
        group?: string | null;
    }): Promise<string[]>;
    /**
     * Return all producers, in order of creation.
     * @returns {Promise<ProducerInfo[]>}
     */
    producers(): Promise<ProducerInfo[]>;
    /**
     * Return all transactional ids, sorted.
     * @returns {Promise<string[]>}
     */
    transactionIds(): Promise<string[]>;
    /**
     * Set `group.max.size` on every node. Existing members stay until the next join phase (KIP-389).
     * @param {number} size
     * @returns {Promise<void>}
     */
    setGroupMaxSize(size: number): Promise<void>;
    /**
     * Return all ACLs, in the order in which their patterns were first used.
     * @returns {Promise<Right[]>}
     */
    acls(): Promise<Right[]>;
    /**
     * Allow a user an operation. Fails with 409 where the disk refuses it.
     * @param {string} user
     * @param {string} operation
     * @param {{ topic?: string | null, group?: string | null, transactionalId?: string | null, host?: string }} [options]
     * @returns {Promise<void>}
     */
    allow(user: string, operation: string, { topic, group, transactionalId, host, ...unknown }?: {
        topic?: string | null;
        group?: string | null;
        transactionalId?: string | null;
        host?: string;
    }): Promise<void>;
    /**
     * Deny a user an operation, whatever else allows it. Fails with 409 where the disk refuses it.
     * @param {string} user
     * @param {string} operation
     * @param {{ topic?: string | null, group?: string | null, transactionalId?: string | null, host?: string }} [options]
     * @returns {Promise<void>}
     */
    deny(user: string, operation: string, { topic, group, transactionalId, host, ...unknown }?: {
        topic?: string | null;
        group?: string | null;
        transactionalId?: string | null;
        host?: string;
    }): Promise<void>;
    /**
     * Remove the ACLs of a user, those that allow and those that deny, and return their number. With an operation or a
     * resource only those with the same operation, or for the same resource.
     * @param {string} user
     * @param {{ operation?: string | null, topic?: string | null, group?: string | null, transactionalId?: string | null }} [options]
     * @returns {Promise<number>}
     */
    revoke(user: string, { operation, topic, group, transactionalId, ...unknown }?: {
        operation?: string | null;
        topic?: string | null;
        group?: string | null;
        transactionalId?: string | null;
    }): Promise<number>;
    /**
     * Return a token of SASL/OAUTHBEARER for a user; it has expired if its lifetime is not above 0. `claims` are added,
     * and replace those of the token; null removes one. It is signed if the cluster has keys
     * (`sasl.oauthbearer.jwks.endpoint.url`). Fails with 409 if none of them is private.
     * @param {string} user
     * @param {{ lifetimeMs?: number, claims?: Record<string, unknown> | null }} [options]
     * @returns {Promise<string>}
     */
    token(user: string, { lifetimeMs, claims, ...unknown }?: {
        lifetimeMs?: number;
        claims?: Record<string, unknown> | null;
    }): Promise<string>;
    /**
     * End the SASL sessions of a user, or of all, and return their number (KIP-368). A connection closes with its next
     * request, unless the client authenticates again before.
     * @param {{ user?: string | null }} [options]
     * @returns {Promise<number>}
     */
    expireAuthentication({ user, ...unknown }?: {
        user?: string | null;
    }): Promise<number>;
    /**
     * Give the brokers another certificate: a renewed one, one that has expired, or an untrusted one. Connections that
     * are open go on, as after a change of `ssl.keystore.location` (KIP-226). Fails with 409 without a listener with
     * TLS, and for an expired certificate of an authority whose key is not known here.
     * @param {{ to?: string }} [options]
     * @returns {Promise<void>}
     */
    rotateCertificate({ to, ...unknown }?: {
        to?: string;
    }): Promise<void>;
    /**
     * Return the events after sequence number `since`, oldest first, of one group if it is given.
     * @param {{ group?: string | null, since?: number }} [options]
     * @returns {Promise<Record<string, unknown>[]>}
     */
    trace({ group, since, ...unknown }?: {
        group?: string | null;
        since?: number;
    }): Promise<Record<string, unknown>[]>;
    /**
     * Return the sequence number of the newest event.
     * @returns {Promise<number>}
     */
    tracePosition(): Promise<number>;
    /**
     * Assert that no transaction is open. With `timeoutMs` it waits.
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertNoOpenTransactions({ timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Check that no check of transactions, T01 to T03, fails over the trace so far. See
     * `koordinator.emulator.verify.transaction_checks`.
     * @returns {Promise<ConformanceCheck>}
     */
    transactionsConformance(): Promise<ConformanceCheck>;
    /**
     * Create a producer without a producer id; `init` fetches one. The ids default to the name.
     * @param {string} name
     * @param {{ transactionalId?: string | null, clientId?: string | null, transactionTimeoutMs?: number }} [options]
     * @returns {Promise<Producer>}
     */
    createProducer(name: string, { transactionalId, clientId, transactionTimeoutMs, ...unknown }?: {
        transactionalId?: string | null;
        clientId?: string | null;
        transactionTimeoutMs?: number;
    }): Promise<Producer>;
}
/** A topic of a cluster, which need not exist yet. */
export declare class Topic extends Handle {
    /** @readonly */
    name: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} name
     */
    constructor(control: import('./handle.js').Control, name: string);
    /**
     * Create a topic, with records if there are any (see `produce`; a number generates that many). Fails with 409 if
     * Kafka would refuse the topic or a record.
     * @param {{ partitions?: number, records?: number | unknown[] | null, configs?: Record<string, string> | null }} [options]
     * @returns {Promise<void>}
     */
    create({ partitions, records, configs, ...unknown }?: {
        partitions?: number;
        records?: number | unknown[] | null;
        configs?: Record<string, string> | null;
    }): Promise<void>;
    /**
     * Append records, all or none, and return their number. Fails with 409 for invalid ones. A record is a value, a pair
     * of key and value, or an object with some of `key value partition timestamp headers`; text is written as UTF-8.
     * @param {unknown[]} records
     * @returns {Promise<number>}
     */
    produce(records: unknown[]): Promise<number>;
    /**
     * Return every record of a topic, partition by partition. Fails with 409 for an unknown topic.
     * @returns {Promise<StoredRecord[]>}
     */
    records(): Promise<StoredRecord[]>;
    /**
     * Add `count` partitions to a topic, and return their new number. Fails with 409 where Kafka would refuse.
     * @param {number} count
     * @returns {Promise<number>}
     */
    addPartitions(count: number): Promise<number>;
    /**
     * Keep only the last record of each key of a topic, and no tombstones, as its cleaner does in the end. Fails with
     * 409 unless `cleanup.policy` of the topic has `compact`.
     * @returns {Promise<void>}
     */
    compact(): Promise<void>;
    /**
     * Delete the records of a topic as its retention does: all, or in each partition those before an offset. Fails with
     * 409 unless `cleanup.policy` of the topic has `delete`.
     * @param {{ before?: number | null }} [options]
     * @returns {Promise<void>}
     */
    expireRecords({ before, ...unknown }?: {
        before?: number | null;
    }): Promise<void>;
    /**
     * Lose the records of a partition from an offset on, as if a replica that lacks them was elected as leader. That is
     * an unclean election: a new leader epoch begins. A batch is lost as a whole. Commits stay. Fails with 409 for an
     * offset outside the log, and for a partition without a leader.
     * @param {number} partition
     * @param {number} to
     * @returns {Promise<void>}
     */
    truncate(partition: number, to: number): Promise<void>;
    /**
     * Return the node that leads a partition of a topic; null without a leader or without such a partition.
     * @param {number} partition
     * @returns {Promise<number | null>}
     */
    leader(partition: number): Promise<number | null>;
    /**
     * Make node `to` the leader of a partition. Fails with 409 if either is unknown or the node is down.
     * @param {number} partition
     * @param {number} to
     * @returns {Promise<void>}
     */
    moveLeader(partition: number, to: number): Promise<void>;
    /**
     * Decide what happens to the markers of a partition: "written", "delayed" or "lost". A transaction with a delayed
     * marker stays in PrepareCommit or PrepareAbort until its markers are "written" again. One with a lost marker
     * completes, but its records stay undecided: a hanging transaction (KIP-890).
     * @param {number} partition
     * @param {string} markers
     * @returns {Promise<void>}
     */
    setMarkers(partition: number, markers: string): Promise<void>;
}
/** A broker of a cluster. */
export declare class Node extends Handle {
    /** @readonly */
    id: number;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {number} id
     */
    constructor(control: import('./handle.js').Control, id: number);
    /**
     * Return the address that a node advertises to clients of a listener, `host:port`. Fails with 409 if the node has no
     * such listener.
     * @param {{ listener?: string }} [options]
     * @returns {Promise<string>}
     */
    address({ listener, ...unknown }?: {
        listener?: string;
    }): Promise<string>;
    /**
     * Shut a node down in order: other nodes take over its partitions, then its port closes. Parked requests are
     * answered with an error.
     * @returns {Promise<void>}
     */
    stop(): Promise<void>;
    /**
     * Kill a node: its connections close without responses.
     * @returns {Promise<void>}
     */
    kill(): Promise<void>;
    /**
     * Start a node again, at its old port. It loads its groups from `ConsumerOffsets`.
     * @returns {Promise<void>}
     */
    start(): Promise<void>;
    /**
     * Pause a node: it accepts connections and reads requests, but processes none. Its leaderships stay.
     * @returns {Promise<void>}
     */
    pause(): Promise<void>;
    /**
     * Resume a paused node: first its overdue timers fire, then it processes the requests it has read.
     * @returns {Promise<void>}
     */
    resume(): Promise<void>;
    /**
     * Remove a node from the cluster, and stop it first if it is not down. Fails with 409 for the last node.
     * @returns {Promise<void>}
     */
    remove(): Promise<void>;
    /**
     * Change the address that a node advertises to clients of a listener.
     * @param {string} host
     * @param {number} port
     * @param {{ listener?: string }} [options]
     * @returns {Promise<void>}
     */
    advertise(host: string, port: number, { listener, ...unknown }?: {
        listener?: string;
    }): Promise<void>;
    /**
     * Make a node answer FindCoordinator for a group with another node, as long as that node is up. null restores the
     * right answer.
     * @param {string} group
     * @param {number | null} coordinator
     * @returns {Promise<void>}
     */
    misdirect(group: string, coordinator: number | null): Promise<void>;
}
/** A consumer group, which need not exist yet. */
export declare class GroupOperations extends Handle {
    /** @readonly */
    id: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} id
     */
    constructor(control: import('./handle.js').Control, id: string);
    /**
     * Return a group at this moment. A group that does not exist is Dead, in generation -1.
     * @returns {Promise<GroupInfo>}
     */
    describe(): Promise<GroupInfo>;
    /**
     * Wait until the group is Stable and every member has its assignment. `members` also awaits that number of members;
     * `allOwned` also awaits that exactly one member owns each partition of the subscribed topics; `afterGeneration`
     * also awaits a later generation. Throws a KoordinatorError with the group's last events after `timeoutMs` (30,000).
     * @param {{ afterGeneration?: number | null, allOwned?: boolean, members?: number | null, timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitStable({ afterGeneration, allOwned, members, timeoutMs, ...unknown }?: {
        afterGeneration?: number | null;
        allOwned?: boolean;
        members?: number | null;
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Wait until the group is Empty, PreparingRebalance, CompletingRebalance, Stable or Dead; a consumer group (KIP-848)
     * is Empty, Assigning, Reconciling or Stable. Throws a KoordinatorError with the group's last events after
     * `timeoutMs` (30,000).
     * @param {string} state
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitState(state: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Return the members that have closed their connection without leaving, or have sent nothing for 6 s. A member whose
     * JoinGroup or SyncGroup waits for the others is not silent.
     * @returns {Promise<SilentMember[]>}
     */
    silentMembers(): Promise<SilentMember[]>;
    /**
     * Return the committed offsets of a group; an empty list if it does not exist.
     * @returns {Promise<PartitionOffset[]>}
     */
    offsets(): Promise<PartitionOffset[]>;
    /**
     * Return the offsets that open transactions will commit; of several for a partition the one that would win.
     * @returns {Promise<PartitionOffset[]>}
     */
    pendingOffsets(): Promise<PartitionOffset[]>;
    /**
     * Return every rebalance that began after sequence number `since`, oldest first.
     * @param {{ since?: number }} [options]
     * @returns {Promise<Rebalance[]>}
     */
    rebalances({ since, ...unknown }?: {
        since?: number;
    }): Promise<Rebalance[]>;
    /**
     * Return the node that coordinates a group, which need not exist; null if no node does.
     * @returns {Promise<number | null>}
     */
    coordinator(): Promise<number | null>;
    /**
     * Make node `to` the coordinator of a group, and of every group in the same partition. It answers
     * COORDINATOR_LOAD_IN_PROGRESS for `loadMs` milliseconds.
     * @param {number} to
     * @param {{ loadMs?: number }} [options]
     * @returns {Promise<void>}
     */
    moveCoordinator(to: number, { loadMs, ...unknown }?: {
        loadMs?: number;
    }): Promise<void>;
    /**
     * Return a group's clock.
     * @returns {Promise<ClockReading>}
     */
    clock(): Promise<ClockReading>;
    /**
     * Set the mode of a group's clock: real, manual or auto. The group need not exist.
     * @param {string} mode
     * @returns {Promise<void>}
     */
    setClock(mode: string): Promise<void>;
    /**
     * Return the running timers of a group, next deadline first; an empty list if it does not exist.
     * @returns {Promise<Timer[]>}
     */
    timers(): Promise<Timer[]>;
    /**
     * Advance the group's clock by seconds, or by a text such as `7d`, `45s` or `250ms`; every timer due meanwhile
     * fires, in order. Connected members keep their sessions, except those named in `expire`; with `keepAlive` `none` no
     * member does. Members are named by `group.instance.id`, client id or member id.
     * @param {number | string} by
     * @param {{ keepAlive?: string, expire?: string[] }} [options]
     * @returns {Promise<Fired[]>}
     */
    advance(by: number | string, { keepAlive, expire, ...unknown }?: {
        keepAlive?: string;
        expire?: string[];
    }): Promise<Fired[]>;
    /**
     * Return the members whose JoinGroup the join phase awaits, or whose SyncGroup the generation awaits. Of a consumer
     * group: those that do not have their target yet.
     * @returns {Promise<string[]>}
     */
    awaited(): Promise<string[]>;
    /**
     * Wait until the join phase, or the generation's SyncGroup, awaits no other members than these. Throws a
     * KoordinatorError with the group's last events after `timeoutMs` (30,000).
     * @param {string[]} members
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitAwaited(members: string[], { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Wait until a member of a consumer group (KIP-848) is asked to give partitions up. Throws a KoordinatorError with
     * the group's last events after `timeoutMs` (30,000).
     * @param {string} member
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitRevoking(member: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Advance to the end of a member's session; other members keep theirs. Fails with 409 if the member has a pending
     * JoinGroup or SyncGroup.
     * @param {string} member
     * @returns {Promise<Fired[]>}
     */
    expireSession(member: string): Promise<Fired[]>;
    /**
     * Advance to the end of the join phase; all sessions are kept. This ends the initial delay with all its extensions,
     * too. Fails with 409 without a join phase. With `without` it first waits until all other members have arrived.
     * @param {{ without?: string[], timeoutMs?: number }} [options]
     * @returns {Promise<Fired[]>}
     */
    expireJoinPhase({ without, timeoutMs, ...unknown }?: {
        without?: string[];
        timeoutMs?: number;
    }): Promise<Fired[]>;
    /**
     * Advance to the removal of members without SyncGroup; all sessions are kept. Fails with 409 if the group awaits no
     * SyncGroup. With `without` it first waits until all other members have arrived.
     * @param {{ without?: string[], timeoutMs?: number }} [options]
     * @returns {Promise<Fired[]>}
     */
    expireSync({ without, timeoutMs, ...unknown }?: {
        without?: string[];
        timeoutMs?: number;
    }): Promise<Fired[]>;
    /**
     * Advance to the removal of a member that does not give its partitions up (KIP-848); all sessions are kept. Fails
     * with 409 if the member has none to give up.
     * @param {string} member
     * @returns {Promise<Fired[]>}
     */
    expireRevocation(member: string): Promise<Fired[]>;
    /**
     * Advance to the expiry of a pending member id (KIP-394); all sessions are kept. `member` is that id, or the client
     * id that received it, if that is unambiguous.
     * @param {string} member
     * @returns {Promise<Fired[]>}
     */
    expirePending(member: string): Promise<Fired[]>;
    /**
     * Advance to the check that expires every offset that can expire; all sessions are kept (KIP-211). These are all
     * offsets of an Empty group, which is then deleted, or a Stable group's offsets of topics to which it is not
     * subscribed. Fails with 409 if there are none.
     * @returns {Promise<Fired[]>}
     */
    expireOffsets(): Promise<Fired[]>;
    /**
     * Start a rebalance of a group that is Stable or CompletingRebalance. `cause` is the reason in the trace, of kind
     * `forced`.
     * @param {{ cause?: string }} [options]
     * @returns {Promise<void>}
     */
    rebalance({ cause, ...unknown }?: {
        cause?: string;
    }): Promise<void>;
    /**
     * Remove a member as if its `max.poll.interval.ms` had expired, or as if its session had expired. A static member's
     * client does not leave at a poll timeout (KIP-345): only its session can expire. One that uses the consumer or the
     * streams protocol leaves for a while (KIP-848, KIP-1071).
     * @param {string} member
     * @param {{ asIf?: string }} [options]
     * @returns {Promise<void>}
     */
    evict(member: string, { asIf, ...unknown }?: {
        asIf?: string;
    }): Promise<void>;
    /**
     * Make another process join as a static member, with the same subscription, then stay silent. The previous member is
     * fenced: its next request, or its pending one, gets FENCED_INSTANCE_ID (82).
     * @param {string} member
     * @returns {Promise<void>}
     */
    fence(member: string): Promise<void>;
    /**
     * Freeze a group in its current state, or in `state` as soon as it enters that. It need not exist yet. No timer of a
     * frozen group fires. Requests that would change its state are parked until `thaw`: JoinGroup and LeaveGroup, and in
     * CompletingRebalance the leader's SyncGroup. In PreparingRebalance JoinGroup and LeaveGroup are processed, but the
     * join phase does not complete. Other requests are answered normally. Of a consumer group the heartbeats that would
     * change it are parked. It freezes in states in which it rests: one heartbeat may lead it through Assigning.
     * @param {{ state?: string | null }} [options]
     * @returns {Promise<void>}
     */
    freeze({ state, ...unknown }?: {
        state?: string | null;
    }): Promise<void>;
    /**
     * Thaw a group: its timers continue where they stopped, and parked requests are processed in order.
     * @returns {Promise<void>}
     */
    thaw(): Promise<void>;
    /**
     * Commit offsets in any state of the group; each has `topic partition offset`. A group that does not exist is
     * created, as by a commit from outside the group.
     * @param {Offset[]} offsets
     * @returns {Promise<void>}
     */
    setOffsets(offsets: Offset[]): Promise<void>;
    /**
     * Throttle the members of a group: responses carry the time, and their connections are muted for it. It lasts until
     * it is called again; 0 ends it. Fails with 422 for an invalid time.
     * @param {number} ms
     * @returns {Promise<void>}
     */
    throttle(ms: number): Promise<void>;
    /**
     * Return where a share group is in each partition that it has read, and the records in flight.
     * @param {{ topic?: string | null }} [options]
     * @returns {Promise<SharePosition[]>}
     */
    sharePositions({ topic, ...unknown }?: {
        topic?: string | null;
    }): Promise<SharePosition[]>;
    /**
     * End the locks of records now, as if their time was over, and return the number of the records. They are available
     * again, or archived at the delivery limit. Of all locks of the group, those of a topic, a partition, an offset or a
     * member, by its member id, or by the client id that no other member has. Fails with 409 for an unknown name, and
     * for an offset without a topic and a partition.
     * @param {{ topic?: string | null, partition?: number | null, offset?: number | null, member?: string | null }} [options]
     * @returns {Promise<number>}
     */
    expireLocks({ topic, partition, offset, member, ...unknown }?: {
        topic?: string | null;
        partition?: number | null;
        offset?: number | null;
        member?: string | null;
    }): Promise<number>;
    /**
     * Assert that the group has exactly these members, with exactly these partitions by topic. A member is named by its
     * `group.instance.id`, its member id, or a client id that no other member has. With `timeoutMs` it waits.
     * @param {Record<string, Record<string, number[]>>} expected
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertAssignment(expected: Record<string, Record<string, number[]>>, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that the group is Stable, and that exactly one member owns each partition of these topics; without `topics`
     * of those that its members subscribe to. With `timeoutMs` it waits.
     * @param {{ topics?: string[] | null, timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertOwnedExactlyOnce({ topics, timeoutMs, ...unknown }?: {
        topics?: string[] | null;
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that these offsets are committed; more may be. With `timeoutMs` it waits.
     * @param {Offset[]} offsets
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertCommitted(offsets: Offset[], { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert the number of matching requests: exactly `times`, or `atLeast` (1 by default). `error` is the name or
     * number of the response's error, `NONE` for success; `clientId` is a glob. With `timeoutMs` it waits.
     * @param {string} api
     * @param {{ error?: string | number | null, times?: number | null, atLeast?: number | null, clientId?: string | null, member?: string | null, instanceId?: string | null, generation?: number | null, timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertRequest(api: string, { error, times, atLeast, clientId, member, instanceId, generation, timeoutMs, ...unknown }?: {
        error?: string | number | null;
        times?: number | null;
        atLeast?: number | null;
        clientId?: string | null;
        member?: string | null;
        instanceId?: string | null;
        generation?: number | null;
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that a member left with LeaveGroup. With `timeoutMs` it waits.
     * @param {string} member
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertLeft(member: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that no LeaveGroup named a member. With `timeoutMs` it waits.
     * @param {string} member
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertDidNotLeave(member: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that a static member received FENCED_INSTANCE_ID: another one replaced it (KIP-345). With `timeoutMs` it
     * waits.
     * @param {string} member
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertFenced(member: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that no commit had an old generation, came from a removed member, or was for another's partition. With
     * `timeoutMs` it waits.
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertNoZombieCommits({ timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert the number of rebalances that began since the start of the cluster, or after `since` in the trace. With
     * `timeoutMs` it waits.
     * @param {number} exactly
     * @param {{ since?: number, timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertRebalances(exactly: number, { since, timeoutMs, ...unknown }?: {
        since?: number;
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Assert that no client check C01 to C14 fails over the trace so far, except those in `ignore`. With `timeoutMs` it
     * waits.
     * @param {{ ignore?: string[], autoCommit?: boolean | null, timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    assertConformant({ ignore, autoCommit, timeoutMs, ...unknown }?: {
        ignore?: string[];
        autoCommit?: boolean | null;
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Create a puppet outside the group; `join` lets it join. `behaviours` lists the behaviours. `protocols` are
     * assignors, most preferred first (default: range, roundrobin). Any name is allowed: puppets lead with an assignor
     * of an application, such as KafkaJS's RoundRobinAssigner, like with roundrobin. `metadata` is what such an assignor
     * sends in place of a subscription, by protocol. `topics` is the subscription; null subscribes to all topics. The
     * first JoinGroup claims the partitions in `owned`. Heartbeats are sent every `heartbeatIntervalMs` of group time;
     * null: three per session timeout, and every 200 ms of node time, with more than 100 puppets less often. The session
     * timeout is 6,000 by default, the client id the name. With group protocol "consumer" (KIP-848), the group has the
     * session timeout and the heartbeat interval. `protocols` is then at most one assignor of the coordinator, and
     * `pattern` a regular expression for topics. With group protocol "share" (KIP-932) the puppet is a member of a share
     * group, and fetches no records; with "streams" (KIP-1071) it is a member of a streams group, and has tasks of its
     * application, or else of `topics`. With protocol type "connect", the puppet is a Kafka Connect worker: `protocols`
     * are "sessioned", "compatible" and "default" (eager), `topics` maps connectors to numbers of tasks, and `owned`
     * maps connectors to the tasks reported as running. As leader it waits `scheduledRebalanceMaxDelayMs` (300,000) for
     * a lost worker. Fails with 409 for invalid arguments and for a duplicate name.
     * @param {string} name
     * @param {{ protocols?: string[] | null, instanceId?: string | null, topics?: string[] | Record<string, number> | null, owned?: Record<string, number[]> | null, behaviour?: string | Record<string, unknown>, sessionTimeoutMs?: number | null, rebalanceTimeoutMs?: number, heartbeatIntervalMs?: number | null, clientId?: string | null, protocolType?: string, scheduledRebalanceMaxDelayMs?: number | null, groupProtocol?: string, pattern?: string | null, metadata?: Record<string, Buffer> | null }} [options]
     * @returns {Promise<Puppet>}
     */
    createPuppet(name: string, { protocols, instanceId, topics, owned, behaviour, sessionTimeoutMs, rebalanceTimeoutMs, heartbeatIntervalMs, clientId, protocolType, scheduledRebalanceMaxDelayMs, groupProtocol, pattern, metadata, ...unknown }?: {
        protocols?: string[] | null;
        instanceId?: string | null;
        topics?: string[] | Record<string, number> | null;
        owned?: Record<string, number[]> | null;
        behaviour?: string | Record<string, unknown>;
        sessionTimeoutMs?: number | null;
        rebalanceTimeoutMs?: number;
        heartbeatIntervalMs?: number | null;
        clientId?: string | null;
        protocolType?: string;
        scheduledRebalanceMaxDelayMs?: number | null;
        groupProtocol?: string;
        pattern?: string | null;
        metadata?: Record<string, Buffer> | null;
    }): Promise<Puppet>;
}
/** A scripted member of a group, which lives in the emulator. */
export declare class Puppet extends Handle {
    /** @readonly */
    groupId: string;
    /** @readonly */
    name: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} groupId
     * @param {string} name
     */
    constructor(control: import('./handle.js').Control, groupId: string, name: string);
    /**
     * Return a puppet's configuration and state.
     * @returns {Promise<PuppetInfo>}
     */
    describe(): Promise<PuppetInfo>;
    /**
     * Join the group: the first join, a join after a leave or failure, or a rejoin.
     * @param {{ reason?: string | null }} [options]
     * @returns {Promise<PuppetInfo>}
     */
    join({ reason, ...unknown }?: {
        reason?: string | null;
    }): Promise<PuppetInfo>;
    /**
     * Send SyncGroup, or acknowledge the assignment of the consumer protocol, for a puppet that does not itself.
     * @returns {Promise<PuppetInfo>}
     */
    sync(): Promise<PuppetInfo>;
    /**
     * Send a heartbeat.
     * @returns {Promise<PuppetInfo>}
     */
    heartbeat(): Promise<PuppetInfo>;
    /**
     * Commit offsets; `error` of the result is the response's error.
     * @param {Offset[]} offsets
     * @returns {Promise<PuppetInfo>}
     */
    commit(offsets: Offset[]): Promise<PuppetInfo>;
    /**
     * Leave the group. The puppet stays out until the next `join`. `temporarily` keeps the partitions of a static member
     * of the consumer protocol until its session ends.
     * @param {{ reason?: string | null, temporarily?: boolean }} [options]
     * @returns {Promise<PuppetInfo>}
     */
    leave({ reason, temporarily, ...unknown }?: {
        reason?: string | null;
        temporarily?: boolean;
    }): Promise<PuppetInfo>;
    /**
     * Stop a puppet without leaving, like a killed process; `join` restarts it without any state.
     * @returns {Promise<PuppetInfo>}
     */
    stop(): Promise<PuppetInfo>;
    /**
     * Wait until the puppet is in a state. Throws a KoordinatorError with the group's last events after `timeoutMs`
     * (30,000).
     * @param {string} state
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitState(state: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
}
/** A rule on requests. */
export declare class Rule extends Handle {
    /** @readonly */
    id: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} id
     */
    constructor(control: import('./handle.js').Control, id: string);
    /**
     * Return a rule with its `matched` and `hits` counts and the `requests` it acted on, newest last. A hit is a match
     * on which the rule acted. A request has the keys `api`, `version`, `connection`, `correlationId`, `clientId`,
     * `group`, `memberId` and `node`.
     * @returns {Promise<RuleInfo>}
     */
    describe(): Promise<RuleInfo>;
    /**
     * Remove the rule and return it. Its earlier decisions stand.
     * @returns {Promise<RuleInfo>}
     */
    remove(): Promise<RuleInfo>;
}
/** A hold, which parks requests. */
export declare class HoldOperations extends Handle {
    /** @readonly */
    id: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} id
     */
    constructor(control: import('./handle.js').Control, id: string);
    /**
     * Return a hold: `id`, `match`, `clients`, `entered`, `parked`, `behind`, `rounds` and `isOpen`. `entered` counts
     * all requests that entered. `parked` lists the held requests, in the shape of `faults.rule`; `behind` lists the
     * requests that wait behind them on their connections. `rounds` counts complete rounds of a lock-step.
     * @returns {Promise<HoldInfo>}
     */
    describe(): Promise<HoldInfo>;
    /**
     * Describe the request that came closest to entering a hold.
     * @returns {Promise<string>}
     */
    near(): Promise<string>;
    /**
     * Remove a hold and resume the requests in it.
     * @returns {Promise<void>}
     */
    remove(): Promise<void>;
    /**
     * Resume the held requests and open the hold; with `error`, return that error without applying them. `error` is a
     * name, or a number in the numbering of the cluster (`error.codes`). Fails with 409 if no request has entered or the
     * hold was released before.
     * @param {{ error?: string | number | null, at?: string | null }} [options]
     * @returns {Promise<void>}
     */
    release({ error, at, ...unknown }?: {
        error?: string | number | null;
        at?: string | null;
    }): Promise<void>;
}
/** A scripted transactional producer. */
export declare class Producer extends Handle {
    /** @readonly */
    name: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} name
     */
    constructor(control: import('./handle.js').Control, name: string);
    /**
     * Return a producer's identity and state.
     * @returns {Promise<ProducerInfo>}
     */
    describe(): Promise<ProducerInfo>;
    /**
     * Wait until the producer awaits no response. Throws a KoordinatorError with the group's last events after
     * `timeoutMs` (30,000).
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    wait({ timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Send InitProducerId, which fences other producers of the transactional id. With `resume` it names the producer's
     * identity, to continue after an abortable error (KIP-360).
     * @param {{ resume?: boolean }} [options]
     * @returns {Promise<ProducerInfo>}
     */
    init({ resume, ...unknown }?: {
        resume?: boolean;
    }): Promise<ProducerInfo>;
    /**
     * Send records, in one batch; first of all AddPartitionsToTxn, where the release needs that.
     * @param {string} topic
     * @param {unknown[]} records
     * @param {{ partition?: number }} [options]
     * @returns {Promise<ProducerInfo>}
     */
    produce(topic: string, records: unknown[], { partition, ...unknown }?: {
        partition?: number;
    }): Promise<ProducerInfo>;
    /**
     * Send offsets, a list of (topic, partition, offset), to the group's coordinator as part of the transaction. With
     * `member` they are those of a member (KIP-447) in the current generation, unless `generation` is given.
     * @param {string} group
     * @param {Offset[]} offsets
     * @param {{ member?: string | null, generation?: number | null }} [options]
     * @returns {Promise<ProducerInfo>}
     */
    sendOffsets(group: string, offsets: Offset[], { member, generation, ...unknown }?: {
        member?: string | null;
        generation?: number | null;
    }): Promise<ProducerInfo>;
    /**
     * Send EndTxn to commit the transaction.
     * @returns {Promise<ProducerInfo>}
     */
    commit(): Promise<ProducerInfo>;
    /**
     * Send EndTxn to abort the transaction.
     * @returns {Promise<ProducerInfo>}
     */
    abort(): Promise<ProducerInfo>;
    /**
     * Close the connections of a producer, like a killed process: its transaction stays open. Its identity stays: a
     * later step is that of a zombie.
     * @returns {Promise<ProducerInfo>}
     */
    stop(): Promise<ProducerInfo>;
}
/** A transactional id, which need not exist yet. */
export declare class Transaction extends Handle {
    /** @readonly */
    id: string;
    /**
     * Use the methods of other handles to get one.
     * @param {import('./handle.js').Control} control
     * @param {string} id
     */
    constructor(control: import('./handle.js').Control, id: string);
    /**
     * Return a transactional id at this moment. One that does not exist is Dead.
     * @returns {Promise<TransactionInfo>}
     */
    describe(): Promise<TransactionInfo>;
    /**
     * Wait until the transaction is in a state. Throws a KoordinatorError with the group's last events after `timeoutMs`
     * (30,000).
     * @param {string} state
     * @param {{ timeoutMs?: number }} [options]
     * @returns {Promise<void>}
     */
    waitState(state: string, { timeoutMs, ...unknown }?: {
        timeoutMs?: number;
    }): Promise<void>;
    /**
     * Abort an Ongoing transaction and fence its producer, as an operator does with `Admin.fenceProducers`. Fails with
     * 409 if there is no such transaction or it is in another state.
     * @returns {Promise<void>}
     */
    abort(): Promise<void>;
    /**
     * Let the timeout of an Ongoing transaction pass now; no clock moves. Fails with 409 in another state.
     * @returns {Promise<void>}
     */
    expire(): Promise<void>;
}
