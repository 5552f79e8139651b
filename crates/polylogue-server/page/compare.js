// Two runs side by side: what they have in common, and what each says after that.
import { html, useEffect, useSignal } from './lib.js';
import { failure, get } from './api.js';
import { newRun } from './chats.js';
import { add } from './fold.js';
import { titled } from './attention.js';
import { useLoad } from './load.js';
import { address, refine, route } from './router.js';
import { Avatar, merged, Name } from './names.js';
import { Parts } from './parts.js';
import { State } from './runs.js';
import { clipped, counted, dollars, spending } from './format.js';

/** @param {{name: string, label: string, runs: any[]}} props */
function Choice({ name, label, runs }) {
    const value = route.value.query.get(name) ?? '';
    const isListed = runs.some((run) => run.id === value);
    return html`<label>${label} <select name=${name} value=${value} onChange=${(/** @type {any} */ event) => refine({ [name]: event.target.value })}>
        <option value="">choose a run</option>
        ${value && !isListed && html`<option value=${value}>${value}</option>`}
        ${runs.map((run) => html`<option value=${run.id}>${run.title || run.team} · ${clipped(run.task ?? '', 40)} · ${run.id}</option>`)}
    </select></label>`;
}

/** @param {{run: any, label: string}} props */
function Side({ run, label }) {
    return html`<div class="side"><h2>${label}: <a href=${address(['runs', run.id])}>${run.title || run.team}</a> <${State} run=${run} /></h2>
        <p class="run-facts"><span class="mono">${run.id}</span><span>${counted(run.turns, 'turn')}</span><span>${spending(run.usage)}</span></p></div>`;
}

/** @param {{said: any, names: string[], id: string, mark: string, isFirst: boolean}} props `mark`: whose it is, where sides are one below the other */
function Said({ said, names, id, mark, isFirst }) {
    if (!said) return html`<div class="said-none">${isFirst ? html`<span class="mark">${mark}: </span>nothing more` : ''}</div>`;
    return html`<div class="said"><div class="turn-head"><${Avatar} names=${names} name=${said.who} /><${Name} names=${names} name=${said.who} />
            ${said.private && html`<span class="private">private</span>`}${said.chat && html`<span class="note mono">${said.chat}</span>`}<span class="mark">${mark}</span>
            <a class="jump" href=${address(['runs', id], { at: said.seq })} aria-label="Show it in its run">↗</a></div>
        <${Parts} parts=${[{ text: said.text }]} /></div>`;
}

/** The tasks, where another one was given. @param {{a: any, b: any}} props */
function Tasks({ a, b }) {
    if (a.task === b.task) return null;
    const task = (/** @type {any} */ run, /** @type {string} */ mark) => html`<div class="said"><h3>Task <span class="mark">${mark}</span></h3><${Parts} parts=${[{ text: run.task }]} /></div>`;
    return html`<div class="pair tasks">${task(a, 'A')}${task(b, 'B')}</div>`;
}

const SAME = (/** @type {any} */ pair) => pair.a && pair.b && pair.a.who === pair.b.who && pair.a.text === pair.b.text;

/** How much more the second used; `?` where that is not known. @param {{difference: any, a: any, b: any}} props */
function Difference({ difference, a, b }) {
    const unknown = (/** @type {string} */ what) => Boolean(a.usage[what] || b.usage[what]);
    const signed = (/** @type {number} */ value, /** @type {string} */ text) => (value > 0 ? `+${text}` : value < 0 ? `−${text}` : 'the same');
    const row = (/** @type {string} */ label, /** @type {number} */ value, /** @type {string} */ text, isUnknown = false) => html`<div><dt>${label}</dt><dd>${isUnknown ? '?' : signed(value, text)}</dd></div>`;
    const count = (/** @type {number} */ value) => String(Math.abs(value));
    const { turns = 0, calls = 0, input = 0, output = 0, cost = 0 } = difference;
    return html`<dl class="difference" aria-label="What the second used more than the first">${row('Turns', turns, count(turns))}${row('Model calls', calls, count(calls))}
        ${row('Tokens in', input, count(input), unknown('unmetered'))}${row('Tokens out', output, count(output), unknown('unmetered'))}
        ${row('Cost', cost, dollars(Math.abs(cost)), unknown('unpriced'))}</dl>`;
}

/** The names in a run in the order in which it gives them colors, as far as its first events have them. @param {string} id */
async function namesOf(id) {
    const run = newRun();
    const { events } = await get(`/conversations/${encodeURIComponent(id)}/events`);
    events.forEach((/** @type {any} */ event) => add(run, event));
    return run.names;
}

/** @param {{found: any}} props */
function Result({ found }) {
    const { a, b, common, messages, has_more: more, known } = found;
    const who = (/** @type {'a' | 'b'} */ side) => messages.map((/** @type {any} */ pair) => pair[side]?.who).filter((/** @type {string} */ name) => name && name !== 'user');
    const [ofA, ofB] = [[...known[0], ...who('a')], [...known[1], ...who('b')]].map((names) => [...new Set(names)]);
    const names = merged(ofA, ofB, new Set([...who('a'), ...who('b')]));
    const first = messages.findIndex((/** @type {any} */ pair) => !SAME(pair));
    return html`<div class="sides"><${Side} run=${a} label="A" /><${Side} run=${b} label="B" /></div>
        <p class="about">B compared with A:</p>
        <${Difference} difference=${found.difference} a=${a} b=${b} />
        <p class="common">${common && common === Math.max(a.seq, b.seq) ? `Both have the same ${counted(common, 'event')}.` : html`
            ${common ? `Both begin with the same ${counted(common, 'event')}.` : 'They differ from the beginning.'}
            ${common > 0 && html` <a href=${address(['runs', a.id], { at: common - 1 })}>Show where they part</a>`}
            ${messages.length === 0 && ' There is no message after that.'}`}</p>
        <${Tasks} a=${a} b=${b} />
        <ol class="pairs">${messages.map((/** @type {any} */ pair, /** @type {number} */ at) => html`<li key=${at} class="pair ${SAME(pair) ? 'same' : ''} ${at === first ? 'first' : ''}">
            ${at === first && html`<p class="badge first-difference">first difference</p>`}
            <${Said} said=${pair.a} names=${names} id=${a.id} mark=${SAME(pair) ? 'A and B' : 'A'} isFirst=${!messages[at - 1] || messages[at - 1].a} />
            <${Said} said=${pair.b} names=${names} id=${b.id} mark="B" isFirst=${!messages[at - 1] || messages[at - 1].b} /></li>`)}</ol>
        ${more && html`<p class="empty">Only the first 1000 messages are shown.</p>`}`;
}

export function Compare() {
    const runs = useSignal(/** @type {any[]} */ ([]));
    const found = useSignal(/** @type {any} */ (null));
    const [a, b] = ['a', 'b'].map((name) => route.value.query.get(name) ?? '');
    useLoad(() => get('/conversations?limit=100'), (found) => (runs.value = found.conversations), []);
    useEffect(() => {
        found.value = null;
    }, [a, b]);
    useLoad(async () => {
        if (!a || !b) return null;
        const path = `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
        const [read, ...known] = await Promise.all([get(path), namesOf(a), namesOf(b)]);
        return { ...read, known };
    }, (read) => (found.value = read), [a, b]);
    titled('Compare');
    return html`<main id="main" tabindex="-1" class="compare">
        <h1>Compare</h1>
        <div class="filters"><${Choice} name="a" label="A" runs=${runs.value} /><${Choice} name="b" label="B" runs=${runs.value} /></div>
        ${a && b && !found.value && !failure.value && html`<p aria-busy="true">Loading …</p>`}
        ${found.value && html`<${Result} found=${found.value} />`}
        ${!(a && b) && html`<p class="empty">Choose two runs. A fork and its source are the most telling.</p>`}
    </main>`;
}
