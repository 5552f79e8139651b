// Who can follow whom, as the team file says; who did, how often; and whose turn it is.
import { html, useSignal } from './lib.js';
import { get } from './api.js';
import { ALL, END } from './follows.js';
import { useLoad } from './load.js';

/** The radius of a box by its kind. @type {Record<string, number>} */
const CORNERS = { selector: 17, person: 15, chat: 12 };

/**
 * The chats of a run that a graph shows. In the log, a chat has the name by which it takes part in another one, which is that of an agent
 * where it is a nested chat of that agent, or runs as its turn.
 * @param {any} run @param {any} graph @param {string[]} called the names that its chats can have; none: it is the outermost one
 * @returns {any[]}
 */
function chatsOf(run, graph, called) {
    const speakers = new Set(graph.nodes.map((/** @type {any} */ node) => node.name));
    return [...(run?.chats.values() ?? [])].filter(({ at, participants }) => {
        if (!called.length || at === '') return !called.length && at === '';
        const name = at.slice(at.lastIndexOf('/') + 1).replace(/(\.b?\d+)+$/, '');
        return name === called[0] || (called.includes(name) && participants.every((/** @type {string} */ who) => speakers.has(who)));
    });
}

/** The names that the chats of a node can have: its own, and those of what uses it. @param {any} graph @param {any} node @returns {string[]} */
function calledOf(graph, node) {
    const users = graph.edges.filter((/** @type {any} */ edge) => edge.kind === 'uses' && graph.nodes[edge.to] === node);
    return [node.name, ...users.map((/** @type {any} */ edge) => graph.nodes[edge.from].name)];
}

/** How often each speaker followed each. @param {any[]} chats */
function followed(chats) {
    const counts = new Map();
    for (const { follows } of chats) for (const [edge, count] of follows) counts.set(edge, (counts.get(edge) ?? 0) + count);
    return counts;
}

/** The names that have a turn. @param {any[]} chats */
const speaking = (chats) => new Set(chats.flatMap(({ open }) => [...open.keys()]));

/**
 * How often an edge was taken; who is used by another one does not follow it. A selector stands between speakers.
 * @param {any} graph @param {any} edge @param {Map<string, number>} counts
 */
function taken(graph, edge, counts) {
    if (edge.kind === 'uses') return 0;
    const name = (/** @type {number} */ at) => ({ start: '', end: END, selector: ALL })[/** @type {'start'} */ (graph.nodes[at].kind)] ?? graph.nodes[at].name;
    const [from, to] = [name(edge.from), name(edge.to)];
    const count = (/** @type {string} */ before, /** @type {string} */ after) => counts.get(`${before}\n${after}`) ?? 0;
    // Who was selected has come from the selector, and goes back to it.
    const isBack = edge.kind === 'both' && from !== to && from !== ALL;
    return count(from, to) + (isBack ? count(to, from) : 0);
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

/** @param {{edge: any, count: number}} props */
function Edge({ edge, count }) {
    return html`<path class="edge ${edge.kind} ${count ? 'taken' : ''}" d=${curve(edge.points, edge.from === edge.to)} stroke-width=${1.4 + Math.log2(1 + count) * 0.7}
        marker-end="url(#arrow)" marker-start=${edge.kind === 'both' ? 'url(#arrow)' : undefined} />`;
}

/** What is written at an edge. @param {{edge: any, count: number}} props */
function Label({ edge, count }) {
    const times = count > 0 && `${count}×`;
    if (edge.label) return html`<text class="edge-label" x=${edge.label_at[0]} y=${edge.label_at[1] + 4}>${edge.when && edge.when !== edge.label && html`<title>${edge.when}</title>`}${edge.label}${times && html`<tspan class="edge-count" x=${edge.label_at[0]} dy="13">${times}</tspan>`}</text>`;
    const middle = Math.floor((edge.points.length - 1) / 2);
    const [x, y] = edge.points[middle];
    const [nx, ny] = edge.points[middle + 1] ?? [x, y];
    return times && html`<text class="edge-count" x=${(x + nx) / 2 + 6} y=${(y + ny) / 2 + 4}>${times}</text>`;
}

/** @param {{graph: any, node: any, run: any, speaks: boolean}} props */
function Node({ graph, node, run, speaks }) {
    const { kind, x, y, width, height } = node;
    if (node.chat) return html`<g transform="translate(${x} ${y})"><${Chat} graph=${node.chat} run=${run} called=${calledOf(graph, node)} speaks=${speaks} /></g>`;
    if (kind === 'start' || kind === 'end') {
        return html`<circle class="dot ${kind}" cx=${x + 9} cy=${y + 9} r=${kind === 'start' ? 7 : 6} />`;
    }
    const middle = kind === 'selector';
    return html`<g class="node ${kind} ${speaks ? 'speaks' : ''}" data-node=${node.name}>${node.whole && html`<title>${node.whole}</title>`}
        <rect x=${x} y=${y} width=${width} height=${height} rx=${CORNERS[kind] ?? 6} />
        <text class="node-name" x=${middle ? x + width / 2 : x + 14} y=${y + 21} text-anchor=${middle ? 'middle' : 'start'}>${node.name}</text>
        ${!middle && html`<text class="detail" x=${x + width - 9} y=${y + 20} text-anchor="end">${speaks ? 'speaks' : kind === 'chat' ? '' : kind}</text>`}
        ${node.details.map((/** @type {string} */ text, /** @type {number} */ at) => html`<text class="detail" x=${x + 14} y=${y + 36 + 15 * at}>${text}</text>`)}
    </g>`;
}

/** @param {{graph: any, run: any, called: string[], speaks?: boolean}} props */
function Chat({ graph, run, called, speaks }) {
    const chats = chatsOf(run, graph, called);
    const counts = followed(chats);
    const now = speaking(chats);
    /** @type {{edge: any, count: number}[]} */
    const edges = graph.edges.map((/** @type {any} */ edge) => ({ edge, count: taken(graph, edge, counts) }));
    return html`<rect class="chat-box ${speaks ? 'speaks' : ''}" width=${graph.width} height=${graph.height} rx="12" />
        <text class="chat-name" x="18" y="24">${graph.name}</text><text class="detail" x="18" y="40">${graph.pattern}</text>
        ${edges.map(({ edge, count }) => html`<${Edge} edge=${edge} count=${count} />`)}
        ${edges.map(({ edge, count }) => html`<${Label} edge=${edge} count=${count} />`)}
        ${graph.nodes.map((/** @type {any} */ node) => html`<${Node} graph=${graph} node=${node} run=${run} speaks=${now.has(node.name)} />`)}
        ${graph.ends.map((/** @type {string} */ end, /** @type {number} */ at) => html`<text class="detail" x="18"
            y=${graph.height - 8 - 15 * (graph.ends.length - at - 0.5)}>${at ? 'or: ' : 'ends: '}${end}</text>`)}`;
}

/** How small a picture becomes where it has little space, before it is scrolled. */
const SMALLEST = 0.8;

/** The picture. @param {{graph: any, run?: any}} props */
export function Picture({ graph, run }) {
    // By the object model: the policy of the page allows no style attribute.
    const place = (/** @type {HTMLElement | null} */ it) => it?.style.setProperty('min-width', `${SMALLEST * graph.width}px`);
    return html`<div class="graph-scroll" tabindex="0" role="region" aria-label="Picture of the team"><div class="graph-whole" ref=${place}>
        <svg class="graph" role="img" aria-label="Who can follow whom in ${graph.name}" width=${graph.width + 4} height=${graph.height + 4} viewBox="-2 -2 ${graph.width + 4} ${graph.height + 4}">
            <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto-start-reverse"><path class="arrow" d="M0 0L8 4L0 8z" /></marker></defs>
            <${Chat} graph=${graph} run=${run} called=${[]} />
        </svg><span class="shade" /><span class="shade last" /></div></div>`;
}

/** Nodes of kinds that speak, and who can follow each. @param {any} graph */
function rows(graph) {
    const speakers = new Set(graph.nodes.filter((/** @type {any} */ node) => !['start', 'end'].includes(node.kind)).map((/** @type {any} */ node) => node.name));
    const name = (/** @type {number} */ at) => ({ start: 'the beginning', end: 'the end' })[/** @type {'start'} */ (graph.nodes[at].kind)] ?? graph.nodes[at].name;
    return graph.edges.map((/** @type {any} */ edge) => ({ edge, from: name(edge.from), to: name(edge.to), isKnown: speakers.size > 0 }));
}

/** The same facts as the picture, as a table for each chat. @param {{graph: any, run: any, called: string[]}} props */
function Table({ graph, run, called }) {
    const counts = followed(chatsOf(run, graph, called));
    const inner = graph.nodes.filter((/** @type {any} */ node) => node.chat);
    const words = { next: 'can follow', both: 'each can follow the other', uses: 'is used by it' };
    return html`<div class="wide" tabindex="0"><table class="graph-table"><caption>Who can follow whom in ${graph.name}</caption>
        <thead><tr><th>From</th><th>To</th><th>How</th><th>When</th><th>Times</th></tr></thead>
        <tbody>${rows(graph).map((/** @type {any} */ row) => html`<tr><td>${row.from}</td><td>${row.to}</td>
            <td>${words[/** @type {'next'} */ (row.edge.kind)]}</td><td>${row.edge.when || row.edge.label}</td><td>${row.edge.kind === 'uses' ? '' : taken(graph, row.edge, counts)}</td></tr>`)}</tbody></table></div>
        ${inner.map((/** @type {any} */ node) => html`<${Table} graph=${node.chat} run=${run} called=${calledOf(graph, node)} />`)}`;
}

/** @param {{id: string, run: any, version: number}} props */
export function Graph({ id, run }) {
    const graph = useSignal(/** @type {any} */ (null));
    useLoad(() => get(`/conversations/${encodeURIComponent(id)}/graph`), (found) => (graph.value = found), [id]);
    if (!graph.value) return html`<p aria-busy="true">Loading …</p>`;
    return html`<section class="graph-view" aria-label="Graph">
        <${Picture} graph=${graph.value} run=${run} />
        <details class="fold"><summary>As a table</summary><${Table} graph=${graph.value} run=${run} called=${[]} /></details>
    </section>`;
}
