// The calls of a run in time: one row for each agent, bars for its calls, and all calls in a table.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { get, refresh, serverTime } from './api.js';
import { useTicks } from './ticks.js';
import { refine, route } from './router.js';
import { openRequest } from './calls.js';
import { Step } from './parts.js';
import { Avatar, Name } from './names.js';
import { counted, dollars, short, span } from './format.js';

/** How often the timeline of a run that is running is read, in milliseconds. */
const EVERY = 500;

/** How soon it is read again where that has failed, in milliseconds. */
const AGAIN = 2000;

/**
 * The timeline, of which `known` was read before: from the first call on that had not ended.
 * @param {string} id
 * @param {any[]} known
 */
async function read(id, known) {
    const open = known.findIndex((row) => row.end_ms === null);
    const rows = known.slice(0, open < 0 ? known.length : open);
    for (let from = /** @type {number | null} */ (rows.length); from !== null;) {
        const page = await get(`/conversations/${encodeURIComponent(id)}/calls?from=${from}`);
        rows.push(...page.calls);
        from = page.next;
    }
    return rows;
}

/** @param {any} row @param {number} now */
const lasted = (row, now) => (row.end_ms ?? now) - row.start_ms;

/**
 * How long the model took to its first token; `null` where this tab did not receive the reply while it was written: no event says it.
 * @param {any} run @param {any} row
 */
function firstToken(run, row) {
    const first = run.firsts.get(row.seq);
    return first === undefined ? null : Math.round(Math.min(Math.max(0, first - row.start_ms), lasted(row, first)));
}

/** Distances between the marks of the scale, in milliseconds. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5, 216e5, 864e5];

/** How many marks the scale has at most, before it is zoomed. */
const MARKS = 5;

/** The times at the marks of a scale. @param {number} length @param {number} most how many there are, about */
function marks(length, most) {
    const step = STEPS.find((step) => step * most >= length) ?? Math.ceil(length / most);
    return Array.from({ length: Math.floor(length / step) + 1 }, (_, at) => at * step);
}

/** The time at a mark, which is not that of the mark before. @param {number} ms */
function timeAt(ms) {
    const seconds = Math.floor(ms / 1000) % 60;
    return ms >= 60_000 && seconds ? `${span(ms)} ${seconds} s` : span(ms);
}

/** The scale of the lanes. @param {{length: number, zoom: number}} props */
function Scale({ length, zoom }) {
    const place = (/** @type {number} */ ms) => `${((100 * ms) / length).toFixed(3)}%`;
    const anchor = (/** @type {number} */ ms) => (ms === 0 ? 'start' : ms > 0.95 * length ? 'end' : 'middle');
    return html`<div class="lane scale" aria-hidden="true"><div class="lane-name"></div><svg height="18">
        <defs><pattern id="waits" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="stripe" width="3" height="6" /></pattern></defs>
        ${marks(length, MARKS * zoom).map((ms) => html`<text x=${place(ms)} y="13" text-anchor=${anchor(ms)}>${ms ? timeAt(ms) : '0'}</text>`)}</svg></div>`;
}

/** What the table sorts by. @type {Record<string, (row: any, now: number, run: any) => number>} */
const KEYS = {
    start: (row) => row.start_ms,
    latency: lasted,
    first: (row, _, run) => firstToken(run, row) ?? -1,
    input: (row) => row.usage?.input ?? -1,
    output: (row) => row.usage?.output ?? -1,
    cached: (row) => share(row) ?? -1,
    cost: (row) => row.cost ?? -1,
};

/** The share of the input that the provider's cache had. @param {any} row */
function share(row) {
    const { input, cached } = row.usage ?? {};
    return input && cached !== undefined ? cached / input : null;
}

/** @param {any} row */
function title(row) {
    if (row.kind === 'model') return `${row.model}${row.replayed ? ', replayed' : ''}`;
    if (row.kind === 'tool') return `${row.tool}${row.status && row.status !== 'done' ? `: ${row.status}` : ''}`;
    return row.answered ? 'a person answered' : 'waits for a person';
}

/** @param {{row: any, run: any, begin: number, end: number, percent: (ms: number) => string}} props */
function Bar({ row, run, begin, end, percent }) {
    const { kind, status, repeats } = row;
    const first = firstToken(run, row);
    // What has no width is not drawn at all, and no border either: a short call would be missing in a long run.
    const wide = (/** @type {number} */ ms) => (parseFloat(percent(ms)) > 0 ? percent(ms) : '0.001%');
    const bar = (/** @type {string} */ name, /** @type {number} */ ms) => ({ class: name, x: percent(row.start_ms - begin), width: wide(ms), y: 4, height: 18, rx: 2 });
    // An attribute: addresses in a style sheet are those of its own file.
    const fill = kind === 'person' ? 'url(#waits)' : undefined;
    return html`<rect fill=${fill} ...${bar(`bar ${kind} ${status ?? ''} ${repeats != null ? 'repeated' : ''}`, lasted(row, end))} onClick=${() => kind === 'model' && openRequest(row.who, row.call)}>
            <title>${title(row)}, ${span(lasted(row, end))}${first === null ? '' : `, first token after ${span(first)}`}</title></rect>
        ${first !== null && html`<rect ...${bar('until-first', first)} />`}`;
}

/** @param {{rows: any[], run: any, who: string, begin: number, end: number}} props */
function Lane({ rows, run, who, begin, end }) {
    const { names } = run;
    const width = Math.max(1, end - begin);
    const percent = (/** @type {number} */ ms) => `${Math.max(0, (100 * ms) / width).toFixed(3)}%`;
    const own = rows.filter((row) => row.who === who);
    const known = own.filter((row) => row.kind === 'model');
    const cost = known.reduce((sum, row) => sum + (row.cost ?? 0), 0);
    const unknown = known.some((row) => row.cost === null);
    return html`<div class="lane"><div class="lane-name"><${Avatar} names=${names} name=${who} /><${Name} names=${names} name=${who} />
            <span class="count">${counted(own.length, 'call')}${known.length > 0 && ` · ${cost || !unknown ? dollars(cost) : ''}${unknown ? '?' : ''}`}</span></div>
        <svg class="bars" height="26" role="img" aria-label="${counted(own.length, 'call')} of ${who}">
            ${own.map((row) => html`<${Bar} row=${row} run=${run} begin=${begin} end=${end} percent=${percent} />`)}
        </svg></div>`;
}

/** @param {{row: any, run: any, begin: number, now: number, isMetered: boolean}} props */
function Row({ row, run, begin, now, isMetered }) {
    const number = (/** @type {any} */ value) => (row.kind !== 'model' ? '' : value ?? '?');
    const cached = share(row);
    const first = firstToken(run, row);
    return html`<tr class=${row.kind}><td>${span(Math.max(0, row.start_ms - begin))}</td><td><${Name} names=${run.names} name=${row.who} /></td>
        <td>${row.kind === 'model' ? html`<button type="button" class="quiet link" onClick=${() => openRequest(row.who, row.call)}>${title(row)}, call ${row.call}</button>` : title(row)}
            ${row.repeats != null && html` <span class="badge">same as before</span>`}</td>
        <td class="number">${span(lasted(row, now))}${row.end_ms === null ? ' …' : ''}</td><td class="number">${number(first === null ? null : span(first))}</td>
        ${isMetered && html`<td class="number">${number(row.usage?.input)}</td><td class="number">${number(row.usage?.output)}</td>
        <td class="number">${row.kind === 'model' ? (cached === null ? '?' : `${Math.round(cached * 100)} %`) : ''}</td>`}
        <td class="number">${number(row.cost === null ? null : dollars(row.cost))}</td></tr>`;
}

/** @param {{rows: any[], run: any, begin: number, now: number}} props */
function Table({ rows, run, begin, now }) {
    const by = route.value.query.get('sort') ?? 'start';
    const key = KEYS[by] ?? KEYS.start;
    const sorted = [...rows].sort((a, b) => (by === 'start' ? 1 : -1) * (key(a, now, run) - key(b, now, run)));
    const limit = useSignal(200);
    // Of calls whose tokens are all unknown, the head of the run says that.
    const isMetered = rows.some(({ usage }) => usage?.input != null || usage?.output != null);
    const head = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ about = '') => html`<th aria-sort=${by === name ? (name === 'start' ? 'ascending' : 'descending') : undefined}>
        <button type="button" class="quiet" title=${about} onClick=${() => refine({ sort: name })}>${label}${by === name ? (name === 'start' ? ' ↑' : ' ↓') : ''}</button></th>`;
    return html`<div class="wide" tabindex="0" role="region" aria-label="All calls"><table class="calls"><thead><tr>${head('start', 'Start')}<th>Who</th><th>What</th>
            ${head('latency', 'Time')}${head('first', 'First token', 'Known of replies that this tab has received while they were written')}${isMetered && html`${head('input', 'In')}${head('output', 'Out')}${head('cached', 'Cached')}`}${head('cost', 'Cost')}</tr></thead>
        <tbody>${sorted.slice(0, limit.value).map((row) => html`<${Row} key=${`${row.kind}${row.chat}${row.who}${row.start_ms}:${row.seq}`} row=${row} run=${run} begin=${begin} now=${now} isMetered=${isMetered} />`)}</tbody></table></div>
        ${sorted.length > limit.value && html`<button type="button" onClick=${() => (limit.value += 1000)}>Show more of ${short(sorted.length)} calls</button>`}`;
}

/** @param {{id: string, run: any, version: number, state: string}} props */
export function Timeline({ id, run, state }) {
    const rows = useSignal(/** @type {any[] | null} */ (null));
    const zoom = Math.min(16, Math.max(1, Number(route.value.query.get('zoom')) || 1));
    const reading = useRef({ timer: 0, isOver: false }).current;
    useEffect(() => {
        const next = async () => {
            const { seq } = run;
            const found = await refresh(async () => (rows.value = await read(id, rows.value ?? [])));
            const isBehind = !found || seq < run.seq;
            reading.timer = isBehind && !reading.isOver ? setTimeout(next, found ? EVERY : AGAIN) : 0;
        };
        // Not for each event of a run that goes fast, and not only once that is quiet.
        reading.timer ||= setTimeout(next, rows.value ? EVERY : 0);
    }, [id, run.seq]);
    useEffect(() => () => {
        reading.isOver = true;
        clearTimeout(reading.timer);
    }, []);
    // What a run that has ended left open does not go on.
    const goesOn = ['running', 'waiting'].includes(state) && Boolean(rows.value?.some((row) => row.end_ms === null));
    useTicks(goesOn);
    if (!rows.value) return html`<p aria-busy="true">Loading …</p>`;
    if (rows.value.length === 0) return html`<p class="empty">There is no call yet.</p>`;
    const begin = rows.value.reduce((least, row) => Math.min(least, row.start_ms), Infinity);
    const now = rows.value.reduce((most, row) => Math.max(most, row.end_ms ?? 0), Math.max(run.last, goesOn ? serverTime() : 0));
    const whos = run.names.filter((/** @type {string} */ name) => rows.value?.some((row) => row.who === name));
    return html`<section class="timeline" aria-label="Timeline">
        <div class="timeline-head"><span>${span(now - begin)} in all</span><span class="key model">model</span><span class="key tool">tool</span><span class="key person">waits for a person</span>
            ${run.firsts.size > 0 && html`<span class="key first">until the first token</span>`}
            <span class="spring"></span>
            <${Step} label="Zoom out" can=${zoom > 1} onClick=${() => refine({ zoom: zoom > 2 ? zoom / 2 : null })}>−<//>
            <${Step} label="Zoom in" can=${zoom < 16} onClick=${() => refine({ zoom: zoom * 2 })}>+<//></div>
        <div class="lanes" tabindex="0" role="region" aria-label="Calls in time"><div class="lanes-in zoom-${zoom}">
            <${Scale} length=${Math.max(1, now - begin)} zoom=${zoom} />
            ${whos.map((/** @type {string} */ who) => html`<${Lane} key=${who} rows=${rows.value} run=${run} who=${who} begin=${begin} end=${now} />`)}</div></div>
        <${Table} rows=${rows.value} run=${run} begin=${begin} now=${now} />
    </section>`;
}
