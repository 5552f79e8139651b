// The event stream of a tab: a conversation or the list as it happens, across lost connections and restarts of the server. A browser has
// six connections to a server for all of its tabs, and a stream holds one of them, so a hidden tab has none.
import { signal } from './lib.js';
import { get } from './api.js';
import { newRun } from './chats.js';
import { add } from './fold.js';
import { addDelta, dropDrafts, endReply } from './pieces.js';

/** How often a conversation without a stream is looked at, in milliseconds: someone may continue it, and the title of a tab says what waits. */
const LOOK = 4000;

/** How long after a lost connection another one is tried, in milliseconds. */
const RETRY = 2000;

/**
 * Calls `show` now if the tab is visible, and whenever it becomes so; otherwise `hide`. Returns what ends that.
 * @param {() => void} show
 * @param {() => void} hide
 */
function whileVisible(show, hide) {
    const turn = () => (document.hidden ? hide() : show());
    document.addEventListener('visibilitychange', turn);
    turn();
    return () => document.removeEventListener('visibilitychange', turn);
}

/**
 * Follows a conversation until `stop` is called.
 * @param {string} id
 */
export function follow(id) {
    const run = newRun();
    const state = signal(/** @type {any} */ (null));
    const version = signal(0);
    const isLive = signal(false);
    const isGone = signal(false);
    /** @type {EventSource | null} */
    let source = null;
    let timer = 0;
    let frame = 0;
    let isStopped = false;

    // Many events of one moment are drawn once. A hidden page draws nothing, and has no frames.
    const draw = () => {
        if (frame) return;
        const drawn = () => {
            frame = 0;
            version.value += 1;
        };
        frame = document.hidden ? setTimeout(drawn, 200) : requestAnimationFrame(drawn);
    };
    const later = (/** @type {() => void} */ action, /** @type {number} */ ms) => {
        clearTimeout(timer);
        timer = setTimeout(() => isStopped || action(), ms);
    };

    function open() {
        close();
        clearTimeout(timer);
        if (isStopped) return;
        if (document.hidden) return later(look, 0);
        source = new EventSource(`/api/v1/conversations/${encodeURIComponent(id)}/events?from=${run.seq}`);
        /** @param {string} type @param {(data: any) => void} action */
        const on = (type, action) => source?.addEventListener(type, (event) => {
            action(JSON.parse(/** @type {MessageEvent} */ (event).data));
            draw();
        });
        source.onopen = () => {
            // A stream begins with what has been written of a reply.
            dropDrafts(run, false);
            isLive.value = true;
        };
        on('entry', (event) => {
            add(run, event);
            endReply(run, event, performance.now());
        });
        on('delta', (delta) => addDelta(run, delta, performance.now()));
        on('missed', () => dropDrafts(run, true));
        on('state', (now) => {
            state.value = now;
        });
        on('end', (now) => {
            state.value = now;
            close();
            later(look, LOOK);
        });
        source.onerror = () => {
            isLive.value = false;
            // Else the browser connects again by itself, from the last number on.
            if (source?.readyState === EventSource.CLOSED) later(retry, RETRY);
        };
    }

    function close() {
        source?.close();
        source = null;
        isLive.value = false;
    }

    function hide() {
        close();
        later(look, 0);
    }

    /** The conversation; `null` if it cannot be read now. */
    const read = () => get(`/conversations/${encodeURIComponent(id)}`).catch((error) => {
        if (error.status === 404) leave();
        return null;
    });

    /** It is gone, and not asked for again. */
    function leave() {
        stop();
        isGone.value = true;
    }

    // Reading says what the stream does not: whether no one is logged in, or the conversation is gone.
    async function retry() {
        const now = await read();
        if (isStopped) return;
        if (now) open();
        else later(retry, RETRY);
    }

    async function look() {
        const now = await read();
        // It may have been shown meanwhile.
        if (isStopped || source) return;
        if (now && document.hidden) state.value = now;
        else if (now && (now.state !== 'closed' || now.seq > run.seq)) return open();
        later(look, LOOK);
    }

    function stop() {
        isStopped = true;
        end();
        clearTimeout(timer);
        close();
    }

    const end = whileVisible(open, hide);
    // A stream that is open has what happens, and would miss pieces while it is opened again.
    const wake = () => isLive.value || open();
    return { run, state, version, isLive, isGone, wake, leave, stop };
}

/**
 * Follows the list of conversations until what is returned is called: `changed` receives each of the newest that is new or has changed,
 * `removed` the id of one that was removed, and `opened` says that there may be more.
 * @param {{changed: (conversation: any) => void, removed: (id: string) => void, opened: () => void}} on
 */
export function followList(on) {
    /** @type {EventSource | null} */
    let source = null;
    let timer = 0;
    let isOver = false;
    const close = () => {
        clearTimeout(timer);
        source?.close();
        source = null;
    };
    const open = () => {
        close();
        source = new EventSource('/api/v1/feed');
        const data = (/** @type {Event} */ event) => JSON.parse(/** @type {MessageEvent} */ (event).data);
        source.onopen = on.opened;
        source.addEventListener('conversation', (event) => on.changed(data(event)));
        source.addEventListener('removed', (event) => on.removed(data(event).id));
        source.onerror = () => {
            if (source?.readyState !== EventSource.CLOSED) return;
            clearTimeout(timer);
            timer = setTimeout(retry, RETRY);
        };
    };
    // Who is not logged in any more has left this view once the answer is there.
    const retry = () => get('/session').then(() => document.hidden || isOver || open(), () => {
        if (!isOver) timer = setTimeout(retry, RETRY);
    });
    const end = whileVisible(open, close);
    return () => {
        isOver = true;
        end();
        close();
    };
}
