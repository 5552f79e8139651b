use super::*;
use crate::{Overrides, parse};

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
fn every_known_name_is_answered_with_its_equivalent_at_its_line() {
    for row in FOREIGN {
        for within in row.within {
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
    for row in FOREIGN {
        let quoted = row.here.split('`').skip(1).step_by(2);
        let words = quoted.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
        for word in
            words.filter(|word| word.chars().any(char::is_lowercase) && *word != "true" && *word != "self")
        {
            assert!(schema.contains(&format!("\"{word}\"")), "{word} of {row:?}");
        }
        for within in row.within {
            let of_type = |row: &&Foreign| row.within.contains(within);
            let same = FOREIGN
                .iter()
                .filter(of_type)
                .filter(|other| (other.name, other.value) == (row.name, row.value));
            assert_eq!(same.count(), 1, "{row:?}");
        }
    }
}
