// The files that the agents of a run have written.
import { html, useSignal } from './lib.js';
import { attempt, get } from './api.js';
import { counted, short } from './format.js';

/** A list of links, which is read when it is opened. @param {{id: string}} props */
export function Files({ id }) {
    const found = useSignal(/** @type {any} */ (null));
    const path = `/conversations/${encodeURIComponent(id)}/files`;
    const read = (/** @type {any} */ event) => event.target.open && attempt(async () => (found.value = await get(path)));
    const { files = [], left_out: left = [] } = found.value ?? {};
    return html`<details class="files" onToggle=${read}><summary>Files</summary>
        ${found.value && files.length === 0 && html`<p class="empty">No files.</p>`}
        ${files.length > 0 && html`<ul>${files.map((/** @type {any} */ file) => html`<li key=${file.path}>
            <a href=${`/api/v1${path}/content?path=${encodeURIComponent(file.path)}`} download=${file.path.split('/').pop()}>${file.path}</a>
            <span class="count">${short(file.bytes)} bytes</span></li>`)}</ul>`}
        ${left.length > 0 && html`<p class="hint">${counted(left.length, 'file')} left out, such as ${left[0].path}: ${left[0].why}.</p>`}
    </details>`;
}
