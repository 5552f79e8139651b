// Markdown as elements: paragraphs, headings, lists, quotes, code, tables, emphasis, links. What it does not know stays text.
// Nothing is loaded: pictures of other sites are links.
import { html } from './lib.js';
import { Copy, Verbatim } from './verbatim.js';

const LINK = /^(https?:|mailto:)/i;
// Backticks count as a whole run, and emphasis has a greatest length: looking for the end of what has none must not take the square of the text, or more.
const INLINE = /(?<!`)(`+)(?!`)([\s\S]*?[^`])\1(?!`)|(\*\*|__)(?=\S)([\s\S]{0,2000}?\S)\3|(\*|_)(?=[^\s*_])([\s\S]{0,2000}?[^\s*_])\5(?!\w)|!?\[([^\]\n]*)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()\]]+[^\s<>()\].,;:!?'"])/;

/** Text within a line. @param {string} text @param {number} [depth] @returns {any[]} */
function inline(text, depth = 0) {
    const shown = [];
    while (text && depth < 6 && text.length < LONG) {
        const found = INLINE.exec(text);
        if (!found) break;
        const before = text.slice(0, found.index);
        // An underscore within a word is part of it.
        if (found[5] === '_' && /\w$/.test(before)) {
            shown.push(text.slice(0, found.index + 1));
            text = text.slice(found.index + 1);
            continue;
        }
        if (before) shown.push(before);
        shown.push(piece(found, depth));
        text = text.slice(found.index + found[0].length);
    }
    if (text) shown.push(text);
    return shown;
}

/** @param {RegExpExecArray} found @param {number} depth */
function piece(found, depth) {
    const [all, , code, , strong, , soft, label, target, bare] = found;
    if (code !== undefined) return html`<code>${code}</code>`;
    if (strong !== undefined) return html`<strong>${inline(strong, depth + 1)}</strong>`;
    if (soft !== undefined) return html`<em>${inline(soft, depth + 1)}</em>`;
    const url = bare ?? target;
    if (!LINK.test(url)) return all;
    const text = bare ?? (label || url);
    return html`<a href=${url} title=${url} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;
}

/** @param {{text: string, language: string}} props */
export function Code({ text, language }) {
    return html`<div class="code">
        <div class="code-head"><span>${language}</span><${Copy} text=${text} /></div>
        <${Verbatim} text=${text} isCode />
    </div>`;
}

// Where looking for emphasis would take too long, there is none.
const LONG = 20_000;

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const ITEM = /^(\s*)([-*+]|\d{1,6}[.)])\s+(.*)$/;
const ROW = /^\s*\|.*\|\s*$/;

/** Takes lines while they fit. @param {string[]} lines @param {(line: string) => boolean} fits */
function take(lines, fits) {
    const taken = [];
    while (lines.length && fits(lines[0])) taken.push(/** @type {string} */ (lines.shift()));
    return taken;
}

/** @param {string[]} lines */
function fenced(lines) {
    const [, fence, language] = /** @type {RegExpExecArray} */ (FENCE.exec(/** @type {string} */ (lines.shift())));
    const text = take(lines, (line) => !(line.trim().startsWith(fence) && line.trim().replaceAll(fence[0], '') === ''));
    lines.shift();
    return html`<${Code} text=${text.join('\n')} language=${language} />`;
}

/** @param {string[]} lines */
function list(lines) {
    const isOrdered = /^\s*\d/.test(lines[0]);
    const items = [];
    while (lines.length && ITEM.test(lines[0]) && /^\s*\d/.test(lines[0]) === isOrdered) {
        const [, , , first] = /** @type {RegExpExecArray} */ (ITEM.exec(/** @type {string} */ (lines.shift())));
        const rest = take(lines, (line) => /^\s{2,}\S/.test(line));
        items.push(html`<li>${inline(first)}${rest.length ? blocks(rest.map((line) => line.replace(/^\s{2,4}/, '')), 1) : null}</li>`);
    }
    return isOrdered ? html`<ol dir="auto">${items}</ol>` : html`<ul dir="auto">${items}</ul>`;
}

/** @param {string[]} lines */
function table(lines) {
    const rows = take(lines, (line) => ROW.test(line)).map((line) => line.trim().slice(1, -1).split('|').map((cell) => cell.trim()));
    const [head, , ...body] = rows;
    const cells = (/** @type {string[]} */ row, /** @type {string} */ tag) => row.map((cell) => html`<${tag}>${inline(cell)}<//>`);
    return html`<div class="wide" tabindex="0"><table dir="auto"><thead><tr>${cells(head, 'th')}</tr></thead>
        <tbody>${body.map((row) => html`<tr>${cells(row, 'td')}</tr>`)}</tbody></table></div>`;
}

/** @param {string[]} lines @param {number} depth @returns {any[]} */
function blocks(lines, depth) {
    const shown = [];
    while (lines.length) {
        const line = lines[0];
        const heading = /^(#{1,6})\s+(.*)$/.exec(line);
        if (!line.trim()) lines.shift();
        else if (FENCE.test(line)) shown.push(fenced(lines));
        else if (heading) {
            lines.shift();
            shown.push(html`<p class="heading h${heading[1].length}">${inline(heading[2])}</p>`);
        } else if (/^\s*([-*_]\s*){3,}$/.test(line)) {
            lines.shift();
            shown.push(html`<hr />`);
        } else if (depth < 6 && /^\s*>/.test(line)) {
            const quoted = take(lines, (line) => /^\s*>/.test(line)).map((line) => line.replace(/^\s*> ?/, ''));
            shown.push(html`<blockquote dir="auto">${blocks(quoted, depth + 1)}</blockquote>`);
        } else if (ITEM.test(line) && depth < 6) shown.push(list(lines));
        else if (ROW.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[1] ?? '')) shown.push(table(lines));
        else {
            const first = /** @type {string} */ (lines.shift());
            const rest = take(lines, (line) => Boolean(line.trim()) && !FENCE.test(line) && !ITEM.test(line) && !/^(#{1,6}\s|\s*>)/.test(line));
            shown.push(html`<p>${inline([first, ...rest].join('\n'))}</p>`);
        }
    }
    return shown;
}

/** @param {{text: string}} props */
export function Markdown({ text }) {
    return html`<div class="prose">${blocks(text.split('\n'), 0)}</div>`;
}
