// The items of a chat: turns with their steps, and what happens between turns.
import { Component, html, useEffect, useRef, useSignal } from './lib.js';
import { attempt, may, post } from './api.js';
import { address, go } from './router.js';
import { isPublic, textOf } from './chats.js';
import { Avatar, Name } from './names.js';
import { Parts, quoted } from './parts.js';
import { Step } from './steps.js';
import { reasonText, span } from './format.js';
import { WindowedList } from './window.js';
import { receives, viewAs, viewer, viewerIn } from './viewpoint.js';
import { openRequest } from './calls.js';
import { isDrafted, useDraft } from './drafts.js';
import { copy, Verbatim } from './verbatim.js';

/**
 * The items of a chat, all of them or only those near the view.
 * @param {{id: string, run: any, chat: any, version: number, wanted?: string | null, isWindowed?: boolean}} props
 */
export function Items({ id, run, chat, version, wanted, isWindowed }) {
    const as = viewerIn(run);
    const draw = (/** @type {any} */ item) => html`<${ItemView} key=${item.nth}
        id=${id} run=${run} item=${item} as=${as} isDimmed=${Boolean(as) && !receives(chat, item, as)} rev=${hasChats(item) ? version : item.rev} />`;
    if (!isWindowed) return html`<ol class="items">${chat.items.map(draw)}</ol>`;
    const at = wanted ? chat.items.findIndex((/** @type {any} */ item) => `${item.said ?? item.seq}` === wanted) : -1;
    return html`<${WindowedList} items=${chat.items} draw=${draw} wanted=${at} />`;
}

/** Whether chats run within it, which change without it. @param {any} item */
const hasChats = (item) => item.steps?.some((/** @type {any} */ step) => step.kind === 'chat') || item.step?.kind === 'chat';

/**
 * Drawn again only when it has changed.
 * @typedef {{id: string, run: import('./chats.js').Run, item: import('./chats.js').Item, rev: number, as: string | null, isDimmed: boolean}} ItemProps
 * @extends {Component<ItemProps>}
 */
class ItemView extends Component {
    /** @param {ItemProps} next */
    shouldComponentUpdate(next) {
        const { item, rev, as, isDimmed } = this.props;
        return next.item !== item || next.rev !== rev || next.as !== as || next.isDimmed !== isDimmed;
    }

    /** @param {ItemProps} props */
    render({ id, run, item, rev, as, isDimmed }) {
        // With `rev`, because a component that reads signals is drawn again only when a prop has changed.
        if (item.kind === 'turn') return html`<${Turn} id=${id} run=${run} item=${item} rev=${rev} as=${as} isDimmed=${isDimmed} />`;
        if (item.kind === 'closed') return html`<${Closed} item=${item} />`;
        if (item.kind === 'before') return html`<${Before} id=${id} run=${run} item=${item} />`;
        return html`<li class="between ${item.undone ? 'undone' : ''}"><${Step} id=${id} run=${run} step=${item.step} /></li>`;
    }
}

/** @param {{item: any}} props */
function Closed({ item }) {
    return html`<li class="closed"><strong>The chat ended:</strong> ${quoted(reasonText(item.reason))}
        ${item.summary && html`<details><summary>Result</summary><${Parts} parts=${[{ text: item.summary }]} /></details>`}</li>`;
}

/** What the participants know before any message: the task, where no message is that, and the introduction. @param {{id: string, run: any, item: any}} props */
function Before({ id, run, item }) {
    const isTask = item.title === 'Task';
    const isEditing = useSignal(isTask && isDrafted(editKey(id, item)));
    return html`<li class=${item.title.toLowerCase()}><div class="turn-head"><h2>${item.title}</h2>
            ${isTask && html`<${Menu} id=${id} item=${item} canFork=${!run.isImported && may('run')} onEdit=${() => (isEditing.value = true)} />`}</div>
        ${isEditing.value ? html`<${Edit} id=${id} item=${item} onEnd=${() => (isEditing.value = false)} />` : html`<${Parts} parts=${item.parts} run=${run} />`}</li>`;
}

/** Who receives a message, if not everyone. @param {{to: any, run: any}} props */
function Private({ to, run }) {
    if (isPublic(to)) return null;
    const names = to.only ?? [];
    return html`<span class="private">${names.length ? html`only to ${names.map((/** @type {string} */ name) => html`<${Name} names=${run.names} name=${name} /> `)}` : 'private'}</span>`;
}

/** How the speaker was chosen, where there was a choice. A private turn with a choice makes it. @param {any} item */
function chosen({ choice, to }) {
    if (!choice || choice.of?.length < 2) return '';
    const among = choice.of.join(', ');
    if (!isPublic(to)) return `selects from ${among}`;
    const [kind, value] = typeof choice.by === 'string' ? [choice.by, null] : Object.entries(choice.by)[0];
    switch (kind) {
        case 'agent': return `selected by ${value} from ${among}`;
        case 'chance': return `selected at random from ${among}`;
        case 'handoff': return 'has the turn by a handoff';
        case 'rule': return 'next by a rule';
        case 'user': return 'chosen from outside';
        case 'background': return 'has the result of a background task';
        case 'tools': return 'runs the tools';
        case 'fallback': return `next in order: ${value.why}`;
        default: return 'next in order';
    }
}

/** The model calls of a turn: each opens what was sent. @param {{who: string, calls: number[]}} props */
function Requests({ who, calls }) {
    return html`<p class="requests">Sent to the model: ${calls.map((call) => html`<button type="button" class="quiet link" onClick=${() => openRequest(who, call)}>request ${call}</button> `)}</p>`;
}

/** @param {{id: string, run: any, item: any, as: string, isDimmed: boolean}} props */
function Turn({ id, run, item, as, isDimmed }) {
    const { who, state, steps, live, undone } = item;
    // A text that was begun is there again after another view, and where the message was out of sight.
    const isEditing = useSignal(isDrafted(editKey(id, item)));
    const isOpen = state === 'open';
    // A result that the message passes on is shown once, with its call.
    const called = steps.map((/** @type {any} */ step) => step.call?.id);
    const cut = steps.findLast((/** @type {any} */ step) => step.kind === 'partial');
    const parts = item.parts?.filter((/** @type {any} */ part) => !part.tool_result || !called.includes(part.tool_result.id));
    const classes = ['turn', isOpen && 'open', undone && 'undone', !isPublic(item.to) && 'is-private', isDimmed && 'dimmed'].filter(Boolean).join(' ');
    return html`<li class=${classes} id="m${item.said ?? item.seq}" tabindex="-1" data-who=${who}>
        <div class="turn-head"><${Avatar} names=${run.names} name=${who} /><${Name} names=${run.names} name=${who} />
            <${Private} to=${item.to} run=${run} />
            ${item.took > 999 && html`<span class="took">${span(item.took)}</span>`}
            <span class="choice">${chosen(item)}</span>
            ${!isOpen && html`<${Menu} id=${id} item=${item} canFork=${!run.isImported && may('run')} onEdit=${() => (isEditing.value = true)} />`}</div>
        ${isDimmed && html`<p class="unseen">not received by ${as}</p>`}
        ${as === who && item.asked?.length > 0 && html`<${Requests} who=${who} calls=${item.asked} />`}
        ${item.prompt && html`<details class="fold"><summary>Prompt for ${who} alone</summary><${Verbatim} text=${item.prompt} /></details>`}
        ${steps.map((/** @type {any} */ step, /** @type {number} */ at) => html`<${Step} key=${at} id=${id} run=${run} step=${step} isLast=${isOpen && !live && step === cut} />`)}
        ${isOpen && html`<${Live} live=${live} draft=${item.draft} />`}
        ${isEditing.value ? html`<${Edit} id=${id} item=${item} onEnd=${() => (isEditing.value = false)} />`
            : state === 'said' && html`<${Parts} parts=${parts} run=${run} />`}
        ${['passed', 'left', 'stopped'].includes(state) && html`<p class="note">${{ passed: 'said nothing', left: 'left', stopped: 'ended the chat' }[/** @type {string} */ (state)]}${item.why ? `: ${item.why}` : ''}</p>`}
    </li>`;
}

/** What arrives now. @param {{live: any, draft: string}} props */
function Live({ live, draft }) {
    return html`<div class="live">
        ${live?.thought && html`<details class="fold"><summary>Thinking …</summary><pre>${live.thought}</pre></details>`}
        ${live?.note && html`<p class="note">${live.note}</p>`}
        ${live?.isTorn && html`<p class="note">The beginning of this reply was missed: the whole reply follows when it is complete.</p>`}
        <p class="live-text">${live?.isTorn ? '… ' : ''}${live?.text || draft || ''}<span class="caret" aria-hidden="true"></span></p>
    </div>`;
}

/** @param {{id: string, item: any, canFork: boolean, onEdit: () => void}} props */
function Menu({ id, item, canFork, onEdit }) {
    const seq = item.said ?? item.seq;
    const text = textOf(item.parts);
    const path = `/conversations/${encodeURIComponent(id)}/fork`;
    const fork = () => attempt(async () => go(['runs', (await post(path, { seq: seq + 1 })).id]));
    const close = (/** @type {any} */ event) => {
        const menu = event.target.closest('details');
        menu.removeAttribute('open');
        // The button that had the focus is not shown any more.
        menu.querySelector('summary').focus({ preventScroll: true });
    };
    const link = `${location.origin}/${address(['runs', id], { at: seq })}`;
    return html`<details class="menu"><summary aria-label="Actions for the ${item.who ? `message of ${item.who}` : 'task'}">⋯</summary>
        <div class="menu-items" onClick=${close}>
            <button type="button" onClick=${() => copy(text, 'The text')}>Copy text</button>
            <button type="button" onClick=${() => copy(link, 'The link')}>Copy link</button>
            ${item.asked?.length > 0 && html`<button type="button" class="sent" onClick=${() => openRequest(item.who, item.asked.at(-1))}>What the model was sent</button>`}
            ${item.who && item.who !== 'user' && html`<button type="button" onClick=${() => viewer() !== item.who && viewAs(item.who)}>View as ${item.who}</button>`}
            ${canFork && html`<button type="button" class="fork" onClick=${fork}>Fork from here</button>`}
            ${canFork && isEditable(item) && html`<button type="button" class="edit" onClick=${onEdit}>Edit and rerun</button>`}
        </div></details>`;
}

/** Whether this session may give a fork another text for it: what a participant says is as good as an answer. Of what is there before the first
 *  turn, that is the task. @param {any} item */
const isEditable = ({ kind, state, opening, isTask, who }) =>
    kind === 'before' || (state === 'said' && (!opening || isTask) && (!who || ['user', 'system'].includes(who) || may('answer')));

/** The key of the draft of another text for a message. @param {string} id @param {any} item */
const editKey = (id, item) => `edit:${id}:${item.said ?? item.seq}`;

/** Another text for a message: a fork runs on from it. @param {{id: string, item: any, onEnd: () => void}} props */
function Edit({ id, item, onEnd }) {
    const own = textOf(item.parts);
    const draft = useDraft(editKey(id, item), own);
    const field = useRef(/** @type {any} */ (null));
    useEffect(() => field.current?.focus({ preventScroll: true }), []);
    const rerun = (/** @type {Event} */ event) => {
        event.preventDefault();
        return attempt(async () => {
            const body = { seq: item.said ?? item.seq, text: draft.text, run: true };
            const fork = await post(`/conversations/${encodeURIComponent(id)}/fork`, body);
            draft.set(own);
            go(['runs', fork.id]);
        });
    };
    const cancel = () => {
        draft.set(own);
        field.current.closest('li').querySelector('.menu > summary')?.focus({ preventScroll: true });
        onEnd();
    };
    return html`<form class="edit-form" onSubmit=${rerun}>
        <textarea ref=${field} aria-label="Another text for this message" rows="6" dir="auto" value=${draft.text} onInput=${(/** @type {any} */ event) => draft.set(event.target.value)}></textarea>
        <div class="actions"><button class="main">Rerun in a fork</button><button type="button" onClick=${cancel}>Cancel</button></div>
    </form>`;
}
