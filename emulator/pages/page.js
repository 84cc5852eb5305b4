// @ts-check
/* The page of one trace, which embeds its lines and what they mean. */
import { spanAt } from "./spans.js";
import { mount } from "./timeline.js";

const trace = JSON.parse(document.getElementById("trace")?.textContent ?? "");
const root = /** @type {HTMLElement} */ (document.getElementById("timeline"));
/* For the browser's console. */
Object.assign(globalThis, { Koordinator: { mount, spanAt, timeline: mount(root, trace) } });
