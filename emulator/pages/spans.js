// @ts-check
/** @import { Span } from "./types.js" */

/**
 * Return the first number from 0 to `length` for which a condition does not hold; it holds for all lower numbers.
 * @param {number} length @param {(number: number) => boolean} holds
 */
export function firstWithout(length, holds) {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Return the span that contains a position: the last one that starts at or before it, unless it has ended.
 * @template {Span} S
 * @param {S[]} spans @param {number} at
 * @returns {S | null}
 */
export function spanAt(spans, at) {
  const last = spans[firstWithout(spans.length, (n) => spans[n].start <= at) - 1];
  return last && (last.end === null || last.end > at) ? last : null;
}
