//! Finds names in a text.

use polylogue_core::{Name, text};

/// The names found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mention {
    One(Name),
    Several,
    NoName,
}

/// Which of `of` are named in `text`: as whole words, with spaces and `_` interchangeable and `\_` allowed. Where names
/// overlap, the longest wins, even if it is one of `participants` who is not a candidate; of two names with the same
/// spelling, the exact match wins. Case-sensitive, then case-insensitive if no name is found.
pub(super) fn mention(text: &str, of: &[Name], participants: &[Name]) -> Mention {
    // Names have single spaces.
    let text = text::one_line(&Name::composed(text));
    let exactly = named(&text, of, participants, str::to_owned);
    let names = if exactly.is_empty() { named(&text, of, participants, str::to_lowercase) } else { exactly };
    match names.as_slice() {
        [] => Mention::NoName,
        [only] => Mention::One((*only).clone()),
        _ => Mention::Several,
    }
}

/// The position of a name in a text.
struct Found<'n> {
    begin: usize,
    end: usize,
    is_exact: bool,
    name: &'n Name,
}

impl Found<'_> {
    /// Whether the name at `other` wins over this one.
    fn yields_to(&self, other: &Self) -> bool {
        let (own, length) = (self.end - self.begin, other.end - other.begin);
        let is_within = other.begin <= self.begin && self.end <= other.end;
        is_within && (length > own || length == own && other.is_exact && !self.is_exact)
    }
}

/// Those of `of` whose names are in `text`, both normalized by `write`.
fn named<'n>(
    text: &str,
    of: &'n [Name],
    participants: &'n [Name],
    write: fn(&str) -> String,
) -> Vec<&'n Name> {
    let text = write(text);
    let others = participants.iter().filter(|name| !of.contains(name));
    let mut found: Vec<Found<'_>> = Vec::new();
    for name in of.iter().chain(others) {
        let own = write(name.as_str());
        for spelling in spellings(&own) {
            let is_exact = spelling == own;
            let spans = whole_words(&text, &spelling);
            found.extend(spans.into_iter().map(|(begin, end)| Found { begin, end, is_exact, name }));
        }
    }
    found.sort_by_key(|one| one.begin);
    let longest = found.iter().map(|one| one.end - one.begin).max().unwrap_or_default();
    // Only what begins shortly before a name can be around it: a text can name someone many thousand times.
    let meant = |one: &&Found<'_>| {
        let first = found.partition_point(|other| other.begin + longest < one.begin);
        let mut near = found.iter().skip(first).take_while(|other| other.begin <= one.begin);
        !near.any(|other| one.yields_to(other))
    };
    let meant: Vec<&Name> = found.iter().filter(meant).map(|one| one.name).collect();
    of.iter().filter(|name| meant.contains(name)).collect()
}

/// The spellings of a name.
fn spellings(name: &str) -> Vec<String> {
    let mut spellings = vec![name.to_owned()];
    if name.contains(['_', ' ']) {
        let spaced = name.replace('_', " ");
        spellings.extend([
            spaced.replace(' ', "_"),
            spaced.replace(' ', "\\_"),
            name.replace('_', "\\_"),
            spaced,
        ]);
        spellings.sort_unstable();
        spellings.dedup();
    }
    spellings
}

/// The positions of `word` in `text`, as a word.
fn whole_words(text: &str, word: &str) -> Vec<(usize, usize)> {
    let continues = |within: Option<char>, neighbor: Option<char>| {
        let is_spaced = |c: char| Name::is_of_word(c) && !text::is_unspaced(c);
        within.is_some_and(|c| !text::is_unspaced(c)) && neighbor.is_some_and(is_spaced)
    };
    let (first, last) = (word.chars().next(), word.chars().next_back());
    let stands_alone = |(begin, found): &(usize, &str)| {
        let before = text.get(..*begin).unwrap_or_default();
        let after = text.get(begin + found.len()..).unwrap_or_default();
        !continues(first, before.chars().next_back())
            && !continues(last, after.chars().next())
            && !after.starts_with("\\_")
    };
    text.match_indices(word).filter(stands_alone).map(|(begin, found)| (begin, begin + found.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(text: &str, of: &[&str], participants: &[&str]) -> String {
        let names = |names: &[&str]| names.iter().map(|name| Name::new(name).unwrap()).collect::<Vec<_>>();
        match mention(text, &names(of), &names(participants)) {
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
            ("Anna", "NoName"),
            ("_Ann", "NoName"),
            ("Coder_2", "Coder_2"),
            ("Coder 2", "Coder_2"),
            (r"Coder\_2", "Coder_2"),
            ("Coder, not Coder 2", "Several"),
            ("Coder", "Coder"),
            ("Coder_3", "NoName"),
            (r"Coder\_3", "NoName"),
            ("Ann or Coder", "Several"),
            ("", "NoName"),
            (r#"{"speaker": "Ann"}"#, "Ann"),
        ] {
            assert_eq!(who(text, &team, &team), expected, "{text}");
        }
    }

    #[test]
    fn case_counts_unless_no_name_is_found_then() {
        let team = ["Will", "May"];
        assert_eq!(who("Will may go on", &team, &team), "Will");
        assert_eq!(who("WILL", &team, &team), "Will");
        assert_eq!(who("will or may", &team, &team), "Several");
        assert_eq!(who("KÖCHIN", &["Köchin"], &[]), "Köchin");
    }

    #[test]
    fn names_of_several_words_are_found() {
        let team = [
            "Ai assistant 1", "Ai assistant 10", "Ai_assistant_1", "Ai assistant", "Élodie", "Jean-Luc d’Arc",
        ];
        for (text, expected) in [
            ("Ai assistant 1", "Ai assistant 1"),
            ("Next is **Ai assistant 1**.", "Ai assistant 1"),
            ("ai ASSISTANT 1", "Ai assistant 1"),
            ("Ai assistant\n1 should go on", "Ai assistant 1"),
            ("Ai_assistant_1", "Ai_assistant_1"),
            ("Ai\u{a0}assistant 10", "Ai assistant 10"),
            ("Ai_assistant_10", "Ai assistant 10"),
            ("Ai assistant, please", "Ai assistant"),
            ("Ai assistant 100", "Ai assistant"),
            ("E\u{301}lodie!", "Élodie"),
            ("ELODIE", "NoName"),
            ("ÉLODIE", "Élodie"),
            ("I pick Jean-Luc d’Arc's side", "Jean-Luc d’Arc"),
        ] {
            assert_eq!(who(text, &team, &team), expected, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_scripts_without_spaces() {
        let team = ["研究员", "研究员助理", "Ann", "นักเขียน", "연구원", "हिन्दी"];
        for (text, expected) in [
            ("研究员", "研究员"),
            ("我选研究员。", "研究员"),
            ("下一位是研究员助理来发言", "研究员助理"),
            ("我选Ann来", "Ann"),
            ("Anna", "NoName"),
            ("ให้นักเขียนพูด", "นักเขียน"),
            ("연구원이 말합니다", "연구원"),
            ("अब हिन्दी बोले", "हिन्दी"),
            ("हिन्दीभाषी", "NoName"),
            ("研究员和Ann", "Several"),
        ] {
            assert_eq!(who(text, &team, &team), expected, "{text}");
        }
    }

    #[test]
    fn the_longer_name_of_one_who_cannot_be_chosen_is_not_a_shorter_one_of_one_who_can() {
        assert_eq!(who("Coder 2", &["Coder"], &["Coder", "Coder_2"]), "NoName");
        assert_eq!(who("Coder 2, no: Coder", &["Coder"], &["Coder", "Coder_2"]), "Coder");
    }

    /// The test would take many minutes if each mention was compared with all others.
    #[test]
    fn a_text_can_name_someone_any_number_of_times() {
        let team = ["Ann", "Bob", "Bob_2"];
        assert_eq!(who(&"Ann Bob ".repeat(200_000), &team, &team), "Several");
        assert_eq!(who(&"Bob 2, ".repeat(200_000), &team, &team), "Bob_2");
    }
}
