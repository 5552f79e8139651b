// The parts of a message: text as Markdown, values, pictures, files, calls for other participants.
import { html, useState } from './lib.js';
import { Code, Markdown } from './markdown.js';
import { Verbatim } from './verbatim.js';

/** How many lines of a text are shown at first. */
const LINES = 40;

/** @param {{text: string}} props */
export function Text({ text }) {
    const [isWhole, setWhole] = useState(false);
    const lines = text.split('\n');
    const isLong = lines.length > LINES || text.length > 8000;
    const shown = isLong && !isWhole ? lines.slice(0, LINES).join('\n').slice(0, 8000) : text;
    return html`<${Markdown} text=${shown} />
        ${isLong && html`<button type="button" class="quiet" onClick=${() => setWhole(!isWhole)}>
            ${isWhole ? 'Show less' : `Show all ${lines.length} lines`}</button>`}`;
}

/** @param {{media: any}} props */
function Media({ media }) {
    const { type, url } = media;
    const isPicture = /^data:image\/(png|jpeg|gif|webp);/i.test(url);
    if (isPicture) return html`<img class="picture" src=${url} alt="A picture of the type ${type}" />`;
    if (/^https:/i.test(url)) return html`<p class="file"><a href=${url} target="_blank" rel="noopener noreferrer nofollow">${url}</a> (${type}, not loaded)</p>`;
    return html`<p class="file">A file of the type ${type}, ${url.length} characters</p>`;
}

/** A sentence of the program, whose words in backticks are code. @param {string} text */
export const quoted = (text) => text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

/**
 * An error of a team file, as the server says it: its lines, which quote the file, stay as they are.
 * @param {{text: string, children?: any}} props
 */
export function FileError({ text, children }) {
    const isQuoted = (/** @type {string} */ line) => /^\s*(-->|\d*\s*\|)/.test(line);
    /** @type {{isCode: boolean, lines: string[]}[]} */
    const blocks = [];
    for (const line of text.split('\n')) {
        const last = blocks.at(-1);
        if (last && last.isCode && isQuoted(line)) last.lines.push(line);
        else blocks.push({ isCode: isQuoted(line), lines: [line] });
    }
    return html`<div class="bad file-error">${children}${blocks.map(({ isCode, lines }) => (isCode ? html`<pre tabindex="0">${lines.join('\n')}</pre>` : html`<p>${quoted(lines[0])}</p>`))}</div>`;
}

/**
 * A button that is pressed several times. At the end it does nothing, and keeps the focus, which a disabled one would lose.
 * @param {{label: string, can: boolean, onClick: () => void, children?: any}} props
 */
export const Step = ({ label, can, onClick, children }) => html`<button type="button" class="quiet" aria-label=${label}
    aria-disabled=${can ? undefined : 'true'} onClick=${() => can && onClick()}>${children}</button>`;

/** A value as JSON; a text unchanged. @param {any} value */
export const json = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2) ?? '');

/** @param {{part: any, run: any}} props */
function Part({ part, run }) {
    if ('text' in part) return html`<${Text} text=${part.text} />`;
    if ('data' in part) return html`<${Code} text=${json(part.data)} language="json" />`;
    if ('media' in part) return html`<${Media} media=${part.media} />`;
    // What was cut off by a person says so in its text.
    if ('cut' in part) return part.cut === 'interrupted' ? null : html`<p class="note">truncated: ${json(part.cut)}</p>`;
    if ('call' in part) return html`<${Call} call=${part.call} />`;
    if ('tool_result' in part) return html`<${ToolResult} tool=${part.tool_result.tool} result=${part.tool_result.result} run=${run} />`;
    if ('thought' in part) return html`<details class="fold"><summary>Thinking</summary><${Verbatim} text=${part.thought} /></details>`;
    return null;
}

/** @param {{call: any}} props */
function Call({ call }) {
    return html`<details class="fold"><summary>Asks for <code>${call.tool}</code></summary><${Verbatim} text=${json(call.args)} /></details>`;
}

/** @param {{tool: string, result: any, run: any}} props */
function ToolResult({ tool, result, run }) {
    return html`<details class="fold"><summary>Result of <code>${tool}</code>${result.status === 'done' ? '' : `: ${result.status}`}</summary>
        <${Results} result=${result} run=${run} /></details>`;
}

/** What a tool has returned: always verbatim, never as Markdown. @param {{result: any, run: any}} props */
export function Results({ result, run }) {
    return html`${result.from && html`<p class="note">from outside: ${result.from}</p>`}
        ${(result.parts ?? []).map((/** @type {any} */ part) => ('text' in part ? html`<${Verbatim} text=${part.text} />` : html`<${Part} part=${part} run=${run} />`))}`;
}

/** @param {{parts: any[], run?: any}} props */
export function Parts({ parts, run }) {
    return html`<div class="parts">${(parts ?? []).map((part) => html`<${Part} part=${part} run=${run} />`)}</div>`;
}
