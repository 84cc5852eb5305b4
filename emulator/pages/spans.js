// @ts-check
/** @import { Span } from "./types.js" */

/**
 * Return the span that contains a position: the last one that starts at or before it, unless it has ended.
 * @template {Span} S
 * @param {S[]} spans
 * @param {number} at
 * @returns {S | null}
 */
export function spanAt(spans, at) {
  let low = 0;
  let high = spans.length - 1;
  let match = null;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (spans[middle].start <= at) {
      match = spans[middle];
      low = middle + 1;
    } else high = middle - 1;
  }
  return match && (match.end === null || match.end > at) ? match : null;
}
