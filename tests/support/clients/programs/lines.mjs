// The lines of a program: see line_clients.py.
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";

const LIMIT_MS = 30_000;

/** Return the value of a function once it has one. */
export async function until(get) {
  for (const end = Date.now() + LIMIT_MS; ; await setTimeout(10)) {
    const value = get();
    if (value !== undefined) return value;
    if (Date.now() > end) throw new Error(`not within ${LIMIT_MS} ms`);
  }
}

/** Perform the commands of standard input, and end the process with it. */
export async function serve(perform) {
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      console.log(`ok ${(await perform(line.split(" "))) ?? ""}`);
    } catch (error) {
      console.log(`error ${error.name} ${error.type ?? error.code ?? ""} ${error.message}`.replaceAll("\n", " "));
    }
  }
  process.exit(0);
}
