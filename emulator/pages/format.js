// @ts-check
/* Texts for durations, moments, numbers and partitions. */

/** @param {number} seconds */
export function duration(seconds) {
  const s = Math.abs(seconds);
  if (s === 0) return "0 s";
  if (s < 0.001) return `${Math.round(s * 1e6)} µs`;
  if (s < 1) return `${+(s * 1000).toPrecision(s < 0.01 ? 2 : 3)} ms`;
  if (s < 120) return `${+s.toPrecision(3)} s`;
  if (s < 7200) return `${+(s / 60).toPrecision(3)} min`;
  if (s < 172800) return `${+(s / 3600).toPrecision(3)} h`;
  return `${+(s / 86400).toPrecision(3)} days`;
}

/** @param {number} seconds */
export const moment = (seconds) => `+${seconds.toFixed(3)} s`;

/** @param {number} number @param {string} noun */
export const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;

/** @param {string} name */
export const spaced = (name) => name.replaceAll("_", " ");

/** @param {string[]} names @param {number} [max] */
export const listed = (names, max = 4) =>
  names.length > max ? `${names.slice(0, max).join(", ")} and ${names.length - max} more` : names.join(", ");

/**
 * "orders-3" → ["orders", 3]
 * @param {string} name
 * @returns {[string, number]}
 */
export function topicAndNumber(name) {
  const cut = name.lastIndexOf("-");
  return [name.slice(0, cut), Number(name.slice(cut + 1))];
}

/**
 * {"orders": [0, 3]} → ["orders-0", "orders-3"]
 * @param {Record<string, number[]> | undefined} assignment
 */
export const partitionsOf = (assignment) =>
  Object.entries(assignment ?? {}).flatMap(([topic, numbers]) => numbers.map((number) => `${topic}-${number}`));

/**
 * ["orders-0", "orders-1", "orders-3"] → "orders 0–1, 3"
 * @param {string[]} names
 */
export function partitionRanges(names) {
  /** @type {Map<string, number[]>} */
  const byTopic = new Map();
  for (const [topic, number] of names.map(topicAndNumber)) byTopic.set(topic, [...(byTopic.get(topic) ?? []), number]);
  return [...byTopic].map(([topic, numbers]) => `${topic} ${ranges(numbers)}`).join(", ");
}

/** @param {number[]} numbers */
function ranges(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const parts = [];
  for (let n = 0; n < sorted.length; n += 1) {
    let end = n;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end] + 1) end += 1;
    parts.push(end === n ? `${sorted[n]}` : `${sorted[n]}–${sorted[end]}`);
    n = end;
  }
  return parts.join(", ");
}
