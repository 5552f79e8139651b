// How far a list is scrolled, for when a person comes back to it: a browser looks for that place before the list is there.
import { useLayoutEffect } from './lib.js';

/** By the entries of the history, which know their numbers. @type {Map<number, number>} */
const places = new Map();

/** Scrolls to where the page was when it was left, or else to its beginning. @param {boolean} isThere whether the list is drawn */
export function usePlace(isThere) {
    useLayoutEffect(() => {
        if (!isThere) return;
        if (!history.state?.entry) history.replaceState({ entry: Date.now() }, '');
        const { entry } = history.state;
        scrollTo({ top: places.get(entry) ?? 0 });
        const keep = () => places.set(entry, scrollY);
        addEventListener('scroll', keep, { passive: true });
        return () => removeEventListener('scroll', keep);
    }, [isThere]);
}
