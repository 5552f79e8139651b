// The cluster: which conversations run where, what waits and why, the workers, and the budgets that they share.
import { html, useEffect, useSignal } from './lib.js';
import { attempt, get, post, refresh } from './api.js';
import { titled } from './attention.js';
import { address } from './router.js';
import { clipped, counted, dollars, short, span } from './format.js';

/** How often it is read while it is visible, in milliseconds. */
const EVERY = 3000;

/** States in the order of the list, with what they mean. */
const STATES = {
    lost: 'its process has died or hangs',
    parked: 'it failed repeatedly or permanently, or is damaged',
    ready: 'it waits for a worker',
    held: 'a process runs it',
    timed: 'it continues later',
};

/** What the figures mean, for those who do not know the words. */
const MEANINGS = {
    ...STATES, takeovers: 'how often a process continued what another one had lost', 'lost events': 'stored, but not in the copy of the database that a failover has led to',
    'longest wait': 'of the conversations that wait for a worker now',
};

/** What a state has of time, process and tries. @param {any} queued */
function standing({ state, overdue_ms: ms, holder, tries }) {
    if (state === 'timed' && ms !== null) return `continues in ${span(Math.abs(ms))}`;
    if (state === 'ready' && ms !== null) return `has waited for ${span(Math.max(0, ms))}`;
    if (state === 'held' || state === 'lost') return `by ${holder ?? 'a process'}`;
    // What fails permanently appends events, so that its tries do not add up.
    return tries < 2 ? `last run by ${holder ?? 'a process'}` : `after ${tries} tries`;
}

/** Has the server of the page continue one. @param {string} id */
const resume = (id) => () => attempt(() => post(`/conversations/${encodeURIComponent(id)}/resume`, {}));

/** @param {{queued: any}} props */
function Queued({ queued }) {
    const { id, state, needs, missing, takeovers, why } = queued;
    const isAbandoned = state === 'lost' && queued.overdue_ms === null;
    return html`<li class="run-row">
        <a href=${address(['runs', id])}><span class="run-title mono">${id}</span>
            <span class="state ${state}" title=${/** @type {Record<string, string>} */ (STATES)[state] ?? ''}>${state}</span></a>
        <span class="run-facts"><span>${standing(queued)}</span>
            ${needs.length > 0 && html`<span>needs ${needs.join(', ')}</span>`}
            ${missing.length > 0 && html`<span class="bad">no worker offers ${missing.join(', ')}</span>`}
            ${isAbandoned && html`<span class="bad">no worker continues it: <code>polylogue resume ${id}</code></span>`}
            ${state === 'parked' && html`<span class="bad">to try again: <code>polylogue resume ${id} --detach</code></span>
                <button type="button" aria-label="Resume ${id}" title="This server runs it" onClick=${resume(id)}>Resume</button>`}
            ${takeovers > 0 && html`<span>${counted(takeovers, 'takeover')}</span>`}</span>
        ${why && html`<span class="waits">${clipped(why, 400)}</span>`}
    </li>`;
}

/** @param {{worker: any}} props */
function Worker({ worker }) {
    return html`<li class="run-row"><span class="run-title">${worker.worker}</span>
        <span class="run-facts"><span>runs ${worker.held} of ${worker.at_once}</span>
            <span>seen ${span(worker.seen_ms)} ago</span><span>version ${worker.version}</span>
            ${worker.offers.length > 0 && html`<span>offers ${worker.offers.join(', ')}</span>`}</span></li>`;
}

/** `3 of 20 calls (2 drawn)`, for what is limited. @param {any} budget */
function used({ limits, used, drawn }) {
    /** @param {string} text @param {number} amount @param {(amount: number) => string} shown */
    const withDrawn = (text, amount, shown) => (amount > 0 ? `${text} (${shown(amount)} drawn)` : text);
    const parts = [limits.cost === null ? dollars(used.cost) : withDrawn(`${dollars(used.cost)} of ${dollars(limits.cost)}`, drawn.cost, dollars)];
    if (limits.tokens !== null) parts.push(withDrawn(`${short(used.tokens)} of ${short(limits.tokens)} tokens`, drawn.tokens, short));
    if (limits.calls !== null) parts.push(withDrawn(`${short(used.calls)} of ${short(limits.calls)} calls`, drawn.calls, short));
    return parts;
}

/** @param {{budget: any}} props */
function Budget({ budget }) {
    return html`<li class="run-row"><span class="run-title">${budget.budget}</span>
        <span class="run-facts">${used(budget).map((part) => html`<span>${part}</span>`)}
            <span>${counted(budget.conversations, 'conversation')}</span>
            <span>${budget.processes === 1 ? '1 process' : `${budget.processes} processes`}</span></span></li>`;
}

/** @param {{limit: any}} props */
function RateLimit({ limit }) {
    const { provider, model, wait_ms: wait, requests, refusals, slots, slots_taken: taken } = limit;
    return html`<li class="run-row"><span class="run-title">${provider}${model && `:${model}`}</span>
        <span class="run-facts">${wait > 0 && html`<span class="bad">the next call waits for ${span(wait)}</span>`}
            ${slots > 0 && html`<span>${taken} of ${counted(slots, 'call')} in flight</span>`}
            ${requests > 0 && html`<span>${counted(requests, 'request')}</span>`}
            ${refusals > 0 && html`<span>asked to wait ${refusals === 1 ? 'once' : `${refusals} times`}</span>`}</span></li>`;
}

/** @param {{title: string, none?: any, children?: any}} props */
function Part({ title, none, children }) {
    return html`<section class="cluster-part" aria-label=${title}><h2>${title}</h2>
        ${children.length > 0 ? html`<ul class="runs">${children}</ul>` : html`<p class="empty">${none}</p>`}</section>`;
}

export function Cluster() {
    const cluster = useSignal(/** @type {any} */ (null));
    const hasFailed = useSignal(false);
    useEffect(() => {
        let isOver = false;
        let timer = 0;
        const read = async () => {
            if (!document.hidden) {
                const found = await refresh(() => get('/cluster'));
                if (isOver) return;
                hasFailed.value = !found;
                if (found) cluster.value = found;
            }
            timer = setTimeout(read, EVERY);
        };
        read();
        return () => {
            isOver = true;
            clearTimeout(timer);
        };
    }, []);
    titled('Cluster');
    const { workers = [], budgets = [], rate_limits: limits = [], conversations = [], counts = {}, takeovers = 0, lost_events: lost = 0 } = cluster.value ?? {};
    const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
    return html`<main id="main" tabindex="-1">
        <h1>Cluster</h1>
        ${cluster.value === null && !hasFailed.value && html`<p aria-busy="true">Loading …</p>`}
        ${cluster.value && html`<dl class="difference">
            ${Object.keys(STATES).map((state) => html`<div><dt>${state}</dt><dd data-state=${state}>${counts[state]}</dd></div>`)}
            <div><dt>takeovers</dt><dd>${takeovers}</dd></div>
            ${lost > 0 && html`<div><dt>lost events</dt><dd>${lost}</dd></div>`}
            <div><dt>longest wait</dt><dd>${span(Math.round(cluster.value.overdue_seconds * 1000))}</dd></div></dl>
        <details class="meanings"><summary>What these words mean</summary>
            <dl>${Object.entries(MEANINGS).map(([word, meaning]) => html`<div><dt>${word}</dt><dd>${meaning}</dd></div>`)}</dl></details>
        <${Part} title="Conversations" none="No conversation runs or waits.">${conversations.map((/** @type {any} */ queued) => html`<${Queued} key=${queued.id} queued=${queued} />`)}<//>
        ${all > conversations.length && html`<p class="about">${conversations.length} of ${all} are shown.</p>`}
        <${Part} title="Workers" none=${html`No worker runs: start one with <code>polylogue worker</code>.`}>${workers.map((/** @type {any} */ worker) => html`<${Worker} key=${worker.worker} worker=${worker} />`)}<//>
        ${budgets.length > 0 && html`<${Part} title="Shared budgets">${budgets.map((/** @type {any} */ budget) => html`<${Budget} key=${budget.budget} budget=${budget} />`)}<//>`}
        ${limits.length > 0 && html`<${Part} title="Limits of model servers">${limits.map((/** @type {any} */ limit) => html`<${RateLimit} key=${`${limit.provider}:${limit.model}`} limit=${limit} />`)}<//>`}`}
    </main>`;
}
