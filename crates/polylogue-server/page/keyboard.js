// What keys do, and the list of them. None does anything while a person writes.
import { html, kept, signal, useEffect, useRef } from './lib.js';
import { address, go, route } from './router.js';
import { viewAs, viewer } from './viewpoint.js';
import { DRAW } from './window.js';

const isHelp = signal(false);

/** Whether keys do something. For who speaks instead of typing, or hits keys by accident, letters must not. */
const keys = kept('keys', 'on');

/** Opens the list of keys. */
export const showKeys = () => (isHelp.value = true);

/** @param {string} selector */
const focus = (selector) => {
    const found = /** @type {HTMLElement | null} */ (document.querySelector(selector));
    found?.focus();
    return Boolean(found);
};

/** The message with the focus, or the first in view. */
function present() {
    const focused = document.activeElement?.closest('.turn');
    return focused ?? [...document.querySelectorAll('.talk > .conversation .turn')].find((it) => it.getBoundingClientRect().bottom > 80);
}

/**
 * The part of a long list between two messages that is not drawn, and is next to the first of them.
 * @param {Element} from @param {Element} to
 */
function gapBetween(from, to) {
    const chunks = [...document.querySelectorAll('.talk > .conversation > .list > .chunk')];
    const [first, last] = [from, to].map((it) => chunks.findIndex((chunk) => chunk.contains(it)));
    const between = first < last ? chunks.slice(first + 1, last) : chunks.slice(last + 1, first).reverse();
    return between.find((chunk) => chunk.childElementCount === 0);
}

/** Moves to the next message or the one before. @param {number} by @param {Element} [drawn] what was drawn for that */
function move(by, drawn) {
    const turns = [...document.querySelectorAll('.talk > .conversation .turn')];
    const from = document.activeElement?.closest('.turn');
    const at = from ? turns.indexOf(from) + by : by > 0 ? turns.indexOf(/** @type {Element} */ (present())) : turns.length - 1;
    const to = /** @type {HTMLElement | undefined} */ (turns[Math.max(0, Math.min(turns.length - 1, at))]);
    const gap = from && to && gapBetween(from, to);
    if (gap && gap !== drawn) {
        // Keys can be faster than the frames by which a list is drawn.
        gap.dispatchEvent(new Event(DRAW));
        return void Promise.resolve().then(() => move(by, gap));
    }
    to?.focus({ preventScroll: true });
    to?.scrollIntoView({ block: 'nearest' });
}

/** Presses a button of the present message. @param {string} selector */
const inMessage = (selector) => /** @type {HTMLElement | null | undefined} */ (present()?.querySelector(selector))?.click();

/** The next participant whose point of view is shown; after the last, everything. */
function nextView() {
    const names = [...document.querySelectorAll('.participants [data-view]')].map((it) => it.getAttribute('data-view') ?? '');
    const at = names.indexOf(viewer());
    const next = names[at + 1];
    if (next) viewAs(next);
    else if (viewer()) viewAs(viewer());
}

/** @param {string} tab */
const tab = (tab) => {
    const [view, id] = route.value.parts;
    if (view === 'runs' && id) location.hash = address(['runs', id, ...(tab ? [tab] : [])], Object.fromEntries(route.value.query));
};

/** @type {[string, string, () => void][]} */
export const KEYS = [
    ['j', 'the next message', () => move(1)],
    ['k', 'the message before', () => move(-1)],
    ['a', 'answer the open question', () => focus('.question :is(textarea, .actions button)')],
    ['s', 'say something', () => focus('#say')],
    ['v', 'the point of view of the next participant, then everything', nextView],
    ['f', 'fork from the present message', () => inMessage('button.fork')],
    ['e', 'edit the present message and rerun', () => inMessage('button.edit')],
    ['o', 'open or close the first fold of the present message', () => inMessage('.fold > summary')],
    ['c', 'the conversation of the run', () => tab('')],
    ['t', 'the timeline of the run', () => tab('timeline')],
    ['w', 'who can speak after whom: the graph of the run', () => tab('graph')],
    ['g r', 'all runs', () => go([])],
    ['g n', 'a new run', () => go(['new'])],
    ['g t', 'all teams', () => go(['teams'])],
    ['g c', 'compare runs', () => go(['compare'])],
    ['g w', 'workers, and what waits for them: the cluster', () => go(['cluster'])],
    ['/', 'search', () => void (focus('#search') || go([]))],
    ['?', 'this list', () => (isHelp.value = true)],
];

/** Closes the menus of messages but one: at a click elsewhere, when another one is opened, and at Escape. @param {Element | null} [but] */
function closeMenus(but) {
    const open = [...document.querySelectorAll('.menu[open]')].filter((menu) => menu !== but);
    open.forEach((menu) => menu.removeAttribute('open'));
    return open;
}
addEventListener('click', (event) => void closeMenus(/** @type {any} */ (event.target).closest?.('.menu')));

/** The focus is where the menu was opened. */
function leaveMenu() {
    const [menu] = closeMenus();
    if (menu?.contains(document.activeElement) || document.activeElement === document.body) menu?.querySelector('summary')?.focus();
}

let before = '';

/** @param {KeyboardEvent} event */
function pressed(event) {
    const at = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (at.matches?.('input, textarea, select, [contenteditable]') || document.querySelector('dialog[open]')) {
        if (event.key === 'Escape' && at.matches('input, textarea')) at.blur();
        return;
    }
    if (event.key === 'Escape') leaveMenu();
    if (keys.value !== 'on') return;
    const struck = before ? `${before} ${event.key}` : event.key;
    before = '';
    const found = KEYS.find(([key]) => key === struck);
    if (found) {
        event.preventDefault();
        found[2]();
    } else if (KEYS.some(([key]) => key.startsWith(`${struck} `))) {
        before = struck;
        setTimeout(() => (before = ''), 1500);
    }
}
addEventListener('keydown', pressed);

/** The list of keys. */
export function Help() {
    const dialog = useRef(/** @type {any} */ (null));
    useEffect(() => {
        if (isHelp.value) dialog.current?.showModal();
    }, [isHelp.value]);
    if (!isHelp.value) return null;
    return html`<dialog ref=${dialog} class="help" aria-label="Keys" onClose=${() => (isHelp.value = false)}>
        <div class="dialog-body"><div class="dialog-head"><h2>Keys</h2>
            <button type="button" class="quiet" aria-label="Close" onClick=${() => dialog.current.close()}>✕</button></div>
        <label class="check"><input type="checkbox" checked=${keys.value === 'on'} onChange=${(/** @type {any} */ event) => (keys.value = event.target.checked ? 'on' : 'off')} />
            Letters do what is listed</label>
        <dl class="keys">${KEYS.map(([key, what]) => html`<div><dt>${key.split(' ').map((part) => html`<kbd>${part}</kbd> `)}</dt><dd>${what}</dd></div>`)}
            <div><dt><kbd>Ctrl</kbd> <kbd>Enter</kbd></dt><dd>send what is written</dd></div><div><dt><kbd>Esc</kbd></dt><dd>leave a field or close a dialog</dd></div></dl></div>
    </dialog>`;
}
