// Names of speakers: never by a color alone, always with the name and its initials.
import { html } from './lib.js';

/** How many colors there are. */
const COLORS = 12;

/** @param {string} name */
export function initials(name) {
    const words = name.split(/[\s_-]+/).filter(Boolean);
    const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...name].slice(0, 2);
    return letters.join('').toUpperCase();
}

/** @param {string[]} names in the order of their appearance @param {string} name */
export function colorOf(names, name) {
    const at = names.indexOf(name);
    return name === 'user' ? 'user' : `c${(at < 0 ? names.length : at) % COLORS}`;
}

/** @param {{names: string[], name: string}} props */
export function Avatar({ names, name }) {
    return html`<span class="avatar ${colorOf(names, name)}" aria-hidden="true">${initials(name)}</span>`;
}

/** @param {{names: string[], name: string}} props */
export function Name({ names, name }) {
    return html`<span class="name ${colorOf(names, name)}">${name}</span>`;
}
