// Points of view: which messages a participant receives.
import { isPublic } from './chats.js';
import { refine, route } from './router.js';

/** Whose point of view the address names; empty for everything. */
export const viewer = () => route.value.query.get('as') ?? '';

/**
 * Those whose points of view there are: the participants of each chat, and who has only spoken, such as one that decides a vote.
 * @param {import('./chats.js').Run} run
 */
export function viewersIn(run) {
    const participants = [...run.chats.values()].flatMap((chat) => chat.participants);
    return [...new Set([...participants, ...run.names.filter((name) => !['user', 'system'].includes(name))])];
}

/** Whose point of view is shown: that of the address, if the run has such a participant. @param {import('./chats.js').Run} run */
export const viewerIn = (run) => (viewersIn(run).includes(viewer()) ? viewer() : '');

/** Shows the point of view of a participant, or everything again. What a person reads stays where it is. @param {string} name */
export function viewAs(name) {
    const read = scrollY > 0 && [...document.querySelectorAll('.turn')].find((it) => it.getBoundingClientRect().top > 0);
    const top = read && read.getBoundingClientRect().top;
    refine({ as: viewer() === name ? null : name });
    if (read) requestAnimationFrame(() => scrollBy(0, read.getBoundingClientRect().top - Number(top)));
}

/**
 * Since when a participant receives what is said in a chat: one that joined later may not have the history, and a cleared
 * history is hidden.
 * @param {any} chat @param {string} who
 */
function since(chat, who) {
    const hidden = (chat.hidden ?? []).filter((/** @type {any} */ entry) => !entry.of || entry.of === who);
    return Math.max(0, ...hidden.map((/** @type {any} */ entry) => entry.before));
}

/**
 * Whether a participant receives an item of a chat. A pure function of what the events were folded into.
 * @param {any} chat @param {any} item @param {string} who
 */
export function receives(chat, item, who) {
    if (!chat.participants.includes(who)) return item.who === who;
    if (item.kind !== 'turn') return true;
    if (item.undone || (item.said ?? item.seq) < since(chat, who)) return false;
    if (item.who === who || item.state === 'open') return item.who === who;
    return isPublic(item.to) || (item.to?.only ?? []).includes(who);
}
