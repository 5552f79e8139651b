//! What a model is told that calls a tool which is not there.

/// That there is no tool `name`, which one may have been meant, and which there are.
///
/// Meant may be one that differs by few letters: at most three, and at most a third of them (LazyLLM's rule).
///
/// ```
/// let told = polylogue_core::no_such_tool("serch", ["search", "fetch"]);
/// assert_eq!(told, "There is no tool `serch`. Did you mean `search`? There is `search`, `fetch`.");
/// ```
#[must_use]
pub fn no_such_tool<'a>(name: &str, there: impl IntoIterator<Item = &'a str>) -> String {
    let there: Vec<&str> = there.into_iter().collect();
    let names: Vec<String> = there.iter().map(|name| format!("`{name}`")).collect();
    let known = match names.is_empty() {
        true => "There are no tools.".to_owned(),
        false => format!("There is {}.", names.join(", ")),
    };
    // Of a single one no more has to be said.
    let meant = closest(name, &there).filter(|_| there.len() > 1);
    let meant = meant.map(|meant| format!("Did you mean `{meant}`? ")).unwrap_or_default();
    format!("There is no tool `{name}`. {meant}{known}")
}

/// Names that are longer are nobody's slip, and would take their time.
const LONGEST: usize = 64;

fn closest<'a>(name: &str, there: &[&'a str]) -> Option<&'a str> {
    let length = name.chars().count();
    let most = (length / 3).min(3);
    let near = |other: &&'a str| Some((distance(name, other), *other)).filter(|(far, _)| *far <= most);
    if length > LONGEST {
        None
    } else {
        there.iter().filter_map(near).min_by_key(|(far, _)| *far).map(|(_, other)| other)
    }
}

/// How many letters have to be changed, added or left out (Levenshtein 1966), whatever their case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().take(2 * LONGEST).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        for (slot, meant) in row.iter_mut().skip(1).zip(&other) {
            let changed = diagonal + usize::from(letter != *meant);
            diagonal = *slot;
            left = changed.min(left + 1).min(diagonal + 1);
            *slot = left;
        }
        if let Some(first) = row.first_mut() {
            *first = above + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (one, other, far) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("Search", "search", 0),
            ("é", "e", 1),
        ] {
            assert_eq!((distance(one, other), distance(other, one)), (far, far), "{one} {other}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let told = |name: &str| no_such_tool(name, ["get_history", "search", "sum"]);
        let meant = |name: &str| told(name).contains("Did you mean").then(|| told(name));
        assert!(meant("get_histroy").unwrap().contains("Did you mean `get_history`?"));
        assert!(meant("SEARCH").unwrap().contains("Did you mean `search`?"));
        for far in ["", "a", "su", "research_this", "fetch", &"search".repeat(40)] {
            assert_eq!(meant(far), None, "{far}");
        }
        assert_eq!(no_such_tool("serch", ["search"]), "There is no tool `serch`. There is `search`.");
        assert_eq!(no_such_tool("x", []), "There is no tool `x`. There are no tools.");
    }
}
