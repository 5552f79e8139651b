// What changes by the clock alone, without an event.
import { useEffect, useSignal } from './lib.js';

/** How often it is drawn again, in milliseconds. */
const TICK = 1000;

/** Draws a component again every second. @param {boolean} is whether it does */
export function useTicks(is) {
    const ticks = useSignal(0);
    useEffect(() => {
        if (!is) return;
        const timer = setInterval(() => (ticks.value += 1), TICK);
        return () => clearInterval(timer);
    }, [is]);
    return ticks.value;
}
