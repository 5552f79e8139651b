//! The reply to a model that calls an unknown tool.

/// Returns the error text for an unknown tool `name`: the tool that was probably meant, and the available ones.
///
/// A suggestion differs by at most three letters and at most a third of them (LazyLLM's rule).
///
/// ```
/// let error = polylogue_core::no_such_tool("serch", ["search", "fetch"]);
/// assert_eq!(error, "There is no tool `serch`. Did you mean `search`? There is `search`, `fetch`.");
/// ```
pub fn no_such_tool<'a>(name: &str, there: impl IntoIterator<Item = &'a str>) -> String {
    let there: Vec<&str> = there.into_iter().collect();
    let names: Vec<String> = there.iter().map(|name| format!("`{name}`")).collect();
    let known = match names.is_empty() {
        true => "There are no tools.".to_owned(),
        false => format!("There is {}.", names.join(", ")),
    };
    // If there is only one tool, a suggestion adds nothing.
    let suggestion = closest(name, &there).filter(|_| there.len() > 1);
    let suggestion =
        suggestion.map(|suggestion| format!("Did you mean `{suggestion}`? ")).unwrap_or_default();
    format!("There is no tool `{name}`. {suggestion}{known}")
}

/// Longer names are no typos, and would take too long to compare.
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

/// How many letters must be changed, added or removed (Levenshtein 1966), ignoring case.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.to_lowercase().chars().take(2 * LONGEST).collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, letter) in one.to_lowercase().chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        for (slot, suggestion) in row.iter_mut().skip(1).zip(&other) {
            let changed = diagonal + usize::from(letter != *suggestion);
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
    fn edit_distances_count_letters() {
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
        let text = |name: &str| no_such_tool(name, ["get_history", "search", "sum"]);
        let suggestion = |name: &str| text(name).contains("Did you mean").then(|| text(name));
        assert!(suggestion("get_histroy").unwrap().contains("Did you mean `get_history`?"));
        assert!(suggestion("SEARCH").unwrap().contains("Did you mean `search`?"));
        for far in ["", "a", "su", "research_this", "fetch", &"search".repeat(40)] {
            assert_eq!(suggestion(far), None, "{far}");
        }
        assert_eq!(no_such_tool("serch", ["search"]), "There is no tool `serch`. There is `search`.");
        assert_eq!(no_such_tool("x", []), "There is no tool `x`. There are no tools.");
    }
}
