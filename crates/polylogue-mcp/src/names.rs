//! Names of tools that every model accepts.

use std::collections::BTreeSet;

/// The longest name that every provider accepts.
const MAX: usize = 64;

/// A name for the tool `tool` of the server `server`: legal, and none of those `taken`, to which it is added. Two that would
/// be the same, or one that is too long, get a digest, which depends on nothing but these two.
pub(crate) fn name(server: &str, tool: &str, taken: &mut BTreeSet<String>) -> String {
    let plain = format!("{}_{}", legal(server), legal(tool));
    let name = if plain.len() > MAX || taken.contains(&plain) {
        digested(&plain, &format!("{server}\n{tool}"))
    } else {
        plain
    };
    taken.insert(name.clone());
    name
}

/// `plain`, with the beginning of a digest of `whole` behind it.
fn digested(plain: &str, whole: &str) -> String {
    let digest = blake3::hash(whole.as_bytes()).to_hex();
    let (digest, _) = digest.split_at(8);
    let kept: String = plain.chars().take(MAX - digest.len() - 1).collect();
    format!("{kept}_{digest}")
}

/// Whatever is no ASCII letter, digit, `_` or `-` becomes `_`.
fn legal(text: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    text.chars().map(legal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let mut taken = BTreeSet::new();
        let mut name = |server: &str, tool: &str| name(server, tool, &mut taken);
        assert_eq!(name("files", "read_file"), "files_read_file");
        assert_eq!(name("my files", "read/é"), "my_files_read__");
        assert_eq!(name("a", "b_c"), "a_b_c");
        assert_eq!(name("a_b", "c"), "a_b_c_feec5f24");
        let long = name("a", &"b".repeat(100));
        assert_eq!(long.len(), MAX);
        assert_ne!(long, name("a", &"b".repeat(101)));
    }
}
