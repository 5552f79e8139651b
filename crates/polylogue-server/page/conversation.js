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

/** @param {{id: string, run: any, version: number}} props */
export function Conversation({ id, run, version }) {
    const follows = useRef(true);
    const isBehind = useSignal(false);
    const items = run.chats.get('').items;
    const wanted = route.value.query.get('at');
    const found = useRef(/** @type {string | null} */ (null));
    useEffect(() => {
        const scrolled = () => {
            follows.current = isAtEnd();
            if (follows.current) isBehind.value = false;
        };
        addEventListener('scroll', scrolled, { passive: true });
        return () => removeEventListener('scroll', scrolled);
    }, []);
    useEffect(() => {
        const target = wanted && found.current !== wanted ? document.getElementById(`m${wanted}`) : null;
        if (target) {
            found.current = wanted;
            follows.current = false;
            target.scrollIntoView({ block: 'center' });
            target.focus();
        } else if (wanted && found.current !== wanted) return;
        else if (follows.current) toEnd();
        else if (!isAtEnd()) isBehind.value = true;
    }, [items.length, wanted]);
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
