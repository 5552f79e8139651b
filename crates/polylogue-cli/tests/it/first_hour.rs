//! What a person meets in the first hour with the program.

use crate::home::{Home, shipped};
use crate::terminal::Terminal;

/// The reply of a selector is shown with the selection, and by itself only if it says more than a name.
#[test]
fn verbose_output_shows_each_selection_of_a_speaker_once() {
    let home = Home::new();
    let ran = home.run(&["run", &shipped("arithmetic-group"), "--offline", "-v"]).ok();
    let count = |text: &str| ran.out.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("picks Adder among"), 1, "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| *line == "Adder").count(), 0, "{}", ran.out);
    assert_eq!(count("The next step doubles it: Multiplier."), 1, "{}", ran.out);
    assert_eq!(count("\"speaker\""), 0, "{}", ran.out);
}

#[test]
fn a_list_of_nothing_says_so() {
    let home = Home::new();
    for (args, says) in [
        (["trust", "list"], "no team file is trusted yet\n"),
        (["token", "list"], "there are no tokens; `polylogue token new` makes one\n"),
    ] {
        let ran = home.run(&args).ok();
        assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", says));
    }
    assert_eq!(home.run(&["config", "get", "model"]).exits(1).err, "`model` is not set\n");
}

#[test]
fn the_hint_of_a_fork_names_its_conversation() {
    let home = Home::new();
    home.run(&["run", &shipped("student-teacher")]).ok();
    let refused = home.run(&["fork", "last", "--at", "1", "--say", "Else."]).exits(2);
    let hint = format!("`polylogue show {} --json` shows the events with their numbers", home.id());
    assert!(refused.err.contains(&hint), "{}", refused.err);
}

#[test]
fn the_help_has_the_options_of_a_run_by_kind() {
    let help = Home::new().run(&["run", "--help"]).ok().out;
    let section = |title: &str| {
        let rest = help.split_once(&format!("\n{title}:\n")).map_or("", |(_, rest)| rest);
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    };
    for (title, option) in [
        ("Options", "--var"),
        ("Models", "--model"),
        ("Permissions", "--allow"),
        ("Limits", "--max-cost"),
        ("Output", "--quiet"),
        ("Budgets", "--budget"),
        ("Workers", "--detach"),
        ("Options of every command", "--store"),
    ] {
        assert!(section(title).contains(&format!("{option} ")), "{title}: {help}");
    }
}

#[test]
fn errors_have_colors_only_where_they_may() {
    let check = ["check", "wrong.yaml"];
    for (home, args, is_colored) in [
        (Home::new(), &check[..], true),
        (Home::new().var("NO_COLOR", "1"), &check[..], false),
        (Home::new(), &["check", "wrong.yaml", "--color", "never"][..], false),
    ] {
        home.file("wrong.yaml", "name: x\nagnets: []\n");
        let terminal = Terminal::open(&home, (80, 40), args);
        terminal.wait_for("hint: ");
        let bytes = terminal.bytes();
        assert_eq!(
            bytes.contains("\u{1b}[1;31merror:\u{1b}[0m unknown key `agnets`"),
            is_colored,
            "{bytes:?}"
        );
        assert_eq!(bytes.contains('\u{1b}'), is_colored, "{bytes:?}");
    }
}

#[test]
fn what_is_given_instead_of_a_team_file_is_answered() {
    let home = Home::new();
    for (given, hint) in [
        ("debate", "`polylogue new debate` writes a team file with the template of this name"),
        ("council", "`demo:council` is the demo of this name"),
        ("openai:gpt-4o", "it is a model: `--model openai:gpt-4o`"),
        ("gpt-4o", "it is a model: `--model openai:gpt-4o`"),
        ("https://example.org/team.yaml", "a team file is a file on this machine: save it first"),
        ("-", "a team file is not read from standard input: save it first"),
        ("\u{201c}team.yaml\u{201d}", "these quotation marks are part of the name: write `\"`"),
        ("Write a poem", "it is a text: `polylogue run TEAM \"TASK\"` takes it after the team file, "),
    ] {
        // Checks, and only they, read a team from standard input.
        let commands =
            ["run", "chat", "check"].into_iter().filter(|command| (*command, given) != ("check", "-"));
        for command in commands {
            let ran = home.run(&[command, given]).exits(2);
            assert!(ran.err.contains(&format!("\nhint: {hint}")), "{command} {given}: {}", ran.err);
        }
    }
}

#[test]
fn a_team_file_or_a_text_instead_of_a_conversation_is_answered() {
    let home = Home::new();
    home.run(&["run", &shipped("student-teacher")]).ok();
    for (args, hint) in [
        (&["resume", "team.yaml"][..], "it is a team file: `polylogue run team.yaml` runs it"),
        (&["show", "demo:council"], "it is a team file: `polylogue run demo:council` runs it"),
        (&["send", "Hello", "last"], "the text comes after the conversation: `polylogue send last TEXT`"),
        (&["resume", "Go on", "last"], "the text comes after the conversation: `polylogue resume last TEXT`"),
        (&["answer", "yes", "last"], "the text comes after the conversation: `polylogue answer last TEXT`"),
        (&["send", "nosuch", "Hello"], "`polylogue runs` lists them"),
    ] {
        let err = home.run(args).exits(2).err;
        assert_eq!(err, format!("error (config): there is no conversation `{}`\n  hint: {hint}\n", args[1]));
    }
}

#[test]
fn a_server_is_refused_by_one_label_and_with_an_address() {
    let home = Home::new();
    home.file("script.py", "import autogen\n");
    let err = home.run(&["serve", "script.py"]).exits(2).err;
    assert!(err.starts_with("error (config): `script`: this is a Python program, "), "{err}");
    for (given, port) in [("9000", 9000), (":9000", 9000), ("localhost:9000", 9000), ("localhost", 8787)] {
        let err = home.run(&["serve", "team.yaml", "--listen", given]).exits(2).err;
        let hint = format!(": it is not an address with a port: write `127.0.0.1:{port}`\n");
        assert!(err.contains(&hint), "{given}: {err}");
    }
}

#[test]
fn an_option_that_would_be_ignored_removes_nothing() {
    let home = Home::new();
    home.run(&["run", &shipped("student-teacher")]).ok();
    for args in [["rm", "last", "--all"], ["archive", "last", "--all"]] {
        let err = home.run(&args).exits(2).err;
        assert!(err.contains("cannot be used with") && err.contains("'--all'"), "{err}");
    }
    let err = home.run(&["fork", "last", "--at", "x"]).exits(2).err;
    assert!(
        err.contains("it is not the number of an event, which `polylogue show ID --json` prints"),
        "{err}"
    );
    assert_eq!(home.listed().len(), 1);
}
