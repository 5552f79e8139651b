//! Suggestions for misspelled names.

/// Returns the candidate closest to `given`, if it is close enough to be a typo.
pub fn closest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Longer texts are no names, and comparing them takes quadratic time.
    const LONGEST: usize = 128;
    /// No file that people write has more names.
    const LOOKED_AT: usize = 2000;
    /// A candidate may be meant by its beginning, such as `desc`.
    const SHORTEST_BEGINNING: usize = 3;
    if given.len() > LONGEST {
        return None;
    }
    let given = normal(given);
    let near =
        candidates.into_iter().take(LOOKED_AT).filter(|candidate| candidate.len() <= LONGEST).filter_map(
            |candidate| {
                let meant = normal(candidate);
                let distance = strsim::damerau_levenshtein(&given, &meant);
                let begun = given.len() >= SHORTEST_BEGINNING && meant.starts_with(&given);
                (is_near(&given, &meant, distance) || begun).then_some((distance, candidate))
            },
        );
    near.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// Whether `given` is certainly `meant`, but for a letter, or two in a long name: `silent` is not `select`.
pub(crate) fn is_slip(given: &str, meant: &str) -> bool {
    let (given, meant) = (normal(given), normal(meant));
    strsim::damerau_levenshtein(&given, &meant) <= (letters(&given, &meant) / 4).min(2)
}

/// Whether `distance` letters are few for names of this length.
fn is_near(given: &str, meant: &str, distance: usize) -> bool {
    let longer = letters(given, meant);
    let added = given.chars().count().abs_diff(meant.chars().count());
    // Two other letters of five make another word: `hooks` is not `tools`, while `Bobby` may be `Bob`.
    let is_other_word = longer <= 5 && distance > 1 && added < distance;
    distance <= (longer + 1) / 3 && !is_other_word
}

/// The letters of the longer one.
fn letters(given: &str, meant: &str) -> usize {
    given.chars().count().max(meant.chars().count())
}

/// Case and separators are the commonest slips, so they count for nothing.
fn normal(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
}

/// Returns the hint `did you mean ...?` when a candidate is close, else the list of all candidates.
pub fn hint<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match closest(given, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => there_are(candidates),
    }
}

/// Says which candidates there are, the first twenty of them.
pub fn there_are<'a>(candidates: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = candidates.into_iter().collect();
    match all.as_slice() {
        [] => "there are none".to_owned(),
        [one] => format!("there is `{one}`"),
        all => format!("there are {}", listed(all.iter().copied())),
    }
}

/// Returns the candidates between back quotes, the first twenty of them.
pub fn listed<'a>(candidates: impl IntoIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 20;
    let mut candidates = candidates.into_iter();
    let shown: Vec<String> =
        candidates.by_ref().take(SHOWN).map(|candidate| format!("`{candidate}`")).collect();
    match (shown.as_slice(), candidates.count()) {
        ([], _) => "nothing".to_owned(),
        (shown, 0) => shown.join(", "),
        (shown, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognized_and_other_words_are_not() {
        let keys = ["system", "description", "max_turns", "Stock_Trader"];
        for (given, meant) in [
            ("sytem", Some("system")),
            ("maxTurns", Some("max_turns")),
            ("stock trader", Some("Stock_Trader")),
            ("desc", Some("description")),
            ("xyz", None),
            ("m", None),
            (&*"s".repeat(1000), None),
        ] {
            assert_eq!(closest(given, keys), meant, "{given}");
        }
        for (given, other) in [("hooks", "tools"), ("steps", "stop"), ("rolls", "tools")] {
            assert_eq!(closest(given, [other]), None, "{given}");
        }
        assert_eq!(closest("Bobby", ["Bob"]), Some("Bob"));
        assert_eq!(hint("xyz", []), "there are none");
        assert_eq!(hint("xyz", ["a"]), "there is `a`");
        assert_eq!(hint("xyz", ["a", "b"]), "there are `a`, `b`");
    }

    #[test]
    fn a_slip_is_one_letter_or_two_of_a_long_name() {
        for (given, meant) in [
            ("maxround", "max_round"),
            ("gaol", "goal"),
            ("members", "member"),
            ("sytem_mesage", "system_message"),
        ] {
            assert!(is_slip(given, meant), "{given}");
        }
        for (given, other) in [("silent", "select"), ("entity", "entry"), ("hooks", "tools"), ("llm", "ll")] {
            assert!(!is_slip(given, other), "{given}");
        }
    }
}
