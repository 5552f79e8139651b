// The page: what is at the top of every view, and which view an address shows.
import { html, kept, effect, render, useEffect, useRef } from './lib.js';
import { done, failure, login, logout, may, otherLink, session, useOtherLink } from './api.js';
import { route, address } from './router.js';
import { Bell, titled } from './attention.js';
import { focusOn } from './focus.js';
import { Runs } from './runs.js';
import { NewRun } from './new_run.js';
import { Run } from './run.js';
import { Cluster } from './cluster.js';
import { Compare } from './compare.js';
import { FileError, quoted } from './parts.js';
import { Team, Teams } from './editor.js';
import { Help, showKeys } from './keyboard.js';

const theme = kept('theme', 'system');
effect(() => {
    document.documentElement.dataset.theme = theme.value;
});

const THEMES = ['system', 'light', 'dark'];

function Top() {
    const [view = 'runs'] = route.value.parts;
    const current = (/** @type {string} */ name) => (view === name ? 'page' : undefined);
    const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
    return html`<header class="top">
        <a class="skip" href="#main" onClick=${skip}>To the content</a>
        <a class="brand" href=${address([])}><img src="/page/icon.svg" alt="" width="22" height="22" />Polylogue</a>
        <nav aria-label="Views">
            <a href=${address([])} aria-current=${current('runs')}>Runs</a>
            ${may('run') && html`<a href=${address(['new'])} aria-current=${current('new')}>New run</a>`}
            <a href=${address(['teams'])} aria-current=${current('teams')}>Teams</a>
            <a href=${address(['compare'])} aria-current=${current('compare')}>Compare</a>
            ${session.value?.has_cluster && html`<a href=${address(['cluster'])} aria-current=${current('cluster')}>Cluster</a>`}
        </nav>
        <span class="spring"></span>
        <${Bell} />
        <button type="button" class="quiet" title="Keys" aria-label="Keys" onClick=${showKeys}>?</button>
        <button type="button" class="quiet" title="Theme: ${theme.value}. Switch to ${next}"
            aria-label="Theme: ${theme.value}. Switch to ${next}" onClick=${() => (theme.value = next)}>
            ${{ system: '◐', light: '☀', dark: '☾' }[theme.value]}</button>
        <button type="button" class="quiet" onClick=${leave}>Log out</button>
    </header>`;
}

/** The address of a view is not changed. @param {Event} event */
function skip(event) {
    event.preventDefault();
    focusOn();
}

/** The button is gone then. */
async function leave() {
    await logout();
    requestAnimationFrame(() => focusOn());
}

function Failure() {
    const problem = failure.value;
    const close = () => {
        focusOn();
        failure.value = null;
    };
    return html`<div class="alert" role="alert">${problem && html`<div class="failure">
        <div>${problem.message.includes('\n') ? html`<${FileError} text=${problem.message} />` : html`<strong>${quoted(problem.message)}</strong>`}${problem.hint && html`<div>hint: ${quoted(problem.hint)}</div>`}${problem.isPassing && html`<div>It is tried again until it works.</div>`}</div>
        <button type="button" class="quiet" aria-label="Close" onClick=${close}>✕</button>
    </div>`}</div>`;
}

/** What has happened without another sign. */
const Done = () => html`<div role="status">${done.value && html`<p class="done-note">${done.value}</p>`}</div>`;

/** A link does not replace a session by itself. */
function OtherLink() {
    return html`<div role="alert">${otherLink.value && html`<div class="notice">
        <div>You are logged in already, as “${session.value.name}” (tenant ${session.value.tenant}). The link that you have opened is for another session, which may be another person's.</div>
        <span class="actions"><button type="button" onClick=${useOtherLink}>Use the new link</button>
        <button type="button" class="quiet" onClick=${() => (otherLink.value = '')}>Keep this session</button></span>
    </div>`}</div>`;
}

function LoggedOut() {
    titled('');
    return html`<main class="login" tabindex="-1">
        <h1>Polylogue</h1>
        <p>You are not logged in. A link logs a browser in once: <code>polylogue serve</code> prints one when it starts,
        and <code>polylogue token link</code> makes another one.</p>
    </main>`;
}

function View() {
    const [view = 'runs', id, ...rest] = route.value.parts;
    if (view === 'new') return html`<${NewRun} />`;
    if (view === 'runs' && id) return html`<${Run} key=${id} id=${id} tab=${rest[0] ?? ''} />`;
    if (view === 'runs') return html`<${Runs} />`;
    if (view === 'teams') return id ? html`<${Team} key=${id} id=${id} />` : html`<${Teams} />`;
    if (view === 'compare') return html`<${Compare} />`;
    if (view === 'cluster') return html`<${Cluster} />`;
    titled('');
    return html`<main id="main" tabindex="-1"><h1>There is no such view</h1><p><a href=${address([])}>All runs</a></p></main>`;
}

function Page() {
    const isFirst = useRef(true);
    useEffect(() => {
        failure.value = null;
        // What had the focus may be gone with the view before. Of the first view there is none.
        if (!isFirst.current && document.activeElement === document.body) document.querySelector('main')?.focus({ preventScroll: true });
        isFirst.current = false;
    }, [route.value.parts.join('/')]);
    if (session.value === undefined) return html`<${Failure} /><main class="login" aria-busy="true"><h1>Polylogue</h1><p>Loading …</p></main>`;
    if (session.value === null) return html`<${Failure} /><${LoggedOut} />`;
    return html`<${Top} /><${OtherLink} /><${Failure} /><${View} /><${Done} /><${Help} />`;
}

const root = /** @type {HTMLElement} */ (document.getElementById('page'));
root.replaceChildren();
render(html`<${Page} />`, root);
await login();
addEventListener('hashchange', () => {
    if (location.hash.startsWith('#login=')) login();
});
