//! Prose uses the field's words: documents, comments, messages and names of tests have none of the idioms listed here.

use crate::finding::Finding;
use crate::repo::Repo;

/// What is refused, and what to write. Compared as whole words, case ignored, with `_` as a space, across line breaks.
const IDIOMS: [(&str, &str); 34] = [
    ("what came of", "write `result`, `outcome` or `summary`"),
    ("what comes of", "write `result`, `outcome` or `summary`"),
    ("has come of", "write `result`, or say what was received"),
    ("whoever", "name the participant or caller"),
    ("whomever", "name the participant or caller"),
    ("somebody", "name the participant or caller, or write `another agent`"),
    ("nobody", "write `no participant`, `no agent` or `no one`"),
    ("is told", "write `receives`, `is prompted with` or `is shown`"),
    ("are told", "write `receive`, `are prompted with` or `are shown`"),
    ("when left out", "write `default`"),
    ("as it is", "write `unchanged`, or say what it is"),
    ("for ever", "write `forever`, or say until when"),
    ("in place of", "write `instead of`"),
    ("has to be the same", "write `must be deterministic` or `must be equal`"),
    ("of one's own", "write `your own` or `custom`"),
    ("is at work on", "write `works on` or `runs`"),
    ("goes on", "write `continues`"),
    ("to go on", "write `to continue`"),
    ("if left out", "write `default`"),
    ("is held to", "write `must satisfy`"),
    ("gives back", "write `returns`"),
    ("given back", "write `returned`, or `released` for a claim"),
    ("came of it", "write `result` or `outcome`"),
    ("have to be the same", "write `must be equal`"),
    ("asked aside", "write `asked in private`"),
    ("turns out", "say how it is found"),
    ("holds to be", "write `judges` or `considers`"),
    ("beside", "write `next to` or `together with`"),
    ("again and again", "write `repeatedly`"),
    ("anew", "write `again`"),
    ("everybody", "write `everyone` or `every participant`"),
    ("anybody", "write `anyone`, or name the participant or caller"),
    ("for good", "write `permanently`"),
    ("stands in", "write `is in`, or `replaces` for `stands in for`"),
];

/// Texts that models receive. Tests and the comparison with other systems pin them.
const PROMPTS: [&str; 23] = [
    "sum up what came of this conversation",
    "summarize what came of the conversation above",
    "in the place of somebody else",
    "then you are told its",
    "nobody changes it or fills anything in",
    "for somebody who has not read it",
    "true when nobody had a turn yet",
    "to whoever set the task",
    "nobody has said anything yet",
    "whoever has it begins a reply",
    "nobody runs",
    "nobody here runs",
    "everybody in the room hears it",
    "the label that stands beside a lighthouse",
    "nobody said what stands in them",
    "everybody in this conversation shares",
    "i tell everybody",
    "before anybody begins",
    "not everybody has",
    "whether the same is asked for or tried again and again",
    "down anew, with what was learned since",
    "begin anew before, without any variables",
    "the next call begins anew",
];

/// Texts of others, this list, and tests that still await their words.
const EXEMPT: [&str; 3] = ["compat/", "/vendor/", "xtask/src/checks/idioms.rs"];

pub(super) fn check(repo: &Repo) -> Vec<Finding> {
    let is_ours = |(file, _): &(&str, &str)| !EXEMPT.iter().any(|exempt| file.contains(exempt));
    let read = [".rs", ".md"].into_iter().flat_map(|end| repo.texts(end)).filter(is_ours);
    let mut found: Vec<Finding> = read.flat_map(|(file, text)| idioms(file, text)).collect();
    let teams = repo.texts(".yaml").filter(is_ours);
    found.extend(teams.flat_map(|(file, text)| idioms(file, &team_prose(text))));
    let pages = [".js", ".html"].into_iter().flat_map(|end| repo.texts(end)).filter(is_ours);
    // What a browser shows is in templates, whose marks are no code spans.
    found.extend(pages.flat_map(|(file, text)| idioms(file, &text.replace('`', " "))));
    found
}

/// The comments and descriptions of a YAML file, each in its line. The other texts are what models say and receive.
fn team_prose(text: &str) -> String {
    let prose = |line: &str| {
        let comment = line.find(" #").or_else(|| line.starts_with('#').then_some(0));
        let description = line
            .find("description:")
            .map(|at| value(line.get(at + "description:".len()..).unwrap_or_default()));
        let comment = comment.and_then(|at| line.get(at..)).unwrap_or_default();
        format!("{} {}\n", description.unwrap_or_default(), comment.trim_start_matches([' ', '#']))
    };
    text.lines().map(prose).collect()
}

/// The scalar at the beginning of `rest`, which can be in a flow mapping.
fn value(rest: &str) -> &str {
    let rest = rest.trim_start();
    match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next().unwrap_or_default(),
        None => rest.split([',', '}']).next().unwrap_or_default(),
    }
}

fn idioms(file: &str, text: &str) -> Vec<Finding> {
    let prose = Prose::of(text);
    let mut found = Vec::new();
    for (idiom, hint) in IDIOMS {
        for (at, _) in prose.text.match_indices(idiom).filter(|(at, _)| prose.is_words(*at, idiom.len())) {
            if prose.is_prompt(at) {
                continue;
            }
            found.push(Finding::new(
                file,
                prose.line(at),
                format!("`{idiom}` is not a term of the field"),
                hint,
            ));
        }
    }
    found
}

/// The words of a line of prose, a comment or a string.
fn words(line: &str) -> &str {
    line.trim().trim_start_matches(['/', '!', '*', '#', '>', '-']).trim().trim_start_matches("```")
}

/// Whether a code span begins or ends in the line that does not end or begin there. It ends in the next line, or is none.
fn has_odd_quotes(line: &str) -> bool {
    line.matches('`').count() % 2 == 1
}

/// The words of a file, in one line.
struct Prose {
    text: String,
    /// Where each line of the file begins in `text`.
    lines: Vec<usize>,
}

impl Prose {
    fn of(text: &str) -> Self {
        let mut prose = Self { text: String::with_capacity(text.len()), lines: Vec::new() };
        let mut is_code = false;
        let mut lines = text.lines().map(words).peekable();
        while let Some(line) = lines.next() {
            prose.lines.push(prose.text.len());
            let is_odd = has_odd_quotes(line);
            let is_open = is_odd && !is_code && lines.peek().is_some_and(|next| has_odd_quotes(next));
            let is_stray = is_odd && !is_code && !is_open;
            let last = line.matches('`').count();
            for (nth, piece) in line.split('`').enumerate() {
                // Code spans name what others call so.
                let is_prose = (nth % 2 == 1) == is_code || is_stray && nth == last;
                if is_prose {
                    prose.push(piece);
                }
            }
            is_code = is_open;
            prose.text.push(' ');
        }
        prose
    }

    fn push(&mut self, piece: &str) {
        self.text.extend(piece.chars().map(|c| if c == '_' { ' ' } else { c }).flat_map(char::to_lowercase));
    }

    /// Whether what is there is not the middle of longer words.
    fn is_words(&self, at: usize, len: usize) -> bool {
        let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let (before, behind) = (self.text.get(..at), self.text.get(at + len..));
        !is_part(before.and_then(|text| text.chars().next_back()))
            && !is_part(behind.and_then(|text| text.chars().next()))
    }

    /// Whether what is there is within one of the texts that models receive.
    fn is_prompt(&self, at: usize) -> bool {
        PROMPTS.iter().any(|prompt| {
            let from = at.saturating_sub(prompt.len());
            let near = (from..=at)
                .find(|start| self.text.get(*start..).is_some_and(|text| text.starts_with(prompt)));
            near.is_some_and(|start| at < start + prompt.len())
        })
    }

    /// The line of the file, counted from 1.
    fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|begin| *begin <= at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{brief, repo};

    #[test]
    fn idioms_are_found_in_comments_strings_documents_and_names() {
        let mut found = check(&repo(&[
            ("a.md", "One.\nThe turn goes\non with Whoever speaks.\n"),
            (
                "b.rs",
                "/// What came\n/// of\n/// a call.\nfn nobody_waits() -> &'static str { \"it is told\" }\n",
            ),
        ]));
        found.sort();
        assert_eq!(
            brief(&found),
            [
                "a.md:2: `goes on` is not a term of the field",
                "a.md:3: `whoever` is not a term of the field",
                "b.rs:1: `what came of` is not a term of the field",
                "b.rs:4: `is told` is not a term of the field",
                "b.rs:4: `nobody` is not a term of the field",
            ]
        );
    }

    #[test]
    fn idioms_are_found_in_the_page_and_not_in_the_code_of_others() {
        let script = "/** Asks again\n * and again. */\nconst shown = html`<p>Whoever speaks</p>`;\n";
        let files =
            [("page/a.js", script), ("page/b.html", "<p>Nobody.</p>\n"), ("page/vendor/c.js", "// anew\n")];
        let mut found = check(&repo(&files));
        found.sort();
        assert_eq!(
            brief(&found),
            [
                "page/a.js:1: `again and again` is not a term of the field",
                "page/a.js:3: `whoever` is not a term of the field",
                "page/b.html:1: `nobody` is not a term of the field",
            ]
        );
    }

    #[test]
    fn idioms_are_found_in_comments_and_descriptions_of_teams_and_not_in_what_models_say() {
        let team = "# Everybody speaks.\nagents:\n  - {name: A, description: Nobody., system: Somebody.}\n  - name: B # anew\n";
        let mut found = check(&repo(&[("teams/a.yaml", team)]));
        found.sort();
        assert_eq!(
            brief(&found),
            [
                "teams/a.yaml:1: `everybody` is not a term of the field",
                "teams/a.yaml:3: `nobody` is not a term of the field",
                "teams/a.yaml:4: `anew` is not a term of the field",
            ]
        );
    }

    #[test]
    fn code_spans_over_two_lines_and_stray_back_quotes_hide_no_prose() {
        let files = [
            (
                "a.md",
                "Run `polylogue resume\n--answer TEXT`: it goes on, as `somebody` asks.\nA ` alone goes on.\n",
            ),
            ("b.md", "```sh\nnobody\n```\nThe `nobody\ngoes on` user.\n"),
        ];
        let mut found = check(&repo(&files));
        found.sort();
        assert_eq!(
            brief(&found),
            [
                "a.md:2: `goes on` is not a term of the field",
                "a.md:3: `goes on` is not a term of the field",
                "b.md:2: `nobody` is not a term of the field",
            ]
        );
    }

    #[test]
    fn other_words_code_spans_and_the_words_of_others_are_left_alone() {
        let files = [
            ("a.md", "As it isn't so, the cargoes only wait. The user `nobody` gives backups.\n"),
            ("compat/b.md", "Nobody.\n"),
        ];
        assert_eq!(check(&repo(&files)), []);
    }
}
