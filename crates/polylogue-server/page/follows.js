// Who spoke after whom in a chat, and how often.

/** @typedef {import('./chats.js').Chat} Chat */

/** Stands for all who speak at the same time, which counts once. No name is like this. */
export const ALL = '\0';

/** Stands for the end of a chat. */
export const END = '\0\0';

/** The reasons for which a chat ends by its pattern, and not at a limit or by a termination condition. */
const PATTERN_ENDS = new Set(['finished', 'replied', 'all_spoken', 'no_handoff', 'graph_complete', 'dag_complete', 'end_state', 'voted',
    'chair_decided', 'undecided', 'request_satisfied', 'tasks_done', 'no_speaker']);

/** @param {Chat} chat @param {string} before @param {string} after */
function count(chat, before, after) {
    const edge = `${before}\n${after}`;
    chat.follows.set(edge, (chat.follows.get(edge) ?? 0) + 1);
}

/**
 * Counts who spoke after whom; `''` is the beginning of the chat. Who speaks at the same time as others follows each who spoke before them.
 * @param {Chat} chat @param {string[]} whos
 */
export function follow(chat, whos) {
    for (const who of whos) [ALL, ...chat.last].forEach((before) => count(chat, before, who));
    for (const before of chat.last) count(chat, before, ALL);
    chat.last = whos;
}

/** Counts the end of a chat, if its pattern has ended it. @param {Chat} chat @param {any} reason */
export function finish(chat, reason) {
    if (PATTERN_ENDS.has(reason?.other?.code ?? reason)) [ALL, ...chat.last].forEach((before) => count(chat, before, END));
}
