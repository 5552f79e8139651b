//! The terms of facts and queries for full-text search.

use std::collections::BTreeSet;

use polylogue_core::text::is_unspaced;

/// Maximum number of terms of a query.
const MAX_TERMS: usize = 64;

/// English stop words, which would match everything. A query of only these is searched unchanged.
const COMMON: [&str; 84] = [
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "could", "did", "do", "does", "for", "from", "had", "has", "have", "he", "her", "him", "his", "how", "i",
    "if", "in", "is", "it", "its", "just", "let", "may", "me", "my", "no", "not", "of", "on", "or", "our",
    "please", "s", "shall", "she", "should", "so", "some", "t", "tell", "than", "that", "the", "their",
    "them", "then", "there", "these", "they", "this", "to", "us", "was", "we", "were", "what", "when",
    "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your", "yours",
];

/// The indexed text of a fact: in lower case like queries, because SQLite's Unicode is older than Rust's; characters of scripts
/// without spaces are separated.
pub(super) fn indexed(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unspaced(character) {
            words.extend([' ', character, ' ']);
        } else if is_word(character) {
            words.extend(character.to_lowercase());
        } else {
            words.push(' ');
        }
    }
    words
}

/// A query as an FTS5 expression that matches any of its words; `None` for a query without words. Every term is quoted and has only
/// letters and digits, so that queries cannot contain operators.
pub(super) fn expression(query: &str) -> Option<String> {
    let all = terms(query);
    let telling: Vec<&String> = all.iter().filter(|term| !COMMON.contains(&term.as_str())).collect();
    let chosen = if telling.is_empty() { all.iter().collect() } else { telling };
    let mut seen = BTreeSet::new();
    let distinct = chosen.into_iter().filter(|term| seen.insert(term.as_str())).take(MAX_TERMS);
    let quoted: Vec<String> = distinct.map(|term| format!("\"{term}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// The words of a query; for scripts without spaces, pairs of adjacent characters.
fn terms(query: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in query.split(|c: char| !is_word(c)).filter(|word| !word.is_empty()) {
        let mut run: Vec<char> = Vec::new();
        let mut packed = false;
        for character in word.chars() {
            if is_unspaced(character) != packed {
                close(&mut run, packed, &mut terms);
                packed = !packed;
            }
            run.push(character);
        }
        close(&mut run, packed, &mut terms);
    }
    terms
}

/// Ends a run of characters of one kind.
fn close(run: &mut Vec<char>, packed: bool, terms: &mut Vec<String>) {
    match (run.as_slice(), packed) {
        ([], _) => {}
        ([one], true) => terms.push(one.to_string()),
        (several, true) => {
            let pairs =
                several.windows(2).map(|pair| pair.iter().map(char::to_string).collect::<Vec<_>>().join(" "));
            terms.extend(pairs);
        }
        (word, false) => terms.push(word.iter().flat_map(|character| character.to_lowercase()).collect()),
    }
    run.clear();
}

/// Whether a character is part of a word: a letter, a digit, or a combining accent. SQLite, with the Unicode of 2012, would read newer
/// symbols as letters.
fn is_word(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '\u{300}'..='\u{36f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_once_and_without_the_common_ones() {
        let of = |query| expression(query).unwrap_or_default();
        assert_eq!(of("Which tea does Ann like? Tea!"), r#""tea" OR "ann" OR "like""#);
        assert_eq!(of("who are you"), r#""who" OR "are" OR "you""#);
        assert_eq!(of("NEAR(a, b) AND \"x* -y ^z: {col}"), r#""near" OR "b" OR "x" OR "y" OR "z" OR "col""#);
        assert_eq!(of("東京都へ go"), r#""東 京" OR "京 都" OR "都 へ" OR "go""#);
        assert_eq!(of("茶"), r#""茶""#);
        for nothing in ["", " \n", "?!\"'*()", "\0"] {
            assert_eq!(expression(nothing), None, "{nothing:?}");
        }
        let long: String = (0..1000).map(|n| format!("w{n} ")).collect();
        assert_eq!(of(&long).matches(" OR ").count(), MAX_TERMS - 1);
    }

    #[test]
    fn characters_without_spaces_stand_alone_in_the_index() {
        assert_eq!(indexed("Tee 茶道"), "tee  茶  道 ");
        assert_eq!(indexed("a\0b🎉c-d"), "a b c d");
    }
}
