//! Names in a text.

use polylogue_core::Name;

/// Who is named in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    One(Name),
    Several,
    Nobody,
}

/// Who of `of` is named in `text`: as a whole word, `_` also written as a space or behind a backslash. Where names
/// overlap, the longest is meant, be it of one of `members` who cannot be chosen. Case counts, unless nobody is named then.
pub(super) fn mention(text: &str, of: &[Name], members: &[Name]) -> Mention {
    let exactly = named(text, of, members, str::to_owned);
    let names = if exactly.is_empty() { named(text, of, members, str::to_lowercase) } else { exactly };
    match names.as_slice() {
        [] => Mention::Nobody,
        [only] => Mention::One((*only).clone()),
        _ => Mention::Several,
    }
}

/// Those of `of` whose names are in `text`, both written by `write`.
fn named<'n>(text: &str, of: &'n [Name], members: &'n [Name], write: fn(&str) -> String) -> Vec<&'n Name> {
    let text = write(text);
    let others = members.iter().filter(|name| !of.contains(name));
    let mut found: Vec<(usize, usize, &Name)> = Vec::new();
    for name in of.iter().chain(others) {
        let spans =
            spellings(&write(name.as_str())).into_iter().flat_map(|spelling| whole_words(&text, &spelling));
        found.extend(spans.map(|(begin, end)| (begin, end, name)));
    }
    let within_longer = |(begin, end, _): &(usize, usize, &Name)| {
        found.iter().any(|(b, e, _)| b <= begin && end <= e && e - b > end - begin)
    };
    let longest: Vec<&Name> =
        found.iter().filter(|span| !within_longer(span)).map(|(.., name)| *name).collect();
    of.iter().filter(|name| longest.contains(name)).collect()
}

/// How a name may be written.
fn spellings(name: &str) -> Vec<String> {
    let mut spellings = vec![name.to_owned()];
    if name.contains('_') {
        spellings.extend([name.replace('_', " "), name.replace('_', "\\_")]);
    }
    spellings
}

/// Where `word` is in `text`, as a word.
fn whole_words(text: &str, word: &str) -> Vec<(usize, usize)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |(begin, found): &(usize, &str)| {
        let before = text.get(..*begin).unwrap_or_default();
        let after = text.get(begin + found.len()..).unwrap_or_default();
        !before.ends_with(is_word) && !after.starts_with(is_word) && !after.starts_with("\\_")
    };
    text.match_indices(word).filter(stands_alone).map(|(begin, found)| (begin, begin + found.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(text: &str, of: &[&str], members: &[&str]) -> String {
        let names = |names: &[&str]| names.iter().map(|name| Name::new(name).unwrap()).collect::<Vec<_>>();
        match mention(text, &names(of), &names(members)) {
            Mention::One(name) => name.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn names_are_whole_words_in_any_usual_spelling() {
        let team = ["Coder", "Coder_2", "Ann"];
        for (text, expected) in [
            ("Ann", "Ann"),
            ("I pick **Ann**.", "Ann"),
            ("Ann's turn, so Ann!", "Ann"),
            ("Anna", "Nobody"),
            ("_Ann", "Nobody"),
            ("Coder_2", "Coder_2"),
            ("Coder 2", "Coder_2"),
            (r"Coder\_2", "Coder_2"),
            ("Coder, not Coder 2", "Several"),
            ("Coder", "Coder"),
            ("Coder_3", "Nobody"),
            (r"Coder\_3", "Nobody"),
            ("Ann or Coder", "Several"),
            ("", "Nobody"),
            (r#"{"speaker": "Ann"}"#, "Ann"),
        ] {
            assert_eq!(who(text, &team, &team), expected, "{text}");
        }
    }

    #[test]
    fn case_counts_unless_nobody_is_named_then() {
        let team = ["Will", "May"];
        assert_eq!(who("Will may go on", &team, &team), "Will");
        assert_eq!(who("WILL", &team, &team), "Will");
        assert_eq!(who("will or may", &team, &team), "Several");
        assert_eq!(who("KÖCHIN", &["Köchin"], &[]), "Köchin");
    }

    #[test]
    fn the_longer_name_of_one_who_cannot_be_chosen_is_not_a_shorter_one_of_one_who_can() {
        assert_eq!(who("Coder 2", &["Coder"], &["Coder", "Coder_2"]), "Nobody");
        assert_eq!(who("Coder 2, no: Coder", &["Coder"], &["Coder", "Coder_2"]), "Coder");
    }
}
