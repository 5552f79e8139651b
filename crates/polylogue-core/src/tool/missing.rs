//! The reply to a model that calls an unknown tool.

use crate::data::text::enumerated;

/// Returns the error text for an unknown tool `name`: the tool that was probably meant, and the available ones.
///
/// A suggestion differs by at most three letters and at most a third of them (LazyLLM's rule).
///
/// ```
/// let error = polylogue_core::no_such_tool("serch", ["search", "fetch"]);
/// assert_eq!(error, "There is no tool `serch`. Did you mean `search`? There are `search` and `fetch`.");
/// ```
pub fn no_such_tool<'a>(name: &str, there: impl IntoIterator<Item = &'a str>) -> String {
    let there: Vec<&str> = there.into_iter().collect();
    let names: Vec<String> = there.iter().map(|name| format!("`{name}`")).collect();
    let known = match names.as_slice() {
        [] => "There are no tools.".to_owned(),
        [only] => format!("There is {only}."),
        several => format!("There are {}.", enumerated(several)),
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
    if length > LONGEST {
        return None;
    }
    let (name, most) = (name.to_lowercase(), (length / 3).min(3));
    let distances = there.iter().map(|other| (strsim::levenshtein(&name, &other.to_lowercase()), *other));
    distances.filter(|(far, _)| *far <= most).min_by_key(|(far, _)| *far).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::*;

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
