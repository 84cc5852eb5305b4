/** The default limit of waits. */
export declare const WAIT_MS = 30000;
/** A failed wait or check, or a refused operation: the message has the cause, and the last events of the group. */
export declare class KoordinatorError extends Error {
    name: string;
}
export type Send = (url: string, options: {
    method: string;
    headers: Record<string, string>;
    body?: string;
    signal: AbortSignal;
}) => Promise<Response>;
/** The connection to the control API of one cluster. */
export declare class Control {
    /** @readonly */
    url: string;
    /** @type {Record<string, string>} */
    _headers: Record<string, string>;
    /** @type {Send} */
    _send: Send;
    /**
     * @param {string} url the server's `control_url`
     * @param {{ token?: string, cluster?: string, caFile?: string }} [options] `caFile`: the authority of a server with
     *   https, its `control_ca_file`; by default those that Node.js trusts
     */
    constructor(url: string, { token, cluster, caFile }?: {
        token?: string;
        cluster?: string;
        caFile?: string;
    });
    /**
     * Send a request and return its JSON, or its text; null for an empty response.
     * @param {string} method
     * @param {string} path relative to the cluster
     * @param {Record<string, unknown>} [values] the query of a GET, else the body
     * @param {number} [waitMs] the time of a long poll
     * @returns {Promise<any>}
     */
    request(method: string, path: string, values?: Record<string, unknown>, waitMs?: number): Promise<any>;
}
/**
 * A part of a cluster: it calls operations, waits for results, and reports failures with the last events.
 * Methods that begin with `_` are not for tests.
 */
export declare class Handle {
    _control: Control;
    _label: string;
    _group: string | undefined;
    /**
     * @param {Control} control
     * @param {string} label the handle in messages
     * @param {string | undefined} group the group whose events explain a failure
     */
    constructor(control: Control, label: string, group: string | undefined);
    /** Refuse misspelt options. @param {Record<string, unknown>} unknown */
    _refuse(unknown: Record<string, unknown>): void;
    /** @param {string} method @param {string} path @param {Record<string, unknown>} [values] @returns {Promise<any>} */
    _call(method: string, path: string, values?: Record<string, unknown>): Promise<any>;
    /**
     * Perform an operation until its result is true, or has a true `ok`; return the last result.
     * @param {string} method @param {string} path @param {Record<string, unknown>} values @param {number} timeoutMs
     * @returns {Promise<any>}
     */
    _poll(method: string, path: string, values: Record<string, unknown>, timeoutMs: number): Promise<any>;
    /**
     * @param {string} name @param {string} method @param {string} path @param {Record<string, unknown>} values
     * @param {number} [timeoutMs]
     */
    _wait(name: string, method: string, path: string, values: Record<string, unknown>, timeoutMs?: number): Promise<void>;
    /**
     * @param {string} name @param {string} method @param {string} path @param {Record<string, unknown>} values
     * @param {number} [timeoutMs]
     * @returns {Promise<any>} the result, which is ok
     */
    _check(name: string, method: string, path: string, values: Record<string, unknown>, timeoutMs?: number): Promise<any>;
    /** Throw an error with the last events of the group. @param {string} message @returns {Promise<never>} */
    _fail(message: string): Promise<never>;
    /** The last events as text, of a group after its state. @returns {Promise<string>} */
    timeline(): Promise<string>;
}
/** @param {{ base64: string }} value */
export declare function toBuffer({ base64 }: {
    base64: string;
}): Buffer<ArrayBuffer>;
