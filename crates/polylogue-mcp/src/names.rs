//! Unique tool names that every provider accepts.

use std::collections::BTreeMap;

/// Maximum length of a name that every provider accepts.
const MAX: usize = 64;

/// Legal, unique names for tools, from their server and their name there. All names that would clash get a digest, and so do names
/// that are too long: whatever the order of the servers, a name always means the same tool.
pub(crate) fn names(tools: &[(&str, &str)]) -> Vec<String> {
    let plain: Vec<String> =
        tools.iter().map(|(server, tool)| format!("{}_{}", legal(server), legal(tool))).collect();
    let mut names = plain.clone();
    // A tool's own name may look like one with a digest: then a longer digest distinguishes them.
    for digits in [8, 16, 32] {
        let mut count: BTreeMap<String, usize> = BTreeMap::new();
        names.iter().for_each(|name| *count.entry(name.clone()).or_default() += 1);
        for ((name, plain), (server, tool)) in names.iter_mut().zip(&plain).zip(tools) {
            if name.len() > MAX || count.get(name).is_some_and(|count| *count > 1) {
                *name = digested(plain, &format!("{server}\n{tool}"), digits);
            }
        }
    }
    names
}

/// `plain`, followed by the beginning of a digest of `whole`.
fn digested(plain: &str, whole: &str, digits: usize) -> String {
    let digest = blake3::hash(whole.as_bytes()).to_hex();
    let (digest, _) = digest.split_at(digits);
    let kept: String = plain.chars().take(MAX - digest.len() - 1).collect();
    format!("{kept}_{digest}")
}

/// Replaces characters other than ASCII letters, digits, `_` and `-` by `_`.
fn legal(text: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    text.chars().map(legal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_no_two_are_the_same() {
        assert_eq!(
            names(&[("files", "read_file"), ("my files", "read/é")]),
            ["files_read_file", "my_files_read__"]
        );
        let both = [("a", "b_c"), ("a_b", "c")];
        let found = names(&both);
        assert_eq!(found[1], "a_b_c_feec5f24");
        assert!(found[0].starts_with("a_b_c_") && found[0] != found[1], "{found:?}");
        let [first, second] = both;
        assert_eq!(names(&[second, first]), [found[1].clone(), found[0].clone()], "in whichever order");
        let forged = names(&[first, second, ("a", "b_c_feec5f24")]);
        assert!(forged[0] != forged[1] && forged[1] != forged[2] && forged[0] != forged[2], "{forged:?}");
        let (long, longer) = ("b".repeat(100), "b".repeat(101));
        let found = names(&[("a", &long), ("a", &longer)]);
        assert!(found[0] != found[1] && found.iter().all(|name| name.len() == MAX), "{found:?}");
        assert!(names(&[]).is_empty());
    }
}
