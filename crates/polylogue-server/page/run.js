// One run: what is said, live, and what a person can do with it.
import { html, useEffect, useSignal } from './lib.js';
import { attempt, get, post, send } from './api.js';
import { address, go } from './router.js';
import { follow } from './stream.js';
import { Conversation } from './conversation.js';
import { Questions, Say } from './boxes.js';
import { Avatar, Name } from './names.js';
import { spending } from './format.js';
import { State } from './runs.js';

/** @param {{id: string}} props */
function useRun({ id }) {
    const about = useSignal(/** @type {any} */ (null));
    const live = useSignal(/** @type {ReturnType<typeof follow> | null} */ (null));
    useEffect(() => {
        const followed = follow(id);
        live.value = followed;
        attempt(async () => (about.value = await get(`/conversations/${encodeURIComponent(id)}`)));
        return followed.stop;
    }, [id]);
    return { about: about.value, live: live.value };
}

/** @param {{about: any, state: any, wake: () => void}} props */
function Actions({ about, state, wake }) {
    const path = `/conversations/${encodeURIComponent(about.id)}`;
    const act = (/** @type {string} */ what, /** @type {any} */ body) => () => attempt(async () => {
        await post(`${path}/${what}`, body);
        wake();
    });
    const fork = () => attempt(async () => go(['runs', (await post(`${path}/fork`, {})).id]));
    const remove = () => confirm('Remove this run?') && attempt(async () => {
        await send('DELETE', path);
        go([]);
    });
    const more = () => {
        const turns = Number(prompt('How many more turns?', '10'));
        if (turns > 0) act('resume', { limits: { turns: Math.round(turns) } })();
    };
    const runs = state.state === 'running';
    const isLimited = ['limit', 'budget'].includes(state.ended?.word);
    return html`<div class="actions">
        ${runs && html`<button type="button" onClick=${act('stop', {})} title="Stop after the present step">Stop</button>
            <button type="button" onClick=${act('stop', { when: 'now' })} title="Abort calls in flight">Stop now</button>`}
        ${state.state === 'halted' && html`<button type="button" class="main" onClick=${act('resume', {})}>Resume</button>`}
        ${isLimited && html`<button type="button" onClick=${more}>Raise the limit</button>`}
        <button type="button" onClick=${fork} title="A new run that begins as this one">Fork</button>
        ${!runs && html`<button type="button" onClick=${remove}>Remove</button>`}
    </div>`;
}

/** @param {{about: any, state: any, run: any, isLive: boolean, wake: () => void}} props */
function Head({ about, state, run, isLive, wake }) {
    return html`<div class="run-head">
        <div class="run-name"><h1>${about.title || about.team}</h1><${State} run=${{ ...about, ...state, ended: state.ended }} />
            ${!isLive && state.state !== 'closed' && html`<span class="offline">connecting …</span>`}</div>
        <p class="run-facts">
            <span>${about.team}</span><span class="mono">${about.id}</span>
            ${about.parent && html`<span>fork of <a href=${address(['runs', about.parent.id], { at: about.parent.seq - 1 })}>${about.parent.id}</a></span>`}
            <span>${spending(run.usage)}</span>
        </p>
        ${state.ended && html`<p class="ended">${state.ended.word.replace('_', ' ')}: ${state.ended.detail}</p>`}
        <${Actions} about=${about} state=${state} wake=${wake} />
    </div>`;
}

/** Who takes part, and who has a turn. @param {{run: any}} props */
function Participants({ run }) {
    const chat = run.chats.get('');
    const said = (/** @type {string} */ name) => chat.items.filter((/** @type {any} */ item) => item.who === name && item.state === 'said' && !item.opening).length;
    return html`<aside aria-label="Participants"><h2>Participants</h2><ul class="participants">
        ${chat.participants.map((/** @type {string} */ name) => html`<li key=${name} class=${chat.open.has(name) ? 'speaks' : ''}>
            <${Avatar} names=${run.names} name=${name} /><${Name} names=${run.names} name=${name} />
            <span class="count">${chat.open.has(name) ? 'has the turn' : said(name) || ''}</span></li>`)}
    </ul></aside>`;
}

/** @param {{id: string, tab: string}} props */
export function Run({ id }) {
    const { about, live } = useRun({ id });
    if (!about || !live) return html`<main id="main" tabindex="-1" aria-busy="true"><p>…</p></main>`;
    const { run, wake } = live;
    // Read, so that this is drawn again when something happens.
    const version = live.version.value;
    const state = live.state.value ?? about;
    document.title = `${state.state === 'waiting' ? '● ' : ''}${about.title || about.team} · Polylogue`;
    return html`<main id="main" tabindex="-1" class="run" data-run=${id}>
        <${Head} about=${about} state=${state} run=${run} isLive=${live.isLive.value} wake=${wake} />
        <div class="columns">
            <section class="talk" aria-label="Conversation">
                <${Conversation} id=${id} run=${run} version=${version} />
                <div class="boxes">
                    <${Questions} id=${id} run=${run} asked=${state.asked ?? []} />
                    <${Say} id=${id} state=${state.state} wake=${wake} />
                </div>
            </section>
            <${Participants} run=${run} />
        </div>
    </main>`;
}
