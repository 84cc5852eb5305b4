import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request } from "node:https";

/** The status of an empty response. */
const NO_CONTENT = 204;

/** How long a response may take beyond the time of a long poll. */
const RESPONSE_MS = 30_000;

/** The longest long poll; a longer wait uses several. */
const POLL_MS = 60_000;

/** The default limit of waits. */
export const WAIT_MS = 30_000;

/** A failed wait or check, or a refused operation: the message has the cause, and the last events of the group. */
export class KoordinatorError extends Error {
  name = "KoordinatorError";
}

/**
 * The part of `fetch` that is used here.
 * @typedef {(url: string, options: { method: string, headers: Record<string, string>, body?: string,
 *   signal: AbortSignal }) => Promise<Response>} Send
 */

/**
 * Return a `fetch` for servers whose certificate has another authority, for which `fetch` has no option.
 * @param {Buffer} ca
 * @returns {Send}
 */
function sendTrusting(ca) {
  return async (url, { body, ...options }) => {
    const sent = request(url, { ...options, ca }).end(body);
    /** @type {[import("node:http").IncomingMessage]} */
    const [response] = /** @type {any} */ (await once(sent, "response"));
    const text = Buffer.concat(await response.toArray());
    const status = response.statusCode ?? 0;
    const headers = { "content-type": response.headers["content-type"] ?? "" };
    return new Response(status === NO_CONTENT ? null : text, { status, headers });
  };
}

/** The connection to the control API of one cluster. */
export class Control {
  /**
   * @param {string} url the server's `control_url`
   * @param {{ token?: string, cluster?: string, caFile?: string }} [options] `caFile`: the authority of a server with
   *   https, its `control_ca_file`; by default those that Node.js trusts
   */
  constructor(url, { token, cluster = "default", caFile } = {}) {
    /** @readonly */
    this.url = `${url.replace(/\/$/, "")}/v1/clusters/${encodeURIComponent(cluster)}`;
    /** @type {Record<string, string>} */
    this._headers = { "content-type": "application/json" };
    if (token !== undefined) this._headers.authorization = `Bearer ${token}`;
    /** @type {Send} */
    this._send = caFile === undefined ? fetch : sendTrusting(readFileSync(caFile));
  }

  /**
   * Send a request and return its JSON, or its text; null for an empty response.
   * @param {string} method
   * @param {string} path relative to the cluster
   * @param {Record<string, unknown>} [values] the query of a GET, else the body
   * @param {number} [waitMs] the time of a long poll
   * @returns {Promise<any>}
   */
  async request(method, path, values = {}, waitMs = 0) {
    const given = Object.entries(values).filter(([, value]) => value !== undefined);
    const isQuery = method === "GET";
    const query = new URLSearchParams();
    for (const [name, value] of isQuery ? given : []) {
      for (const each of [value].flat()) query.append(name, String(each));
    }
    const send = this._send;
    const response = await send(`${this.url}${path}${isQuery && given.length > 0 ? `?${query}` : ""}`, {
      method,
      headers: this._headers,
      body: isQuery ? undefined : JSON.stringify(Object.fromEntries(given), asBase64),
      signal: AbortSignal.timeout(waitMs + RESPONSE_MS),
    }).catch((cause) => {
      throw new KoordinatorError(`${method} ${this.url}${path}: koordinator does not answer`, { cause });
    });
    if (response.status === NO_CONTENT) return null;
    const isJson = response.headers.get("content-type")?.includes("json");
    const body = await response.text();
    if (!response.ok) throw new KoordinatorError(isJson ? JSON.parse(body).detail : `${response.status}: ${body}`);
    return isJson ? JSON.parse(body) : body;
  }
}

/**
 * A part of a cluster: it calls operations, waits for results, and reports failures with the last events.
 * Methods that begin with `_` are not for tests.
 */
export class Handle {
  /**
   * @param {Control} control
   * @param {string} label the handle in messages
   * @param {string | undefined} group the group whose events explain a failure
   */
  constructor(control, label, group) {
    this._control = control;
    this._label = label;
    this._group = group;
  }

  /** Refuse misspelt options. @param {Record<string, unknown>} unknown */
  _refuse(unknown) {
    const names = Object.keys(unknown);
    if (names.length > 0)
      throw new TypeError(`${this._label}: unknown option ${names.map((each) => `'${each}'`).join(", ")}`);
  }

  /** @param {string} method @param {string} path @param {Record<string, unknown>} [values] @returns {Promise<any>} */
  async _call(method, path, values) {
    return await this._control.request(method, path, values);
  }

  /**
   * Perform an operation until its result is true, or has a true `ok`; return the last result.
   * @param {string} method @param {string} path @param {Record<string, unknown>} values @param {number} timeoutMs
   * @returns {Promise<any>}
   */
  async _poll(method, path, values, timeoutMs) {
    const end = Date.now() + timeoutMs;
    for (;;) {
      const limit = Math.max(Math.min(end - Date.now(), POLL_MS), 0);
      const result = await this._control.request(method, path, { ...values, timeout: limit / 1000 }, limit);
      if ((result === true || result?.ok || result?.deadlock) ?? false) return result;
      if (Date.now() >= end) return result;
    }
  }

  /**
   * @param {string} name @param {string} method @param {string} path @param {Record<string, unknown>} values
   * @param {number} [timeoutMs]
   */
  async _wait(name, method, path, values, timeoutMs = WAIT_MS) {
    if ((await this._poll(method, path, values, timeoutMs)) === true) return;
    const conditions = Object.entries(values).filter(([, value]) => value !== undefined);
    const shown = conditions.map(([key, value]) => `${key} ${JSON.stringify(value)}`).join(", ");
    await this._fail(`${name}: not within ${timeoutMs / 1000} s${shown && `: ${shown}`}`);
  }

  /**
   * @param {string} name @param {string} method @param {string} path @param {Record<string, unknown>} values
   * @param {number} [timeoutMs]
   * @returns {Promise<any>} the result, which is ok
   */
  async _check(name, method, path, values, timeoutMs) {
    const result = timeoutMs
      ? await this._poll(method, path, values, timeoutMs)
      : await this._call(method, path, values);
    if (!result.ok) await this._fail(`${name}: ${result.message}`);
    return result;
  }

  /** Throw an error with the last events of the group. @param {string} message @returns {Promise<never>} */
  async _fail(message) {
    const report = this._group === undefined ? "" : `\n${(await this.timeline()).trimEnd()}`;
    throw new KoordinatorError(`${this._label}: ${message}${report}`);
  }

  /** The last events as text, of a group after its state. @returns {Promise<string>} */
  async timeline() {
    return await this._control.request("GET", "/trace", { format: "text", group: this._group });
  }
}

/** @param {{ base64: string }} value */
export function toBuffer({ base64 }) {
  return Buffer.from(base64, "base64");
}

/** Write bytes as `{"base64": …}`. @type {(key: string, value: any) => unknown} */
function asBase64(_key, value) {
  // JSON.stringify has called toJSON() of a Buffer already
  if (value?.type === "Buffer" && Array.isArray(value.data))
    return { base64: Buffer.from(value.data).toString("base64") };
  if (value instanceof Uint8Array) return { base64: Buffer.from(value).toString("base64") };
  return value;
}
