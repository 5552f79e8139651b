// Texts as they are, in full or only their beginning. A browser takes seconds to lay out megabytes, so a text in full is one of pieces, of
// which the browser lays out those in view.
import { Component, html, useState } from './lib.js';
import { attempt, Problem, say } from './api.js';
import { counted } from './format.js';

/** How many characters of a text are shown at first. */
const SHOWN = 20_000;

/** How many characters are laid out together. */
const PIECE = 10_000;

/** About how many characters a row has, by which the height of a piece is guessed that was never in view. */
const ROW = 100;

/** A text with no half of a character at its end. @param {string} text */
const whole = (text) => text.replace(/[\ud800-\udbff]$/, '');

/** The pieces of a text: each is a block, so it ends where a line does; within a long line, where a word does. @param {string} text */
function cut(text) {
    const pieces = [];
    for (let from = 0; from < text.length;) {
        const most = text.slice(from, from + PIECE);
        const isLast = from + PIECE >= text.length;
        const end = (isLast && most.length) || most.lastIndexOf('\n') + 1 || most.lastIndexOf(' ') + 1 || whole(most).length;
        pieces.push(most.slice(0, end));
        from += end;
    }
    return pieces;
}

/** A piece of a text, which is drawn once: looking through megabytes takes time. @extends {Component<{text: string}>} */
class Piece extends Component {
    shouldComponentUpdate(/** @type {{text: string}} */ next) {
        return next.text !== this.props.text;
    }

    // By the object model: the policy of the page allows no style attribute.
    /** @param {{text: string}} props */
    render({ text }) {
        const rows = Math.max(text.split('\n').length - 1, Math.ceil(text.length / ROW));
        return html`<span class="piece" ref=${(/** @type {HTMLElement | null} */ it) => it?.style.setProperty('contain-intrinsic-height', `auto ${1.5 * rows}em`)}>${text}</span>`;
    }
}

/** Copies what is selected of a text without the line breaks between its pieces. @param {any} event */
function copySelected(event) {
    const range = getSelection()?.rangeCount ? getSelection()?.getRangeAt(0) : null;
    if (!range || !event.currentTarget.contains(range.commonAncestorContainer)) return;
    event.clipboardData.setData('text/plain', range.cloneContents().textContent);
    event.preventDefault();
}

/** Copies a text, and says so. What keeps the browser from it is said at the top. @param {string} text @param {string} what */
export const copy = (text, what) => attempt(async () => {
    const hint = 'select it, and copy it with the keys of the browser; without HTTPS, only the page of a server on this machine can copy';
    const refused = new Problem({ detail: 'the browser does not allow this page to copy', hint });
    if (!navigator.clipboard) throw refused;
    await navigator.clipboard.writeText(text).catch(() => {
        throw refused;
    });
    say(`${what} was copied.`);
});

/** The button that copies a text. @param {{text: string}} props */
export const Copy = ({ text }) => html`<button type="button" class="quiet" onClick=${() => copy(text, 'The text')}>Copy</button>`;

/** @param {{text: string, isCode?: boolean}} props */
export function Verbatim({ text, isCode }) {
    const [isWhole, setWhole] = useState(false);
    const isLong = text.length > SHOWN;
    const shown = !isLong ? text : isWhole ? cut(text).map((piece) => html`<${Piece} text=${piece} />`) : `${whole(text.slice(0, SHOWN))}…`;
    return html`<pre tabindex="0" onCopy=${isWhole ? copySelected : undefined}>${isCode ? html`<code>${shown}</code>` : shown}</pre>
        ${isLong && html`<button type="button" class="quiet" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
            ${isWhole ? 'Show less' : `Show all ${counted(text.length, 'character')}`}</button>${!isCode && html`<${Copy} text=${text} />`}`}`;
}
