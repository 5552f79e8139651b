//! Every team file that ships is described in `teams/README.md`.

use crate::finding::Finding;
use crate::repo::Repo;

const FOLDER: &str = "teams/";
const LIST: &str = "teams/README.md";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let list = repo.text(LIST).unwrap_or_default();
    let names =
        repo.files.keys().filter_map(|file| file.strip_prefix(FOLDER)).filter(|name| *name != "README.md");
    let unnamed = names.filter(|name| !names_file(list, name));
    let flaw = |name: &str| format!("`{name}` is not named in {LIST}");
    let hint = "say there in a line what it shows and how to run it";
    unnamed.map(|name| Finding::new(&format!("{FOLDER}{name}"), 1, flaw(name), hint)).collect()
}

/// Whether `name` occurs in `list` as a whole, and not as the end of another file's name.
fn names_file(list: &str, name: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    list.match_indices(name).any(|(at, _)| {
        let before = list.get(..at).and_then(|text| text.chars().next_back());
        let after = list.get(at + name.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(part_of_name) && !after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn files_that_are_not_named_are_found() {
        let files = [
            ("teams/README.md", "[debate](debate.toml), `deep/own.toml`, not-quiz.toml, chat.tomlx"),
            ("teams/debate.toml", ""),
            ("teams/deep/own.toml", ""),
            ("teams/quiz.toml", ""),
            ("teams/chat.toml", ""),
        ];
        let wanted = [
            "teams/chat.toml:1: `chat.toml` is not named in teams/README.md",
            "teams/quiz.toml:1: `quiz.toml` is not named in teams/README.md",
        ];
        assert_eq!(brief(&check(&repo(&files))), wanted);
    }

    #[test]
    fn without_a_list_every_file_is_found() {
        assert_eq!(check(&repo(&[("teams/a.toml", "")])).len(), 1);
        assert!(check(&repo(&[("a.toml", "")])).is_empty());
    }
}
