// Texts as they are, in full or only their beginning: a browser takes seconds for a text of megabytes.
import { html, useState } from './lib.js';
import { counted } from './format.js';

/** How many characters of a text are shown at first. */
const SHOWN = 20_000;

/** The beginning of a long text, with no half of a character. @param {string} text */
const beginning = (text) => `${text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, '')}…`;

/** @param {{text: string, isCode?: boolean}} props */
export function Verbatim({ text, isCode }) {
    const [isWhole, setWhole] = useState(false);
    const isLong = text.length > SHOWN;
    const shown = isLong && !isWhole ? beginning(text) : text;
    return html`<pre tabindex="0">${isCode ? html`<code>${shown}</code>` : shown}</pre>
        ${isLong && html`<button type="button" class="quiet" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
            ${isWhole ? 'Show less' : `Show all ${counted(text.length, 'character')}`}</button>`}`;
}
