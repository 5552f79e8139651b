// Long lists: only what is near the view is drawn. The rest keeps its place with the height that it had.
import { Component, html } from './lib.js';

/** How many items are drawn or left out together. */
export const CHUNK = 40;
/** The event by which a part of a list is drawn that is not near the view yet. */
export const DRAW = 'draw';
/** The height of an item that was never drawn, in pixels. */
const GUESS = 96;
/** How far from the view items are drawn, in pixels. */
const MARGIN = '1500px';

/** A part of a list that is drawn while it is near the view, or always. */
class Chunk extends Component {
    constructor(/** @type {any} */ props) {
        super(props);
        this.state = { isNear: props.isNear };
        this.height = props.items.length * GUESS;
        this.seen = new IntersectionObserver(([entry]) => {
            // The focus has come by keys since the frame that this is said of: a list without it would begin at another place.
            if (!entry.isIntersecting && this.element?.contains(document.activeElement)) return;
            if (!entry.isIntersecting) this.height = this.element?.firstElementChild ? this.element.offsetHeight : this.height;
            this.setState({ isNear: entry.isIntersecting });
        }, { rootMargin: `${MARGIN} 0px` });
    }

    componentDidMount() {
        this.place();
        this.element.addEventListener(DRAW, () => this.setState({ isNear: true }));
        this.seen.observe(this.element);
    }

    componentDidUpdate() {
        this.place();
    }

    componentWillUnmount() {
        this.seen.disconnect();
    }

    isDrawn() {
        return this.state.isNear || this.props.isKept;
    }

    // By the object model: the policy of the page allows no style attribute.
    place() {
        this.element.style.height = this.isDrawn() ? '' : `${this.height}px`;
    }

    shouldComponentUpdate(/** @type {any} */ next, /** @type {any} */ state) {
        const wasDrawn = this.isDrawn();
        const isDrawn = state.isNear || next.isKept;
        return isDrawn || wasDrawn !== isDrawn;
    }

    /** @param {any} props */
    render({ items, draw, start }) {
        return html`<ol class="items chunk" start=${start + 1} ref=${(/** @type {any} */ it) => (this.element = it ?? this.element)}>${this.isDrawn() ? items.map(draw) : null}</ol>`;
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
        const isKept = isLast || (wanted >= at && wanted < at + CHUNK);
        chunks.push(html`<${Chunk} key=${at} start=${at} items=${items.slice(at, at + CHUNK)} draw=${draw} isKept=${isKept} isNear=${items.length <= 4 * CHUNK} />`);
    }
    return html`<div class="list">${chunks}</div>`;
}
