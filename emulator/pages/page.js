// @ts-check
/* The page of one trace, which embeds its lines. */
import { spanAt } from "./spans.js";
import { asTest } from "./test_code.js";
import { mount } from "./timeline.js";

const trace = JSON.parse(document.getElementById("trace")?.textContent ?? "");
const root = /** @type {HTMLElement} */ (document.getElementById("timeline"));
/* For the browser's console. */
Object.assign(globalThis, { Koordinator: { asTest, mount, spanAt, timeline: mount(root, trace.lines, trace) } });
