// The form that begins a run: a team, its inputs, the task, limits.
import { html, useSignal } from './lib.js';
import { attempt, get, may, post } from './api.js';
import { titled } from './attention.js';
import { address, go, refine, route } from './router.js';
import { FileError } from './parts.js';
import { useDraft } from './drafts.js';
import { useLoad } from './load.js';

/** @param {{team: any}} props */
function Inputs({ team }) {
    if (!team?.inputs?.length) return null;
    return html`<fieldset><legend>Variables</legend>
        ${team.inputs.map((/** @type {any} */ input) => html`<label key=${input.name}>${input.name}
            <textarea name="input:${input.name}" rows="1" dir="auto" defaultValue=${input.default ?? ''}></textarea></label>`)}
    </fieldset>`;
}

/** @param {{team: any}} props */
function LimitFields({ team }) {
    const limits = team?.limits ?? {};
    const field = (/** @type {string} */ name, /** @type {string} */ label, /** @type {any} */ own, /** @type {string} */ step) => html`<label>${label}
        <input name="limit:${name}" type="number" min=${step === 'any' ? 0 : step} step=${step} placeholder=${own ?? 'none'} /></label>`;
    return html`<details><summary>Limits below those of the team</summary><div class="fields">
        ${field('turns', 'Turns', limits.turns, '1')}${field('calls', 'Model calls', limits.calls, '1')}
        ${field('tokens', 'Tokens', limits.tokens, '1')}${field('cost', 'Dollars', limits.cost && limits.cost / 1e12, 'any')}
    </div></details>`;
}

/** What the form says, as the server wants it. @param {HTMLFormElement} form @param {any} team */
function wanted(form, team) {
    const data = new FormData(form);
    const text = (/** @type {string} */ name) => String(data.get(name) ?? '').trim();
    /** @type {any} */
    const body = { team: team.id };
    if (text('message')) body.message = text('message');
    if (text('title')) body.title = text('title');
    /** @type {[string, string][]} */
    const inputs = team.inputs.map((/** @type {any} */ { name }) => [name, String(data.get(`input:${name}`) ?? '')]);
    const changed = inputs.filter(([, value], i) => value !== String(team.inputs[i].default ?? ''));
    if (changed.length) body.inputs = Object.fromEntries(changed);
    const limits = ['turns', 'calls', 'tokens', 'cost'].filter((name) => text(`limit:${name}`));
    const amount = (/** @type {string} */ name) => Number(text(`limit:${name}`)) * (name === 'cost' ? 1e12 : 1);
    if (limits.length) body.limits = Object.fromEntries(limits.map((name) => [name, Math.round(amount(name))]));
    return body;
}

export function NewRun() {
    const teams = useSignal(/** @type {any[] | null} */ (null));
    const isSending = useSignal(false);
    const task = useDraft('new:task');
    useLoad(() => get('/teams'), (found) => (teams.value = found.teams), []);
    const chosen = route.value.query.get('team');
    const team = chosen ? teams.value?.find((team) => team.id === chosen) : teams.value?.[0];
    const isUnknown = chosen !== null && chosen !== '' && teams.value !== null && !team;
    const begin = async (/** @type {any} */ event) => {
        event.preventDefault();
        if (isSending.value || !team) return;
        isSending.value = true;
        const made = await attempt(() => post('/conversations', wanted(event.target, team)));
        isSending.value = false;
        if (!made) return;
        task.set('');
        go(['runs', made.id]);
    };
    titled('New run');
    if (!may('run')) return html`<main id="main" tabindex="-1"><h1>New run</h1><p class="empty">This session cannot begin runs.</p></main>`;
    return html`<main id="main" tabindex="-1" class="narrow">
        <h1>New run</h1>
        ${teams.value === null && html`<p aria-busy="true">Loading …</p>`}
        ${teams.value?.length === 0 && html`<p class="empty">No team is served.</p>`}
        ${isUnknown && html`<p class="bad" role="alert">No team “${chosen}” is served. Choose another one.</p>`}
        ${teams.value !== null && teams.value.length > 0 && html`<form onSubmit=${begin}>
            <label>Team <select name="team" value=${team?.id ?? ''} onChange=${(/** @type {any} */ event) => refine({ team: event.target.value })}>
                ${isUnknown && html`<option value="">choose a team</option>`}
                ${teams.value?.map((team) => html`<option value=${team.id}>${team.name ?? team.id}</option>`)}
            </select></label>
            ${team && html`<${Fields} key=${team.id} team=${team} task=${task} isSending=${isSending.value} />`}
        </form>`}
    </main>`;
}

/**
 * What is asked for of a team. The choice of the team stays as it was, with its focus, and the task as it was written.
 * @param {{team: any, task: ReturnType<typeof useDraft>, isSending: boolean}} props
 */
function Fields({ team, task, isSending }) {
    if (team.error) return html`<${FileError} text=${team.error} /><p><a href=${address(['teams', team.id])}>Open the file in the editor</a></p>`;
    return html`
        ${team.description && html`<p class="about">${team.description}</p>`}
        ${team.scripted && html`<p class="about">Scripted: no model is asked, and nothing is paid.</p>`}
        <label>Task <textarea name="message" rows="5" dir="auto" placeholder=${team.task} value=${task.text}
            onInput=${(/** @type {any} */ event) => task.set(event.target.value)}></textarea></label>
        <${Inputs} team=${team} />
        <label>Title <input name="title" dir="auto" maxlength="200" placeholder="optional" /></label>
        <${LimitFields} team=${team} />
        <button class="main" disabled=${isSending}>Begin</button>`;
}
