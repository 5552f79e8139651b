// Names of speakers: never by a color alone, always with the name and its initials.
import { html } from './lib.js';

/** How many colors there are. */
const COLORS = 12;

/** @param {string} name */
function initials(name) {
    const words = name.split(/[\s_-]+/).filter(Boolean);
    const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...name].slice(0, 2);
    return letters.join('').toUpperCase();
}

/** @param {string[]} names in the order of their appearance @param {string} name */
export function colorOf(names, name) {
    const at = names.indexOf(name);
    return name === 'user' ? 'user' : `c${(at < 0 ? names.length : at) % COLORS}`;
}

/**
 * The names of two runs, each at a place that gives it the color of its run. Only a participant of the second run whose color one of the
 * first has gets another one: the first that is free.
 * @param {string[]} first @param {string[]} second those of each run, in the order of their appearance
 * @param {Set<string>} shown those that are shown, and need a color
 */
export function merged(first, second, shown) {
    /** @type {string[]} */
    const names = [];
    first.forEach((name, at) => {
        if (shown.has(name)) names[at] = name;
    });
    const isFree = (/** @type {number} */ color) => !names.some((_, at) => at % COLORS === color % COLORS);
    const others = [...second.keys()].filter((at) => shown.has(second[at]) && !first.includes(second[at]));
    const taken = others.filter((at) => !isFree(at));
    for (const at of others) if (!taken.includes(at)) names[at] = second[at];
    for (const at of taken) {
        let place = [...Array(COLORS).keys()].find(isFree) ?? at;
        while (names[place]) place += COLORS;
        names[place] = second[at];
    }
    return names;
}

/** @param {{names: string[], name: string}} props */
export function Avatar({ names, name }) {
    return html`<span class="avatar ${colorOf(names, name)}" aria-hidden="true">${initials(name)}</span>`;
}

/** A name; one that is too long for its place breaks after `_`. @param {{names: string[], name: string}} props */
export function Name({ names, name }) {
    const parts = name.split(/(?<=_)(?=.)/).map((part, at) => (at ? html`<wbr />${part}` : part));
    return html`<span class="name ${colorOf(names, name)}">${parts}</span>`;
}
