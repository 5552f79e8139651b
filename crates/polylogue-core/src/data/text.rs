//! Shorter texts, and lists and numbers in prose, for errors, lists and limits; scripts without spaces.
//!
//! ```
//! use polylogue_core::text;
//!
//! assert_eq!(text::one_line(" one\n  two "), "one two");
//! assert_eq!((text::excerpt("one\ntwo", 5), text::excerpt("one", 5)), ("one t…".to_owned(), "one".to_owned()));
//! assert_eq!((text::head("grün", 3), text::shortened("one two", 6)), ("gr", "one…".to_owned()));
//! assert_eq!(text::enumerated(["Ann", "Bob", "Cy"]), "Ann, Bob, and Cy");
//! assert_eq!((text::counted(1, "reply"), text::counted(2, "reply")), ("1 reply".to_owned(), "2 replies".to_owned()));
//! assert_eq!((text::of_json(&"a".into()), text::of_json(&1.into())), ("a".to_owned(), "1".to_owned()));
//! assert_eq!(['茶', 'ち', '차', 't'].map(text::is_unspaced), [true, true, true, false]);
//! ```

use serde_json::Value;

/// Returns the words of `text` with one blank between them.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first `chars` characters of `text` in one line, and `…` if there are more. Control characters become blanks.
pub fn excerpt(text: &str, chars: usize) -> String {
    let mut rest = text.trim().chars();
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let mut short: String = rest.by_ref().take(chars).map(visible).collect();
    if rest.next().is_some() {
        short.push('…');
    }
    short
}

/// Returns the beginning of `text`, at most `bytes` bytes of it.
pub fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// Returns `text` in at most `bytes` bytes, or in those of `…`: of a longer text the beginning, and `…`.
pub fn shortened(text: &str, bytes: usize) -> String {
    match text.len() > bytes {
        true => format!("{}…", head(text, bytes.saturating_sub('…'.len_utf8()))),
        false => text.to_owned(),
    }
}

/// Returns `items` as they are listed in a sentence: `A`, `A and B`, or `A, B, and C`. Empty if there are none.
pub fn enumerated(items: impl IntoIterator<Item: AsRef<str>>) -> String {
    let items: Vec<_> = items.into_iter().collect();
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [others @ .., last] if others.len() > 1 => format!("{}, and {last}", others.join(", ")),
        few => few.join(" and "),
    }
}

/// Returns a number of things, such as `1 reply` and `2 replies`; `what` is the noun of one.
pub fn counted(count: u64, what: &str) -> String {
    let plural = what.strip_suffix('y').map_or_else(|| format!("{what}s"), |stem| format!("{stem}ies"));
    if count == 1 { format!("1 {what}") } else { format!("{count} {plural}") }
}

/// Returns a string of JSON as its text, and another value as JSON.
pub fn of_json(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns whether `c` belongs to a script without spaces between words, or with suffixes on words: the blocks of Thai, Lao, Burmese and
/// Khmer, kana and Chinese characters, and Hangul.
pub const fn is_unspaced(c: char) -> bool {
    matches!(
        c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{31f0}'..='\u{31ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7af}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_listed_as_in_a_sentence() {
        let names = ["Ann", "Bob", "Cy", "Dora"];
        let listed = [0, 1, 2, 3, 4].map(|count| enumerated(names.iter().take(count)));
        assert_eq!(listed, ["", "Ann", "Ann and Bob", "Ann, Bob, and Cy", "Ann, Bob, Cy, and Dora"]);
    }

    #[test]
    fn an_excerpt_is_one_line_and_says_when_it_is_cut() {
        assert_eq!(excerpt(" one\ntwo ", 7), "one two");
        assert_eq!(excerpt("Grüße dich", 5), "Grüße…");
        assert_eq!(excerpt("", 5), "");
    }

    #[test]
    fn no_character_is_cut_and_the_limit_is_kept() {
        let text = "aé中😀 and more";
        for bytes in 0..text.len() {
            assert!(text.starts_with(head(text, bytes)) && head(text, bytes).len() <= bytes);
            let short = shortened(text, bytes);
            assert!(short.ends_with('…') && short.len() <= bytes.max(3), "{short}");
        }
        assert_eq!((head(text, 99), shortened(text, text.len())), (text, text.to_owned()));
    }
}
