// What can be written at a place of a team file, by the JSON Schema: keys and words after a key, in block style and within brackets.

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
function pathAt(above, line) {
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
 * A place in a team file.
 * @typedef {{path: string[], isValue: boolean, typed: string}} Place `path` has the key before a value
 */

/** The place at the end of a line of block style. @param {string[]} above @param {string} line @returns {Place | null} */
function inBlock(above, line) {
    const value = /^(\s*(?:- +)*)([\w-]+): +([\w-]*)$/.exec(line);
    if (value) return { path: [...pathAt(above, value[1]), value[2]], isValue: true, typed: value[3] };
    const key = /^(\s*(?:- +)*)([\w-]*)$/.exec(line);
    return key && { path: pathAt(above, key[1]), isValue: false, typed: key[2] };
}

/**
 * The brackets that are open at the end of a line, each with the key before it, and what follows them; `null` if none is open.
 * @param {string} line
 */
function brackets(line) {
    /** @type {{kind: string, key: string}[]} */
    const open = [];
    let [begin, key, word, quote] = [0, '', '', ''];
    for (let at = 0; at < line.length; at += 1) {
        const char = line[at];
        const isFirst = !word.replace(/^\s*(- +)*/, '');
        if (quote) {
            if (char === quote) quote = '';
        } else if (char === '#' && !/\S/.test(line[at - 1] ?? '')) return null;
        else if ((char === '"' || char === "'") && isFirst) [quote, word] = [char, char];
        else if ((char === '{' || char === '[') && isFirst) {
            if (!open.length) begin = at;
            open.push({ kind: char, key });
            [key, word] = ['', ''];
        } else if (open.length && (char === '}' || char === ']')) [key, word] = [open.pop()?.key ?? '', char];
        else if (open.length && char === ',') [key, word] = ['', ''];
        else if (char === ':' && !/\S/.test(line[at + 1] ?? '') && !key) [key, word] = [word.trim(), ''];
        else word += char;
    }
    return open.length && !quote ? { open, begin, key, typed: word.trim() } : null;
}

/** The place at the end of a line within brackets: `{name: Ann, tool_c`. @param {string[]} above @param {string} line @returns {Place | null} */
function inFlow(above, line) {
    const found = brackets(line);
    const before = found && /^(\s*(?:- +)*)(?:([\w-]+): *)?$/.exec(line.slice(0, found.begin));
    if (!found || !before || !/^[\w-]*$/.test(found.typed)) return null;
    const path = [...pathAt(above, before[1]), ...(before[2] ? [before[2]] : [])];
    found.open.forEach(({ kind, key }, nth) => {
        if (nth > 0 && key) path.push(key);
        if (kind === '[') path.push('[]');
    });
    if (found.key) path.push(found.key);
    return { path, isValue: found.open.at(-1)?.kind === '[' || found.key !== '', typed: found.typed };
}

/**
 * What can be written at a place, and how much of it is there.
 * @param {any} schema @param {string} text @param {number} caret
 * @returns {{found: {word: string, about: string}[], typed: string, end: string}}
 */
export function complete(schema, text, caret) {
    const lines = text.slice(0, caret).split('\n');
    const line = lines.pop() ?? '';
    const place = inBlock(lines, line) ?? inFlow(lines, line);
    if (!schema || !place) return { found: [], typed: '', end: '' };
    const { path, isValue, typed } = place;
    const nodes = schemasAt(schema, path);
    if (isValue) return { found: words(nodes).filter(({ word }) => word.startsWith(typed) && word !== typed), typed, end: '' };
    const keys = new Map(nodes.flatMap((/** @type {any} */ node) => Object.entries(node.properties ?? {}))
        .filter(([name, node]) => node !== false && name.startsWith(typed))
        .map(([name, node]) => [name, /** @type {any} */ (node).description ?? '']));
    return { found: [...keys].map(([word, about]) => ({ word, about })), typed, end: ': ' };
}
