//! What a person begins with: templates, demos, completions, the manual.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::home::{Home, PROGRAM, of_type};
use crate::pictures::can_enclose;

/// The names in the first column of the list of templates.
fn templates(home: &Home) -> Vec<String> {
    let listed = home.run(&["new", "--list"]).ok().out;
    let rows = listed.lines().skip(1).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_template_is_written_under_the_name_of_its_file_and_checked() {
    let home = Home::new();
    let templates = templates(&home);
    assert!(templates.len() >= 14, "{templates:?}");
    for template in &templates {
        let file = format!("my-{template}.yaml");
        let wrote = home.run(&["new", template, &file]).ok();
        assert!(wrote.err.contains(&format!("  polylogue run {file} --offline\n")), "{}", wrote.err);
        let text = fs::read_to_string(home.path(&file)).unwrap();
        assert!(text.starts_with("# ") && text.contains(&format!("\nname: my-{template}\n")), "{text}");
        let checked = home.run(&["check", &file]).ok();
        assert!(!checked.err.contains("warning"), "{}", checked.err);
    }
}

#[test]
fn every_template_plays_its_whole_script_offline_up_to_its_end() {
    let home = Home::new();
    for template in &templates(&home) {
        let needs_a_sandbox = template == "code" || template == "tools";
        if needs_a_sandbox && !can_enclose() {
            continue;
        }
        home.run(&["new", template, "team.yaml", "--force"]).ok();
        // Where a person is asked, these are the answers.
        let ended = match template.as_str() {
            "handoffs" => home.run_reading("The date is missing.\nThanks.\ngoodbye\n", RUN).ok(),
            // A person who leaves stops the chat.
            "person" => home.run_reading("Say when.\nAnd the children?\nexit\n", RUN).exits(6),
            _ => home.run(RUN).ok(),
        };
        assert!(!ended.out.trim().is_empty(), "{template}: {}", ended.err);
        let text = fs::read_to_string(home.path("team.yaml")).unwrap();
        let (_, script) = text.split_once("\nscript:\n").unwrap();
        let steps = script.lines().filter(|line| line.starts_with("  - ")).count();
        let replies = of_type(&home.events(), "model_replied").len();
        assert_eq!(replies, steps, "{template}: {}", ended.out);
    }
}

const RUN: &[&str] = &["run", "team.yaml", "--offline", "--quiet"];

#[test]
fn a_file_that_is_there_stays_unless_it_is_to_be_replaced() {
    let home = Home::new();
    home.run(&["new"]).ok();
    let written = fs::read_to_string(home.path("team.yaml")).unwrap();
    assert!(written.contains("name: two-agents\n"));
    home.file("team.yaml", "mine");
    let refused = home.run(&["new", "group"]).exits(2);
    assert!(refused.err.contains("`team.yaml` exists") && refused.err.contains("--force"), "{}", refused.err);
    assert_eq!(fs::read_to_string(home.path("team.yaml")).unwrap(), "mine");
    home.run(&["new", "group", "--force"]).ok();
    assert!(fs::read_to_string(home.path("team.yaml")).unwrap().contains("name: group\n"));
    assert!(home.run(&["new", "debate", "-"]).ok().out.contains("name: debate\n"));
    let unknown = home.run(&["new", "chess"]).exits(2);
    assert!(unknown.err.contains("there is no template `chess`"), "{}", unknown.err);
    let misspelled = home.run(&["new", "grup"]).exits(2);
    let hint = "hint: did you mean `group`? `polylogue new --list` lists";
    assert!(misspelled.err.contains(hint), "{}", misspelled.err);
    let demo = home.run(&["new", "demo:counci"]).exits(2);
    assert!(demo.err.contains("hint: did you mean `demo:council`? "), "{}", demo.err);
}

#[test]
fn a_pattern_is_answered_with_its_template() {
    let home = Home::new();
    for pattern in ["round_robin", "sequential", "parallel", "dag", "group_solve", "swarm", "group_chat"] {
        let err = home.run(&["new", pattern]).exits(2).err;
        let command = err.split("`polylogue ").nth(1).and_then(|rest| rest.split('`').next());
        let words: Vec<&str> = command.unwrap_or_else(|| panic!("{err}")).split(' ').collect();
        home.run(&[&words[..], &["-"]].concat()).ok();
    }
}

#[test]
fn a_demo_is_written_with_the_files_that_it_names() {
    let home = Home::new();
    let new = ["new", "demo:planner-functions", "mine.yaml"];
    let wrote = home.run(&new).ok();
    assert!(wrote.err.contains("wrote mine.yaml: the demo `planner-functions`\n"), "{}", wrote.err);
    assert!(home.path("data/median.py").exists() && home.path("data/test_median.py").exists());
    assert!(!home.path("data/prices.csv").exists(), "another demo names it");
    assert!(fs::read_to_string(home.path("mine.yaml")).unwrap().contains("\nname: mine\n"));
    home.run(&["check", "mine.yaml"]).ok();
    home.file("data/median.py", "mine");
    home.run(&[&new[..], &["--force"]].concat()).ok();
    assert_eq!(fs::read_to_string(home.path("data/median.py")).unwrap(), "mine");
    let template = home.run(&["new", "council"]).exits(2);
    assert!(template.err.contains("`polylogue new demo:council` writes its file"), "{}", template.err);
    let file = home.run(&["run", "council"]).exits(2);
    assert!(file.err.contains("hint: `demo:council` is the demo of this name\n"), "{}", file.err);
}

#[test]
fn a_demo_runs_anywhere() {
    let home = Home::new();
    let ran = home.run(&["run", "demo:writer-critic", "--quiet"]).ok();
    assert!(!ran.out.is_empty());
    // Its files are unpacked next to it, and again found there.
    home.run(&[
        "batch",
        "demo:blogger",
        "--over",
        &almanac(&home),
        "-o",
        "out.jsonl",
        "--offline",
        "--at-once",
        "1",
    ]);
    let unknown = home.run(&["run", "demo:chess-club"]).exits(2);
    assert!(unknown.err.contains("there is no demo `chess-club`"), "{}", unknown.err);
    assert_eq!(fs::read_dir(home.path(".cache/polylogue/demos")).unwrap().count(), 1);
}

#[test]
fn a_demo_runs_where_the_folder_of_the_user_cannot_be_written() {
    let (mut home, team) = (Home::new(), "demo:writer-critic");
    home.file("file", "");
    fs::create_dir(home.path("tmp")).unwrap();
    let below_a_file = home.path("file/cache").display().to_string();
    home.set("XDG_CACHE_HOME", &below_a_file);
    home.set("TMPDIR", &home.path("tmp").display().to_string());
    home.run(&["run", team, "--quiet"]).ok();
    home.run(&["check", team]).ok();
    let made: Vec<_> = fs::read_dir(home.path("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(made.len(), 1, "both have the same: {made:?}");
    assert_eq!(fs::metadata(&made[0]).unwrap().permissions().mode() & 0o777, 0o700);
    // A folder that others can change is not used.
    fs::set_permissions(&made[0], fs::Permissions::from_mode(0o777)).unwrap();
    let open = home.run(&["run", team]).exits(1);
    let begin = "error (system): the files of `demo:writer-critic` have no place: `";
    assert!(
        open.err.starts_with(begin) && open.err.contains("others can change what is there"),
        "{}",
        open.err
    );
    assert!(open.err.contains("\n  hint: set `TMPDIR`"), "{}", open.err);
}

/// A file that belongs to a demo, where it was unpacked.
fn almanac(home: &Home) -> String {
    let demos = fs::read_dir(home.path(".cache/polylogue/demos")).unwrap().next().unwrap().unwrap().path();
    let file = demos.join("data/topics.jsonl");
    assert!(file.is_file());
    file.display().to_string()
}

#[test]
fn shells_and_man_know_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]).ok().out;
        assert!(script.contains("resume") && script.contains("max-cost"), "{shell}");
    }
    // A real shell completes a command and an option by it.
    let complete = format!(
        "eval \"$({PROGRAM} completions bash)\"; COMP_WORDS=(polylogue run --max-c); COMP_CWORD=2; _polylogue polylogue --max-c run; echo \"${{COMPREPLY[@]}}\""
    );
    let completed = std::process::Command::new("bash").args(["-c", &complete]).output().unwrap();
    let completed = String::from_utf8_lossy(&completed.stdout).into_owned();
    assert!(completed.contains("--max-cost") && completed.contains("--max-calls"), "{completed}");
}

/// The synopsis is the usage, as in the help: the options have their own section.
#[test]
fn pages_of_the_manual_have_a_short_synopsis_and_sections() {
    let home = Home::new();
    let synopsis = |page: &str| {
        let (_, rest) = page.split_once(".SH SYNOPSIS\n").unwrap();
        rest.split_once("\n.SH DESCRIPTION").unwrap().0.to_owned()
    };
    let page = home.run(&["man"]).ok().out;
    assert!(page.contains(".TH polylogue 1"), "{page}");
    assert_eq!(synopsis(&page), "\\fBpolylogue\\fR [OPTIONS] <COMMAND>");
    for part in [".SH EXAMPLES\n", ".SH \"EXIT STATUS\"\n", "\n  4  a limit on tokens or cost\n"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(".SH EXTRA"), "{page}");
    home.run(&["man", "pages"]).ok();
    let page =
        |command: &str| fs::read_to_string(home.path(&format!("pages/polylogue-{command}.1"))).unwrap();
    assert_eq!(synopsis(&page("run")), "\\fBpolylogue run\\fR [OPTIONS] <TEAM> [TASK]");
    assert_eq!(synopsis(&page("config-set")), "\\fBpolylogue config set\\fR [OPTIONS] <NAME> <VALUE>");
    assert!(page("run").contains("max\\-cost") && page("resume").contains(".SH NOTES\n"));
    assert!(page("run").contains("POLYLOGUE_STORE"), "variables of the environment are named");
}

#[test]
fn a_file_without_a_template_is_answered_with_the_command() {
    let ran = Home::new().run(&["new", "team.yaml"]).exits(2);
    assert!(ran.err.contains("hint: the template comes before the file: `polylogue new "), "{}", ran.err);
    assert!(ran.err.contains(" team.yaml`"), "{}", ran.err);
}
