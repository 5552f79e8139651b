// Long lists: only what is near the view is drawn. The rest keeps its place with the height that it had.
import { Component, html } from './lib.js';

/** How many items are drawn or left out together. */
const CHUNK = 40;
/** The event by which a part of a list is drawn that is not near the view yet. */
export const DRAW = 'draw';
/** The height of an item that was never drawn, in pixels. */
const GUESS = 96;
/** How far from the view items are drawn, in pixels. */
const MARGIN = '1500px';

/** A part of a list that is drawn while it is near the view or has the focus, or always. */
class Chunk extends Component {
    constructor(/** @type {any} */ props) {
        super(props);
        this.state = { isNear: props.isNear };
        this.height = props.items.length * GUESS;
        this.isShown = false;
        /** Whether it was asked for, and no frame has said yet whether it is near. */
        this.isCalled = false;
        this.seen = new IntersectionObserver((entries) => {
            if (this.isShown) this.isCalled = false;
            // A busy page receives what was seen in several frames at once, the latest last.
            this.setState({ isNear: entries.at(-1)?.isIntersecting });
        }, { rootMargin: `${MARGIN} 0px` });
    }

    componentDidMount() {
        this.element.addEventListener(DRAW, () => {
            this.isCalled = true;
            this.setState({});
            // Keys may have passed it by the next frame.
            this.seen.unobserve(this.element);
            this.seen.observe(this.element);
        });
        this.element.addEventListener('focusout', () => this.isDrawn() || this.setState({}));
        this.seen.observe(this.element);
    }

    componentWillUnmount() {
        this.seen.disconnect();
    }

    // What is observed is of an earlier frame, and the focus may have come since: without its message, keys would move from another place.
    isDrawn(props = this.props, state = this.state) {
        return state.isNear || props.isKept || this.isCalled || this.element?.contains(document.activeElement);
    }

    // By the object model: the policy of the page allows no style attribute.
    place(/** @type {any} */ element) {
        if (!element) return;
        this.element = element;
        element.style.height = this.isShown ? '' : `${this.height}px`;
    }

    shouldComponentUpdate(/** @type {any} */ next, /** @type {any} */ state) {
        return this.isShown || this.isDrawn(next, state);
    }

    /** @param {any} props */
    render({ items, draw, start }) {
        const isDrawn = this.isDrawn();
        if (this.isShown && !isDrawn) this.height = this.element.offsetHeight;
        this.isShown = isDrawn;
        return html`<ol class="items chunk" start=${start + 1} ref=${(/** @type {any} */ it) => this.place(it)}>${isDrawn ? items.map(draw) : null}</ol>`;
    }
}

/**
 * A list of which only the parts near the view are drawn.
 * @param {{items: any[], draw: (item: any) => any, wanted: number}} props `wanted`: the index of an item that is drawn in any case, or -1
 */
export function WindowedList({ items, draw, wanted }) {
    const chunks = [];
    for (let at = 0; at < items.length; at += CHUNK) {
        const isLast = at + 2 * CHUNK >= items.length;
        // With the part next to it where it is near its edge: drawn later, that would move it out of view.
        const isWanted = wanted >= 0 && wanted >= at - CHUNK / 2 && wanted < at + CHUNK * 1.5;
        const isKept = isLast || isWanted;
        chunks.push(html`<${Chunk} key=${at} start=${at} items=${items.slice(at, at + CHUNK)} draw=${draw} isKept=${isKept} isNear=${items.length <= 4 * CHUNK} />`);
    }
    return html`<div class="list">${chunks}</div>`;
}
