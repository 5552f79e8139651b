// The library of the page in one place: `html` makes elements, and shows every text as text.
import { h, render, Fragment, Component } from './vendor/preact-11.2.0.js';
import { useEffect, useLayoutEffect, useRef, useState } from './vendor/preact-hooks-11.2.0.js';
import { signal, computed, effect, batch } from './vendor/signals-core-1.14.5.js';
import { useSignal } from './vendor/signals-2.11.4.js';
import htm from './vendor/htm-3.1.1.js';

export { render, Fragment, Component, useEffect, useLayoutEffect, useRef, useState, signal, computed, effect, batch, useSignal };

// Controls and characters that are invisible or reorder others, as on a terminal: also fillers and tags, in which a text can hide. Line ends, tabs and the joiners of
// scripts and emoji stay.
const HIDDEN =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e00ff}]/gu;

/**
 * Writes out characters that would hide or reorder others, as in `⟨U+202E⟩`.
 * @param {string} text
 * @returns {string}
 */
export function visible(text) {
    return text.replace(HIDDEN, (c) =>
        c === '\r' ? '' : `⟨U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

/** @param {any} child @returns {any} */
function shown(child) {
    if (typeof child === 'string') return visible(child);
    return Array.isArray(child) ? child.map(shown) : child;
}

// What a browser shows of an element besides its children.
const SHOWN_PROPS = ['title', 'alt', 'aria-label', 'placeholder'];

/** @param {any} type @param {any} props @param {...any} children */
function element(type, props, ...children) {
    if (typeof type !== 'string') return h(type, props, ...children);
    for (const name of SHOWN_PROPS) {
        if (typeof props?.[name] === 'string') props = { ...props, [name]: visible(props[name]) };
    }
    return h(type, props, ...children.map(shown));
}

/** Elements from a template. No text in it becomes markup. */
export const html = htm.bind(element);

/**
 * A value that the browser keeps, such as the theme.
 * @param {string} key
 * @param {string} otherwise
 */
export function kept(key, otherwise) {
    const value = signal(localStorage.getItem(key) ?? otherwise);
    effect(() => localStorage.setItem(key, value.value));
    return value;
}
