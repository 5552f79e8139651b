// Addresses of views: `#/runs/ID?tab=graph`. Reload and back work, because an address is all that a view is made of.
import { signal } from './lib.js';

/** @typedef {{parts: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
function read() {
    // The link that logs in leads to the first view.
    const hash = location.hash.startsWith('#login=') ? '' : location.hash;
    const [path, query] = hash.replace(/^#\/?/, '').split('?');
    const parts = path.split('/').filter(Boolean).map((part) => {
        try {
            return decodeURIComponent(part);
        } catch {
            return part;
        }
    });
    return { parts, query: new URLSearchParams(query ?? '') };
}

/** Where the page is. */
export const route = signal(read());
addEventListener('hashchange', () => {
    route.value = read();
});

/**
 * The address of a view.
 * @param {string[]} parts
 * @param {Record<string, string | number | null | undefined>} [query]
 */
export function address(parts, query = {}) {
    const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
    const text = new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString();
    return `#/${parts.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** @param {string[]} parts @param {Record<string, any>} [query] */
export function go(parts, query) {
    location.hash = address(parts, query);
}

/**
 * Changes the query of the present address, without an entry in the history.
 * @param {Record<string, any>} changes
 */
export function refine(changes) {
    // Not `route`, which is behind while an event is on its way.
    const { parts, query } = read();
    history.replaceState(history.state, '', address(parts, { ...Object.fromEntries(query), ...changes }));
    route.value = read();
}
