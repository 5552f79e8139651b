//! The tests are run by one command: the one the README gives is the one that `.ci/run` ends with.

use crate::finding::Finding;
use crate::repo::Repo;

const RUN: &str = ".ci/run";
const README: &str = "README.md";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let Some(run) = repo.text(RUN) else { return Vec::new() };
    let commands =
        run.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((index, last)) = commands.last() else {
        return vec![Finding::new(RUN, 1, "it runs nothing", "end it with the command that runs the tests")];
    };
    let same = repo.text(README).is_some_and(|text| text.lines().any(|line| line.trim() == last.trim()));
    let flaw = format!("its last command, `{}`, is not a line of {README}", last.trim());
    let hint = "the README gives the very command that runs the tests, alone on a line of a code block";
    (!same).then(|| Finding::new(RUN, index + 1, flaw, hint)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn the_command_of_the_readme_is_the_last_of_the_run() {
        let run = (".ci/run", "set -e\nstep fmt\ncargo nextest run --locked\n# done\n\n");
        assert!(check(&repo(&[run, ("README.md", "```\ncargo nextest run --locked\n```\n")])).is_empty());
        let flaw = ".ci/run:3: its last command, `cargo nextest run --locked`, is not a line of README.md";
        assert_eq!(brief(&check(&repo(&[run, ("README.md", "```\ncargo nextest run\n```\n")]))), [flaw]);
        assert_eq!(brief(&check(&repo(&[run]))), [flaw]);
    }
}
