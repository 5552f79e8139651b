// What a view reads once.
import { useEffect } from './lib.js';
import { failure, isTemporary, refresh } from './api.js';

/** How soon it is read again where that has failed, in milliseconds. */
const AGAIN = 2000;

/**
 * Reads something for a view: repeatedly while the server is away or busy. What it refuses is shown, and not asked for again.
 * @template T
 * @param {() => Promise<T>} read
 * @param {(found: T) => void} take receives what was read, while the view wants it
 * @param {any[]} of what it depends on
 */
export function useLoad(read, take, of) {
    useEffect(() => {
        let isOver = false;
        let timer = 0;
        const load = async () => {
            const found = await refresh(() => read().then((value) => ({ value }), (error) => {
                if (isTemporary(error)) throw error;
                if (!isOver) failure.value = error;
                return { value: undefined };
            }));
            if (isOver) return;
            if (!found) timer = setTimeout(load, AGAIN);
            else if (found.value !== undefined) take(found.value);
        };
        load();
        return () => {
            isOver = true;
            clearTimeout(timer);
        };
    }, of);
}
