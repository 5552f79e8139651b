// The conversation: the items of its outermost chat, the newest in view while it is followed.
import { html, useEffect, useLayoutEffect, useRef, useSignal } from './lib.js';
import { focusOn } from './focus.js';
import { route } from './router.js';
import { Items } from './items.js';

/** How close to its end the page must be to follow it, in pixels. */
const NEAR = 160;

function isAtEnd() {
    const { scrollHeight, scrollTop, clientHeight } = document.documentElement;
    return scrollHeight - scrollTop - clientHeight < NEAR;
}

const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight });

/** The turn with an event: what is in it, such as a chat or a call, has no place of its own. @param {any} run @param {number} seq */
function turnOf(run, seq) {
    if (run.seq <= seq) return null;
    const turns = run.chats.get('').items.filter((/** @type {any} */ item) => item.kind === 'turn');
    const end = (/** @type {any} */ item) => item.said ?? item.seq;
    return turns.find((/** @type {any} */ item) => end(item) === seq) ?? turns.find((/** @type {any} */ item) => end(item) > seq) ?? turns.at(-1);
}

/** How far a page moves up by rounding, in pixels. */
const ROUNDED = 4;

/**
 * Keeps the end of the page in view, whatever makes it longer, until a person scrolls up, opens something, or asks for a place.
 * @param {boolean} isFollowed whether it does so at first
 */
function useEnd(isFollowed) {
    const follows = useRef(isFollowed);
    const isBehind = useSignal(false);
    useEffect(() => {
        let place = { scrollTop: 0, scrollHeight: 0 };
        const scrolled = () => {
            const { scrollTop, scrollHeight } = document.documentElement;
            // By a person, and not because something above has become smaller.
            const up = place.scrollTop - scrollTop - Math.max(0, place.scrollHeight - scrollHeight);
            if (up < 0 || up > ROUNDED) place = { scrollTop, scrollHeight };
            // Neither: the page has moved by itself, and more has come since.
            if (up > ROUNDED) follows.current = false;
            else if (isAtEnd()) follows.current = true;
            if (follows.current) isBehind.value = false;
        };
        const opened = () => {
            follows.current &&= isAtEnd();
        };
        const grown = new ResizeObserver(() => {
            if (follows.current) toEnd();
            const { scrollTop, scrollHeight } = document.documentElement;
            place = { scrollTop, scrollHeight };
        });
        grown.observe(document.body);
        addEventListener('scroll', scrolled, { passive: true });
        addEventListener('toggle', opened, true);
        return () => {
            grown.disconnect();
            removeEventListener('scroll', scrolled);
            removeEventListener('toggle', opened, true);
        };
    }, []);
    return { follows, isBehind };
}

/** Brings a message into view with the focus, unless a person has moved the focus from where it was. @param {HTMLElement} target @param {Element | null} before */
function goTo(target, before) {
    const now = document.activeElement;
    if (now && now !== document.body && now !== before) return;
    target.scrollIntoView({ block: 'center' });
    target.focus();
}

/** @param {{id: string, run: any, version: number}} props */
export function Conversation({ id, run, version }) {
    const items = run.chats.get('').items;
    const at = route.value.query.get('at');
    const { follows, isBehind } = useEnd(at === null);
    const turn = at === null ? null : turnOf(run, Number(at));
    const wanted = turn && String(turn.said ?? turn.seq);
    const found = useRef(/** @type {string | null} */ (null));
    const focused = useRef(/** @type {Element | null} */ (null));
    useLayoutEffect(() => {
        focused.current = document.activeElement;
    }, [at]);
    // In the step that draws the message, so that no key comes between: it would move from the first message in view.
    useLayoutEffect(() => {
        const target = wanted && found.current !== at ? document.getElementById(`m${wanted}`) : null;
        if (target) {
            found.current = at;
            follows.current = false;
            goTo(target, focused.current);
        } else if (found.current === at && !follows.current && !isAtEnd()) isBehind.value = true;
        // Also for each piece of what is being said, and for what happens within a turn.
    }, [run.seq, run.pieces, at]);
    const newest = () => {
        toEnd();
        follows.current = true;
        isBehind.value = false;
        focusOn('.talk > .conversation > .list > .chunk:last-child > .turn:last-of-type');
    };
    return html`<div class="conversation">
        <${Items} id=${id} run=${run} chat=${run.chats.get('')} version=${version} wanted=${wanted} isWindowed />
        <${Announced} items=${items} />
        ${isBehind.value && html`<button type="button" class="newer" onClick=${newest}>Newer messages ↓</button>`}
    </div>`;
}

/** Whole messages for screen readers, not their pieces. @param {{items: any[]}} props */
function Announced({ items }) {
    const last = items.findLast((item) => item.kind === 'turn' && item.state === 'said');
    const text = last?.parts?.find((/** @type {any} */ part) => part.text)?.text ?? '';
    return html`<div class="sr-only" aria-live="polite">${last ? `${last.who}: ${text.slice(0, 500)}` : ''}</div>`;
}
