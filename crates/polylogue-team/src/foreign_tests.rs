use super::*;
use crate::{Overrides, parse};

const DISCUSSED: &str = "{who: A, prompt: Guess.}, {who: B, prompt: Answer.}";

/// A team file with `entry` in a mapping of the type `within`.
fn file(within: &str, entry: &str) -> String {
    let chat = |more: &str| format!("chat: {{participants: [A, B], stop: {{max_turns: 2}}, {more}}}");
    let pattern = |of: &str| chat(&format!("pattern: {of}"));
    let rest = match within {
        "Team" => format!("{}\n{entry}", chat("summary: last")),
        "Agent" => return format!("name: t\nagents:\n  - name: A\n    {entry}\n{}\n", chat("summary: last")),
        "NestedChat" => {
            return format!(
                "name: t\nagents:\n  - name: A\n    nested_chats: [{{chat: c, when: B, {entry}}}]\n  - name: B\n{}\n",
                chat("summary: last")
            );
        }
        "CodeExecution" => {
            return format!(
                "name: t\nagents:\n  - name: A\n    code_execution: {{{entry}}}\n  - name: B\n{}\n",
                chat("summary: last")
            );
        }
        "NamedTool" => {
            return format!(
                "name: t\nagents:\n  - {{name: A, tools: [{{tool: calculator, {entry}}}]}}\n  - name: B\n{}\n",
                chat("summary: last")
            );
        }
        "Parameters" => {
            return format!(
                "name: t\nagents:\n  - {{name: A, parameters: {{{entry}}}}}\n  - name: B\n{}\n",
                chat("summary: last")
            );
        }
        "Sandbox" => format!("{}\nsandbox: {{{entry}}}", chat("summary: last")),
        "Limits" => format!("{}\nlimits: {{{entry}}}", chat("summary: last")),
        "UsageLimits" => chat(&format!("limits: {{{entry}}}")),
        "Summary" => chat(&format!("summary: {}", entry.split(':').next().unwrap())),
        "Chat" => chat(entry),
        "InnerChat" => format!(
            "{}\nchats: [{{name: c, participants: [A], stop: {{max_turns: 1}}, {entry}}}]",
            chat("summary: last")
        ),
        "Stop" => format!("chat: {{participants: [A, B], stop: {{says: x, {entry}}}}}"),
        "Pattern" => pattern(entry.split(':').next().unwrap()),
        "SelectSpeaker" => pattern(&format!("{{group: {{select: {}}}}}", entry.split(':').next().unwrap())),
        "Group" => pattern(&format!("{{group: {{{entry}}}}}")),
        "Selector" => pattern(&format!("{{group: {{select: {{model: {{{entry}}}}}}}}}")),
        "Graph" => pattern(&format!("{{graph: {{edges: {{A: B}}, {entry}}}}}")),
        "StateMachine" => pattern(&format!("{{state_machine: {{after: {{A: B}}, {entry}}}}}")),
        "Edge" => pattern(&format!("{{graph: {{edges: {{A: [{{to: B, {entry}}}]}}}}}}")),
        "Transition" => pattern(&format!("{{state_machine: {{after: {{A: [{{then: B, {entry}}}]}}}}}}")),
        "Handoffs" => pattern(&format!("{{handoffs: {{then: end, {entry}}}}}")),
        "RolePlay" => pattern(&format!("{{role_play: {{user: A, assistant: B, {entry}}}}}")),
        "GroupSolve" => pattern(&format!("{{group_solve: {{tasks: [{DISCUSSED}], {entry}}}}}")),
        "EndMode" => pattern(&format!(
            "{{group_solve: {{tasks: [{DISCUSSED}], end: {}}}}}",
            entry.split(':').next().unwrap()
        )),
        "Task" => pattern(&format!("{{tasks: [{{who: A, prompt: Solve it., {entry}}}]}}")),
        "Command" => format!(
            "{}\ncommands: [{{name: c, description: d, command: [ls], {entry}}}]",
            chat("summary: last")
        ),
        "HttpCall" => format!(
            "{}\ncalls: [{{name: c, description: d, url: 'https://a.example/', {entry}}}]",
            chat("summary: last")
        ),
        other => panic!("no sample file for {other}"),
    };
    format!("name: t\nagents: [{{name: A}}, {{name: B}}]\n{rest}\n")
}

#[test]
fn every_line_of_the_table_is_a_row() {
    let lines = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!((lines.count(), FOREIGN.len() > 250), (FOREIGN.len(), true));
}

#[test]
fn every_known_name_is_answered_with_its_equivalent_at_its_line() {
    for row in FOREIGN.iter() {
        for within in row.types() {
            let value = if row.value.is_empty() { "x" } else { row.value };
            let entry = format!("{}: {value}", row.name);
            let text = file(within, &entry);
            let found = parse(&text, "t.yaml", &Overrides::default()).unwrap_err().to_string();
            let is_there = |line: &str| {
                line.contains(&entry)
                    || ["pattern", "summary"].iter().any(|key| line.contains(&format!("{key}: {}", row.name)))
            };
            let line = 1 + text.lines().position(is_there).unwrap_or(2);
            let mistake = found.split("\n\n").find(|one| one.contains(&format!("hint: {}", row.hint())));
            let mistake = mistake.unwrap_or_else(|| panic!("{within}: {}\n{text}\n{found}", row.hint()));
            assert!(mistake.contains(&format!("--> t.yaml:{line}:")), "{mistake}");
        }
    }
}

#[test]
fn every_equivalent_names_keys_that_there_are() {
    let schema = crate::schema().to_string();
    for row in FOREIGN.iter() {
        let quoted = row.here.split('`').skip(1).step_by(2);
        let words = quoted.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        let is_key =
            |word: &&str| word.chars().any(char::is_lowercase) && !["true", "false", "self"].contains(word);
        for word in words.filter(is_key) {
            assert!(schema.contains(&format!("\"{word}\"")), "{word} of {row:?}");
        }
        for within in row.types() {
            let of_type = |row: &&Foreign| row.is_within(within);
            let same = FOREIGN
                .iter()
                .filter(of_type)
                .filter(|other| (other.name, other.value) == (row.name, row.value));
            assert_eq!(same.count(), 1, "{row:?}");
        }
    }
}

/// The names of the first column of the table of a page that is written by hand: arguments, such as `optional=True`, and constants.
fn names_of_page(page: &str) -> Vec<String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let (by_hand, _) = text.split_once("<!-- names of").unwrap();
    let cells = by_hand.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let names = quoted.flat_map(|code| {
        let words: Vec<&str> = code.split(['(', ' ', ',']).collect();
        let arguments = words.iter().filter_map(|word| Some(word.split_once('=')?.0));
        let alone = [code].into_iter().filter(|code| code.contains('_'));
        arguments.chain(alone).filter(|word| is_name(word)).map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

#[test]
fn every_argument_and_constant_on_the_page_about_yacana_is_answered() {
    /// Those with the same name here.
    const SAME: [&str; 1] = ["forget"];
    let names = names_of_page("from-yacana.md");
    assert!(names.len() >= 17, "{names:?}");
    for name in names.iter().filter(|name| !SAME.contains(&name.as_str())) {
        let is_known = FOREIGN.iter().any(|row| row.system == "Yacana" && row.name == name);
        assert!(is_known, "the error for `{name}` names no equivalent");
    }
}
