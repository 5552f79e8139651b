// What a person writes: answers to questions, and messages.
import { html, useSignal } from './lib.js';
import { attempt, may, post, serverTime } from './api.js';
import { Avatar, Name } from './names.js';
import { useDraft } from './drafts.js';
import { useFocus } from './focus.js';
import { clipped, left as timeLeft } from './format.js';
import { QuestionText, isChoice, isTurn, labelOf, offered, writable, written } from './question.js';
import { useTicks } from './ticks.js';

/** Sends with Control and Enter. @param {() => void} action */
const onKey = (action) => (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) action();
};

/** @param {any} open */
function asks(open) {
    if (open.call) return `asks for approval of ${open.call.tool}`;
    if (open.limit) return 'asks for a higher limit';
    return isTurn(open) ? 'has the turn' : 'asks';
}

/** A time of day, with its day if that is another one. @param {number} ms since 1970 */
function timeOf(ms) {
    const time = new Date(ms);
    return time.toDateString() === new Date().toDateString() ? time.toLocaleTimeString() : time.toLocaleString();
}

/**
 * Which answer counts when there is none in time, and how long that is. Screen readers get the time once, and not each second.
 * @param {{open: any}} props
 */
function TimeLimit({ open }) {
    const { until_ms: until, default: otherwise } = open;
    useTicks(true);
    const now = serverTime();
    const answer = html`the answer is ${otherwise.text ? html`<code>${otherwise.text}</code>` : 'empty'}`;
    const isUp = now >= until;
    return html`<p class="time-limit" id="limit-${open.question}">${isUp ? html`The time is up: ${answer}.`
        : html`<span aria-hidden="true">In ${timeLeft(until - now)} ${answer} by default.</span><span class="sr-only">At ${timeOf(until)} ${answer} by default.</span>`}</p>`;
}

/** @param {{id: string, run: any, open: any}} props */
function Question({ id, run, open }) {
    const draft = useDraft(`answer:${id}:${open.question}`);
    const isSent = useSignal(false);
    const answer = (/** @type {string} */ text) => attempt(async () => {
        isSent.value = true;
        try {
            await post(`/conversations/${encodeURIComponent(id)}/answers`, { question: open.question, text });
            draft.set('');
        } catch (error) {
            isSent.value = false;
            throw error;
        }
    });
    const own = written(open, draft.text);
    // An empty answer that does something of its own, such as to end the conversation, is a button with that name.
    const isBlank = !draft.text.trim() && open.choices.some((/** @type {any} */ choice) => !choice.answer);
    const submit = () => own && !isBlank && answer(own.answer);
    // What rejects may have a reason.
    const isReason = Boolean(open.call) && draft.text.trim() !== '' && (!own || open.kind === 'code_approval') && own?.label !== 'Answer';
    const choose = (/** @type {any} */ choice) => () => answer(choice.effect === 'reject' && isReason ? `${choice.answer}, ${draft.text.trim()}` : choice.answer);
    const label = (/** @type {any} */ choice) => (choice.effect === 'reject' && isReason ? 'Reject, and say why' : labelOf(open, choice));
    const isLimited = open.until_ms !== null && open.default;
    const [text, about, canAnswer] = [`question-${open.question}`, writable(open), may('answer')];
    // Then what was written comes first: the choices are without it. Next to code, a text can be other code or a reason, which only a person knows.
    const isMain = Boolean(own) && open.kind !== 'code_approval';
    const send = about && own && html`<button class=${isMain ? 'main' : ''} disabled=${isSent.value || isBlank}>${isSent.value ? 'Sent' : own.label}</button>`;
    return html`<form class="question" aria-label="Question of ${open.who}" onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), submit())}>
        <div class="question-head"><${Avatar} names=${run.names} name=${open.who} /><${Name} names=${run.names} name=${open.who} />
            <span>${asks(open)}</span></div>
        <div class="question-text" id=${text} tabindex="0"><${QuestionText} text=${open.text} /></div>
        ${isLimited && html`<${TimeLimit} open=${open} />`}
        ${canAnswer && about && html`<textarea class="answer" rows="2" dir="auto" aria-labelledby=${text} aria-describedby=${isLimited ? `limit-${open.question}` : undefined} placeholder=${about} value=${draft.text}
            disabled=${isSent.value} onInput=${(/** @type {any} */ event) => draft.set(event.target.value)} onKeyDown=${onKey(() => isMain && submit())}></textarea>`}
        ${canAnswer ? html`<div class="actions">
            ${isMain && send}
            ${offered(open).map((/** @type {any} */ choice, /** @type {number} */ at) => html`<button type="button" class=${isChoice(open) && !at && !own ? 'main' : ''} disabled=${isSent.value}
                onClick=${choose(choice)}>${label(choice)}</button>`)}
            ${!isMain && send}
        </div>` : html`<p class="note">This session cannot answer.</p>`}
    </form>`;
}

/** @param {{id: string, run: any, asked: any[]}} props */
export function Questions({ id, run, asked }) {
    // With a question, the button is gone with which it was answered.
    useFocus(asked.map(({ question }) => question).join());
    return html`<div class="questions" aria-live="assertive">
        ${asked.map((open) => html`<${Question} key=${open.question} id=${id} run=${run} open=${open} />`)}
    </div>`;
}

/** @param {{id: string, run: any, version: number, state: string, wake: () => void}} props */
export function Say({ id, run, state, wake }) {
    const draft = useDraft(`say:${id}`);
    const isSending = useSignal(false);
    // What was sent and not said yet, each after the events that there were; the server may take until the present turns end.
    const waiting = useSignal(/** @type {{text: string, after: number}[]} */ ([]));
    const left = waiting.value.filter(({ text, after }) => !run.sent.some((/** @type {any} */ sent) => sent.seq >= after && sent.text === text));
    const isRunning = state === 'running';
    const forget = (/** @type {any} */ sent) => {
        waiting.value = waiting.value.filter((other) => other !== sent);
    };
    const say = () => draft.text.trim() && !isSending.value && attempt(async () => {
        const { text } = draft;
        const sent = { text, after: run.seq };
        waiting.value = [...left, sent];
        isSending.value = true;
        // At once: a server may take seconds, in which the person writes on.
        draft.set('');
        try {
            const { seq = null } = await post(`/conversations/${encodeURIComponent(id)}/messages`, { text });
            // Else it waits in the inbox, and its event comes later.
            if (seq !== null) forget(sent);
            wake();
        } catch (error) {
            forget(sent);
            draft.set(draft.text ? `${text}\n${draft.text}` : text);
            throw error;
        } finally {
            isSending.value = false;
        }
    });
    const about = state === 'closed' ? 'Continue the conversation …' : 'Say something to everyone …';
    const submit = (/** @type {any} */ event) => {
        event.preventDefault();
        say();
        // The button cannot keep it.
        event.currentTarget.querySelector('textarea').focus();
    };
    return html`<div role="status">${isRunning && left.map(({ text, after }) => html`<p class="note pending" key=${after}>Will be said when the present turn ends: “${clipped(text, 120)}”</p>`)}</div>
        <form class="say" onSubmit=${submit}>
        <textarea id="say" rows="1" dir="auto" aria-label=${about} placeholder=${about} value=${draft.text}
            onInput=${(/** @type {any} */ event) => draft.set(event.target.value)} onKeyDown=${onKey(say)}></textarea>
        <button class="main" title="Control and Enter" disabled=${isSending.value || !draft.text.trim()}>Send</button>
    </form>`;
}
