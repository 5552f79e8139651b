// The list of runs: states, costs, search and filters. It follows what happens while it is visible.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { attempt, get, may, post, refresh, serverTime } from './api.js';
import { titled, useAttention } from './attention.js';
import { address, go, refine, route } from './router.js';
import { followList } from './stream.js';
import { useLoad } from './load.js';
import { usePlace } from './place.js';
import { quoted } from './parts.js';
import { inShort } from './question.js';
import { ago, clipped, counted, mostCost } from './format.js';

/** How soon the list is read again after a change of a run that it does not show, in milliseconds. */
const SOON = 500;

/** How often it is read in any case, in milliseconds: the stream has changes of the newest runs alone, a hidden tab has no stream, and times pass. */
const EVERY = 15_000;

/** How soon it is read again where that has failed, in milliseconds. */
const AGAIN = 2000;

/** How long a person who searches may go on writing before the list is read, in milliseconds. */
const PAUSE = 300;

const STATES = ['running', 'waiting', 'halted', 'closed'];

/** Whether it has begun, and begins no further turn until it is resumed. @param {any} run */
const isPaused = (run) => run.paused && ['running', 'halted'].includes(run.state);

/** The state in a word. @param {any} run */
function stateWord(run) {
    const present = run.state === 'halted' ? (run.halted ?? run.state) : run.state;
    const word = run.ended?.word ?? (isPaused(run) ? 'paused' : present);
    const shown = { no_output: 'no output', queued: 'waiting for a worker', new: 'not begun' }[/** @type {string} */ (word)] ?? word;
    // What continues others does not continue it.
    return run.paused && ['failed', 'waiting'].includes(word) ? `paused, ${shown}` : shown;
}

/** @param {{run: any}} props */
export function State({ run }) {
    return html`<span class="state ${isPaused(run) ? 'halted' : run.state} ${run.ended?.word ?? ''}" title=${run.ended?.detail ?? ''}>${stateWord(run)}</span>`;
}

/** What is waited for: the first question, and how many more there are. @param {any[]} asked */
function waits([first, ...others]) {
    const more = others.length ? ` (and ${counted(others.length, 'question')} more)` : '';
    return quoted(clipped(inShort(first), 140) + more);
}

/** @param {{run: any, now: number}} props */
function Row({ run, now }) {
    return html`<li class="run-row">
        <a href=${address(['runs', run.id])}>
            <span class="run-title">${run.title || run.team}</span>
            <${State} run=${run} />
        </a>
        ${run.task && html`<span class="run-task">${quoted(clipped(run.task, 400))}</span>`}
        <span class="run-facts">
            ${run.title && html`<span>${run.team}</span>`}<span class="mono" title=${run.id}>${run.id}</span>
            ${run.parent && html`<span>${run.parent.edited ? 'edited fork' : 'fork'} of <a href=${address(['runs', run.parent.id])}>${run.parent.id}</a></span>`}
            <span>${counted(run.turns, 'turn')}</span><span>${mostCost(run.usage)}</span>
            <time datetime=${new Date(run.updated_ms).toISOString()}>${ago(run.updated_ms, now)}</time>
        </span>
        ${run.questions?.length > 0 && html`<a class="waits" href=${address(['runs', run.id])}>${waits(run.questions)}</a>`}
    </li>`;
}

/** The button that imports the file of a run. */
function Import() {
    const field = useRef(/** @type {any} */ (null));
    const read = () => attempt(async () => {
        const file = field.current.files[0];
        if (!file) return;
        const log = await file.text();
        field.current.value = '';
        go(['runs', (await post('/imports', { log })).id]);
    });
    return html`<input ref=${field} type="file" class="file" accept=".jsonl" aria-label="File of a run" tabindex="-1" onChange=${read} />
        <button type="button" title="Read the file of a run that was exported" onClick=${() => field.current.click()}>Import</button>`;
}

/** @param {{teams: {id: string}[]}} props */
function Filters({ teams }) {
    const { query } = route.value;
    const set = (/** @type {string} */ name) => (/** @type {any} */ event) => refine({ [name]: event.target.value });
    const choice = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string[]} */ values) => html`<label>
        ${label} <select value=${query.get(name) ?? ''} onChange=${set(name)}>
            <option value="">all</option>${values.map((value) => html`<option value=${value}>${value}</option>`)}
        </select></label>`;
    return html`<search class="filters">
        <label>Search <input type="search" id="search" dir="auto" value=${query.get('q') ?? ''} placeholder="text in task or title" onInput=${set('q')} /></label>
        ${choice('state', 'State', STATES)}${choice('team', 'Team', teams.map((/** @type {any} */ team) => team.id))}
        <span class="spring"></span>
        ${may('run') && html`<${Import} /><a class="button main" href=${address(['new'], { team: query.get('team') })}>New run</a>`}
    </search>`;
}

/** The path of a page of the list. @param {URLSearchParams} query @param {string} [cursor] */
function pathOf(query, cursor) {
    const wanted = new URLSearchParams({ limit: '50' });
    for (const name of ['q', 'state', 'team']) if (query.get(name)) wanted.set(name, query.get(name) ?? '');
    if (cursor) wanted.set('cursor', cursor);
    return `/conversations?${wanted}`;
}

/** The rows that a newer first page has pushed off the first page. @param {any[]} before @param {any[]} now */
function pushed(before, now) {
    const last = now.at(-1);
    const isOlder = (/** @type {any} */ row) => row.created_ms < last.created_ms || (row.created_ms === last.created_ms && row.id !== last.id);
    return last ? before.filter((row) => isOlder(row) && !now.some((other) => other.id === row.id)) : [];
}

/** The rows of the list, which follow what happens: the first page, and what was read beyond. @param {URLSearchParams} query */
function useRows(query) {
    const rows = useSignal(/** @type {any[] | null} */ (null));
    const more = useSignal(/** @type {{rows: any[], cursor: string | null}} */ ({ rows: [], cursor: null }));
    const path = pathOf(query);
    const shown = useSignal('');
    const list = useRef({ query, path, later: (/** @type {number} */ _) => {} }).current;
    Object.assign(list, { query, path });
    useEffect(() => {
        let isOver = false;
        let timer = 0;
        let at = Infinity;
        const later = (/** @type {number} */ ms) => {
            if (Date.now() + ms >= at) return;
            clearTimeout(timer);
            at = Date.now() + ms;
            timer = setTimeout(read, ms);
        };
        const read = async () => {
            at = Infinity;
            const { path } = list;
            const page = await refresh(() => get(path));
            // Another list is wanted since: it is read soon.
            if (isOver || path !== list.path) return;
            if (page) {
                const beyond = more.value.rows;
                more.value = beyond.length ? { ...more.value, rows: [...pushed(rows.value ?? [], page.conversations), ...beyond] }
                    : { rows: [], cursor: page.next_cursor };
                rows.value = page.conversations;
                shown.value = path;
            }
            later(page ? EVERY : AGAIN);
        };
        const change = (/** @type {string} */ id, /** @type {(rows: any[]) => any[]} */ how) => {
            if (rows.value?.some((row) => row.id === id)) rows.value = how(rows.value);
            else if (!more.value.rows.some((row) => row.id === id)) return false;
            else more.value = { ...more.value, rows: how(more.value.rows) };
            return true;
        };
        const end = followList({
            opened: () => later(0),
            changed(run) {
                const { query } = list;
                const isWanted = ['state', 'team'].every((name) => !query.get(name) || query.get(name) === run[name]);
                const isShown = change(run.id, (all) => all.flatMap((row) => (row.id !== run.id ? [row] : isWanted ? [run] : [])));
                // Whether it belongs here is known by the server, which knows its task.
                if (isWanted && !isShown) later(SOON);
            },
            removed: (id) => change(id, (all) => all.filter((row) => row.id !== id)),
        });
        list.later = later;
        return () => {
            isOver = true;
            clearTimeout(timer);
            end();
        };
    }, []);
    useEffect(() => {
        more.value = { rows: [], cursor: null };
        // Not at each letter of a search.
        list.later(rows.value ? PAUSE : 0);
    }, [path]);
    return { rows, more, isOther: shown.value !== path };
}

export function Runs() {
    const { rows, more, isOther } = useRows(route.value.query);
    const teams = useSignal(/** @type {any[]} */ ([]));
    useLoad(() => get('/teams'), (found) => (teams.value = found.teams), []);
    const further = () => attempt(async () => {
        const path = pathOf(route.value.query, more.value.cursor ?? '');
        const page = await get(path);
        // Another list is shown since.
        if (path !== pathOf(route.value.query, more.value.cursor ?? '')) return;
        more.value = { rows: [...more.value.rows, ...page.conversations], cursor: page.next_cursor };
    });
    const first = rows.value ?? [];
    const shown = [...first, ...more.value.rows.filter((row) => !first.some((other) => other.id === row.id))];
    const isFiltered = ['q', 'state', 'team'].some((name) => route.value.query.get(name));
    usePlace(rows.value !== null);
    titled('Runs');
    useAttention(rows.value && !isOther ? shown : null);
    return html`<main id="main" tabindex="-1">
        <h1>Runs</h1>
        <${Filters} teams=${teams.value} />
        ${rows.value === null ? html`<p aria-busy="true">Loading …</p>` : null}
        ${rows.value && !isOther && shown.length === 0 && html`<p class="empty">${isFiltered ? html`No run matches. <a href=${address([])}>Show all runs</a>` : html`There is no run yet. ${may('run') && html`<a href=${address(['new'])}>Begin one</a>`}`}</p>`}
        <ul class="runs" aria-busy=${isOther}>${shown.map((run) => html`<${Row} key=${run.id} run=${run} now=${serverTime()} />`)}</ul>
        ${more.value.cursor && html`<button type="button" onClick=${further}>Older runs</button>`}
    </main>`;
}
