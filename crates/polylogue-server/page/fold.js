// The events of a conversation, folded into what is shown: chats, and in each the items in order.
// A pure function of events: nothing here knows the page or the network.
import { reasonText, uncertain } from './format.js';

/**
 * @typedef {{kind: string, seq: number, rev: number, [key: string]: any}} Item
 * @typedef {{at: string, participants: string[], items: Item[], open: Map<string, Item>, closed: any, hidden: any[], follows: Map<string, number>, last: string[], tasks: Map<string, any>}} Chat
 * @typedef {{seq: number, pieces: number, chats: Map<string, Chat>, names: string[], usage: any, counts: Map<string, number>, begun: Map<string, number>, firsts: Map<number, number>, last: number, title: string | null, isPaused: boolean}} Run
 */

/** @returns {Run} */
export function newRun() {
    const usage = { calls: 0, input: 0, output: 0, unmetered: 0, unpriced: 0, cost: 0, uncertain: { calls: 0, unpriced: 0, cost: 0 } };
    const chats = new Map([['', newChat('')]]);
    return { seq: 0, pieces: 0, chats, names: [], usage, counts: new Map(), begun: new Map(), firsts: new Map(), last: 0, title: null, isPaused: false };
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

/**
 * Adds the next event.
 * @param {Run} run @param {any} event
 */
export function add(run, event) {
    if (event.seq < run.seq) return;
    run.seq = event.seq + 1;
    run.last = event.time_ms;
    const chat = chatAt(run, event.at ?? '');
    (HANDLERS[event.type] ?? other)(run, chat, event);
}

/** @param {Run} run @param {string} at */
export function chatAt(run, at) {
    let chat = run.chats.get(at);
    if (!chat) run.chats.set(at, (chat = newChat(at)));
    return chat;
}

/** @param {Chat} chat @param {string} kind @param {any} event @param {any} [more] @returns {Item} */
function push(chat, kind, event, more = {}) {
    const item = { kind, nth: chat.items.length, seq: event.seq, time: event.time_ms, rev: 0, ...more };
    chat.items.push(item);
    return item;
}

/** @param {Run} run @param {string} name */
function known(run, name) {
    if (!run.names.includes(name)) run.names.push(name);
}

/** The open turn of a participant. @param {Chat} chat @param {string} who */
export function turn(chat, who) {
    const item = chat.open.get(who);
    if (item) item.rev += 1;
    return item;
}

/** Adds a step to the open turn, or a note between turns. @param {Chat} chat @param {string} who @param {any} step @param {any} event */
function step(chat, who, step, event) {
    const open = turn(chat, who);
    step = { seq: event.seq, time: event.time_ms, who, ...step };
    if (open) open.steps.push(step);
    else push(chat, 'note', event, { step });
    return step;
}

/** @param {Chat} chat @param {any} event @param {string} text @param {string} [tone] */
function note(chat, event, text, tone = '') {
    push(chat, 'note', event, { step: { kind: 'note', text, tone } });
}

/** @param {Chat} chat @param {any} event @param {any} message */
function speech(chat, event, message) {
    const { from: who, to, parts } = message;
    return push(chat, 'turn', event, { who, to, parts, state: 'said', steps: [], live: null, said: event.seq });
}

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
function follow(chat, whos) {
    for (const who of whos) [ALL, ...chat.last].forEach((before) => count(chat, before, who));
    for (const before of chat.last) count(chat, before, ALL);
    chat.last = whos;
}

/** Ends the open turn. @param {Chat} chat @param {string} who @param {any} event @param {any} changes */
function end(chat, who, event, changes) {
    const item = turn(chat, who) ?? push(chat, 'turn', event, { who, steps: [] });
    Object.assign(item, { live: null, said: event.seq, took: event.time_ms - item.time, ...changes });
    chat.open.delete(who);
}

/** Where a chat runs within another: `/critic.2` in a turn of `critic`. @param {Run} run @param {string} at @param {any} event */
function nest(run, at, event) {
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

/** @type {Record<string, (run: Run, chat: Chat, event: any) => void>} */
const HANDLERS = {
    opened(run, chat, event) {
        chat.participants = [...event.participants, ...(event.late_joiners ?? [])];
        chat.participants.forEach((name) => known(run, name));
        chat.closed = null;
        if (chat.at) nest(run, chat.at, event);
        const isTask = (/** @type {any} */ message) => message.parts[0]?.text === event.task;
        const before = (/** @type {string} */ title, /** @type {string} */ text) => text && push(chat, 'before', event, { title, parts: [{ text }] });
        if (!event.messages?.some(isTask)) before('Task', event.task);
        before('Introduction', event.introduction);
        for (const message of event.messages ?? []) Object.assign(speech(chat, event, message), { opening: true, isTask: isTask(message) });
    },
    turn_started(run, chat, event) {
        const heard = event.turns.flatMap((/** @type {any} */ { who, to }) => (isPublic(to) || to.only?.length ? [who] : []));
        if (heard.length) follow(chat, heard);
        for (const { who, to, prompt, choice } of event.turns) {
            known(run, who);
            const more = { who, to, prompt, choice, steps: [], state: 'open', live: null };
            chat.open.set(who, push(chat, 'turn', event, more));
        }
    },
    model_replied(run, chat, event) {
        const { who, usage, cost, parts } = event;
        const sum = run.usage;
        sum.calls += 1;
        sum.input += usage?.input ?? 0;
        sum.output += usage?.output ?? 0;
        if (usage?.input === undefined && usage?.output === undefined) sum.unmetered += 1;
        if (cost === undefined) sum.unpriced += 1;
        else sum.cost += cost;
        const started = turn(chat, who);
        const call = (run.counts.get(who) ?? 0) + 1;
        run.counts.set(who, call);
        if (started) (started.asked ??= []).push(call);
        for (const part of parts) if ('thought' in part) step(chat, who, { kind: 'thought', text: part.thought }, event);
        if (event.asked) {
            const text = event.because ? `${event.because}; ${event.model} replied` : `${event.model} replied instead of ${event.asked}`;
            step(chat, who, { kind: 'note', text }, event);
        }
        if (started) Object.assign(started, { live: null, isTorn: false, draft: event.finish === 'malformed' ? '' : textOf(parts) });
    },
    charged(run, chat, event) {
        const { who, why, calls = 0, tokens, cost } = event;
        // These say that a call is made, which counts by its reply.
        if (why === 'repeated' || why === 'reserved') return;
        const sum = run.usage.uncertain;
        sum.calls += calls;
        sum.cost += cost ?? 0;
        if (cost === undefined && (tokens !== undefined || why !== 'failed')) sum.unpriced += calls;
        if (calls) step(chat, who, { kind: 'note', text: uncertain({ calls, cost, unpriced: 0 }) }, event);
    },
    tool_called(_, chat, event) {
        step(chat, event.who, { kind: 'call', call: event.call, outcome: null }, event);
    },
    tool_returned(_, chat, event) {
        const open = turn(chat, event.who);
        const all = [...chat.items.slice(-50).flatMap((item) => item.steps ?? []), ...(open?.steps ?? [])];
        const call = all.findLast((/** @type {any} */ step) => step.kind === 'call' && step.call.id === event.id && !step.outcome);
        if (call) Object.assign(call, { outcome: event.outcome, took: event.time_ms - call.time });
    },
    prompted(_, chat, event) {
        step(chat, event.who, { kind: 'note', text: event.text, tone: 'prompt' }, event);
    },
    message(run, chat, event) {
        known(run, event.from);
        end(chat, event.from, event, { state: 'said', to: event.to, parts: event.parts });
    },
    passed: (_, chat, event) => end(chat, event.who, event, { state: 'passed' }),
    left: (_, chat, event) => end(chat, event.who, event, { state: 'left', why: event.why }),
    stopped: (_, chat, event) => end(chat, event.who, event, { state: 'stopped', why: reasonText(event.reason) }),
    posted: (_, chat, event) => void speech(chat, event, event),
    sent: (_, chat, event) => void speech(chat, event, event),
    failed(_, chat, event) {
        const { message, hint, postponed } = event.error;
        if (postponed) return void step(chat, event.who, { kind: 'note', text: `put off: ${message}` }, event);
        step(chat, event.who, { kind: 'error', text: message, hint }, event);
    },
    input_required(_, chat, event) {
        const { who, text, call } = event;
        step(chat, who, { kind: 'question', text, call, answer: null }, event);
    },
    input_provided(_, chat, event) {
        const steps = chat.items.flatMap((item) => (item.steps ?? [item.step]).map((/** @type {any} */ step) => ({ item, step })));
        const asked = steps.findLast(({ step }) => step?.kind === 'question' && step.who === event.to && step.answer === null);
        if (!asked) return;
        Object.assign(asked.step, { answer: event.text, by: event.by });
        asked.item.rev += 1;
    },
    reply_interrupted(_, chat, event) {
        step(chat, event.who, { kind: 'note', text: `interrupted: ${event.text}` }, event);
        const open = chat.open.get(event.who);
        if (open) Object.assign(open, { live: null, isTorn: false });
    },
    closed(_, chat, event) {
        chat.closed = event;
        if (PATTERN_ENDS.has(event.reason?.other?.code ?? event.reason)) [ALL, ...chat.last].forEach((before) => count(chat, before, END));
        push(chat, 'closed', event, { reason: event.reason, summary: event.summary });
    },
    reopened(run, chat, event) {
        chat.closed = null;
        if (event.message) speech(chat, event, event.message);
        else note(chat, event, event.sent ? 'continues: the last message has no answer yet' : 'continues with more');
    },
    rolled_back(_, chat, event) {
        for (const item of chat.items.filter((item) => item.seq >= event.since)) Object.assign(item, { undone: true, rev: item.rev + 1 });
        note(chat, event, 'rolled back: agents have forgotten this');
    },
    joined(run, chat, event) {
        known(run, event.who);
        if (event.sees === 'new') chat.hidden.push({ of: event.who, before: event.seq });
        note(chat, event, `${event.who} joined`);
    },
    compacted: (_, chat, event) => void step(chat, event.who, { kind: 'note', text: `history compacted: ${event.replaced} messages became a summary` }, event),
    background_started(_, chat, event) {
        const { who, id, number, task } = event;
        const at = `${chat.at}/${who}.b${number}`;
        const started = step(chat, who, { kind: 'note', text: `background task ${id} is running: ${task}` }, event);
        chat.tasks.set(at, { step: started, item: chat.open.get(who), id, task });
        step(chat, who, { kind: 'chat', at }, event);
    },
    background_ended(_, chat, event) {
        const { who, id, number, status, parts, awaited } = event;
        const known = chat.tasks.get(`${chat.at}/${who}.b${number}`);
        if (known) {
            known.step.text = `background task ${id} ${status}: ${known.task}`;
            if (known.item) known.item.rev += 1;
        }
        const text = awaited ? `${id} ${status}` : `${id} ${status}: ${who} has its result`;
        const why = status === 'completed' ? '' : `: ${textOf(parts)}`;
        if (awaited) step(chat, who, { kind: 'note', text: text + why, tone: status === 'failed' ? 'bad' : '' }, event);
        else note(chat, event, text + why, status === 'failed' ? 'bad' : '');
    },
    paused(run, chat, event) {
        run.isPaused = true;
        note(chat, event, 'paused');
    },
    resumed(run, chat, event) {
        run.isPaused = false;
        note(chat, event, 'resumed');
    },
    cancelled: (_, chat, event) => note(chat, event, event.now ? 'stopped at once' : 'stopped after a step'),
    refused: (_, chat, event) => note(chat, event, `refused: ${event.why}`, 'bad'),
    title_changed(run, chat, event) {
        run.title = event.title;
        note(chat, event, event.title ? `the title is now: ${event.title}` : 'the title was removed');
    },
    team_changed: (_, chat, event) => note(chat, event, `the team has changed: ${event.changes.join('; ')}`),
    limits_changed: (_, chat, event) => note(chat, event, 'limits were changed'),
    own_limits_raised: (_, chat, event) => note(chat, event, `limits of ${event.of.agent ?? event.of.chat.name} were raised`),
    next_speaker: (_, chat, event) => note(chat, event, `${event.who} was chosen as the next speaker`),
    cleared(_, chat, event) {
        const said = chat.items.filter((item) => item.state === 'said');
        const kept = said[said.length - event.keep];
        chat.hidden.push({ of: event.of, before: event.keep && kept ? kept.said : event.seq });
        note(chat, event, event.of ? `earlier messages are hidden from ${event.of}` : 'earlier messages are hidden');
    },
};

/** What is logged for programs, in a word. @param {Run} _ @param {Chat} chat @param {any} event */
function other(_, chat, event) {
    const text = event.type.replaceAll('_', ' ') + (event.why ? `: ${typeof event.why === 'string' ? event.why : ''}` : '');
    if (event.who) step(chat, event.who, { kind: 'note', text }, event);
    else note(chat, event, text);
}
