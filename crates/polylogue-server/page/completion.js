// What can be written at a place of a team file, by the JSON Schema: keys of block style, and words after a key.

const LINE = /^(\s*)((?:- +)*)(?:([\w-]+):(.*))?/;

/** Where the parts of a line begin. @param {string} line */
function columns(line) {
    const [, space = '', dashes = '', key, rest = ''] = LINE.exec(line) ?? [];
    return { first: space.length, column: space.length + dashes.length, dashes: dashes.length > 0, key, isOpen: rest.trim() === '' };
}

/**
 * The keys around a place, from the outermost; `[]` is an item of a list.
 * @param {string[]} above the lines above
 * @param {string} line the line itself, up to the place
 * @returns {string[]}
 */
export function pathAt(above, line) {
    /** @type {string[]} */
    const path = [];
    const own = columns(line);
    let at = own.column;
    const leave = (/** @type {any} */ place) => {
        at = place.column;
        if (!place.dashes) return;
        path.unshift('[]');
        at = place.first;
    };
    leave(own);
    for (let n = above.length - 1; n >= 0; n -= 1) {
        if (!above[n].trim() || above[n].trim().startsWith('#')) continue;
        const place = columns(above[n]);
        const isItem = path[0] === '[]';
        if (place.key && place.isOpen && (place.column < at || (isItem && place.column === at && !place.dashes))) {
            path.unshift(place.key);
            leave(place);
        } else if (place.dashes && place.column === at && !isItem) leave(place);
        else if (place.column < at && !isItem) return ['?'];
    }
    return path;
}

/** A schema with all that it refers to and chooses from. @param {any} root @param {any} node @param {number} [depth] @returns {any[]} */
function variants(root, node, depth = 0) {
    if (!node || typeof node !== 'object' || depth > 8) return [];
    const reference = node.$ref?.startsWith('#/$defs/') ? [root.$defs[node.$ref.slice(8)]] : [];
    const others = [...reference, ...(node.anyOf ?? []), ...(node.oneOf ?? [])];
    return [node, ...others.flatMap((other) => variants(root, other, depth + 1))];
}

/** @param {any} root @param {string[]} path */
function schemasAt(root, path) {
    return path.reduce((nodes, key) => nodes.flatMap((/** @type {any} */ node) => {
        const next = key === '[]' ? node.items : node.properties?.[key] ?? node.additionalProperties;
        return variants(root, next);
    }), variants(root, root));
}

/** @param {any[]} nodes @returns {{word: string, about: string}[]} */
function words(nodes) {
    const all = nodes.flatMap((node) => (node.const !== undefined ? [[node.const, node.description]] : (node.enum ?? []).map((/** @type {any} */ word) => [word, '']))
        .concat(node.type === 'boolean' ? [['true', ''], ['false', '']] : []));
    return [...new Map(all.map(([word, about]) => [String(word), about ?? ''])).entries()].map(([word, about]) => ({ word, about }));
}

/**
 * What can be written at a place, and how much of it is there.
 * @param {any} schema @param {string} text @param {number} caret
 * @returns {{found: {word: string, about: string}[], typed: string, end: string}}
 */
export function complete(schema, text, caret) {
    const lines = text.slice(0, caret).split('\n');
    const line = lines.pop() ?? '';
    const value = /^(\s*(?:- +)*)([\w-]+): +([\w-]*)$/.exec(line);
    const key = /^\s*(?:- +)*([\w-]*)$/.exec(line);
    const none = { found: [], typed: '', end: '' };
    if (!schema || !(value || key)) return none;
    if (value) {
        const path = [...pathAt(lines, value[1]), value[2]];
        const found = words(schemasAt(schema, path)).filter(({ word }) => word.startsWith(value[3]) && word !== value[3]);
        return { found, typed: value[3], end: '' };
    }
    const typed = key?.[1] ?? '';
    const keys = new Map(schemasAt(schema, pathAt(lines, line.slice(0, line.length - typed.length)))
        .flatMap((/** @type {any} */ node) => Object.entries(node.properties ?? {}))
        .filter(([name, node]) => node !== false && name.startsWith(typed))
        .map(([name, node]) => [name, /** @type {any} */ (node).description ?? '']));
    return { found: [...keys].map(([word, about]) => ({ word, about })), typed, end: ': ' };
}
