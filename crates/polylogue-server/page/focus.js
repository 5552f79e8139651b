// The focus of who uses the keyboard: a browser forgets it with the element that had it.
import { useEffect, useRef } from './lib.js';

/** How far below the edge of the screen a text stays that is longer than what is left of it, in pixels. */
const MARGIN = 80;

/** Scrolls what keys have given the focus out from under the boxes at the bottom, which lie over what was said. @param {FocusEvent} event */
function uncover({ target }) {
    const boxes = document.querySelector('.boxes');
    if (!boxes || !(target instanceof Element) || boxes.contains(target) || !target.matches(':focus-visible')) return;
    const [own, over] = [target, boxes].map((it) => it.getBoundingClientRect());
    const hidden = own.bottom - over.top;
    // Boxes that do not end on the screen move with it at first.
    const before = Math.max(0, over.bottom - innerHeight);
    if (hidden > 0 && own.top > MARGIN) scrollBy(0, Math.min(before + hidden + 8, own.top - MARGIN));
}
addEventListener('focusin', uncover);

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
