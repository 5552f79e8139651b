// What waits for a person: the number of open questions in the title and the icon of the tab, and notifications while the tab is hidden.
import { effect, html, kept, signal, useEffect, visible } from './lib.js';
import { attempt, Problem } from './api.js';
import { address } from './router.js';
import { ending } from './format.js';
import { inShort } from './question.js';

const ICON = '/page/icon.svg';

/** The title of the view. */
const view = signal('');

/** How many questions wait for an answer in the runs of the view. */
const waiting = signal(0);

effect(() => {
    document.title = visible(`${waiting.value ? `(${waiting.value}) ` : ''}${view.value ? `${view.value} · ` : ''}Polylogue`);
});

/** Gives the tab the title of a view. @param {string} text */
export const titled = (text) => void (view.value = text);

/** A number on the icon. @param {number} number */
const mark = (number) => `<circle cx="20" cy="12" r="12" fill="#b3261e"/><text x="20" y="18" font-family="sans-serif" font-weight="700"
    text-anchor="middle" fill="#fff" font-size="${number > 9 ? '14">9+' : `19">${number}`}</text></svg>`;

/** The icon as text, once it was needed. @type {Promise<string> | undefined} */
let icon;

effect(() => {
    const number = waiting.value;
    const link = /** @type {HTMLLinkElement} */ (document.querySelector('link[rel=icon]'));
    if (!number) return void (link.href = ICON);
    icon ??= fetch(ICON).then((response) => response.text());
    icon.then((svg) => {
        if (waiting.peek() === number) link.href = `data:image/svg+xml,${encodeURIComponent(svg.replace('</svg>', mark(number)))}`;
    }, () => (icon = undefined));
});

/** Whether a person wants notifications in this browser, which also must allow them. */
const wanted = kept('notifications', 'off');
const isOn = () => wanted.value === 'on' && Notification.permission === 'granted';

/** The button that turns notifications on and off. Only this one asks the browser to allow them. */
export function Bell() {
    if (!('Notification' in window)) return null;
    const toggle = () => attempt(async () => {
        if (isOn()) return void (wanted.value = 'off');
        if ((await Notification.requestPermission()) !== 'granted') {
            throw new Problem({ detail: 'the browser does not allow notifications of this page', hint: 'allow them in its settings for this site; without HTTPS, only a server on this machine can have them' });
        }
        wanted.value = 'on';
    });
    return html`<button type="button" class="quiet" aria-label="Notifications" aria-pressed=${isOn()} onClick=${toggle}
        title=${`Notifications when a run asks or ends while this tab is hidden: ${isOn() ? 'on' : 'off'}`}>
        <svg viewBox="0 0 24 24" width="17" height="17" fill="none" stroke="currentColor" stroke-width="2.2" aria-hidden="true">
            <path d="M6 10a6 6 0 0 1 12 0c0 5 2.5 7 2.5 7h-17S6 15 6 10zM10 21h4" />${!isOn() && html`<path d="M3 3l18 18" />`}</svg></button>`;
}

/** @param {any} run @param {string} what identifies it: other tabs show no second one @param {string} text */
function notify(run, what, text) {
    if (!document.hidden || !('Notification' in window) || !isOn()) return;
    try {
        const shown = new Notification(visible(run.title || run.team), { body: visible(text.slice(0, 300)), tag: `${run.id}:${what}` });
        shown.onclick = () => {
            focus();
            location.hash = address(['runs', run.id]);
            shown.close();
        };
    } catch {
        // Browsers of phones allow them to service workers alone.
    }
}

/** Whether it neither runs nor waits. @param {any} run */
const isOver = (run) => ['halted', 'closed'].includes(run.state);

/** Notifies what is new of a run. @param {any} run @param {any} before `undefined`: it was not in the view */
function compare(run, before) {
    const known = before?.questions?.map((/** @type {any} */ open) => open.question) ?? [];
    for (const open of run.questions ?? []) {
        if (!known.includes(open.question)) notify(run, open.question, inShort(open));
    }
    if (before && isOver(run) && !isOver(before)) notify(run, 'end', run.ended ? ending(run.ended) : run.paused ? 'paused' : 'stopped');
}

/** The runs of the view as they were last; `null` until it has some. @type {Map<string, any> | null} */
let seen = null;

/**
 * Counts the open questions of the runs that a view shows, and notifies what is new of them.
 * @param {any[] | null} runs as the server describes conversations; `null` while they are not known
 */
export function useAttention(runs) {
    useEffect(() => {
        if (!runs) return;
        const before = seen;
        if (before) for (const run of runs) compare(run, before.get(run.id));
        seen = new Map(runs.map((run) => [run.id, run]));
        waiting.value = runs.reduce((sum, run) => sum + (run.questions?.length ?? 0), 0);
    });
    useEffect(() => () => {
        seen = null;
        waiting.value = 0;
    }, []);
}
