import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Cluster } from "./cluster.js";
import { Control, KoordinatorError } from "./handle.js";

/** The limits of a start, and of a stop, after which the process is killed. */
const START_MS = 60_000;
const STOP_MS = 5_000;

/** The last characters of stderr in an error message. */
const STDERR_CHARS = 2_000;

/** An optional peer dependency. @type {string} */
const CONTAINERS = "testcontainers";

/** @type {Record<string, string>} */
const FLAGS = { brokers: "--brokers", kafkaVersion: "--kafka-version", profile: "--profile", seed: "--seed" };

const KAFKA_PORT = 9092;
const CONTROL_PORT = 9080;

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
export async function startKoordinator({ command, image, ...options } = {}) {
  const given = serveArguments(options);
  if (image !== undefined) return await startContainer(image, given, options.brokers ?? 1);
  const variable = process.env.KOORDINATOR_COMMAND?.split(" ");
  return await startProcess([command ?? variable ?? "koordinator"].flat(), given);
}

/**
 * Connect to a cluster that runs already; `stop` then leaves it running.
 * @param {string} url the server's `control_url`, such as `http://localhost:9080`
 * @param {{ token?: string, cluster?: string, caFile?: string }} [options] `caFile`: the authority of a server with
 *   https, its `control_ca_file`
 */
export async function connectKoordinator(url, options) {
  const control = new Control(url, options);
  return new Cluster(control, (await control.request("GET", "")).bootstrap_servers);
}

/**
 * Start a cluster, run a test with it, and stop it. If the test fails, its error gets the timeline of the groups, and
 * the trace is written to `test-results/NAME`. At the end of a test that passes, unused rules fail it.
 * @template T
 * @param {StartOptions & { name?: string }} options
 * @param {(cluster: Cluster) => T} test
 * @returns {Promise<Awaited<T>>}
 */
export async function withKoordinator({ name, ...options }, test) {
  const cluster = await startKoordinator(options);
  try {
    return await cluster.run(test, { name });
  } finally {
    await cluster.stop();
  }
}

/** @param {Omit<StartOptions, "command" | "image">} options @returns {string[]} */
function serveArguments({ topics = {}, config = {}, arguments: more = [], ...others }) {
  const named = Object.entries(others).filter(([, value]) => value !== undefined);
  const unknown = named.find(([name]) => !(name in FLAGS));
  if (unknown) throw new TypeError(`startKoordinator: unknown option '${unknown[0]}'`);
  return [
    ...Object.entries(topics).flatMap(([topic, partitions]) => ["--topic", `${topic}:${partitions}`]),
    ...Object.entries(config).flatMap(([key, value]) => ["--config", `${key}=${value}`]),
    ...named.flatMap(([name, value]) => [FLAGS[name], String(value)]),
    ...more,
  ];
}

/** @param {string[]} command @param {string[]} given @returns {Promise<Cluster>} */
async function startProcess([program, ...before], given) {
  const args = [...before, "serve", "--port", "0", "--control-port", "0", "--stop-with-stdin", ...given];
  const server = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  server.stderr.on("data", (data) => {
    stderr = (stderr + data).slice(-STDERR_CHARS);
  });
  const ended = once(server, "close").then(() => {
    const status = server.exitCode ?? server.signalCode;
    throw new KoordinatorError(`${program} ${args.join(" ")} ended with ${status}:\n${stderr.trim()}`);
  });
  // it also ends later, when nothing waits for it
  ended.catch(() => {});
  const limit = AbortSignal.timeout(START_MS);
  const line = once(createInterface(server.stdout), "line", { signal: limit }).catch(() => {
    throw new KoordinatorError(`${program} did not start within ${START_MS / 1000} s:\n${stderr}`);
  });
  line.catch(() => {});
  const stop = async () => {
    const kill = setTimeout(() => server.kill("SIGKILL"), STOP_MS);
    server.stdin.end();
    await ended.catch(() => {});
    clearTimeout(kill);
  };
  try {
    const [text] = await Promise.race([line, ended]);
    const started = JSON.parse(text);
    const control = new Control(started.control_url, {
      token: started.control_token,
      caFile: started.control_ca_file,
    });
    // the control plane loads while clients can connect already
    await control.request("GET", "");
    return new Cluster(control, started.bootstrap_servers, stop);
  } catch (error) {
    if (server.pid !== undefined) await stop();
    throw /** @type {any} */ (error).code === "ENOENT" ? new KoordinatorError(notFound(program)) : error;
  }
}

/** @param {string} program */
function notFound(program) {
  return [
    `there is no program ${program} on PATH; choose one of:`,
    "  pip install 'koordinator[control]'    with Python 3.11 or newer",
    '  startKoordinator({ command: ["uvx", "--from", "koordinator[control]", "koordinator"] })',
    '  startKoordinator({ image: "koordinator" })    a container, with the package testcontainers',
  ].join("\n");
}

/** @param {string} image @param {string[]} given @param {number} brokers @returns {Promise<Cluster>} */
async function startContainer(image, given, brokers) {
  const { GenericContainer, Wait } = await import(CONTAINERS).catch((error) => {
    const isMissing = error.code === "ERR_MODULE_NOT_FOUND";
    const reason = isMissing
      ? "npm install --save-dev testcontainers"
      : `it fails on Node.js ${process.version}: ${error}`;
    throw new KoordinatorError(`the option image needs testcontainers: ${reason}`, { cause: error });
  });
  const token = randomUUID();
  const ports = Array.from({ length: brokers }, (_, index) => KAFKA_PORT + index);
  const container = await new GenericContainer(image)
    .withCommand(["serve", ...given])
    .withEnvironment({ KOORDINATOR_CONTROL_TOKEN: token })
    .withExposedPorts(CONTROL_PORT, ...ports)
    .withWaitStrategy(Wait.forLogMessage(/"bootstrap_servers"/))
    .withStartupTimeout(START_MS)
    .start();
  const host = container.getHost();
  const control = new Control(`http://${host}:${container.getMappedPort(CONTROL_PORT)}`, { token });
  for (const [index, node] of (await control.request("GET", "/nodes")).entries()) {
    const address = { host, port: container.getMappedPort(ports[index]) };
    await control.request("POST", `/nodes/${node.node}/advertise`, address);
  }
  const info = await control.request("GET", "");
  return new Cluster(control, info.bootstrap_servers, async () => {
    await container.stop();
  });
}
