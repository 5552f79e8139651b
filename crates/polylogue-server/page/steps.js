// The steps of a turn: tool calls, thoughts, questions, nested chats, notes.
import { html, useState } from './lib.js';
import { Items } from './items.js';
import { Name } from './names.js';
import { Parts, Results, json, quoted } from './parts.js';
import { Verbatim } from './verbatim.js';
import { clipped, counted, span } from './format.js';
import { QuestionText, answerText } from './question.js';

/** Arguments in one line. Texts are there without escapes: the exact ones are below. @param {any} args */
function brief(args) {
    const shown = (/** @type {any} */ value) => (typeof value === 'string' ? `"${value.trim().replace(/\s+/g, ' ')}"` : JSON.stringify(value));
    const text = typeof args === 'string' ? args : Object.entries(args ?? {}).map(([name, value]) => `${name}: ${shown(value)}`).join(', ');
    return clipped(text, 90);
}

/** @param {{step: any, run: any}} props */
function Call({ step, run }) {
    const { call, result, took } = step;
    const status = result ? (result.status === 'done' ? '' : result.status) : html`<span class="now">running …</span>`;
    return html`<details class="fold call ${result?.status ?? 'running'}">
        <summary><code>${call.tool}</code> <span class="brief">${brief(call.args)}</span> ${took > 99 && html`<span class="took">${span(took)}</span>`} <span class="status">${status}</span></summary>
        <p class="part-name">Arguments</p><${Verbatim} text=${json(call.args)} />
        ${result && html`<p class="part-name">Result</p><${Results} result=${result} run=${run} />`}
    </details>`;
}

/** @param {{step: any, run: any}} props */
function Question({ step, run }) {
    const by = step.by?.person ?? (step.by === 'timeout' ? 'no one in time' : '');
    // The question itself is in the box below.
    if (step.answer === null) return html`<details class="fold"><summary>waits for an answer</summary><${QuestionText} text=${step.text} /></details>`;
    return html`<div class="asked"><${QuestionText} text=${step.text} />
        <p class="answer-given"><strong>${by ? `Answer of ${by}` : 'Answer'}:</strong> ${answerText(step, step.answer)}</p></div>`;
}

/** A chat within a turn, which opens in place. @param {{id: string, step: any, run: any}} props */
function Nested({ id, step, run }) {
    const chat = run.chats.get(step.at);
    const [isOpen, setOpen] = useState(false);
    if (!chat) return null;
    const names = chat.participants.map((/** @type {string} */ name, /** @type {number} */ at) => html`${at > 0 && ', '}<${Name} names=${run.names} name=${name} />`);
    const said = chat.items.filter((/** @type {any} */ item) => item.state === 'said' && !item.opening).length;
    return html`<details class="fold nested" open=${isOpen} onToggle=${(/** @type {any} */ event) => event.target === event.currentTarget && setOpen(event.target.open)}>
        <summary>Chat of ${names} · ${counted(said, 'message')}${!chat.closed && html`<span class="now"> · running</span>`}</summary>
        ${isOpen && html`<${Items} id=${id} run=${run} chat=${chat} version=${run.seq} />`}
    </details>`;
}

/** What was said until a reply was cut off. @param {{step: any, run: any, isLast: boolean}} props */
function Partial({ step, run, isLast }) {
    return html`<details class="fold" open=${isLast}><summary>The reply was cut off</summary><${Parts} parts=${[{ text: step.text }]} run=${run} /></details>`;
}

/** @param {{id: string, run: any, step: any, isLast?: boolean}} props `isLast`: the turn has no event after it */
export function Step({ id, run, step, isLast = false }) {
    switch (step?.kind) {
        case 'call': return html`<${Call} step=${step} run=${run} />`;
        case 'thought': return html`<details class="fold"><summary>Thinking</summary><${Verbatim} text=${step.text} /></details>`;
        case 'question': return html`<${Question} step=${step} run=${run} />`;
        case 'partial': return html`<${Partial} step=${step} run=${run} isLast=${isLast} />`;
        case 'chat': return html`<${Nested} id=${id} step=${step} run=${run} />`;
        case 'error': return html`<p class="error"><strong>Failed:</strong> ${quoted(step.text)}${step.hint && html`<br />hint: ${quoted(step.hint)}`}</p>`;
        case 'note': return step.tone === 'prompt'
            ? html`<details class="fold"><summary>${step.who} prompts itself</summary><${Verbatim} text=${step.text} /></details>`
            : html`<p class="note ${step.tone ?? ''}">${step.text}</p>`;
        default: return null;
    }
}
