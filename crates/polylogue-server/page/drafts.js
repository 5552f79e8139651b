// Drafts: what a person writes stays in the tab until it is sent, across other views and a reload.
import { useSignal } from './lib.js';

/**
 * The draft with a key; `otherwise` is its text while nothing was written.
 * @param {string} key @param {string} [otherwise]
 */
export function useDraft(key, otherwise = '') {
    const draft = useSignal(sessionStorage.getItem(key) ?? otherwise);
    const set = (/** @type {string} */ text) => {
        draft.value = text;
        if (text === otherwise) sessionStorage.removeItem(key);
        else sessionStorage.setItem(key, text);
    };
    return {
        get text() {
            return draft.value;
        },
        set,
    };
}

/** Whether there is a draft with the key. @param {string} key */
export const isDrafted = (key) => sessionStorage.getItem(key) !== null;
