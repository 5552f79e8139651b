// The events of a conversation, folded into what is shown: chats, and in each the items in order.
// A pure function of events: nothing here knows the page or the network.
import { discarded, reasonText, uncertain } from './format.js';
import { chatAt, end, isPublic, known, nest, note, push, speech, step, textOf, turn } from './chats.js';
import { finish, follow } from './follows.js';

/** @typedef {import('./chats.js').Run} Run */
/** @typedef {import('./chats.js').Chat} Chat */

/**
 * Adds the next event.
 * @param {Run} run @param {any} event
 */
export function add(run, event) {
    if (event.seq < run.seq) return;
    run.seq = event.seq + 1;
    run.last = event.time_ms;
    if (event.inbox !== undefined) noteSent(run, event);
    const chat = chatAt(run, event.chat ?? '');
    (HANDLERS[event.type] ?? other)(run, chat, event);
}

/** Notes what someone has sent, which is carried out now or refused. @param {Run} run @param {any} event */
function noteSent(run, event) {
    const { seq, type, parts, message, instruction } = event;
    run.outside = seq + 1;
    const text = textOf(type === 'sent' ? parts : message?.parts ?? instruction?.send?.parts);
    if (text) run.sent.push({ seq, text });
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
        if (event.requested_model) {
            const text = event.because ? `${event.because}; ${event.model} replied` : `${event.model} replied instead of ${event.requested_model}`;
            step(chat, who, { kind: 'note', text }, event);
        }
        if (started) Object.assign(started, { live: null, isTorn: false, draft: event.finish === 'malformed' ? '' : textOf(parts) });
    },
    charged(run, chat, event) {
        const { who, why, calls = 0, tokens, output = 0, cost } = event;
        // These say that a call is made, which counts by its reply.
        if (why === 'repeated' || why === 'reserved') return;
        if (why === 'discarded') {
            run.usage.calls += calls;
            run.usage.input += (tokens ?? 0) - output;
            run.usage.output += output;
            if (cost === undefined) run.usage.unpriced += calls;
            else run.usage.cost += cost;
            if (calls) step(chat, who, { kind: 'note', text: discarded(event) }, event);
            return;
        }
        const sum = run.usage.uncertain;
        sum.calls += calls;
        sum.cost += cost ?? 0;
        if (cost === undefined && (tokens !== undefined || why !== 'failed')) sum.unpriced += calls;
        if (calls) step(chat, who, { kind: 'note', text: uncertain({ calls, cost, unpriced: 0 }) }, event);
    },
    tool_called(_, chat, event) {
        step(chat, event.who, { kind: 'call', call: event.call, result: null }, event);
    },
    tool_returned(_, chat, event) {
        const open = turn(chat, event.who);
        const all = [...chat.items.slice(-50).flatMap((item) => item.steps ?? []), ...(open?.steps ?? [])];
        const call = all.findLast((/** @type {any} */ step) => step.kind === 'call' && step.call.id === event.id && !step.result);
        if (call) Object.assign(call, { result: event.result, took: event.time_ms - call.time });
    },
    prompted(_, chat, event) {
        step(chat, event.who, { kind: 'note', text: event.text, tone: 'prompt' }, event);
    },
    message(run, chat, event) {
        known(run, event.from);
        const open = chat.open.get(event.from);
        // What was said until a reply was cut off is said once: by the message that keeps it.
        if (open) open.steps = open.steps.filter((/** @type {any} */ step) => step.kind !== 'partial' || step.text !== event.parts[0]?.text);
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
        const { who, text, call, limit, choices = [] } = event;
        step(chat, who, { kind: 'question', text, call, limit, choices, answer: null }, event);
    },
    input_provided(_, chat, event) {
        const steps = chat.items.flatMap((item) => (item.steps ?? [item.step]).map((/** @type {any} */ step) => ({ item, step })));
        const asked = steps.findLast(({ step }) => step?.kind === 'question' && step.who === event.to && step.answer === null);
        if (!asked) return;
        Object.assign(asked.step, { answer: event.text, by: event.by });
        asked.item.rev += 1;
    },
    reply_interrupted(_, chat, event) {
        step(chat, event.who, { kind: 'partial', text: event.text }, event);
        const open = chat.open.get(event.who);
        if (open) Object.assign(open, { live: null, draft: '', isTorn: false });
    },
    closed(_, chat, event) {
        chat.closed = event;
        finish(chat, event.reason);
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
    cancelled: (_, chat, event) => note(chat, event, event.now ? 'stopped at once' : 'stopped: turns that have begun end'),
    refused: (_, chat, event) => note(chat, event, `refused: ${event.why}`, 'bad'),
    title_changed(run, chat, event) {
        run.title = event.title;
        note(chat, event, event.title ? `the title is now: ${event.title}` : 'the title was removed');
    },
    team_changed: (_, chat, event) => note(chat, event, `the team has changed: ${event.changes.join('; ')}`),
    limits_changed: (_, chat, event) => note(chat, event, event.changes?.length ? raised('limits', event) : 'limits were changed'),
    own_limits_raised: (_, chat, event) => note(chat, event, raised(`limits of ${event.of.agent ?? event.of.chat.name}`, event)),
    next_speaker: (_, chat, event) => note(chat, event, `${event.who} was chosen as the next speaker`),
    cleared(_, chat, event) {
        const said = chat.items.filter((item) => item.state === 'said');
        const kept = said[said.length - event.keep];
        chat.hidden.push({ of: event.of, before: event.keep && kept ? kept.said : event.seq });
        note(chat, event, event.of ? `earlier messages are hidden from ${event.of}` : 'earlier messages are hidden');
    },
};

/** That `what` was raised, from what to what, and by whom. @param {string} what @param {any} event */
function raised(what, event) {
    const { by, changes = [] } = event;
    return `${what} were raised${by ? ` by ${by}` : ''}${changes.length ? `: ${changes.join(', ')}` : ''}`;
}

/** What is logged for programs, in a word. @param {Run} _ @param {Chat} chat @param {any} event */
function other(_, chat, event) {
    const text = event.type.replaceAll('_', ' ') + (event.why ? `: ${typeof event.why === 'string' ? event.why : ''}` : '');
    if (event.who) step(chat, event.who, { kind: 'note', text }, event);
    else note(chat, event, text);
}
