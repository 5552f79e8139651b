// Exactly what the model of an agent was sent in a call, in a dialog: `?request=AGENT:N` in the address.
import { html, useEffect, useRef, useSignal } from './lib.js';
import { get } from './api.js';
import { refine, route } from './router.js';
import { Avatar, Name } from './names.js';
import { json, quoted, Step } from './parts.js';
import { Verbatim } from './verbatim.js';

/** The request that the address names. @returns {{who: string, call: number} | null} */
function wantedRequest() {
    const text = route.value.query.get('request') ?? '';
    const cut = text.lastIndexOf(':');
    return cut > 0 ? { who: text.slice(0, cut), call: Number(text.slice(cut + 1)) } : null;
}

/** Opens the request of a call. @param {string} who @param {number} call */
export const openRequest = (who, call) => refine({ request: `${who}:${call}` });

/** How many entries both begin with. @param {any[]} entries @param {any[]} before */
function shared(entries, before) {
    let at = 0;
    while (at < before.length && at < entries.length && JSON.stringify(entries[at]) === JSON.stringify(before[at])) at += 1;
    return at;
}

/** An entry as text, other parts as JSON. @param {any} entry */
function written(entry) {
    const parts = entry.parts ?? entry.result?.parts ?? [];
    return parts.map((/** @type {any} */ part) => part.text ?? json(part)).join('\n\n');
}

/** @param {{entry: any, isNew: boolean}} props */
function Entry({ entry, isNew }) {
    return html`<li class="entry ${isNew ? 'is-new' : ''}"><h4>${entry.role} ${entry.tool}${isNew && html` <span class="badge">new</span>`}</h4>
        <${Verbatim} text=${written(entry)} /></li>`;
}

/** @param {{view: any, before: any}} props */
function Content({ view, before }) {
    const { system, entries, tools, params, model, digest } = view.request;
    const same = before ? shared(entries, before.request.entries) : entries.length;
    return html`<p class="about">${view.exact
        ? 'Exactly what was sent: its digest is the one in the log.'
        : 'The team was changed since: system text, tools or parameters differed.'}
            ${before && ` The first ${same} of ${entries.length} entries are those of the call before.`}</p>
        <p class="run-facts"><span class="mono">${model}</span><span class="mono" title=${digest}>${String(digest).slice(0, 16)}</span></p>
        ${system && html`<h3>System text${before && before.request.system !== system && html` <span class="badge">changed</span>`}</h3><${Verbatim} text=${system} />`}
        <h3>Messages</h3>
        <ol class="entries">${entries.map((/** @type {any} */ entry, /** @type {number} */ at) => html`<${Entry} key=${at} entry=${entry} isNew=${before && at >= same} />`)}</ol>
        ${tools?.length > 0 && html`<details class="fold"><summary>Tools: ${tools.map((/** @type {any} */ tool) => tool.name).join(', ')}</summary><${Verbatim} text=${json(tools)} /></details>`}
        ${params && Object.keys(params).length > 0 && html`<h3>Parameters</h3><${Verbatim} text=${json(params)} />`}`;
}

/** @param {{id: string, names: string[]}} props */
export function RequestDialog({ id, names }) {
    const wanted = wantedRequest();
    const found = useSignal(/** @type {any} */ (null));
    const dialog = useRef(/** @type {any} */ (null));
    const { who, call } = wanted ?? { who: '', call: 0 };
    useEffect(() => {
        if (!wanted) return;
        found.value = null;
        let isOver = false;
        const path = `/conversations/${encodeURIComponent(id)}/views/${encodeURIComponent(who)}?call=`;
        const read = async () => {
            const [view, before] = await Promise.all([get(path + call), call > 1 ? get(path + (call - 1)) : null]);
            if (!isOver) found.value = { view, before };
        };
        read().catch((error) => {
            if (!isOver) found.value = { error };
        });
        return () => {
            isOver = true;
        };
    }, [id, who, call]);
    useEffect(() => {
        if (wanted && !dialog.current?.open) dialog.current?.showModal();
    }, [Boolean(wanted)]);
    if (!wanted) return null;
    const { view, before, error } = found.value ?? {};
    const close = () => refine({ request: null });
    const step = (/** @type {number} */ by) => () => openRequest(who, call + by);
    return html`<dialog ref=${dialog} class="request" aria-label="Request of ${who}, call ${call}" onClose=${close}
        onClick=${(/** @type {any} */ event) => event.target === event.currentTarget && event.currentTarget.close()}>
        <div class="dialog-body">
            <div class="dialog-head"><${Avatar} names=${names} name=${who} /><h2>What <${Name} names=${names} name=${who} /> was sent: call ${call}${view && ` of ${view.calls}`}</h2>
                <${Step} label="The call before" can=${call > 1} onClick=${step(-1)}>←<//>
                <${Step} label="The next call" can=${view && call < view.calls} onClick=${step(1)}>→<//>
                <button type="button" class="quiet" aria-label="Close" onClick=${() => dialog.current.close()}>✕</button></div>
            ${error ? html`<p class="bad">${quoted(error.message)}</p>${error.hint && html`<p>hint: ${quoted(error.hint)}</p>`}` : view ? html`<${Content} view=${view} before=${before} />` : html`<p aria-busy="true">Loading …</p>`}
        </div>
    </dialog>`;
}
