// Numbers and times as text.

/** @param {number} money as logs have it: in 10⁻¹² dollars */
export function dollars(money) {
    const value = (money ?? 0) / 1e12;
    if (value === 0) return '$0';
    if (value < 0.0001) return `$${Number(value.toPrecision(2)).toFixed(12).replace(/0+$/, '')}`;
    return `$${value < 1 ? value.toFixed(4).replace(/0{1,2}$/, '') : value.toFixed(2)}`;
}

/** The beginning of a text. @param {string} text @param {number} most how many characters of it are shown */
export const clipped = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** @param {number} count */
export function short(count) {
    if (count < 1000) return String(count);
    return count < 1e6 ? `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${short(count)} ${noun}${count === 1 ? '' : 's'}`;

/** @param {number} ms */
export function span(ms) {
    if (ms < 1000) return `${ms} ms`;
    const seconds = ms / 1000;
    if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
    const minutes = Math.floor(seconds / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How much time is left, in whole seconds at the end. @param {number} ms */
export const left = (ms) => (ms < 60_000 ? `${Math.ceil(ms / 1000)} s` : span(ms));

/** @param {number} ms since 1970 @param {number} now */
export function ago(ms, now) {
    const past = Math.max(0, now - ms);
    if (past < 5000) return 'now';
    if (past < 60_000) return `${Math.floor(past / 1000)} s ago`;
    if (past < 86_400_000) return `${span(past)} ago`;
    return new Date(ms).toLocaleDateString();
}

/** Why a run ended: a limit is named once. @param {{word: string, detail: string}} ended */
export function ending({ word, detail }) {
    const isLimit = ['limit', 'budget'].includes(word);
    return isLimit ? `limit: ${detail.replace(/^the limit of /, '')}` : `${word.replace('_', ' ')}: ${detail}`;
}

/** What calls without a reply have used at most: it counts against limits. @param {any} most */
export function uncertain(most) {
    const { calls = 0, unpriced = 0, cost = 0 } = most ?? {};
    const money = unpriced ? 'cost unknown' : cost && `at most ${dollars(cost)} more`;
    return [calls && `${counted(calls, 'call')} without a reply`, money].filter(Boolean).join(', ');
}

/** What a reply has used of which no use was made. @param {any} charge */
export function discarded({ model, tokens = 0, cost }) {
    const money = cost === undefined ? 'cost unknown' : dollars(cost);
    return `a reply of ${model} was discarded: ${counted(tokens, 'token')}, ${money}`;
}

/** What a run has cost at most; `?` if that is not known. @param {any} usage */
export function mostCost({ calls = 0, unpriced = 0, cost = 0, uncertain: most } = {}) {
    if (most?.cost && !unpriced && !most.unpriced) return `at most ${dollars(cost + most.cost)}`;
    return calls && unpriced >= calls ? '?' : dollars(cost);
}

/**
 * What the model calls of a run have used, in one line.
 * @param {any} usage
 */
export function spending(usage) {
    const { calls = 0, input = 0, output = 0, unmetered = 0, unpriced = 0, cost } = usage ?? {};
    const words = [counted(calls, 'call')];
    if (input || output) words.push(`${short(input)} in, ${short(output)} out`);
    if (unmetered) words.push(unmetered < calls ? `${counted(unmetered, 'call')} with unknown tokens` : 'tokens unknown');
    words.push(calls > 0 && unpriced >= calls ? 'cost unknown' : dollars(cost) + (unpriced ? ' and unknown' : ''));
    return words.concat(uncertain(usage?.uncertain) || []).join(' · ');
}

/** Why a chat ended. @param {any} reason @returns {string} */
export function reasonText(reason) {
    if (typeof reason === 'string') return reason.replaceAll('_', ' ');
    const [kind, value] = Object.entries(reason ?? { closed: {} })[0];
    if (kind === 'all') return value.map(reasonText).join(' and ');
    if (kind === 'no_output') return `no participant said anything (${reasonText(value.ended)})`;
    if (kind === 'left') return `${value.who} left: ${value.why}`;
    if (kind === 'stopped') return `stopped by ${value.by}`;
    return value?.text ?? (value?.limit === undefined ? kind.replaceAll('_', ' ') : `the limit on ${kind}`);
}
