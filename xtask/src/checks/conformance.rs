//! The pages in `docs/conformance` name tests that exist, and the items that differ are explained.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::repo::Repo;

const PAGES: &str = "docs/conformance/";
/// Explains the items that are marked with an asterisk.
const DIFFERENCES: &str = "docs/compatibility.md";

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let pages = repo.texts(".md").filter(|(file, _)| file.starts_with(PAGES));
    pages.flat_map(|(file, text)| of_page(repo, file, text)).collect()
}

fn of_page(repo: &Repo, file: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut items = BTreeSet::new();
    for (line, row) in (1..).zip(text.lines()).filter_map(|(line, text)| Some((line, Row::read(text)?))) {
        let mut report = |flaw: String, hint| found.push(Finding::new(file, line, flaw, hint));
        if !items.insert(row.item) {
            report(format!("item {} is there twice", row.item), "keep one of them");
        }
        if row.tests().next().is_none() && !row.last.starts_with("none: ") {
            report(format!("item {} names no test", row.item), "name one, or write `none: ` and why");
        }
        for test in row.tests().filter(|test| !is_test(repo, test)) {
            report(format!("there is no test `{test}`"), "name a test as `crate/path::function`");
        }
        if let Some(flaw) = repo.text(DIFFERENCES).and_then(|differences| row.difference(differences)) {
            report(flaw, "mark what differs with `*`, and explain it in docs/compatibility.md");
        }
    }
    found
}

/// A row of a table of items: `| L01* | what happens | `tests` |`.
struct Row<'a> {
    item: &'a str,
    differs: bool,
    last: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let cells = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let (item, rest) = cells.split_once(" | ")?;
        let (_, last) = rest.rsplit_once(" | ")?;
        let name = item.strip_suffix('*').unwrap_or(item);
        (item != "item").then_some(Self { item: name, differs: name != item, last })
    }

    fn tests(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.last.split('`').skip(1).step_by(2)
    }

    /// What is wrong between the mark of the item and what is explained. Items that are only numbers are ambiguous there.
    fn difference(&self, explained: &str) -> Option<String> {
        let is_named = explained.split(|c: char| !c.is_alphanumeric()).any(|word| word == self.item);
        let item = self.item;
        if !item.starts_with(char::is_alphabetic) || is_named == self.differs {
            return None;
        }
        Some(match self.differs {
            true => format!("item {item} differs, and {DIFFERENCES} does not name it"),
            false => format!("{DIFFERENCES} names item {item}, which is not marked"),
        })
    }
}

/// Whether `name`, as `crate/path::function` or by the path from the root, is a test of the repository.
fn is_test(repo: &Repo, name: &str) -> bool {
    let Some((path, function)) = name.rsplit_once("::") else { return false };
    let files = [format!("crates/{path}.rs"), format!("{path}.rs")];
    let Some(text) = files.iter().find_map(|file| repo.text(file)) else { return false };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {function}(");
    let declared = lines.iter().position(|line| line.trim_start_matches("async ").starts_with(&head));
    let attributes =
        declared.and_then(|at| lines.get(..at)).into_iter().flat_map(|before| before.iter().rev());
    attributes.take_while(|line| line.starts_with("#[")).any(|line| line.contains("test"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    const TESTS: (&str, &str) = (
        "crates/a/tests/b.rs",
        "#[test]\nfn one() {}\n\n#[tokio::test]\n#[cfg(unix)]\nasync fn two() {}\n\nfn helper() {}\n",
    );
    const WHY: (&str, &str) = ("docs/compatibility.md", "Two differ (L02, L04).");

    fn found(rows: &str) -> Vec<String> {
        let page = format!("| item | behavior | tests |\n|---|---|---|\n{rows}\n");
        brief(&check(&repo(&[TESTS, WHY, ("docs/conformance/a.md", &page)])))
    }

    #[test]
    fn tests_that_exist_and_reasons_for_none_are_right() {
        let rows = "| L01 | a \\| b | `a/tests/b::one`<br>`a/tests/b::two` |\n| L02* | c | none: there is no server |\n| 2 | d | `a/tests/b::one` |";
        assert_eq!(found(rows), [""; 0]);
    }

    #[test]
    fn missing_tests_items_without_one_and_unexplained_differences_are_found() {
        let rows = "| 1 | a | `a/tests/b::gone`<br>`a/tests/c::one` |\n| 2 | b | `a/tests/b::helper` |\n| 2 | c | none |\n| L03* | d | `a/tests/b::one` |\n| L04 | e | `a/tests/b::two` |";
        assert_eq!(
            found(rows),
            [
                "docs/conformance/a.md:3: there is no test `a/tests/b::gone`",
                "docs/conformance/a.md:3: there is no test `a/tests/c::one`",
                "docs/conformance/a.md:4: there is no test `a/tests/b::helper`",
                "docs/conformance/a.md:5: item 2 is there twice",
                "docs/conformance/a.md:5: item 2 names no test",
                "docs/conformance/a.md:6: item L03 differs, and docs/compatibility.md does not name it",
                "docs/conformance/a.md:7: docs/compatibility.md names item L04, which is not marked",
            ]
        );
    }
}
