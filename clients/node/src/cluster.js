import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Control, KoordinatorError, WAIT_MS } from "./handle.js";
import {
  ClusterOperations,
  GroupOperations,
  HoldOperations,
  Rule,
  toHoldEntry,
  toRebalanceCheck,
} from "./operations.js";

/** @import { Action, Conditions, Rebalance, Request, RuleOptions } from "./operations.js" */

/** The folder of the traces of failed tests. */
const TRACE_DIR = "test-results";

/** How long a deferred function may take. */
const STOP_MS = 10_000;

/** The formats of a trace, by the endings of their files. */
const FORMATS = { html: "html", json: "perfetto", txt: "text" };

/** A hold or a lock-step of a group. */
class GroupHold extends HoldOperations {
  /** @param {Control} control @param {string} id @param {string} [group] the group whose events explain a failure */
  constructor(control, id, group) {
    super(control, id);
    this._group = group;
  }

  async [Symbol.asyncDispose]() {
    await this.remove();
  }
}

/** A hold: it parks matching requests until `release`, or `remove`. With `await using` it is removed at the end. */
export class Hold extends GroupHold {
  /** Wait until a request is parked, and return it. @param {{ timeoutMs?: number }} [options] @returns {Promise<Request>} */
  async waitEntered({ timeoutMs = WAIT_MS } = {}) {
    const entry = toHoldEntry(await this._poll("GET", `/holds/${encodeURIComponent(this.id)}/entered`, {}, timeoutMs));
    if (entry.deadlock) await this._fail(entry.deadlock);
    if (entry.first) return entry.first;
    return await this._fail(`nothing entered within ${timeoutMs / 1000} s: ${await this.near()}`);
  }
}

/** A lock-step: requests of named clients are applied in rounds, one of each client. */
export class Lockstep extends GroupHold {
  _rounds = 0;

  /** Wait for the next complete round. @param {{ timeoutMs?: number }} [options] */
  async waitRound({ timeoutMs = WAIT_MS } = {}) {
    const path = `/holds/${encodeURIComponent(this.id)}/round`;
    const state = await this._poll("GET", path, { number: this._rounds + 1 }, timeoutMs);
    if (!state.ok)
      await this._fail(`round ${this._rounds + 1}: none of ${state.missing.join(", ")} within ${timeoutMs / 1000} s`);
    this._rounds += 1;
  }
}

/** A consumer group: waits, assertions, clock, overrides, rules, holds and puppets. It need not exist yet. */
export class Group extends GroupOperations {
  /** Empty, PreparingRebalance, CompletingRebalance or Stable; Dead if the group does not exist. */
  async state() {
    return (await this.describe()).state;
  }

  /** The number of completed join phases; -1 without a group. */
  async generation() {
    return (await this.describe()).generation;
  }

  /** The members, in the order in which they joined. */
  async members() {
    return (await this.describe()).members;
  }

  /** The partitions by topic of each member, by its `group.instance.id` or its member id. */
  async assignment() {
    const members = await this.members();
    return Object.fromEntries(members.map((each) => [each.instanceId ?? each.memberId, each.assignment]));
  }

  /** The group's events in the trace, oldest first. */
  async events() {
    return /** @type {Record<string, unknown>[]} */ (await this._call("GET", "/trace", { group: this.id }));
  }

  /**
   * Add a rule for requests of this group: `group.addRule("OffsetCommit", faults.loseReply(), { nth: 2 })`.
   * A rule that never acts fails the test, unless it is `optional`.
   * @param {string} api @param {Action} action @param {RuleOptions} [options]
   */
  async addRule(api, action, options = {}) {
    return await addRule(this._control, api, action, { ...options, group: exactly(this.id) });
  }

  /**
   * Park requests of this group before they are applied: `group.hold("OffsetCommit", { clientId: "svc-1" })`.
   * @param {string} api @param {Conditions} [conditions]
   */
  async hold(api, conditions = {}) {
    return await addHold(this._control, api, { ...conditions, group: exactly(this.id) }, this.id);
  }

  /** Apply these requests of the group in rounds, one of each client. @param {string} api @param {string[]} clients */
  async lockstep(api, clients) {
    const info = await this._call("POST", "/locksteps", { api, group: exactly(this.id), clients });
    return new Lockstep(this._control, info.id, this.id);
  }

  /**
   * Expect a rebalance to begin in the block, wait at its end until it has completed, and return it.
   * @param {() => unknown} block @param {{ cause?: string, timeoutMs?: number }} [options]
   * @returns {Promise<Rebalance>}
   */
  async expectRebalance(block, { cause, timeoutMs = WAIT_MS } = {}) {
    const since = await this._call("GET", "/trace/position");
    await block();
    const path = `/groups/${encodeURIComponent(this.id)}/verify/rebalanced`;
    const check = toRebalanceCheck(await this._check("expectRebalance", "POST", path, { since, cause }, timeoutMs));
    return /** @type {Rebalance} */ (check.rebalance);
  }

  /** Assert that no rebalance begins in the block. @template T @param {() => T} block @returns {Promise<Awaited<T>>} */
  async assertNoRebalance(block) {
    const since = await this._call("GET", "/trace/position");
    const result = await block();
    const path = `/groups/${encodeURIComponent(this.id)}/verify/not_rebalanced`;
    await this._check("assertNoRebalance", "POST", path, { since });
    return result;
  }
}

/** A running cluster, from `startKoordinator`, `connectKoordinator` or `withKoordinator`. */
export class Cluster extends ClusterOperations {
  /** @param {Control} control @param {string} bootstrapServers @param {() => unknown} [end] */
  constructor(control, bootstrapServers, end = async () => {}) {
    super(control);
    /** The bootstrap servers for clients, `127.0.0.1:40123`. @readonly */
    this.bootstrapServers = bootstrapServers;
    /** What `stop` does, last first. */
    this._ends = [end];
  }

  /** Call a function at `stop`, before the server stops: `cluster.defer(() => consumer.disconnect())`. @param {() => unknown} end */
  defer(end) {
    this._ends.push(end);
  }

  /** The bootstrap servers as a list. */
  get brokers() {
    return this.bootstrapServers.split(",");
  }

  /** @param {string} id */
  group(id) {
    return new Group(this._control, id);
  }

  /**
   * Create a topic, with records if there are any: values, pairs of key and value, objects, or a number of records.
   * @param {string} name
   * @param {{ partitions?: number, records?: number | unknown[], configs?: Record<string, string> }} [options]
   */
  async createTopic(name, options = {}) {
    await this.topic(name).create(options);
    return this.topic(name);
  }

  /** Append records to a topic: values, pairs of key and value, or objects. @param {string} topic @param {unknown[]} records */
  async produce(topic, ...records) {
    return await this.topic(topic).produce(records);
  }

  /** Add a rule as `Group.rule` does, for every group. @param {string} api @param {Action} action @param {RuleOptions} [options] */
  async addRule(api, action, options = {}) {
    return await addRule(this._control, api, action, options);
  }

  /** Park requests as `Group.hold` does, of every group. @param {string} api @param {Conditions} [conditions] */
  async hold(api, conditions = {}) {
    return await addHold(this._control, api, conditions);
  }

  /** Add a broker to the cluster and start it. */
  async addNode() {
    return this.node(await this._call("POST", "/nodes"));
  }

  /** Throw an error if a rule that is not optional never acted. */
  async check() {
    const unused = (await this.unusedRules()).map((each) => `  ${each.text}: ${each.near}`);
    if (unused.length > 0)
      throw new KoordinatorError(["rules that were never used (optional: true allows it):", ...unused].join("\n"));
  }

  /**
   * Write the trace to `test-results/NAME/`: a page, a file for Perfetto, the text, and JSON lines. Return the page's path.
   * @param {string} name
   */
  async writeTrace(name) {
    const folder = join(process.env.KOORDINATOR_TRACE_DIR ?? TRACE_DIR, name.replaceAll(/[^\w.]+/g, "-").slice(0, 120));
    await mkdir(folder, { recursive: true });
    for (const [ending, format] of Object.entries(FORMATS)) {
      const text = await this._control.request("GET", "/trace", { format });
      await writeFile(join(folder, `trace.${ending}`), typeof text === "string" ? text : JSON.stringify(text));
    }
    const lines = [await this._control.request("GET", "/trace/header"), ...(await this.trace())];
    await writeFile(join(folder, "trace.jsonl"), lines.map((each) => `${JSON.stringify(each)}\n`).join(""));
    return join(folder, "trace.html");
  }

  /**
   * Run a test: if it fails, its error gets the timeline, and the trace is written; at its end `check` is called.
   * @template T @param {(cluster: this) => T} test @param {{ name?: string }} [options]
   * @returns {Promise<Awaited<T>>}
   */
  async run(test, { name = `koordinator-${this.bootstrapServers.split(":").pop()}` } = {}) {
    try {
      const result = await test(this);
      await this.check();
      return result;
    } catch (error) {
      const failure = error instanceof Error ? error : new KoordinatorError(String(error));
      try {
        const isShown = failure.message.includes("its last events:");
        const timeline = isShown ? "" : `\nkoordinator timeline:\n${(await this.timeline()).trimEnd()}`;
        explain(failure, `${timeline}\nfull trace: ${await this.writeTrace(name)}`);
      } catch (problem) {
        explain(failure, `\nno timeline: ${problem}`);
      }
      throw failure;
    }
  }

  /** Call the deferred functions, and stop the server that `startKoordinator` has started. */
  async stop() {
    for (let end = this._ends.pop(); end; end = this._ends.pop()) {
      // a client that cannot stop must not keep the server running
      await Promise.race([(async () => end())().catch(console.error), sleep(STOP_MS, undefined, { ref: false })]);
    }
  }

  async [Symbol.asyncDispose]() {
    await this.stop();
  }
}

/** Add text to an error; its stack has a copy of the message. @param {Error} error @param {string} text */
function explain(error, text) {
  const { message, stack } = error;
  error.message = message + text;
  if (stack?.includes(message)) error.stack = stack.replace(message, () => error.message);
}

/** @param {Control} control @param {string} api @param {Action} action @param {RuleOptions} options */
async function addRule(control, api, action, { id, optional, once, times, nth, every, probability, ...conditions }) {
  const trigger = { once, times, nth, every, probability };
  const rule = { match: matchOf(api, conditions), trigger, action, id, optional };
  return new Rule(control, (await control.request("POST", "/rules", { rule })).id);
}

/** @param {Control} control @param {string} api @param {Conditions} conditions @param {string} [group] */
async function addHold(control, api, conditions, group) {
  const info = await control.request("POST", "/holds", { match: matchOf(api, conditions) });
  return new Hold(control, info.id, group);
}

/** @param {string} api @param {Conditions} conditions the server refuses unknown ones */
function matchOf(api, { clientId, instanceId, ...conditions }) {
  return { api, client_id: clientId, instance_id: instanceId, ...conditions };
}

/** Return a glob that matches only this text. @param {string} text */
function exactly(text) {
  return text.replaceAll(/[*?[]/g, "[$&]");
}
