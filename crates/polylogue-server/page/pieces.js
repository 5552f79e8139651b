// Replies that are being written, from their pieces.
import { chatAt, turn } from './chats.js';

/** The place of a reply that is being written. @param {string} at @param {string} who */
const place = (at, who) => `${at}\n${who}`;

/**
 * Notes when a reply began: `NaN` where its first piece was not received when it came, as by a stream that begins in the middle of the reply.
 * @param {import('./chats.js').Run} run @param {string} reply its place @param {number} now
 */
function begin(run, reply, now) {
    if (!run.begun.has(reply)) run.begun.set(reply, now);
}

/**
 * Notes when the first piece of a reply came that ends with an event, by the time of the events: some other clock than that of the tab.
 * @param {import('./chats.js').Run} run @param {any} event @param {number} now by the clock of the pieces
 */
export function endReply(run, event, now) {
    if (event.type !== 'model_replied' && event.type !== 'failed') return;
    const reply = place(event.chat ?? '', event.who);
    const begun = run.begun.get(reply) ?? NaN;
    run.begun.delete(reply);
    if (!Number.isNaN(begun)) run.firsts.set(event.seq, event.time_ms - (now - begun));
}

/**
 * Adds a piece of a reply that is not stored yet.
 * @param {import('./chats.js').Run} run @param {any} delta @param {number} now when it came, in milliseconds, by any clock
 */
export function addDelta(run, delta, now) {
    if (delta.type === 'restart') begin(run, place(delta.chat ?? '', delta.who), NaN);
    if (['text', 'thought', 'call'].includes(delta.type)) begin(run, place(delta.chat ?? '', delta.who), now);
    const open = turn(chatAt(run, delta.chat ?? ''), delta.who);
    if (!open) return;
    run.pieces += 1;
    open.isTorn &&= delta.type !== 'restart';
    if (delta.type === 'restart' || !open.live) open.live = { text: '', thought: '', note: '', isTorn: open.isTorn };
    if (delta.type === 'text') open.live.text += delta.text;
    if (delta.type === 'thought') open.live.thought += delta.thought;
    if (delta.type === 'call') open.live.note = `calls ${delta.call.tool ?? 'a tool'} …`;
    if (delta.type === 'retry') open.live.note = `retry ${delta.retry.retry} of ${delta.retry.retries}: ${delta.retry.cause}`;
    if (delta.type === 'fallback') open.live.note = `${delta.fallback.cause}; asks ${delta.fallback.model}`;
}

/**
 * Forgets pieces of replies: they come again, or some were missed, and what comes is not the beginning (`isTorn`).
 * @param {import('./chats.js').Run} run @param {boolean} isTorn
 */
export function dropDrafts(run, isTorn) {
    for (const chat of run.chats.values()) {
        for (const item of chat.open.values()) {
            Object.assign(item, { live: null, isTorn, rev: item.rev + 1 });
            if (isTorn) begin(run, place(chat.at, item.who), NaN);
        }
    }
}
