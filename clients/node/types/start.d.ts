import { Cluster } from "./cluster.js";
export type StartOptions = {
    /**
     * topics with their numbers of partitions
     */
    topics?: Record<string, number>;
    brokers?: number;
    /**
     * broker configs, such as `group.max.size`
     */
    config?: Record<string, string | number | boolean>;
    /**
     * the set of default broker configs
     */
    profile?: "fast" | "kafka-defaults";
    /**
     * the Kafka release to emulate
     */
    kafkaVersion?: string;
    /**
     * the seed of every id that the cluster creates
     */
    seed?: number;
    arguments?: string[];
    /**
     * by default KOORDINATOR_COMMAND, or `koordinator`
     */
    command?: string | string[];
    /**
     * start this container image in place of a process; needs the package `testcontainers`
     */
    image?: string;
};
/**
 * Options of the cluster; further ones of `koordinator serve` in `arguments`.
 * @typedef {object} StartOptions
 * @property {Record<string, number>} [topics] topics with their numbers of partitions
 * @property {number} [brokers]
 * @property {Record<string, string | number | boolean>} [config] broker configs, such as `group.max.size`
 * @property {"fast" | "kafka-defaults"} [profile] the set of default broker configs
 * @property {string} [kafkaVersion] the Kafka release to emulate
 * @property {number} [seed] the seed of every id that the cluster creates
 * @property {string[]} [arguments]
 * @property {string | string[]} [command] by default KOORDINATOR_COMMAND, or `koordinator`
 * @property {string} [image] start this container image in place of a process; needs the package `testcontainers`
 */
/**
 * Start a cluster, and wait until clients can connect. Its process ends with `stop`, and with this process.
 * @param {StartOptions} [options]
 */
export declare function startKoordinator({ command, image, ...options }?: StartOptions): Promise<Cluster>;
/**
 * Connect to a cluster that runs already; `stop` then leaves it running.
 * @param {string} url the server's `control_url`, such as `http://localhost:9080`
 * @param {{ token?: string, cluster?: string, caFile?: string }} [options] `caFile`: the authority of a server with
 *   https, its `control_ca_file`
 */
export declare function connectKoordinator(url: string, options?: {
    token?: string;
    cluster?: string;
    caFile?: string;
}): Promise<Cluster>;
/**
 * Start a cluster, run a test with it, and stop it. If the test fails, its error gets the timeline of the groups, and
 * the trace is written to `test-results/NAME`. At the end of a test that passes, unused rules fail it.
 * @template T
 * @param {StartOptions & { name?: string }} options
 * @param {(cluster: Cluster) => T} test
 * @returns {Promise<Awaited<T>>}
 */
export declare function withKoordinator<T>({ name, ...options }: StartOptions & {
    name?: string;
}, test: (cluster: Cluster) => T): Promise<Awaited<T>>;
