//! Sentences of prompts, as far as checks understand them.

/// Words with which a sentence is about what an agent does not do.
const NEGATIONS: [&str; 9] =
    ["not", "never", "no", "cannot", "without", "nor", "neither", "instead", "unlike"];

/// The most characters of a sentence that are looked at.
const LONGEST: usize = 400;

/// The text before `at`, from the beginning of its sentence or line on.
pub(super) fn before(text: &str, at: usize) -> &str {
    let all = text.get(..at).unwrap_or_default();
    let begin = all.char_indices().rev().take(LONGEST).last().map_or(0, |(begin, _)| begin);
    let all = all.get(begin..).unwrap_or_default();
    let ends = |(end, mark): (usize, char)| {
        let is_end = mark == '\n' || all.get(end + 1..).is_some_and(|rest| rest.starts_with(' '));
        is_end.then_some(end + 1)
    };
    let mut marks = all.char_indices().rev().filter(|(_, mark)| matches!(mark, '.' | '!' | '?' | '\n'));
    all.get(marks.find_map(ends).unwrap_or_default()..).unwrap_or_default()
}

/// Whether the beginning of a sentence negates what follows.
pub(super) fn is_negated(beginning: &str) -> bool {
    let words = beginning.split(|c: char| !c.is_alphanumeric() && !matches!(c, '\'' | '’'));
    let mut words = words.map(str::to_lowercase);
    words.any(|word| NEGATIONS.contains(&word.as_str()) || word.ends_with("n't") || word.ends_with("n’t"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_after_the_one_before() {
        let before = |text: &str| before(text, text.len()).trim().to_owned();
        assert_eq!(before("Call it. Then call "), "Then call");
        assert_eq!(before("Version 1.5 is good: call "), "Version 1.5 is good: call");
        assert_eq!(before("One line\n- call "), "- call");
        assert_eq!(before("What? Ü! "), "");
    }

    #[test]
    fn negations_are_words() {
        for (text, expected) in [
            ("Never call ", true),
            ("You don't call ", true),
            ("You can NOT use ", true),
            ("Note that you call ", false),
            ("Now use ", false),
        ] {
            assert_eq!(is_negated(text), expected, "{text}");
        }
    }
}
