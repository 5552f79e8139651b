// What people are asked, in the words of the page: a question is data, and says nothing of buttons or keys.
import { html } from './lib.js';
import { counted, dollars, span } from './format.js';
import { quoted } from './parts.js';

/** How much more `yes` allows, in words. @param {any} more */
export function allowance(more) {
    if (more.turns) return counted(more.turns, 'more turn');
    if (more.calls) return counted(more.calls, 'more model call');
    if (more.tokens) return counted(more.tokens, 'more token');
    if (more.cost) return `${dollars(more.cost)} more`;
    return more.time_ms ? `${span(more.time_ms)} more` : 'as much more';
}

/** What a choice is called, by its effect. @type {Record<string, string>} */
const LABELS = {
    approve: 'Approve', reject: 'Reject', pass: 'Pass', leave: 'Leave the chat', next: 'Next in order',
    no_message: 'Say nothing', automatic_reply: 'Reply automatically',
};

/** The label of a choice. @param {{limit?: any}} question @param {{effect: string, label?: string}} choice */
export function labelOf({ limit }, { effect, label }) {
    if (effect === 'raise') return `Allow ${allowance(limit.more)}`;
    if (effect === 'end') return `End ${label ?? 'the conversation'}`;
    if (effect === 'select') return label ?? '';
    return label ? `${LABELS[effect]}: ${label}` : LABELS[effect] ?? effect;
}

/** The choices that differ. Of those with the same effect, such as to end by `exit` or by an empty reply, one is enough. @param {any} question */
export function offered(question) {
    const labels = question.choices.map((/** @type {any} */ choice) => labelOf(question, choice));
    return question.choices.filter((/** @type {any} */ _, /** @type {number} */ at) => labels.indexOf(labels[at]) === at);
}

/** Whether an answer is one of the choices in the first place, and a text only where it is another one. @param {any} question */
export const isChoice = ({ call, kind }) => Boolean(call) || kind === 'limit';

/** Whether a person has a turn, and is asked nothing else. @param {any} question */
export const isTurn = ({ kind }) => ['turn', 'reply'].includes(kind);

/** Whose turn it is, or who asks what, for lists and notifications. @param {any} question */
export function inShort(question) {
    const { who, text, kind, call } = question;
    if (kind === 'limit') return text;
    if (call) return `${who} asks for approval of ${call.tool}`;
    // What is to run is in the question itself.
    if (!isTurn(question)) return `${who} asks: ${text.split(/\s*^`{3,}/m)[0]}`;
    return `It is the turn of ${who}${text === `${who}, it is your turn.` ? '' : `: ${text}`}`;
}

/** An amount in the unit of a limit. @param {any} more */
function example({ tokens, cost, time_ms: time }) {
    if (cost) return '0.50';
    if (time) return '5 min';
    return tokens ? '5000' : '5';
}

/** @type {Record<string, string>} */
const WRITTEN = {
    text: 'Your answer', turn: 'Your message', reply: 'The reply',
    approval: 'Why it must not run, or a JSON object with other arguments', code_approval: 'Why it must not run, or other code',
};

/** What can be written besides the choices; nothing where these are all there is. @param {any} question */
export const writable = ({ kind, limit }) => (kind === 'limit' ? `Or another amount, such as ${example(limit.more)}` : WRITTEN[kind]);

/** @param {string} text */
function isObject(text) {
    try {
        return /^\s*\{/.test(text) && Boolean(JSON.parse(text));
    } catch {
        return false;
    }
}

/** Code in a fenced block, whose fence is longer than any in it. @param {string} code */
function fenced(code) {
    const runs = code.match(/`+/g) ?? [];
    const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)));
    return /^\s*(```|~~~)/.test(code) ? code : `${fence}\n${code}\n${fence}`;
}

/**
 * What a written text is as an answer, and what the button for it says; `null` where it is none.
 * @param {any} question @param {string} text
 */
export function written({ kind, choices }, text) {
    const word = text.trim().toLowerCase();
    const isWord = choices.some((/** @type {any} */ { answer }) => answer && answer === word);
    if (isWord || ['text', 'turn', 'reply'].includes(kind)) return { answer: text, label: 'Answer' };
    if (!word) return null;
    if (kind === 'limit') return { answer: text, label: 'Allow this much more' };
    if (kind === 'code_approval') return { answer: fenced(text), label: 'Run this instead' };
    return kind === 'approval' && isObject(text) ? { answer: text, label: 'Run with these arguments' } : null;
}

/** An answer that was given, with what it means where that is not said by it. @param {any} question @param {string} answer */
export function answerText(question, answer) {
    const choice = question.choices.find((/** @type {any} */ choice) => choice.answer === answer);
    const isMeaning = choice && (choice.effect === 'select' || !answer);
    if (isMeaning) return answer ? `${answer} (${choice.label})` : `(empty: ${labelOf(question, choice).toLowerCase()})`;
    return answer || '(empty)';
}

/** The text of a question. What is to run is in fenced blocks, and shown exactly. @param {{text: string}} props */
export function QuestionText({ text }) {
    const lines = text.split('\n');
    const shown = [];
    for (let at = 0, from = 0; at <= lines.length; at += 1) {
        const end = /^`{3,}$/.test(lines[at] ?? '') ? lines.indexOf(lines[at], at + 1) : -1;
        if (end < 0 && at < lines.length) continue;
        const before = lines.slice(from, at).join('\n').trim();
        if (before) shown.push(html`<p>${quoted(before)}</p>`);
        if (end < 0) break;
        shown.push(html`<pre>${lines.slice(at + 1, end).join('\n')}</pre>`);
        from = end + 1;
        at = end;
    }
    return html`<div class="question-words">${shown}</div>`;
}
