// @ts-check
/** @import { Vocabulary } from "./types.js" */

/**
 * The vocabulary of the trace, which the page embeds (koordinator.emulator.trace.vocabulary).
 * @type {Vocabulary}
 */
export const vocabulary = JSON.parse(document.getElementById("vocabulary")?.textContent ?? "");

/** Kinds of lines that record an action of a test. */
export const TEST_ACTIONS = new Set(vocabulary.test_action_kinds);

/** Causes for which the coordinator removes a member without its request. */
export const REMOVAL_CAUSES = new Set(vocabulary.removal_causes);

/** @type {Record<string, string>} */
export const CAUSES = { ...vocabulary.other_causes, ...vocabulary.rebalance_causes };
