// @ts-check
/* Texts for durations, moments and numbers. */

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
