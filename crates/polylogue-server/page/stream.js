// One event stream: the events of a conversation as they happen, across lost connections and restarts of the server.
import { signal } from './lib.js';
import { get } from './api.js';
import { add, addDelta, dropDrafts, newRun } from './fold.js';

/** How often a conversation that is over is looked at, in milliseconds: someone may continue it. */
const LOOK = 4000;

/**
 * Follows a conversation until `stop` is called.
 * @param {string} id
 */
export function follow(id) {
    const run = newRun();
    const state = signal(/** @type {any} */ (null));
    const version = signal(0);
    const isLive = signal(false);
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
        if (isStopped) return;
        source = new EventSource(`/api/v1/conversations/${encodeURIComponent(id)}/events?from=${run.seq}`);
        /** @param {string} type @param {(data: any) => void} action */
        const on = (type, action) => source?.addEventListener(type, (event) => {
            action(JSON.parse(/** @type {MessageEvent} */ (event).data));
            draw();
        });
        source.onopen = () => {
            isLive.value = true;
        };
        on('entry', (event) => add(run, event));
        on('delta', (delta) => addDelta(run, delta));
        on('missed', () => dropDrafts(run));
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
            if (source?.readyState === EventSource.CLOSED) later(retry, 2000);
        };
    }

    function close() {
        source?.close();
        source = null;
        isLive.value = false;
    }

    async function retry() {
        try {
            await get('/session');
            open();
        } catch {
            later(retry, 2000);
        }
    }

    async function look() {
        const now = document.hidden ? null : await get(`/conversations/${encodeURIComponent(id)}`).catch(() => null);
        if (isStopped) return;
        if (now && (now.state !== 'closed' || now.seq > run.seq)) open();
        else later(look, LOOK);
    }

    open();
    return {
        run, state, version, isLive, wake: open,
        stop() {
            isStopped = true;
            clearTimeout(timer);
            close();
        },
    };
}
