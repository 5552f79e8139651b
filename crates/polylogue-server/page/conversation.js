// The conversation: the items of its outermost chat, the newest in view while it is followed.
import { html, useEffect, useRef, useSignal } from './lib.js';
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

/** @param {{id: string, run: any, version: number, waits: number}} props `waits`: how many questions are open, which takes place */
export function Conversation({ id, run, version, waits }) {
    const follows = useRef(true);
    const place = useRef({ scrollTop: 0, scrollHeight: 0 });
    const isBehind = useSignal(false);
    const items = run.chats.get('').items;
    const at = route.value.query.get('at');
    const turn = at === null ? null : turnOf(run, Number(at));
    const wanted = turn && String(turn.said ?? turn.seq);
    const found = useRef(/** @type {string | null} */ (null));
    useEffect(() => {
        const scrolled = () => {
            const { scrollTop, scrollHeight } = document.documentElement;
            // By a person, and not because something above has become smaller.
            const isUp = scrollTop < place.current.scrollTop && scrollHeight >= place.current.scrollHeight;
            place.current = { scrollTop, scrollHeight };
            follows.current = isAtEnd() && !isUp;
            if (follows.current) isBehind.value = false;
        };
        addEventListener('scroll', scrolled, { passive: true });
        // What a person opens to read is not left for what comes.
        addEventListener('toggle', scrolled, true);
        return () => {
            removeEventListener('scroll', scrolled);
            removeEventListener('toggle', scrolled, true);
        };
    }, []);
    useEffect(() => {
        const target = wanted && found.current !== at ? document.getElementById(`m${wanted}`) : null;
        if (target) {
            found.current = at;
            follows.current = false;
            target.scrollIntoView({ block: 'center' });
            target.focus();
        } else if (wanted && found.current !== at) return;
        else if (follows.current) toEnd();
        else if (!isAtEnd()) isBehind.value = true;
        // Also for each piece of what is being said, and for what happens within a turn.
    }, [run.seq, run.pieces, waits, at]);
    return html`<div class="conversation">
        <${Items} id=${id} run=${run} chat=${run.chats.get('')} version=${version} wanted=${wanted} isWindowed />
        <${Announced} items=${items} />
        ${isBehind.value && html`<button type="button" class="newer" onClick=${() => (toEnd(), (isBehind.value = false))}>Newer messages ↓</button>`}
    </div>`;
}

/** Whole messages for screen readers, not their pieces. @param {{items: any[]}} props */
function Announced({ items }) {
    const last = items.findLast((item) => item.kind === 'turn' && item.state === 'said');
    const text = last?.parts?.find((/** @type {any} */ part) => part.text)?.text ?? '';
    return html`<div class="sr-only" aria-live="polite">${last ? `${last.who}: ${text.slice(0, 500)}` : ''}</div>`;
}
