// @ts-check
/* The records of a partition in rows: neighbours with the same deliveries are one row, so that its bars do not overlap. */
/** @import { DeliverySpan } from "./types.js" */

/**
 * Return the ranges of offsets that have the same deliveries, each with these in order.
 * @param {Iterable<DeliverySpan>} deliveries
 * @returns {{ first: number, last: number, spans: DeliverySpan[] }[]}
 */
export function recordRows(deliveries) {
  const spans = [...deliveries].sort((one, other) => one.start - other.start || one.first - other.first);
  const begins = new Set(spans.flatMap(({ first, last }) => [first, last + 1]));
  const bounds = [...begins].sort((one, other) => one - other);
  const rows = [];
  for (const [at, first] of bounds.entries()) {
    const within = spans.filter((span) => span.first <= first && first <= span.last);
    if (within.length) rows.push({ first, last: bounds[at + 1] - 1, spans: within });
  }
  return rows;
}

/** @param {{ first: number, last: number }} range */
export function offsets({ first, last }) {
  return first === last ? `${first}` : `${first}–${last}`;
}
