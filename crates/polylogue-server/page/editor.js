// A team: its text with live findings, a preview of its graph, and a way to run it.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { attempt, get, post } from './api.js';
import { address } from './router.js';
import { Picture } from './graph.js';
import { counted } from './format.js';
import { complete } from './completion.js';

/** How long a person may pause before the text is checked, in milliseconds. */
const PAUSE = 300;

/** @param {{id: string}} props */
function useText({ id }) {
    const key = `team:${id}`;
    const served = useSignal(/** @type {string | null} */ (null));
    const text = useSignal('');
    useEffect(() => void attempt(async () => {
        served.value = null;
        const found = (await get(`/teams/${encodeURIComponent(id)}/source`)).text;
        text.value = sessionStorage.getItem(key) ?? found;
        served.value = found;
    }), [id]);
    const set = (/** @type {string} */ value) => {
        text.value = value;
        if (value === served.value) sessionStorage.removeItem(key);
        else sessionStorage.setItem(key, value);
    };
    return { served: served.value, text: text.value, set };
}

/** What the server finds in the text, a moment after it has changed. @param {string} id @param {string | null} text */
function useFindings(id, text) {
    const found = useSignal(/** @type {any} */ (null));
    useEffect(() => {
        if (text === null) return;
        let isOver = false;
        const check = async () => {
            const checked = await attempt(() => post('/teams/check', { text, team: id }));
            // The last picture stays while there are errors.
            if (checked && !isOver) found.value = { ...checked, team: checked.team ?? found.value?.team };
        };
        const timer = setTimeout(check, found.value ? PAUSE : 0);
        return () => {
            isOver = true;
            clearTimeout(timer);
        };
    }, [id, text]);
    return found.value;
}

/** @param {{text: string, problems: any[], area: any}} props */
function Lines({ text, problems, area }) {
    const worst = new Map();
    for (const { place, severity } of problems) {
        if (place && worst.get(place.line) !== 'error') worst.set(place.line, severity);
    }
    const gutter = useRef(/** @type {any} */ (null));
    useEffect(() => {
        const follow = () => {
            gutter.current.scrollTop = area.current.scrollTop;
        };
        area.current?.addEventListener('scroll', follow);
        return () => area.current?.removeEventListener('scroll', follow);
    }, []);
    return html`<pre class="gutter" ref=${gutter} aria-hidden="true">${text.split('\n').map((_, at) => html`<span class=${worst.get(at + 1) ?? ''}>${String(at + 1)}</span>`)}</pre>`;
}

/** @param {{problems: any[], area: any}} props */
function Findings({ problems, area }) {
    const show = (/** @type {any} */ place) => () => {
        const lines = area.current.value.split('\n').slice(0, place.line - 1);
        const at = lines.reduce((/** @type {number} */ sum, /** @type {string} */ line) => sum + line.length + 1, 0) + Math.max(0, (place.column ?? 1) - 1);
        area.current.focus();
        area.current.setSelectionRange(at, at);
    };
    return html`<ul class="findings">${problems.map((problem) => html`<li class=${problem.severity}>
        ${problem.place ? html`<button type="button" class="quiet link" onClick=${show(problem.place)}>line ${problem.place.line}</button>` : html`<span>the file</span>`}
        <span>${problem.severity}: ${problem.message}${problem.hint && html`<br /><span class="note">hint: ${problem.hint}</span>`}</span></li>`)}</ul>`;
}

/** What can be written where the caret is; a click writes it. @param {{text: string, caret: number, area: any, set: (text: string) => void}} props */
function Words({ text, caret, area, set }) {
    const schema = useSignal(/** @type {any} */ (null));
    useEffect(() => void attempt(async () => (schema.value = await get('/schema'))), []);
    const { found, typed, end } = complete(schema.value, text, caret);
    const write = (/** @type {string} */ word) => () => {
        area.current.focus();
        area.current.setRangeText(word + end, caret - typed.length, caret, 'end');
        set(area.current.value);
    };
    return html`<div class="words" role="group" aria-label="What can be written here (Ctrl and space)">
        ${found.slice(0, 40).map(({ word, about }) => html`<button type="button" key=${word} class="word" title=${about} onClick=${write(word)}>${word}</button>`)}</div>`;
}

/** @param {string} id @param {string} text */
function save(id, text) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }));
    link.download = `${id}.yaml`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Two spaces instead of leaving the field; Escape, then Tab leaves it. @param {any} event @param {{current: boolean}} leaves */
function onKey(event, leaves) {
    if (event.key === ' ' && event.ctrlKey) {
        event.preventDefault();
        /** @type {HTMLElement | null} */ (document.querySelector('.word'))?.focus();
    } else if (event.key === 'Escape') leaves.current = true;
    else if (event.key === 'Tab' && !event.shiftKey && !leaves.current) {
        event.preventDefault();
        event.target.setRangeText('  ', event.target.selectionStart, event.target.selectionEnd, 'end');
        event.target.dispatchEvent(new Event('input', { bubbles: true }));
    } else leaves.current = false;
}

/** @param {{id: string}} props */
export function Editor({ id }) {
    const { served, text, set } = useText({ id });
    const found = useFindings(id, served === null ? null : text);
    const area = useRef(/** @type {any} */ (null));
    const leaves = useRef(false);
    const caret = useSignal(0);
    const moved = () => {
        caret.value = area.current?.selectionStart ?? 0;
    };
    document.title = `${id} · Polylogue`;
    if (served === null) return html`<main id="main" tabindex="-1" aria-busy="true"><h1>${id}</h1></main>`;
    const problems = found?.problems ?? [];
    const errors = problems.filter((/** @type {any} */ problem) => problem.severity === 'error').length;
    const isChanged = text !== served;
    return html`<main id="main" tabindex="-1" class="editor">
        <div class="run-name"><h1>${found?.team?.name ?? id}</h1><span class="spring"></span>
            <a class="button" href=${address(['new'], { team: id })}>Run</a>
            <button type="button" onClick=${() => save(id, text)}>Download</button>
            <button type="button" disabled=${!isChanged} onClick=${() => set(served)}>Discard changes</button></div>
        <p class="about">${isChanged ? 'A draft in this tab. Runs use the text that is served: download the draft and replace the file, which the server notices.' : 'The text that is served. Changes stay in this tab.'}</p>
        <div class="columns editor-columns"><section aria-label="Text">
            <div class="text"><${Lines} text=${text} problems=${problems} area=${area} />
            <textarea ref=${area} aria-label="Text of the team file" aria-describedby="findings" wrap="off" spellcheck="false" autocapitalize="off" value=${text}
                onInput=${(/** @type {any} */ event) => (set(event.target.value), moved())} onKeyUp=${moved} onClick=${moved} onKeyDown=${(/** @type {any} */ event) => onKey(event, leaves)}></textarea></div>
            <${Words} text=${text} caret=${caret.value} area=${area} set=${(/** @type {string} */ value) => (set(value), moved())} />
            <div id="findings" role="status">${found === null ? '…' : errors ? counted(errors, 'error') : problems.length ? counted(problems.length, 'warning') : 'No errors.'}</div>
            <${Findings} problems=${problems} area=${area} /></section>
            <section aria-label="Preview">${found?.team?.graph && html`<${Picture} graph=${found.team.graph} />`}</section></div>
    </main>`;
}

/** All teams. */
export function Teams() {
    const teams = useSignal(/** @type {any[] | null} */ (null));
    useEffect(() => void attempt(async () => (teams.value = (await get('/teams')).teams)), []);
    document.title = 'Teams · Polylogue';
    return html`<main id="main" tabindex="-1"><h1>Teams</h1>
        <ul class="runs teams">${teams.value?.map((team) => html`<li class="run-row" key=${team.id}>
            <a href=${address(['teams', team.id])}><span class="run-title">${team.name ?? team.id}</span></a>
            <span class="run-facts"><span class="mono">${team.id}</span><span>${team.error ?? team.description}</span>
                ${team.changed && html`<span class="bad">The changed file is not used: ${team.changed.error}</span>`}</span>
            <span class="run-facts"><a href=${address(['new'], { team: team.id })}>Run</a> <a href=${address([], { team: team.id })}>Its runs</a></span></li>`)}</ul>
    </main>`;
}
