//! The command `clear history`.

use polylogue_core::Name;

/// What to clear, and the remaining text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clear {
    /// For one participant; for all when `None`.
    pub(super) of: Option<Name>,
    /// Number of last messages that stay visible.
    pub(super) keep: usize,
    /// The text without the command.
    pub(super) rest: String,
}

/// The last `clear history` in `text`, if there is one. The name of a participant and a number can follow in any order,
/// each with a punctuation mark after it.
pub(super) fn parse(text: &str, participants: &[Name]) -> Option<Clear> {
    let words = words(text);
    let is = |index: usize, word: &str| {
        words.get(index).is_some_and(|(_, found)| bare(found).eq_ignore_ascii_case(word))
    };
    let at = (0..words.len()).rev().find(|&at| is(at, "clear") && is(at + 1, "history"))?;
    let mut clear = Clear { of: None, keep: 0, rest: String::new() };
    let mut numbered = false;
    let mut after = at + 2;
    while let Some((_, word)) = words.get(after) {
        let rest = words.get(after..).unwrap_or_default();
        match (named(rest, participants), bare(word).parse::<usize>()) {
            (Some((name, count)), _) if clear.of.is_none() => {
                clear.of = Some(name.clone());
                after += count;
            }
            (_, Ok(keep)) if !numbered => {
                (clear.keep, numbered) = (keep, true);
                after += 1;
            }
            _ => break,
        }
    }
    let start = |index: usize| words.get(index).map_or(text.len(), |(start, _)| *start);
    let (before, rest) = (text.get(..start(at))?, text.get(start(after)..)?);
    clear.rest = format!("{before}{rest}").trim().to_owned();
    Some(clear)
}

/// The participant whose name `words` start with, the longest of several, and its length in words.
fn named<'n>(words: &[(usize, &str)], participants: &'n [Name]) -> Option<(&'n Name, usize)> {
    let begins = |name: &&Name| {
        let count = name.as_str().split(' ').count();
        let Some(((_, last), before)) = words.get(..count).and_then(<[_]>::split_last) else { return false };
        let written = |last: &str| {
            let words: Vec<&str> = before.iter().map(|(_, word)| *word).chain([last]).collect();
            Name::composed(&words.join(" ")) == name.as_str()
        };
        written(last) || written(bare(last))
    };
    let longest = participants.iter().filter(begins).max_by_key(|name| name.as_str().len())?;
    Some((longest, longest.as_str().split(' ').count()))
}

/// The words of a text, with their offsets.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut end = 0;
    let words = text.split_whitespace().filter_map(|word| {
        // Only white space is before it.
        let start = end + text.get(end..)?.find(word)?;
        end = start + word.len();
        Some((start, word))
    });
    words.collect()
}

/// A word without one punctuation mark at its end.
fn bare(word: &str) -> &str {
    word.strip_suffix(|mark: char| mark.is_ascii_punctuation() && mark != '_' && mark != '-').unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, of: Option<&str>, keep: usize, rest: &str) {
        let participants =
            ["Ann", "Bob", "Ai assistant", "Ai assistant 1", "Élodie"].map(|name| Name::new(name).unwrap());
        let expected = Clear { of: of.map(|name| Name::new(name).unwrap()), keep, rest: rest.into() };
        assert_eq!(parse(text, &participants), Some(expected), "{text}");
    }

    #[test]
    fn a_name_and_a_number_may_follow_in_any_order() {
        check("clear history", None, 0, "");
        check("  CLEAR History. ", None, 0, "");
        check("clear history 2, then go on", None, 2, "then go on");
        check("Well. Clear history Ann! Go on", Some("Ann"), 0, "Well. Go on");
        check("clear history Bob 3.", Some("Bob"), 3, "");
        check("clear history 3 Bob\nnext  line", Some("Bob"), 3, "next  line");
    }

    #[test]
    fn a_name_may_have_several_words() {
        check("clear history Ai assistant 1 3 go on", Some("Ai assistant 1"), 3, "go on");
        check("clear history 2 Ai assistant, go on", Some("Ai assistant"), 2, "go on");
        check("clear history Ai  assistant 1.", Some("Ai assistant 1"), 0, "");
        check("clear history E\u{301}lodie", Some("Élodie"), 0, "");
        check("clear history Ai", None, 0, "Ai");
    }

    #[test]
    fn what_is_no_part_of_the_command_is_said() {
        check("clear history Carl", None, 0, "Carl");
        check("clear history 1 2", None, 1, "2");
        check("clear history Ann Bob", Some("Ann"), 0, "Bob");
        check("clear history -1", None, 0, "-1");
        check("clear history 99999999999999999999999", None, 0, "99999999999999999999999");
        check("clear history clear history 4", None, 4, "clear history");
        check("größe clear history übrig", None, 0, "größe übrig");
    }

    #[test]
    fn other_texts_are_no_command() {
        for text in ["", "clear", "history clear", "clear the history", "clearhistory"] {
            assert_eq!(parse(text, &[]), None, "{text}");
        }
    }
}
