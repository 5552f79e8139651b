// One run: what is said, live, and what a person can do with it.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { attempt, get, may, post, refresh, send, serverTime } from './api.js';
import { titled, useAttention } from './attention.js';
import { address, go, route } from './router.js';
import { follow } from './stream.js';
import { useLoad } from './load.js';
import { Conversation } from './conversation.js';
import { Questions, Say } from './boxes.js';
import { Avatar, Name } from './names.js';
import { ending, spending } from './format.js';
import { quoted } from './parts.js';
import { allowance } from './question.js';
import { State } from './runs.js';
import { useTicks } from './ticks.js';
import { RequestDialog } from './calls.js';
import { Files } from './files.js';
import { focusOn, useFocus } from './focus.js';
import { Graph } from './graph.js';
import { Timeline } from './timeline.js';
import { viewAs, viewer, viewerIn, viewersIn } from './viewpoint.js';

/** How often it is asked which process runs a conversation. */
const NODE_MS = 10_000;

/** How long a run may take to continue with the default answer to a question, in milliseconds. */
const CONTINUES_MS = 3000;

/** @param {{id: string}} props */
function useRun({ id }) {
    const about = useSignal(/** @type {any} */ (null));
    const live = useSignal(/** @type {ReturnType<typeof follow> | null} */ (null));
    const read = () => get(`/conversations/${encodeURIComponent(id)}`);
    const ask = () => refresh(async () => (about.value = await read()));
    useEffect(() => {
        const followed = follow(id);
        live.value = followed;
        return followed.stop;
    }, [id]);
    const readOrLeave = () => read().catch((error) => {
        if (error.status !== 404) throw error;
        live.value?.leave();
    });
    useLoad(readOrLeave, (found) => (about.value = found), [id]);
    // A conversation may move to another process while it runs, which no event says.
    const runs = (live.value?.state.value ?? about.value)?.state === 'running';
    // The stream may say that it runs before it is known what it is.
    const isKnown = !!about.value;
    // What someone has sent changes what is known of it, such as whether its bound applies.
    const outside = live.value?.run.outside;
    useEffect(() => {
        if (!isKnown) return;
        ask();
        const timer = runs && setInterval(ask, NODE_MS);
        return () => clearInterval(timer || undefined);
    }, [id, runs, isKnown, outside]);
    return { about: about.value, live: live.value };
}

/** Whether the time of a question is up, and the run does not continue by itself: it was stopped while it waited. @param {any} state */
function useOverdue(state) {
    const until = Math.min(...(state.questions ?? []).map((/** @type {any} */ open) => open.until_ms ?? Infinity));
    useTicks(until < Infinity);
    return serverTime() > until + CONTINUES_MS;
}

/** @param {{about: any, state: any, isPaused: boolean, wake: () => void}} props */
function Actions({ about, state, isPaused, wake }) {
    const path = `/conversations/${encodeURIComponent(about.id)}`;
    const act = (/** @type {string} */ what, /** @type {any} */ body) => () => attempt(async () => {
        await post(`${path}/${what}`, body);
        wake();
    });
    const fork = () => attempt(async () => go(['runs', (await post(`${path}/fork`, {})).id]));
    const remove = () => confirm('Remove this run?') && attempt(async () => {
        await send('DELETE', path);
        go([]);
    });
    const more = () => attempt(async () => {
        const { limits, message } = await get(`${path}/continuation`);
        if (!limits) throw new Error(message ? 'No limit of this run ended it: a message continues it.' : 'No limit of this run would continue it.');
        if (!confirm(`Allow ${allowance(limits)}?`)) return;
        await post(`${path}/resume`, { limits });
        wake();
    });
    // The server has one open that was paused while it ran.
    const runs = state.state === 'running' || (state.state === 'halted' && state.in_progress);
    const isOverdue = useOverdue(state);
    const canResume = state.state === 'halted' || isOverdue || (isPaused && state.state !== 'closed');
    useFocus(`${runs} ${canResume} ${state.ended?.word}`);
    const save = html`<a class="button" href=${`/api/v1${path}/export`} download=${`${about.id}.jsonl`} title="Its events with their checksums, to be imported elsewhere">Export</a>`;
    if (about.imported) return html`<div class="actions">
        <a class="button" href=${address(['compare'], { a: about.id })}>Compare</a>${save}
        ${may('edit') && html`<button type="button" onClick=${remove}>Remove</button>`}</div>`;
    const isLimited = ['limit', 'budget'].includes(state.ended?.word);
    return html`<div class="actions">
        ${runs && may('run') && html`<button type="button" onClick=${act('stop', {})} title="Stop after the present step">Stop</button>
            <button type="button" onClick=${act('stop', { when: 'now' })} title="Abort calls in flight">Stop now</button>`}
        ${canResume && may('run') && html`<button type="button" class="main" onClick=${act('resume', {})}>Resume</button>`}
        ${isLimited && may('run') && html`<button type="button" onClick=${more}>Raise the limit</button>`}
        ${may('run') && html`<button type="button" onClick=${fork} title="A new run that begins as this one">Fork</button>`}
        <a class="button" href=${address(['compare'], about.parent ? { a: about.parent.id, b: about.id } : { a: about.id })}>Compare</a>
        ${save}
        ${!runs && may('edit') && html`<button type="button" onClick=${remove}>Remove</button>`}
    </div>`;
}

/** The name of the run, and a field for another one. @param {{about: any, title: string, children?: any}} props */
function Title({ about, title, children }) {
    const draft = useSignal(/** @type {string | null} */ (null));
    const field = useRef(/** @type {any} */ (null));
    const isOpen = draft.value !== null;
    useEffect(() => void (isOpen && field.current?.focus()), [isOpen]);
    useFocus(isOpen, '.rename');
    const close = () => {
        draft.value = null;
    };
    const rename = (/** @type {Event} */ event) => {
        event.preventDefault();
        attempt(async () => {
            await send('PATCH', `/conversations/${encodeURIComponent(about.id)}`, { title: draft.value });
            close();
        });
    };
    if (!isOpen) return html`<h1>${title || about.team}</h1>${children}
        ${may('edit') && html`<button type="button" class="quiet rename" onClick=${() => (draft.value = title)}>Rename</button>`}`;
    return html`<form class="rename-form" onSubmit=${rename}>
        <input ref=${field} name="title" dir="auto" aria-label="Title of the run" maxlength="200" value=${draft.value} placeholder=${about.team}
            onInput=${(/** @type {any} */ event) => (draft.value = event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === 'Escape' && close()} />
        <button class="main">Rename</button><button type="button" onClick=${close}>Cancel</button></form>`;
}

/** @param {{about: any, state: any, run: any, isLive: boolean, wake: () => void}} props */
function Head({ about, state, run, isLive, wake }) {
    return html`<div class="run-head">
        <div class="run-name"><${Title} about=${about} title=${titleOf(about, run)}><${State} run=${{ ...about, ...state, ended: state.ended, paused: run.isPaused }} /><//>
            ${!isLive && state.state !== 'closed' && html`<span class="offline">connecting …</span>`}</div>
        <p class="run-facts">
            ${titleOf(about, run) && html`<span>${about.team}</span>`}<span class="mono">${about.id}</span>
            ${about.parent && html`<span>${about.parent.edited ? 'edited fork' : 'fork'} of <a href=${address(['runs', about.parent.id], { at: Math.max(0, about.parent.seq - 1) })}>${about.parent.id}</a></span>`}
            <span>${spending(run.usage)}</span>
            ${state.state === 'running' && about.node && html`<span class="node">run by ${about.node}</span>`}
        </p>
        ${about.imported && html`<p class="about">Imported from a file: it can be read, and not be continued.</p>`}
        ${about.bound && html`<p class="about bound">Before it began: ${about.bound.text} (prices of ${about.bound.price_date}, team ${about.bound.team_digest.slice(0, 12)}).</p>`}
        ${about.bound_ended && html`<p class="about bound-ended">The maximum computed before the run no longer applies: ${about.bound_ended}.</p>`}
        ${state.ended && html`<p class="ended">${quoted(ending(state.ended))}</p>`}
        <${Actions} about=${about} state=${state} isPaused=${run.isPaused} wake=${wake} />
    </div>`;
}

/** Who takes part, and who has a turn; a click shows what one of them sees. @param {{id: string, run: any}} props */
function Participants({ id, run }) {
    const chat = run.chats.get('');
    const as = viewerIn(run);
    const counts = new Map();
    for (const item of chat.items) if (item.state === 'said' && !item.opening) counts.set(item.who, (counts.get(item.who) ?? 0) + 1);
    const everything = () => {
        // Before the button is gone.
        focusOn('.participant[aria-pressed="true"]');
        viewAs(as);
    };
    const title = (/** @type {string} */ name) => (as === name ? 'Show everything' : `Show what ${name} sees`);
    return html`<aside aria-label="Participants"><h2>Participants</h2><ul class="participants">
        ${chat.participants.map((/** @type {string} */ name) => html`<li key=${name} class=${chat.open.has(name) ? 'speaks' : ''}>
            <button type="button" class="participant" data-view=${name} aria-pressed=${as === name} title=${title(name)} onClick=${() => viewAs(name)}>
            <${Avatar} names=${run.names} name=${name} /><${Name} names=${run.names} name=${name} />
            <span class="count">${chat.open.has(name) ? 'has the turn' : counts.get(name) && html`${counts.get(name)}<span class="sr-only"> messages</span>`}</span></button></li>`)}
    </ul>
    ${as ? html`<div class="viewpoint" role="status"><p>What <strong>${as}</strong> does not receive is dimmed.</p>
        <button type="button" onClick=${everything}>Show everything</button></div>`
        : html`<p class="hint">Click a name for its point of view.</p>`}
    <${Files} id=${id} key=${id} /></aside>`;
}

/** That no participant has the name in the address. `isRead`: all events that there were are known. @param {{run: any, isRead: boolean}} props */
function NoViewer({ run, isRead }) {
    const as = viewer();
    if (!as || !isRead || viewerIn(run)) return null;
    return html`<div class="notice no-viewer" role="alert"><div>No participant of this run has the name “${as}”: everything is shown. Choose a point of view:</div>
        <span class="actions">${viewersIn(run).map((name) => html`<button type="button" key=${name} onClick=${() => viewAs(name)}>${name}</button>`)}
        <button type="button" class="quiet" onClick=${() => viewAs(as)}>Show everything</button></span></div>`;
}

const TABS = [['', 'Conversation'], ['graph', 'Graph'], ['timeline', 'Timeline']];

/** @param {{id: string, tab: string}} props */
function Tabs({ id, tab }) {
    const query = { as: viewer() };
    return html`<nav class="tabs" aria-label="Views of the run">${TABS.map(([name, label]) => html`<a
        href=${address(['runs', id, ...(name ? [name] : [])], query)} aria-current=${name === tab ? 'page' : undefined}>${label}</a>`)}</nav>`;
}

/** The title that a run was given last, or begun with. @param {any} about @param {any} run */
const titleOf = (about, run) => run.title ?? about.title ?? '';

/** @param {{id: string, tab: string, run: any, version: number, state: any, wake: () => void, isImported: boolean}} props */
function Shown({ id, tab, run, version, state, wake, isImported }) {
    // Its messages offer no fork.
    run.isImported = isImported;
    const hasBoxes = !isImported && (tab === '' || state.questions?.length > 0);
    const boxes = hasBoxes && html`<div class="boxes"><${Questions} id=${id} run=${run} asked=${state.questions ?? []} />
        ${tab === '' && may('run') && html`<${Say} id=${id} run=${run} version=${version} state=${state.state} wake=${wake} />`}</div>`;
    if (tab === 'graph') return html`<${Graph} id=${id} run=${run} version=${version} />${boxes}`;
    if (tab === 'timeline') return html`<${Timeline} id=${id} run=${run} version=${version} state=${state.state} />${boxes}`;
    // The participants first, as on narrow screens: keys and screen readers come to what is long last.
    return html`<div class="columns"><${Participants} id=${id} run=${run} version=${version} as=${viewer()} />
        <section class="talk" aria-label="Conversation">
            <${Conversation} id=${id} run=${run} version=${version} />${boxes}</section></div>`;
}

/** @param {{id: string, tab: string}} props */
export function Run({ id, tab }) {
    const { about, live } = useRun({ id });
    const state = live?.state.value ?? about;
    useAttention(about && live && [{ ...about, ...state, title: titleOf(about, live.run) }]);
    if (live?.isGone.value) return html`<main id="main" tabindex="-1"><h1>There is no such run</h1>
        <p>It was removed, or never existed. <a href=${address([])}>All runs</a></p></main>`;
    if (!about || !live) return html`<main id="main" tabindex="-1" aria-busy="true"><h1>${id}</h1><p>Loading …</p></main>`;
    const { run, wake } = live;
    // Read, so that this is drawn again when something happens.
    const version = live.version.value;
    titled(titleOf(about, run) || about.team);
    return html`<main id="main" tabindex="-1" class="run" data-run=${id} data-state=${state.state}>
        <${Head} about=${about} state=${state} run=${run} isLive=${live.isLive.value} wake=${wake} />
        <${Tabs} id=${id} tab=${tab} as=${viewer()} />
        <${NoViewer} run=${run} version=${version} isRead=${run.seq >= about.seq} as=${viewer()} />
        <${Shown} id=${id} tab=${tab} run=${run} version=${version} state=${state} wake=${wake} as=${viewer()} isImported=${about.imported} />
        <${RequestDialog} id=${id} names=${run.names} wanted=${route.value.query.get('request')} />
    </main>`;
}
