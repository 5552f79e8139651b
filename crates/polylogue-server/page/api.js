// Requests to the server of the page.
import { signal } from './lib.js';

/** Who uses the page: `undefined` while that is not known, `null` for no one. */
export const session = signal(/** @type {any} */ (undefined));

/** Whether the session allows what needs this scope. @param {'run' | 'answer' | 'edit'} scope */
export const may = (scope) => Boolean(session.value?.scopes.includes(scope));

/** The code of a link with which the page was opened although someone is logged in; empty for none. */
export const otherLink = signal('');

/** What has failed, for the line at the top. */
export const failure = signal(/** @type {Problem | null} */ (null));

/** What was done for a person without another sign, such as that a text was copied; empty soon after. */
export const done = signal('');

let forgets = 0;

/** Says for a moment what was done. @param {string} what */
export function say(what) {
    done.value = what;
    clearTimeout(forgets);
    forgets = setTimeout(() => (done.value = ''), 3000);
}

/** How much later the clock of the server is than that of the browser, in milliseconds; below two seconds it counts as the same. */
let ahead = 0;

/** The time of the server, since 1970, in milliseconds. */
export const serverTime = () => Date.now() + ahead;

/** @param {Response} response */
function readClock(response) {
    // In whole seconds.
    const difference = Date.parse(response.headers.get('date') ?? '') + 500 - Date.now();
    ahead = Math.abs(difference) > 2000 ? difference : 0;
}

/** An error of the server: what happened, and what to do. */
export class Problem extends Error {
    /** @param {any} document */
    constructor(document) {
        super(document.detail ?? document.title ?? 'the server cannot be reached, or a proxy before it fails');
        // What a program can request is no help for a person.
        this.hint = /`(GET|POST|PUT|PATCH|DELETE) /.test(document.hint) ? '' : (document.hint ?? '');
        this.status = document.status ?? 0;
        this.type = document.type ?? '';
        this.errors = document.errors ?? [];
        this.problems = document.problems ?? [];
        /** Whether it is gone once what failed has succeeded by itself. */
        this.isPassing = false;
    }
}

/** The keys of requests that were not answered yet, by what they ask for. @type {Map<string, string>} */
const keys = new Map();

/**
 * The key by which the server recognizes a request that comes again: by a second press of a button, or because its answer was lost. What
 * asks for the same has the same key until an answer has come.
 * @param {string} asked
 */
function keyOf(asked) {
    const key = keys.get(asked) ?? crypto.randomUUID?.() ?? `${Math.random()}`;
    keys.set(asked, key);
    return key;
}

/**
 * Sends a request and returns the JSON of its response.
 * @param {string} method
 * @param {string} path below `/api/v1`
 * @param {any} [body]
 * @param {Record<string, string>} [further] headers
 * @returns {Promise<any>}
 */
export async function send(method, path, body, further = {}) {
    const headers = { ...further };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const text = body === undefined ? undefined : JSON.stringify(body);
    const isLogin = method === 'POST' && path === '/session';
    const asked = `${path}\n${text}`;
    if (method === 'POST' && !isLogin) headers['idempotency-key'] = keyOf(asked);
    const options = { method, headers, body: text };
    let response;
    try {
        response = await fetch(`/api/v1${path}`, options);
    } catch {
        throw new Problem({ detail: 'the server cannot be reached', hint: 'is `polylogue serve` still running?' });
    }
    readClock(response);
    const document = await response.json().catch(() => ({}));
    // After an error of the server, it is unknown what has happened.
    if (response.status < 500) keys.delete(asked);
    if (response.ok) return document;
    // Who asks for the session sets it.
    if (response.status === 401 && path !== '/session') session.value = null;
    throw new Problem({ status: response.status, ...document });
}

/** @param {string} path */
export const get = (path) => send('GET', path);
/** @param {string} path @param {any} body */
export const post = (path, body) => send('POST', path, body);

/**
 * Does something for a person: what fails is shown at the top.
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T | undefined>}
 */
export async function attempt(action) {
    try {
        failure.value = null;
        return await action();
    } catch (error) {
        failure.value = problemOf(error);
        return undefined;
    }
}

/** @param {unknown} error */
const problemOf = (error) => (error instanceof Problem ? error : new Problem({ detail: String(error) }));

/**
 * Does something that the page repeats by itself. A failure is shown until it succeeds, and never instead of the failure of what a person
 * has tried.
 * @template T
 * @param {() => Promise<T>} action
 * @returns {Promise<T | undefined>}
 */
export async function refresh(action) {
    try {
        const found = await action();
        if (failure.value?.isPassing) failure.value = null;
        return found;
    } catch (error) {
        if (failure.value && !failure.value.isPassing) return undefined;
        failure.value = Object.assign(problemOf(error), { isPassing: true });
        return undefined;
    }
}

/** Whether what has failed may work later: the server is away or busy, or has an error of its own. @param {any} problem */
export const isTemporary = ({ status }) => status === 0 || status === 429 || status >= 500;

/** How long after a server that cannot say who is logged in it is asked again, in milliseconds. */
const AGAIN = 2000;

/** Logs in with the code of a link, or finds out who is logged in. */
export async function login() {
    const code = /^#login=(\w+)$/.exec(location.hash)?.[1] ?? '';
    // The code is in no history and no address bar.
    if (code) history.replaceState(null, '', '/');
    await enter(code);
}

/** Who is logged in; `null` for no one. */
const present = () => get('/session').catch((error) => {
    if (error.status !== 401) throw error;
    return null;
});

/**
 * Logs in with the code of a link, unless someone is logged in: the one who made the link would read what is written in its session, which looks
 * the same. A person decides.
 * @param {string} code empty for none
 */
async function enter(code) {
    try {
        const found = await present();
        session.value = found ?? (code ? await post('/session', { code }) : null);
        otherLink.value = found ? code : '';
        failure.value = null;
    } catch (error) {
        const problem = problemOf(error);
        failure.value = problem;
        // What may work later says nothing of who is logged in.
        if (!isTemporary(problem)) session.value = null;
        else setTimeout(enter, AGAIN, code);
    }
}

/** Replaces the session by that of the other link. What the page shows belongs to the old one. */
export async function useOtherLink() {
    const code = otherLink.value;
    otherLink.value = '';
    if (await attempt(() => post('/session', { code }))) {
        history.replaceState(null, '', '/');
        location.reload();
    } else if (failure.value && isTemporary(failure.value)) {
        otherLink.value = code;
    }
}

/** Ends the session on the server, too. */
export async function logout() {
    await attempt(() => send('DELETE', '/session'));
    session.value = null;
}
