// @ts-check
/** @import { HoldSpan, LaneMark, StateSpan } from "./types.js" */

/** The place of one group.instance.id or client id in the group, across restarts of its client. */
export class Lane {
  /** @param {string} name @param {boolean} isStatic @param {number} index */
  constructor(name, isStatic, index) {
    this.name = name;
    this.isStatic = isStatic;
    this.index = index;
    /** @type {StateSpan[]} */
    this.spans = [];
    /** @type {number[]} */
    this.heartbeats = [];
    /** @type {LaneMark[]} */
    this.marks = [];
    /** @type {HoldSpan[]} */
    this.holds = [];
    /** @type {Set<string>} */
    this.owned = new Set();
    /** @type {string | null} */
    this.state = null;
    this.isMember = false;
    /** @type {number | undefined} */
    this.connection = undefined;
    /** @type {string | undefined} */
    this.memberId = undefined;
    /** @type {string[]} */
    this.protocols = [];
    /** @type {string[]} */
    this.topics = [];
    this.sessionMs = 0;
    /**
     * Member ids of earlier processes that the group still waits for.
     * @type {Set<string | undefined>}
     */
    this.former = new Set();
  }

  /** @param {number} at @param {string | null} state */
  become(at, state) {
    if (state === this.state) return;
    const last = this.spans.at(-1);
    if (last && last.end === null) last.end = at;
    if (state !== null) this.spans.push({ start: at, end: null, state });
    this.state = state;
  }

  get isCooperative() {
    return this.protocols.length > 0 && this.protocols.every((name) => /cooperative|compatible|sessioned/.test(name));
  }

  /** @param {number} at @param {LaneMark["kind"]} kind @param {string} text */
  mark(at, kind, text) {
    this.marks.push({ at, kind, text });
  }
}
