//! Parses votes.

use polylogue_core::text;

/// The option that `text` chooses: an exact option, its number, or the only one mentioned. `None` when that is unclear.
///
/// Where one option is part of another, as `red` of `dark red`, a mention of the longer one does not count for the
/// shorter.
pub(super) fn choice(text: &str, options: &[String]) -> Option<usize> {
    let answer = bare(text);
    if answer.is_empty() {
        return None;
    }
    options.iter().position(|option| bare(option) == answer).or_else(|| numbered(&answer, options)).or_else(
        || match mentioned(&folded(text), options).as_slice() {
            [only] => Some(*only),
            _ => None,
        },
    )
}

/// Lower case, without the marks that models put around answers.
pub(super) fn bare(text: &str) -> String {
    let mark = |c: char| c.is_whitespace() || "`'\"*_.!,;:()[]<>“”‘’«»".contains(c);
    folded(text.trim_matches(mark))
}

/// Lower case, with white space collapsed.
fn folded(text: &str) -> String {
    text::one_line(text).to_lowercase()
}

/// The index of an option, if the answer is only its number, from 1. Where options are numbers themselves, a number is
/// not an index.
fn numbered(answer: &str, options: &[String]) -> Option<usize> {
    if options.iter().any(|option| option.trim().parse::<f64>().is_ok()) {
        return None;
    }
    let number = answer.strip_prefix("option ").unwrap_or(answer).trim_start_matches('#');
    let number = number.parse::<usize>().ok().filter(|number| (1..=options.len()).contains(number))?;
    Some(number - 1)
}

/// The options mentioned as whole words.
fn mentioned(text: &str, options: &[String]) -> Vec<usize> {
    let mut options: Vec<(usize, String)> = options.iter().map(|option| folded(option)).enumerate().collect();
    options.sort_by_key(|(_, option)| std::cmp::Reverse(option.len()));
    let mut rest = text.to_owned();
    let mut found = Vec::new();
    for (index, option) in options {
        let at: Vec<usize> = rest.match_indices(&option).map(|(at, _)| at).collect();
        let whole = |at: &usize| is_whole(&rest, *at, option.len());
        let at: Vec<usize> = at.into_iter().filter(whole).collect();
        if !at.is_empty() {
            found.push(index);
        }
        // Parts of a longer option do not count as a shorter one.
        for at in at {
            rest.replace_range(at..at + option.len(), &"\0".repeat(option.len()));
        }
    }
    found
}

/// Whether there is no letter or digit right before or after.
fn is_whole(text: &str, at: usize, length: usize) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    let after = text.get(at + length..).and_then(|text| text.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_an_option_its_number_or_the_only_one_mentioned() {
        let options = ["Red", "dark red", "Blue 2", "3 parks", "Grün"].map(str::to_owned);
        for (text, chosen) in [
            ("Red", Some(0)),
            (" `red`. ", Some(0)),
            ("**Dark  red**", Some(1)),
            ("2", Some(1)),
            ("Option 3", Some(2)),
            ("#1", Some(0)),
            ("(5)", Some(4)),
            ("0", None),
            ("6", None),
            ("I vote for dark\nred, it is warm", Some(1)),
            ("not dark red but red", None),
            ("Reddish", None),
            ("blue", None),
            ("blue 2, of course", Some(2)),
            ("3 parks", Some(3)),
            ("grün!", Some(4)),
            ("GRÜN ist gut", Some(4)),
            ("", None),
            ("...", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(choice(text, &options), chosen, "{text}");
        }
        let numbers = ["16", "3"].map(str::to_owned);
        assert_eq!([choice("1", &numbers), choice("3", &numbers)], [None, Some(1)]);
    }
}
