// Replies that are being written, from their pieces.
import { chatAt, turn } from './fold.js';

/**
 * Adds a piece of a reply that is not stored yet.
 * @param {import('./fold.js').Run} run @param {any} delta
 */
export function addDelta(run, delta) {
    const open = turn(chatAt(run, delta.at ?? ''), delta.who);
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
 * @param {import('./fold.js').Run} run @param {boolean} isTorn
 */
export function dropDrafts(run, isTorn) {
    for (const chat of run.chats.values()) {
        for (const item of chat.open.values()) Object.assign(item, { live: null, isTorn, rev: item.rev + 1 });
    }
}
