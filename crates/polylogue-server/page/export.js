// A run as a file: its events as JSON lines, as `polylogue show --json` prints them.
import { get } from './api.js';

/** Saves all events of a run. @param {string} id */
export async function saveEvents(id) {
    const lines = [];
    for (let from = /** @type {number | null} */ (0); from !== null;) {
        const page = await get(`/conversations/${encodeURIComponent(id)}/events?from=${from}`);
        for (const event of page.events) lines.push(`${JSON.stringify(event)}\n`);
        from = page.next;
    }
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob(lines, { type: 'application/jsonl' }));
    link.download = `${id}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
