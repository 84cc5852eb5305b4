// @ts-check
/** @import { Group } from "./group.js" */
import { moment } from "./format.js";
import { laneColour } from "./pen.js";

const MOVED_MS = 2000;

/** Marks at the labels of partitions with a new owner. They stay for some seconds, and in the labels' tooltips. */
export class Moves {
  constructor() {
    /** @type {Map<string, string>} */
    this.owners = new Map();
    /** @type {Map<string, { title: string, colour: string, until: number }>} */
    this.moved = new Map();
    this.fading = 0;
  }

  /**
   * Mark the labels in an element; call it after every change.
   * @param {Group} group @param {HTMLElement} gutter
   */
  show(group, gutter) {
    const [before, now] = [this.owners, performance.now()];
    this.owners = new Map([...group.partitions].map(([name, spans]) => [name, spans.at(-1)?.owners.join() ?? ""]));
    for (const [name, owner] of this.owners) {
      if (!before.size || !owner || owner === before.get(name)) continue;
      const lane = group.lanes[Number(owner.split(",")[0])];
      const title = `${name}: ${lane.name} since ${moment(group.model.secondsBetween(0, null))}`;
      this.moved.set(name, { title, colour: laneColour(lane.index), until: now + MOVED_MS });
      clearTimeout(this.fading);
      this.fading = setTimeout(() => this.show(group, gutter), MOVED_MS);
    }
    for (const label of /** @type {Iterable<HTMLElement>} */ (gutter.children)) {
      const move = this.moved.get(label.dataset.name ?? "");
      if (!move) continue;
      label.title = move.title;
      label.style.setProperty("--k-owner", move.colour);
      label.classList.toggle("k-moved", move.until > now);
    }
  }
}
