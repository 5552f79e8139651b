//! Agents that work in a folder of the user's (`--dir`), and what is asked before they change something there.

use std::fs;

use polylogue_test::skip::skipped;

use crate::home::Home;
use crate::pictures::can_enclose;
use crate::terminal::Terminal;

/// Reads a file of the project, and writes another one.
const TEAM: &str = r#"
name: editor
task: Tidy up
agents: [{name: Ed, tools: [files]}]
chat: {participants: [Ed], pattern: sequential}
files: [own.txt]
script:
  - Ed: {calls: [{tool: read_file, args: {path: notes.txt}}]}
  - Ed: {calls: [{tool: write_file, args: {path: made.txt, content: Tidy.}}]}
  - Ed: Done.
"#;

fn home() -> Home {
    let home = Home::new().with_team(TEAM);
    home.file("own.txt", "of the team");
    fs::create_dir(home.path("project")).unwrap();
    home.file("project/notes.txt", "A note.");
    home
}

#[test]
fn agents_change_files_of_the_project_after_a_person_allowed_it_and_a_resumed_run_works_there_too() {
    if !can_enclose() {
        return skipped("the sandbox does not work here");
    }
    let home = home();
    let ran = home.run(&["run", "team.yaml", "--offline", "--dir", "project"]).exits(5);
    assert!(ran.err.contains("waits for approval"), "{}", ran.err);
    assert!(home.run(&["show", "last"]).ok().out.contains("A note."), "reading needs no approval");
    assert!(!home.path("project/made.txt").exists());
    home.run(&["resume", "last", "--answer", "yes"]).ok();
    assert_eq!(fs::read_to_string(home.path("project/made.txt")).unwrap(), "Tidy.");
    assert!(!home.path("project/own.txt").exists(), "the team's own files stay out of it");
    // Removing the conversation leaves the project alone.
    home.run(&["rm", "last"]).ok();
    assert!(home.path("project/notes.txt").exists());
}

#[test]
fn a_conversation_whose_project_was_moved_is_not_continued_in_an_empty_folder() {
    let home = home();
    if !can_enclose() {
        return skipped("the sandbox does not work here");
    }
    home.run(&["run", "team.yaml", "--offline", "--dir", "project"]).exits(5);
    fs::rename(home.path("project"), home.path("moved")).unwrap();
    let ran = home.run(&["resume", "last", "--answer", "yes"]).exits(2);
    assert!(ran.err.contains("in which the agents work, does not exist"), "{}", ran.err);
    assert!(ran.err.contains("put it back at this path, or name another one with `--dir`"), "{}", ran.err);
    assert!(!home.path("project").exists());
    home.run(&["resume", "last", "--dir", "moved"]).exits(5);
    home.run(&["resume", "last", "--dir", "moved", "--answer", "yes"]).ok();
    assert_eq!(fs::read_to_string(home.path("moved/made.txt")).unwrap(), "Tidy.");
}

#[test]
fn programs_of_agents_are_not_left_in_the_project() {
    if !can_enclose() {
        return skipped("the sandbox does not work here");
    }
    let home = home();
    let call = r#"{tool: shell, args: {code: "echo done > made.txt"}}"#;
    home.file(
        "shell.yaml",
        &format!(
            "name: shell\ntask: Make it.\nagents:\n  - {{name: Ops, tools: [shell], approval: never}}\n\
             chat: {{participants: [Ops], pattern: sequential}}\nscript:\n  - Ops: {{calls: [{call}]}}\n  - Ops: Made.\n"
        ),
    );
    home.allow_programs();
    home.run(&["run", "shell.yaml", "--offline", "--dir", "project"]).ok();
    let names = fs::read_dir(home.path("project")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["made.txt", "notes.txt"]);
}

#[test]
fn a_rule_of_the_user_allows_changes_without_a_question() {
    if !can_enclose() {
        return skipped("the sandbox does not work here");
    }
    let home = home();
    home.rules("- allow: {tool: write_file, path: made.txt}\n");
    home.run(&["run", "team.yaml", "--offline", "--dir", "project"]).ok();
    assert_eq!(fs::read_to_string(home.path("project/made.txt")).unwrap(), "Tidy.");
}

#[test]
fn a_person_is_asked_at_the_terminal_in_a_chat() {
    if !can_enclose() {
        return skipped("the sandbox does not work here");
    }
    let home = home();
    let args = ["chat", "team.yaml", "--offline", "--dir", "project"];
    let mut terminal = Terminal::open(&home, (90, 40), &args);
    terminal.press_at("Ctrl-D leaves.", "Tidy up\r");
    terminal.wait_for("Allow Ed to call `write_file`? [y/N]");
    terminal.press("y\r");
    terminal.press_at("Done.", "\x04");
    assert_eq!(terminal.end().0, 0);
    assert!(home.path("project/made.txt").exists());
}

#[test]
fn folders_that_cannot_be_a_project_are_refused() {
    let home = home();
    home.file("talk.yaml", "name: talk\ntask: t\nagents: [{name: A}]\nchat: {participants: [A], pattern: sequential}\nscript: [{A: Hi}]\n");
    let root = home.path("").display().to_string();
    for (team, folder, what) in [
        ("team.yaml", "none", "the folder `none` does not exist"),
        ("team.yaml", "own.txt", "`own.txt` is not a folder"),
        ("team.yaml", "/", "it holds your home folder"),
        ("team.yaml", root.as_str(), "it holds your home folder"),
        ("talk.yaml", "project", "no agent of `talk` runs programs or works with files"),
    ] {
        let ran = home.run(&["run", team, "--offline", "--dir", folder]).exits(2);
        assert!(ran.err.contains(what), "{folder}: {}", ran.err);
    }
}

#[test]
fn check_warns_of_a_script_that_a_command_needs_and_the_team_does_not_bring_along() {
    let home = Home::new();
    let team = |files: &str, word: &str| {
        format!(
            "name: t\ntask: t\nagents: [{{name: A, tools: [score]}}]\nchat: {{participants: [A], pattern: sequential}}\n{files}\
             commands:\n  - {{name: score, description: Scores., command: [python3, {word}, --fast]}}\n"
        )
    };
    home.file("score.py", "print(1)\n");
    for (files, word, hint) in [
        ("", "score.py", Some("add `files: [score.py]` to the team, not to the command")),
        ("files: [score.py]\n", "tools/score.py", Some("write `score.py`")),
        ("files: [score.py]\n", "score.py", None),
        ("files: [score.py]\n", "./score.py", None),
        ("", "/opt/score.py", None),
    ] {
        home.file("team.yaml", &team(files, word));
        let err = home.run(&["check", "team.yaml"]).ok().err;
        match hint {
            Some(hint) => {
                assert!(err.contains("the command `score` needs") && err.contains(hint), "{word}: {err}")
            }
            None => assert_eq!(err, "", "{word}"),
        }
    }
}
