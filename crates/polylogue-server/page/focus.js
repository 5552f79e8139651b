// The focus of who uses the keyboard: a browser forgets it with the element that had it.
import { useEffect, useRef } from './lib.js';

/** Gives an element the focus, or else the view. What is in view stays there. @param {string} [selector] */
export function focusOn(selector) {
    const found = selector && document.querySelector(selector);
    /** @type {HTMLElement | null} */ (found || document.querySelector('main'))?.focus({ preventScroll: true });
}

/**
 * Keeps the focus where a change may remove the element that had it.
 * @param {any} of what changes then
 * @param {string} [selector] what has it next; default: the view
 */
export function useFocus(of, selector) {
    const before = useRef(of);
    useEffect(() => {
        if (before.current !== of && document.activeElement === document.body) focusOn(selector);
        before.current = of;
    }, [of]);
}
