// A team: its text with live findings, a preview of its graph, and a way to run it.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { Problem, attempt, get, may, post, refresh, send } from './api.js';
import { titled } from './attention.js';
import { address } from './router.js';
import { Picture } from './graph.js';
import { counted } from './format.js';
import { FileError, quoted } from './parts.js';
import { complete } from './completion.js';
import { useLoad } from './load.js';

/** How long a person may pause before the text is checked, in milliseconds. */
const PAUSE = 300;

/** How soon it is checked again where that has failed, in milliseconds. */
const AGAIN = 2000;

/** @param {{id: string}} props */
function useText({ id }) {
    const key = `team:${id}`;
    const served = useSignal(/** @type {{text: string, version: string} | null} */ (null));
    const text = useSignal('');
    const isGone = useSignal(false);
    useLoad(() => get(pathOf(id)).catch(noneIfGone), (found) => {
        isGone.value = !found;
        if (!found) return;
        // A draft is one of the version that it was begun with.
        const draft = JSON.parse(sessionStorage.getItem(key) ?? 'null');
        text.value = draft?.text ?? found.text;
        served.value = draft ? { text: found.text, version: draft.version } : found;
    }, [id]);
    const set = (/** @type {string} */ value) => {
        text.value = value;
        keep();
    };
    const keep = () => {
        if (text.value === served.value?.text) sessionStorage.removeItem(key);
        else sessionStorage.setItem(key, JSON.stringify({ text: text.value, version: served.value?.version }));
    };
    /** From now on, the draft is one of this text. @param {{text: string, version: string}} found */
    const base = (found) => {
        served.value = found;
        keep();
    };
    return { served: served.value, text: text.value, isGone: isGone.value, set, base };
}

/** @param {Error} error @returns {null} */
function noneIfGone(error) {
    if (error instanceof Problem && error.status === 404) return null;
    throw error;
}

/** @param {string} id */
const pathOf = (id) => `/teams/${encodeURIComponent(id)}/source`;

/**
 * Saves the draft in the file of the team. A file that someone else has changed is not overwritten: both texts are kept.
 * @param {string} id @param {ReturnType<typeof useText>} draft
 */
function useSave(id, draft) {
    const theirs = useSignal(/** @type {{text: string, version: string} | null} */ (null));
    const said = useSignal('');
    const put = (/** @type {string} */ version) => attempt(async () => {
        said.value = '';
        const text = draft.text;
        try {
            const team = await send('PUT', `/teams/${encodeURIComponent(id)}`, { text }, { 'if-match': version });
            draft.base({ text, version: team.version });
            theirs.value = null;
            const [why] = (team.error ?? team.changed?.error ?? '').split('\n');
            said.value = why ? `Saved, and not used yet: ${why}` : 'Saved. New runs use this text.';
        } catch (error) {
            if (!(error instanceof Problem) || error.status !== 412) throw error;
            theirs.value = await get(pathOf(id));
        }
    });
    const take = (/** @type {{text: string, version: string}} */ found) => {
        draft.base(found);
        draft.set(found.text);
        theirs.value = null;
    };
    return { theirs: theirs.value, said: said.value, put, take };
}

/** @param {{theirs: {text: string, version: string}, put: (version: string) => any, take: (found: any) => void}} props */
function Conflict({ theirs, put, take }) {
    return html`<section class="conflict" role="alert" aria-label="Conflict"><p><strong>The file was changed by someone else since you began.</strong> Nothing
        was overwritten: your text is in the editor, and theirs is here.</p>
        <textarea readonly class="theirs" rows="12" wrap="off" aria-label="Their text" value=${theirs.text}></textarea>
        <div class="actions"><button type="button" onClick=${() => put(theirs.version)}>Save mine over theirs</button>
            <button type="button" onClick=${() => take(theirs)}>Use theirs, discard mine</button></div></section>`;
}

/** What the server finds in the text, a moment after it has changed. @param {string} id @param {string | null} text */
function useFindings(id, text) {
    const found = useSignal(/** @type {any} */ (null));
    useEffect(() => {
        if (text === null) return;
        let isOver = false;
        const check = async () => {
            const checked = await refresh(() => post('/teams/check', { text, team: id }));
            // The last picture stays while there are errors.
            if (checked && !isOver) found.value = { ...checked, team: checked.team ?? found.value?.team };
            else if (!isOver) timer = setTimeout(check, AGAIN);
        };
        let timer = setTimeout(check, found.value ? PAUSE : 0);
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
        // Kept here: the references are empty before what ends this.
        const [text, numbers] = [area.current, gutter.current];
        const follow = () => {
            numbers.scrollTop = text.scrollTop;
        };
        text?.addEventListener('scroll', follow);
        return () => text?.removeEventListener('scroll', follow);
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
        <span>${problem.severity}: ${quoted(problem.message)}${problem.hint && html`<br /><span class="note">hint: ${quoted(problem.hint)}</span>`}</span></li>`)}</ul>`;
}

/**
 * Writes into a text area as a person does, so that it can be undone.
 * @param {HTMLTextAreaElement} area @param {string} text @param {number} from @param {number} to
 */
function insert(area, text, from, to) {
    area.focus();
    area.setSelectionRange(from, to);
    if (document.execCommand('insertText', false, text)) return;
    area.setRangeText(text, from, to, 'end');
    area.dispatchEvent(new Event('input', { bubbles: true }));
}

/** What can be written where the caret is; a click writes it. @param {{text: string, caret: number, area: any}} props */
function Words({ text, caret, area }) {
    const schema = useSignal(/** @type {any} */ (null));
    useLoad(() => get('/schema'), (found) => (schema.value = found), []);
    const { found, typed, end } = complete(schema.value, text, caret);
    const write = (/** @type {string} */ word) => () => insert(area.current, word + end, caret - typed.length, caret);
    return html`<div class="words" role="group" aria-label="What can be written here (Ctrl and space)">
        ${found.slice(0, 40).map(({ word, about }) => html`<button type="button" key=${word} class="word" title=${about} onClick=${write(word)}>${word}</button>`)}</div>`;
}

/** @param {string} id @param {string} text */
function download(id, text) {
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
        insert(event.target, '  ', event.target.selectionStart, event.target.selectionEnd);
    } else leaves.current = false;
}

const NoTeam = () => html`<main id="main" tabindex="-1"><h1>There is no such team</h1>
    <p>Its file was removed, or never existed. <a href=${address(['teams'])}>All teams</a></p></main>`;

/** A team whose text is not for this session: its graph. @param {{id: string}} props */
function OnlyGraph({ id }) {
    const graph = useSignal(/** @type {any} */ (undefined));
    useLoad(() => get(`/teams/${encodeURIComponent(id)}/graph`).catch(noneIfGone), (found) => (graph.value = found), [id]);
    titled(id);
    if (graph.value === null) return html`<${NoTeam} />`;
    return html`<main id="main" tabindex="-1" aria-busy=${!graph.value}><h1>${graph.value?.name ?? id}</h1>
        <p class="about">This session cannot read the text of team files.</p>
        ${graph.value ? html`<${Picture} graph=${graph.value} />` : html`<p>Loading …</p>`}</main>`;
}

/** @param {{id: string}} props */
export const Team = ({ id }) => (may('edit') ? html`<${Editor} id=${id} />` : html`<${OnlyGraph} id=${id} />`);

/** @param {{id: string}} props */
function Editor({ id }) {
    const draft = useText({ id });
    const { served, text, set } = draft;
    const saving = useSave(id, draft);
    const found = useFindings(id, served === null ? null : text);
    const area = useRef(/** @type {any} */ (null));
    const leaves = useRef(false);
    const caret = useSignal(0);
    const moved = () => {
        caret.value = area.current?.selectionStart ?? 0;
    };
    titled(id);
    if (draft.isGone) return html`<${NoTeam} />`;
    if (served === null) return html`<main id="main" tabindex="-1" aria-busy="true"><h1>${id}</h1><p>Loading …</p></main>`;
    const problems = found?.problems ?? [];
    const errors = problems.filter((/** @type {any} */ problem) => problem.severity === 'error').length;
    const isChanged = text !== served.text;
    return html`<main id="main" tabindex="-1" class="editor">
        <div class="run-head"><div class="run-name"><h1>${found?.team?.name ?? id}</h1></div>
            <div class="actions">${may('run') && html`<a class="button" href=${address(['new'], { team: id })}>Run</a>`}
            <button type="button" onClick=${() => download(id, text)}>Download</button>
            <button type="button" disabled=${!isChanged} onClick=${() => set(served.text)}>Discard changes</button>
            <button type="button" class="main" disabled=${!isChanged || errors > 0 || !served.version} onClick=${() => saving.put(served.version)}>Save</button></div></div>
        <p class="about" role="status">${isChanged ? 'A draft in this tab. Runs use the file until you save.' : saving.said || 'The text of the file. Changes stay in this tab until you save.'}</p>
        ${saving.theirs && html`<${Conflict} theirs=${saving.theirs} put=${saving.put} take=${saving.take} />`}
        <div class="columns editor-columns"><section aria-label="Text">
            <div class="text"><${Lines} text=${text} problems=${problems} area=${area} />
            <textarea ref=${area} aria-label="Text of the team file" aria-describedby="text-keys findings" wrap="off" spellcheck="false" autocapitalize="off" value=${text}
                onInput=${(/** @type {any} */ event) => (set(event.target.value), moved())} onKeyUp=${moved} onClick=${moved} onKeyDown=${(/** @type {any} */ event) => onKey(event, leaves)}></textarea></div>
            <p class="note" id="text-keys">Tab writes two spaces. Escape and then Tab leaves the text.</p>
            <${Words} text=${text} caret=${caret.value} area=${area} />
            <div id="findings" role="status">${found === null ? '…' : errors ? counted(errors, 'error') : problems.length ? counted(problems.length, 'warning') : 'No errors.'}</div>
            <${Findings} problems=${problems} area=${area} /></section>
            <section aria-label="Preview">${found?.team?.graph && html`<${Picture} graph=${found.team.graph} />`}</section></div>
    </main>`;
}

/** All teams. */
export function Teams() {
    const teams = useSignal(/** @type {any[] | null} */ (null));
    useLoad(() => get('/teams'), (found) => (teams.value = found.teams), []);
    titled('Teams');
    return html`<main id="main" tabindex="-1"><h1>Teams</h1>
        ${teams.value === null && html`<p aria-busy="true">Loading …</p>`}
        ${teams.value?.length === 0 && html`<p class="empty">No team is served.</p>`}
        <ul class="runs teams">${teams.value?.map((team) => html`<li class="run-row" key=${team.id}>
            <a href=${address(['teams', team.id])}><span class="run-title">${team.name ?? team.id}</span></a>
            <span class="run-facts">${team.name && team.name !== team.id && html`<span class="mono">${team.id}</span>`}${!team.error && html`<span>${team.description}</span>`}</span>
            ${team.error && html`<${FileError} text=${team.error} />`}
            ${team.changed && html`<${FileError} text=${team.changed.error}><p>The changed file is not used:</p><//>`}
            <span class="run-facts">${!team.error && may('run') && html`<a href=${address(['new'], { team: team.id })} aria-label="Run ${team.name ?? team.id}">Run</a>`} <a href=${address([], { team: team.id })} aria-label="Its runs: ${team.name ?? team.id}">Its runs</a></span></li>`)}</ul>
    </main>`;
}
