// A run and its chats: what events are folded into, and the steps by which that changes.
// Nothing here knows the page or the network.

/**
 * @typedef {{kind: string, seq: number, rev: number, [key: string]: any}} Item
 * @typedef {{at: string, participants: string[], items: Item[], open: Map<string, Item>, closed: any, hidden: any[], follows: Map<string, number>, last: string[], tasks: Map<string, any>}} Chat
 * @typedef {{seq: number, pieces: number, chats: Map<string, Chat>, names: string[], usage: any, counts: Map<string, number>, begun: Map<string, number>, firsts: Map<number, number>, last: number, title: string | null, isPaused: boolean, outside: number, sent: {seq: number, text: string}[]}} Run
 */

/** @returns {Run} */
export function newRun() {
    // `outside`: after the last event that carries out what someone has sent; `sent`: the texts of messages, said or refused.
    const usage = { calls: 0, input: 0, output: 0, unmetered: 0, unpriced: 0, cost: 0, uncertain: { calls: 0, unpriced: 0, cost: 0 } };
    const chats = new Map([['', newChat('')]]);
    return { seq: 0, pieces: 0, chats, names: [], usage, counts: new Map(), begun: new Map(), firsts: new Map(), last: 0, title: null, isPaused: false, outside: 0, sent: [] };
}

/** @param {string} at @returns {Chat} */
function newChat(at) {
    return { at, participants: [], items: [], open: new Map(), closed: null, hidden: [], follows: new Map(), last: [''], tasks: new Map() };
}

/** The text of parts, without what is not text. @param {any[]} parts */
export function textOf(parts) {
    return (parts ?? []).filter((part) => 'text' in part).map((part) => part.text).join('\n');
}

/** Whether everyone receives a message. @param {any} to */
export const isPublic = (to) => to === undefined || to === 'all';

/** @param {Run} run @param {string} at */
export function chatAt(run, at) {
    let chat = run.chats.get(at);
    if (!chat) run.chats.set(at, (chat = newChat(at)));
    return chat;
}

/** @param {Chat} chat @param {string} kind @param {any} event @param {any} [more] @returns {Item} */
export function push(chat, kind, event, more = {}) {
    const item = { kind, nth: chat.items.length, seq: event.seq, time: event.time_ms, rev: 0, ...more };
    chat.items.push(item);
    return item;
}

/** @param {Run} run @param {string} name */
export function known(run, name) {
    if (!run.names.includes(name)) run.names.push(name);
}

/** The open turn of a participant. @param {Chat} chat @param {string} who */
export function turn(chat, who) {
    const item = chat.open.get(who);
    if (item) item.rev += 1;
    return item;
}

/** Adds a step to the open turn, or a note between turns. @param {Chat} chat @param {string} who @param {any} step @param {any} event */
export function step(chat, who, step, event) {
    const open = turn(chat, who);
    step = { seq: event.seq, time: event.time_ms, who, ...step };
    if (open) open.steps.push(step);
    else push(chat, 'note', event, { step });
    return step;
}

/** @param {Chat} chat @param {any} event @param {string} text @param {string} [tone] */
export function note(chat, event, text, tone = '') {
    push(chat, 'note', event, { step: { kind: 'note', text, tone } });
}

/** @param {Chat} chat @param {any} event @param {any} message */
export function speech(chat, event, message) {
    const { from: who, to, parts } = message;
    return push(chat, 'turn', event, { who, to, parts, state: 'said', steps: [], live: null, said: event.seq });
}

/** Ends the open turn. @param {Chat} chat @param {string} who @param {any} event @param {any} changes */
export function end(chat, who, event, changes) {
    const item = turn(chat, who) ?? push(chat, 'turn', event, { who, steps: [] });
    Object.assign(item, { live: null, said: event.seq, took: event.time_ms - item.time, ...changes });
    chat.open.delete(who);
}

/** Where a chat runs within another: `/critic.2` in a turn of `critic`. @param {Run} run @param {string} at @param {any} event */
export function nest(run, at, event) {
    const cut = at.lastIndexOf('/');
    const who = at.slice(cut + 1).replace(/(\.b?\d+)+$/, '');
    const parent = chatAt(run, at.slice(0, cut));
    // A background task is shown where it was started.
    if (parent.tasks.has(at)) return;
    const open = turn(parent, who) ?? turn(parent, [...parent.open.keys()].at(-1) ?? '');
    const steps = open?.steps ?? [];
    // A chat that is opened again for the same turn is shown where it was.
    if (steps.some((/** @type {any} */ step) => step.at === at)) return;
    step(parent, open?.who ?? who, { kind: 'chat', at }, event);
}
