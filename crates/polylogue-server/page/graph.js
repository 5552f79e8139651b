// Who can follow whom, as the team file says; who did, how often; and whose turn it is.
import { html, useEffect, useSignal } from './lib.js';
import { attempt, get } from './api.js';

/** The radius of a box by its kind. @type {Record<string, number>} */
const CORNERS = { selector: 17, person: 15, chat: 12 };

/** How often each speaker followed each in the chats of this name. @param {any} run @param {string | null} chat null: the outermost */
function followed(run, chat) {
    const counts = new Map();
    for (const { at, follows } of run?.chats.values() ?? []) {
        const name = at === '' ? null : at.slice(at.lastIndexOf('/') + 1).replace(/(\.b?\d+)+$/, '');
        if (name !== chat) continue;
        for (const [edge, count] of follows) counts.set(edge, (counts.get(edge) ?? 0) + count);
    }
    return counts;
}

/** The names that have a turn in the chats of this name. @param {any} run @param {string | null} chat */
function speaking(run, chat) {
    const names = new Set();
    for (const { at, open } of run?.chats.values() ?? []) {
        const name = at === '' ? null : at.slice(at.lastIndexOf('/') + 1).replace(/(\.b?\d+)+$/, '');
        if (name === chat) for (const who of open.keys()) names.add(who);
    }
    return names;
}

/** How often an edge was taken. A selector stands between speakers. @param {any} graph @param {any} edge @param {Map<string, number>} counts */
function taken(graph, edge, counts) {
    const node = (/** @type {number} */ at) => graph.nodes[at];
    const of = (/** @type {any} */ item) => (item.kind === 'start' ? '' : item.name);
    const [from, to] = [node(edge.from), node(edge.to)];
    let sum = 0;
    for (const [pair, count] of counts) {
        const [before, after] = pair.split('\n');
        const isStart = from.kind === 'selector' ? true : before === of(from);
        const isEnd = to.kind === 'selector' ? before === of(from) : after === of(to);
        const isBack = edge.kind === 'both' && before === of(to) && after === of(from);
        if ((isStart && isEnd) || isBack) sum += count;
    }
    return sum;
}

/** @param {number[][]} points @param {boolean} isLoop */
function curve(points, isLoop) {
    let path = '';
    points.forEach(([x, y], at) => {
        const [left, top] = points[at - 1] ?? [0, 0];
        if (at === 0) path += `M${x} ${y}`;
        else if (isLoop) path += `C${x + 30} ${top} ${x + 30} ${y} ${x} ${y}`;
        else path += `C${left} ${(top + y) / 2} ${x} ${(top + y) / 2} ${x} ${y}`;
    });
    return path;
}

/** @param {{graph: any, edge: any, counts: Map<string, number>}} props */
function Edge({ graph, edge, counts }) {
    const count = taken(graph, edge, counts);
    const [x, y] = edge.points[Math.floor((edge.points.length - 1) / 2)];
    const [nx, ny] = edge.points[Math.floor((edge.points.length - 1) / 2) + 1] ?? [x, y];
    return html`<path class="edge ${edge.kind} ${count ? 'taken' : ''}" d=${curve(edge.points, edge.from === edge.to)} stroke-width=${1.4 + Math.log2(1 + count) * 0.7}
            marker-end="url(#arrow)" marker-start=${edge.kind === 'both' ? 'url(#arrow)' : undefined} />
        ${edge.label && html`<text class="edge-label" x=${edge.label_at[0]} y=${edge.label_at[1] + 4}>${edge.label}</text>`}
        ${count > 0 && html`<text class="edge-count" x=${(x + nx) / 2 + 6} y=${(y + ny) / 2 + (edge.label ? -9 : 4)}>${count}×</text>`}`;
}

/** @param {{node: any, run: any, speaks: boolean}} props */
function Node({ node, run, speaks }) {
    const { kind, x, y, width, height } = node;
    if (node.chat) return html`<g transform="translate(${x} ${y})"><${Chat} graph=${node.chat} run=${run} chat=${node.name} speaks=${speaks} /></g>`;
    if (kind === 'start' || kind === 'end') {
        return html`<circle class="dot ${kind}" cx=${x + 9} cy=${y + 9} r=${kind === 'start' ? 7 : 6} />`;
    }
    const middle = kind === 'selector';
    return html`<g class="node ${kind} ${speaks ? 'speaks' : ''}" data-node=${node.name}>
        <rect x=${x} y=${y} width=${width} height=${height} rx=${CORNERS[kind] ?? 6} />
        <text class="node-name" x=${middle ? x + width / 2 : x + 14} y=${y + 21} text-anchor=${middle ? 'middle' : 'start'}>${node.name}</text>
        ${!middle && html`<text class="detail" x=${x + width - 9} y=${y + 20} text-anchor="end">${speaks ? 'speaks' : kind === 'chat' ? '' : kind}</text>`}
        ${node.details.map((/** @type {string} */ text, /** @type {number} */ at) => html`<text class="detail" x=${x + 14} y=${y + 36 + 15 * at}>${text}</text>`)}
    </g>`;
}

/** @param {{graph: any, run: any, chat: string | null, speaks?: boolean}} props */
function Chat({ graph, run, chat, speaks }) {
    const counts = followed(run, chat);
    const now = speaking(run, chat);
    return html`<rect class="chat-box ${speaks ? 'speaks' : ''}" width=${graph.width} height=${graph.height} rx="12" />
        <text class="chat-name" x="18" y="24">${graph.name}</text><text class="detail" x="18" y="40">${graph.pattern}</text>
        ${graph.edges.map((/** @type {any} */ edge) => html`<${Edge} graph=${graph} edge=${edge} counts=${counts} />`)}
        ${graph.nodes.map((/** @type {any} */ node) => html`<${Node} node=${node} run=${run} speaks=${now.has(node.name)} />`)}
        ${graph.ends.map((/** @type {string} */ end, /** @type {number} */ at) => html`<text class="detail" x="18"
            y=${graph.height - 8 - 15 * (graph.ends.length - at - 0.5)}>${at ? 'or: ' : 'ends: '}${end}</text>`)}`;
}

/** The picture. @param {{graph: any, run?: any}} props */
export function Picture({ graph, run }) {
    return html`<div class="graph-scroll" tabindex="0" role="region" aria-label="Picture of the team">
        <svg class="graph" role="img" aria-label="Who can follow whom in ${graph.name}" width=${graph.width + 4} height=${graph.height + 4} viewBox="-2 -2 ${graph.width + 4} ${graph.height + 4}">
            <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="arrow" d="M0 0L8 4L0 8z" /></marker></defs>
            <${Chat} graph=${graph} run=${run} chat=${null} />
        </svg></div>`;
}

/** Nodes of kinds that speak, and who can follow each. @param {any} graph */
function rows(graph) {
    const speakers = new Set(graph.nodes.filter((/** @type {any} */ node) => !['start', 'end'].includes(node.kind)).map((/** @type {any} */ node) => node.name));
    const name = (/** @type {number} */ at) => ({ start: 'the beginning', end: 'the end' })[/** @type {'start'} */ (graph.nodes[at].kind)] ?? graph.nodes[at].name;
    return graph.edges.map((/** @type {any} */ edge) => ({ edge, from: name(edge.from), to: name(edge.to), isKnown: speakers.size > 0 }));
}

/** The same facts as the picture, as a table. @param {{graph: any, run: any}} props */
function Table({ graph, run }) {
    const counts = followed(run, null);
    const words = { next: 'can follow', both: 'each can follow the other', uses: 'is used by it' };
    return html`<div class="wide" tabindex="0"><table class="graph-table"><caption>Who can follow whom</caption>
        <thead><tr><th>From</th><th>To</th><th>How</th><th>When</th><th>Times</th></tr></thead>
        <tbody>${rows(graph).map((/** @type {any} */ row) => html`<tr><td>${row.from}</td><td>${row.to}</td>
            <td>${words[/** @type {'next'} */ (row.edge.kind)]}</td><td>${row.edge.label}</td><td>${taken(graph, row.edge, counts)}</td></tr>`)}</tbody></table></div>`;
}

/** @param {{id: string, run: any, version: number}} props */
export function Graph({ id, run }) {
    const graph = useSignal(/** @type {any} */ (null));
    useEffect(() => void attempt(async () => (graph.value = await get(`/conversations/${encodeURIComponent(id)}/graph`))), [id]);
    if (!graph.value) return html`<p aria-busy="true">…</p>`;
    return html`<section class="graph-view" aria-label="Graph">
        <${Picture} graph=${graph.value} run=${run} />
        <details class="fold"><summary>As a table</summary><${Table} graph=${graph.value} run=${run} /></details>
    </section>`;
}
