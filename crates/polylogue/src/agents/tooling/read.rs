//! Parses decisions in model output.

use super::lenient::without_thoughts;

/// The first decisive word of `text`, yes or no: one that stands alone between punctuation marks, or is the first or
/// last of such a phrase. "I have no idea" is not a "no".
pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    let text = without_thoughts(text).to_lowercase();
    let ends_clause = |c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '\n' | '(' | ')' | '–' | '—');
    text.split(ends_clause).find_map(|clause| {
        let mut words = clause.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let (first, last) = (words.next()?, words.next_back());
        decides(first).or_else(|| last.and_then(decides))
    })
}

fn decides(word: &str) -> Option<bool> {
    match word {
        "yes" | "true" => Some(true),
        "no" | "false" => Some(false),
        _ => None,
    }
}

/// The tools named in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named<'n> {
    One(&'n str),
    Several,
    None,
}

/// Which of `names` occur in `text` as whole words: `high_low` does not name `low`. Case-sensitive, then
/// case-insensitive if none is found.
pub(super) fn named<'n>(text: &str, names: &[&'n str]) -> Named<'n> {
    let text = without_thoughts(text);
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words: Vec<&str> = text.split(|c| !is_of_name(c)).filter(|word| !word.is_empty()).collect();
    let found = |same: fn(&str, &str) -> bool| -> Vec<&'n str> {
        names.iter().copied().filter(|name| words.iter().any(|word| same(word, name))).collect()
    };
    let exactly = found(|word, name| word == name);
    let found =
        if exactly.is_empty() { found(|word, name| word.eq_ignore_ascii_case(name)) } else { exactly };
    match found.as_slice() {
        [] => Named::None,
        [only] => Named::One(only),
        _ => Named::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decisive_word_decides() {
        for text in
            ["yes", "Yes.", "**YES**", "I would say: yes", "<think>no</think>Yes, it is", "yes, not no"]
        {
            assert_eq!(yes_or_no(text), Some(true), "{text}");
        }
        for text in ["no", "No!", "\"no\"", "yes? no.</think> no", "Well, no"] {
            assert_eq!(yes_or_no(text), Some(false), "{text}");
        }
        for text in ["", "maybe", "not sure", "I know it", "I have no idea", "yesterday", "<think>yes"] {
            assert_eq!(yes_or_no(text), None, "{text}");
        }
    }

    #[test]
    fn tools_are_named_by_whole_words() {
        let names = ["low", "high_low", "get-time", "2d"];
        for (text, expected) in [
            ("high_low", Named::One("high_low")),
            ("I choose `low`.", Named::One("low")),
            ("GET-TIME!", Named::One("get-time")),
            ("2d", Named::One("2d")),
            ("<think>low</think>high_low", Named::One("high_low")),
            ("low or high_low", Named::Several),
            ("lower, slow, get-times, get", Named::None),
            ("", Named::None),
        ] {
            assert_eq!(named(text, &names), expected, "{text}");
        }
        assert_eq!(named("Low", &["low", "Low"]), Named::One("Low"));
    }
}
