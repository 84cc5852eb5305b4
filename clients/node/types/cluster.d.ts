import { Control } from "./handle.js";
import { ClusterOperations, GroupOperations, HoldOperations, Rule } from "./operations.js";
import type { Action, Conditions, Rebalance, Request, RuleOptions } from "./operations.js";
/** A hold or a lock-step of a group. */
declare class GroupHold extends HoldOperations {
    /** @param {Control} control @param {string} id @param {string} [group] the group whose events explain a failure */
    constructor(control: Control, id: string, group?: string);
    [Symbol.asyncDispose](): Promise<void>;
}
/** A hold: it parks matching requests until `release`, or `remove`. With `await using` it is removed at the end. */
export declare class Hold extends GroupHold {
    /** Wait until a request is parked, and return it. @param {{ timeoutMs?: number }} [options] @returns {Promise<Request>} */
    waitEntered({ timeoutMs }?: {
        timeoutMs?: number;
    }): Promise<Request>;
}
/** A lock-step: requests of named clients are applied in rounds, one of each client. */
export declare class Lockstep extends GroupHold {
    _rounds: number;
    /** Wait for the next complete round. @param {{ timeoutMs?: number }} [options] */
    waitRound({ timeoutMs }?: {
        timeoutMs?: number;
    }): Promise<void>;
}
/** A consumer group: waits, assertions, clock, overrides, rules, holds and puppets. It need not exist yet. */
export declare class Group extends GroupOperations {
    /** Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if the group does not exist. */
    state(): Promise<string>;
    /** The number of completed join phases; -1 without a group. */
    generation(): Promise<number>;
    /** The members, in the order in which they joined. */
    members(): Promise<import("./operations.js").Member[]>;
    /** The partitions by topic of each member, by its `group.instance.id` or its member id. */
    assignment(): Promise<{
        [k: string]: Record<string, number[]>;
    }>;
    /** The group's events in the trace, oldest first. */
    events(): Promise<Record<string, unknown>[]>;
    /**
     * Add a rule for requests of this group: `group.addRule("OffsetCommit", faults.loseReply(), { nth: 2 })`.
     * A rule that never acts fails the test, unless it is `optional`.
     * @param {string} api @param {Action} action @param {RuleOptions} [options]
     */
    addRule(api: string, action: Action, options?: RuleOptions): Promise<Rule>;
    /**
     * Park requests of this group before they are applied: `group.hold("OffsetCommit", { clientId: "svc-1" })`.
     * @param {string} api @param {Conditions} [conditions]
     */
    hold(api: string, conditions?: Conditions): Promise<Hold>;
    /** Apply these requests of the group in rounds, one of each client. @param {string} api @param {string[]} clients */
    lockstep(api: string, clients: string[]): Promise<Lockstep>;
    /**
     * Expect a rebalance to begin in the block, wait at its end until it has completed, and return it.
     * @param {() => unknown} block @param {{ cause?: string, timeoutMs?: number }} [options]
     * @returns {Promise<Rebalance>}
     */
    expectRebalance(block: () => unknown, { cause, timeoutMs }?: {
        cause?: string;
        timeoutMs?: number;
    }): Promise<Rebalance>;
    /** Assert that no rebalance begins in the block. @template T @param {() => T} block @returns {Promise<Awaited<T>>} */
    assertNoRebalance<T>(block: () => T): Promise<Awaited<T>>;
}
/** A running cluster, from `startKoordinator`, `connectKoordinator` or `withKoordinator`. */
export declare class Cluster extends ClusterOperations {
    /** The bootstrap servers for clients, `127.0.0.1:40123`. @readonly */
    bootstrapServers: string;
    /** What `stop` does, last first. */
    _ends: (() => unknown)[];
    /** @param {Control} control @param {string} bootstrapServers @param {() => unknown} [end] */
    constructor(control: Control, bootstrapServers: string, end?: () => unknown);
    /** Call a function at `stop`, before the server stops: `cluster.defer(() => consumer.disconnect())`. @param {() => unknown} end */
    defer(end: () => unknown): void;
    /** The bootstrap servers as a list. */
    get brokers(): string[];
    /** @param {string} id */
    group(id: string): Group;
    /**
     * Create a topic, with records if there are any: values, pairs of key and value, objects, or a number of records.
     * @param {string} name
     * @param {{ partitions?: number, records?: number | unknown[], configs?: Record<string, string> }} [options]
     */
    createTopic(name: string, options?: {
        partitions?: number;
        records?: number | unknown[];
        configs?: Record<string, string>;
    }): Promise<import("./operations.js").Topic>;
    /** Append records to a topic: values, pairs of key and value, or objects. @param {string} topic @param {unknown[]} records */
    produce(topic: string, ...records: unknown[]): Promise<number>;
    /** Add a rule as `Group.rule` does, for every group. @param {string} api @param {Action} action @param {RuleOptions} [options] */
    addRule(api: string, action: Action, options?: RuleOptions): Promise<Rule>;
    /** Park requests as `Group.hold` does, of every group. @param {string} api @param {Conditions} [conditions] */
    hold(api: string, conditions?: Conditions): Promise<Hold>;
    /** Add a broker to the cluster and start it. */
    addNode(): Promise<import("./operations.js").Node>;
    /** Throw an error if a rule that is not optional never acted. */
    check(): Promise<void>;
    /**
     * Write the trace to `test-results/NAME/`: a page, a file for Perfetto, the text, and JSON lines. Return the page's path.
     * @param {string} name
     */
    writeTrace(name: string): Promise<string>;
    /**
     * Run a test: if it fails, its error gets the timeline, and the trace is written; at its end `check` is called.
     * @template T @param {(cluster: this) => T} test @param {{ name?: string }} [options]
     * @returns {Promise<Awaited<T>>}
     */
    run<T>(test: (cluster: this) => T, { name }?: {
        name?: string;
    }): Promise<Awaited<T>>;
    /** Call the deferred functions, and stop the server that `startKoordinator` has started. */
    stop(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}
export {};
