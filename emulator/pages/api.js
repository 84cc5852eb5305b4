// @ts-check
/* The client of the HTTP API. */

const TOKEN = "koordinator-token";

/** The HTTP API. A token, if the server requires one, is kept for this browser tab. */
export class Api {
  /** @param {() => Promise<string>} askToken */
  constructor(askToken) {
    this.askToken = askToken;
  }

  /**
   * Send a request; ask for a token and repeat it if the server requires one.
   * @param {string} path @param {RequestInit} [options]
   */
  async fetch(path, options = {}) {
    for (;;) {
      const headers = new Headers(options.headers);
      const token = sessionStorage.getItem(TOKEN);
      if (token) headers.set("Authorization", `Bearer ${token}`);
      const response = await fetch(path, { ...options, headers });
      if (response.status !== 401) return response;
      sessionStorage.setItem(TOKEN, await this.askToken());
    }
  }

  /**
   * Return the response's data; throw an error with the server's message if the request fails.
   * @param {string} method @param {string} path @param {object} [body]
   */
  async request(method, path, body) {
    const json = { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
    const response = await this.fetch(path, body === undefined ? { method } : { method, ...json });
    if (response.status === 204) return null;
    const data = await response.json();
    if (!response.ok) throw new Error(data.detail || `status ${response.status}`);
    return data;
  }

  /**
   * Yield the server-sent events of a stream, in the batches in which they arrive: name and data of each.
   * @param {string} path @param {AbortSignal} signal @param {() => void} onOpen
   * @returns {AsyncGenerator<{ name: string, data: any }[]>}
   */
  async *events(path, signal, onOpen) {
    const response = await this.fetch(path, { headers: { Accept: "text/event-stream" }, signal });
    if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
    onOpen();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      const events = parts.map(parseEvent).filter((event) => event !== null);
      if (events.length) yield events;
    }
  }
}

/** @param {string} text */
function parseEvent(text) {
  const fields = new Map(text.split("\n").map((line) => /** @type {[string, string]} */ (line.split(/: (.*)/s, 2))));
  const data = fields.get("data");
  return data === undefined ? null : { name: fields.get("event") ?? "message", data: JSON.parse(data) };
}
