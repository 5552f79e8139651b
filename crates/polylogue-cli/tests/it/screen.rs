//! What a person sees at the terminal, at several moments.

use std::time::Duration;

use expect_test::{Expect, expect};
use polylogue_test::server::{Answer, Playbook, Quirk, Received};
use serde_json::json;

use crate::home::{Home, serve, undated};
use crate::terminal::Terminal;

/// A specifier, and a chat in which two work with a tool, as in the trading bot that ships.
const TEAM: &str = r#"
name: shop
task: Sell tea.
agents:
  - {name: Planner, system: You are Planner.}
  - {name: Boss, system: You are Boss.}
  - {name: Clerk, system: You are Clerk., tools: [get_history]}
chat: {pattern: sequential, participants: [Planner, work]}
chats:
  - name: work
    participants: [Boss, Clerk]
    opening: {to: [Boss], text: Begin to instruct me.}
    stop: {says: {text: DONE, by: Boss}}
    summary: {reflect: {prompt: What was DONE?}}
"#;

fn reply(received: &Received) -> Answer {
    let system = received.system().unwrap_or_default().into_owned();
    match (system.as_str(), received.turn()) {
        ("You are Planner.", _) => Answer::text("Sell **green** tea to the ten best customers of last year."),
        ("You are Boss.", 0) => {
            Answer::text("Instruction: count the customers, all of them, one after the other.")
        }
        ("You are Boss.", _) => Answer::text("DONE"),
        ("You are Clerk.", 0) => Answer::text("I look.").call("get_history", json!({"limit": 1})),
        ("You are Clerk.", _) => Answer::text(
            "Solution:\n\n```python\nprint(len(customers))  # ten\n```\n\n| who | tea |\n|---|---|\n| Ann | 3 |",
        ),
        _ => Answer::text("Tea was counted."),
    }
}

fn final_screen(size: (u16, u16), options: &[&str], expected: &Expect) {
    let server =
        serve(Playbook::new(|received, _| reply(received).with(Quirk::Pace(Duration::from_millis(3)))));
    let home = Home::at(&server).with_team(TEAM);
    let args: Vec<&str> = ["run", "team.yaml", "-m", "openai:test"].iter().chain(options).copied().collect();
    let (code, seen) = Terminal::open(&home, size, &args).end();
    assert_eq!(code, 0, "{seen}");
    let seen = undated(&seen.replace(&home.id(), "ID"));
    // How long it took, and what follows.
    let (seen, _) = seen.rsplit_once(" · ").unwrap();
    expected.assert_eq(&format!("{seen}\n"));
}

#[test]
fn a_run_at_80_columns() {
    final_screen(
        (80, 50),
        &[],
        &expect![[r#"
            shop: at most 100 turns a chat and 1000 model calls; no bound on tokens and
            cost: the length of a reply of `openai:test` has no known limit: set
            `max_tokens` in `parameters`. `polylogue check --price` has the parts.
            participants: Planner, work

            user → all
            Sell tea.

            Planner → work
            Sell green tea to the ten best customers of last year.

            ┊ chat work begins: Boss, Clerk
            ┊
            ┊ user → Boss · work
            ┊ Begin to instruct me.
            ┊
            ┊ Boss → Clerk · work
            ┊ Instruction: count the customers, all of them, one after the other.
            ┊
            ┊ Clerk → Boss · work
            ┊ I look.
            ┊ ⚙ get_history(limit: 1) → Boss: Instruction: count the customers, all of the…
            ┊ Solution:
            ┊
            ┊ ── python
            print(len(customers))  # ten
            ┊
            ┊ who │ tea
            ┊ ────┼────
            ┊ Ann │ 3
            ┊
            ┊ Boss → Clerk · work
            ┊ DONE
            ┊
            ┊ chat work ends: Boss said `DONE`

            work → Planner
            Tea was counted.

            done: every participant has spoken · 4 turns · 699 tokens · cost unknown
        "#]],
    );
}

#[test]
fn a_run_at_120_columns_with_whole_replies() {
    final_screen(
        (120, 50),
        &["--no-stream"],
        &expect![[r#"
            shop: at most 100 turns a chat and 1000 model calls; no bound on tokens and cost: the length of a
            reply of `openai:test` has no known limit: set `max_tokens` in `parameters`. `polylogue check
            --price` has the parts.
            participants: Planner, work

            user → all
            Sell tea.

            Planner → work
            Sell green tea to the ten best customers of last year.

            ┊ chat work begins: Boss, Clerk
            ┊
            ┊ user → Boss · work
            ┊ Begin to instruct me.
            ┊
            ┊ Boss → Clerk · work
            ┊ Instruction: count the customers, all of them, one after the other.
            ┊
            ┊ Clerk → Boss · work
            ┊ I look.
            ┊ ⚙ get_history(limit: 1) → Boss: Instruction: count the customers, all of them, one after the othe…
            ┊ Solution:
            ┊
            ┊ ── python
            print(len(customers))  # ten
            ┊
            ┊ who │ tea
            ┊ ────┼────
            ┊ Ann │ 3
            ┊
            ┊ Boss → Clerk · work
            ┊ DONE
            ┊
            ┊ chat work ends: Boss said `DONE`

            work → Planner
            Tea was counted.

            done: every participant has spoken · 4 turns · 616 tokens · cost unknown
        "#]],
    );
}

#[test]
fn the_status_line_names_the_speaker_and_replies_are_streamed() {
    let slow = |received: &Received, _| match received.system().as_deref() {
        Some("You are Planner.") => {
            reply(received).with(Quirk::PauseBeforeFirst(Duration::from_millis(1500)))
        }
        _ => reply(received).with(Quirk::Pace(Duration::from_millis(100))),
    };
    let server = serve(Playbook::new(slow));
    let home = Home::at(&server).with_team(TEAM);
    let terminal = Terminal::open(&home, (80, 24), &["run", "team.yaml", "-m", "openai:test"]);
    terminal.wait_for("\nPlanner is thinking... ");
    terminal.wait_for("\n┊ Boss → Clerk · work\n┊ Instruction: count the customers,");
    terminal.wait_for("┊ ⚙ get_history(limit: 1) → Boss: Instruction: count the customers,");
    let times = terminal.bytes().matches("Instruction: count").count();
    assert!(times > 2, "a row is written again with every few words of it, but was written {times} times");
    let (code, seen) = terminal.end();
    assert_eq!(code, 0);
    assert!(!seen.contains("is thinking") && !seen.contains("is writing"), "{seen}");
}

/// `text` in JSON and YAML, in ASCII.
pub(crate) fn quoted(text: &str) -> String {
    let escaped = |c: char| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(c)) };
    json!(text).to_string().chars().map(escaped).collect()
}

/// Words of others that would set the clipboard, the title and colors, move the cursor, reorder what is read, and begin a line.
const HOSTILE: &str =
    "x\u{1b}]52;c;eA==\u{7}\u{1b}]0;t\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\u{200b}\nfiles: none";

#[track_caller]
fn is_harmless(what: &str, text: &str) {
    let is_bad = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{202e}' | '\u{2066}' | '\u{200b}')
    };
    assert!(!text.contains(is_bad), "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("files: fake")), "{what}: {text}");
}

#[test]
fn no_name_of_a_file_an_error_or_a_team_drives_the_terminal() {
    let home = Home::new();
    home.allow_programs();
    let task = quoted(HOSTILE);
    let call = format!("{{tool: note, args: {{text: {task}}}, id: {task}}}");
    home.file(
        "team.yaml",
        &format!(
            "name: shop\ntask: {task}\nsandbox: {{backend: none}}\nagents: [{{name: Ann, tools: [note], approval: never}}]\n\
             commands: [{{name: note, description: {task}, command: [sh, -c, 'echo \"$1\"; exit 3', sh, '{{text}}'], \
             arguments: {{text: {{type: string}}}}}}]\n\
             chat: {{participants: [Ann], pattern: sequential}}\nscript: [{{Ann: {{calls: [{call}]}}}}, {{Ann: {task}}}]\n"
        ),
    );
    let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "unsafe-host"]).ok();
    is_harmless("run", &ran.out);
    is_harmless("run", &ran.err);
    let work = home.path("store.db.work").join(home.id());
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join(HOSTILE.replace("none", "fake")), "x").unwrap();
    for style in [
        &[][..],
        &["--markdown"],
        &["--style", "autogen"],
        &["--json"],
        &["--as", "Ann"],
        &["--history"],
        &["--side-by-side"],
    ] {
        let ran = home.run(&[&["show", "last"], style].concat()).ok();
        is_harmless(&format!("show {style:?}"), &ran.out);
        is_harmless(&format!("show {style:?}"), &ran.err);
        assert!(
            style.len() == 1 && style[0] != "--markdown" || ran.out.contains("52;c;eA"),
            "{style:?}: {}",
            ran.out
        );
    }
    for args in [
        &["runs"][..],
        &["runs", "--json"],
        &["resume", "last", "--allow", "unsafe-host"],
        &["check", "team.yaml"],
        &["doctor", "team.yaml"],
    ] {
        let ran = home.run(args).ok();
        is_harmless(&format!("{args:?}"), &ran.out);
        is_harmless(&format!("{args:?}"), &ran.err);
    }
    // What is wrong is quoted, and names that are in the way are said.
    home.file(
        "bad.yaml",
        &format!("name: shop\nagents: [{{name: {}, tool: {}}}]\n", quoted(HOSTILE), quoted(HOSTILE)),
    );
    home.file("raw.yaml", "name: shop\nagents: [{name: A\u{202e}b\u{200b}, tool\u{2066}: x}]\n");
    let missing = format!("{}.yaml", HOSTILE.replace('\n', ""));
    for args in [
        &["check", "bad.yaml"][..],
        &["check", "raw.yaml"],
        &["check", &missing],
        &["run", &missing],
        &["import", &missing],
        &["import", "raw.yaml"],
        &["show", HOSTILE],
    ] {
        let ran = home.run(args);
        assert!(!ran.err.is_empty(), "{args:?}");
        is_harmless(&format!("{args:?}"), &ran.out);
        is_harmless(&format!("{args:?}"), &ran.err);
    }
}

/// Characters that a terminal is not shown, and that a text can need: a soft hyphen, marks of direction, a line separator.
const MARKS: &str = "so\u{ad}ft \u{202b}\u{5d0}\u{202c} \u{200e}a\u{2028}b";

#[test]
fn what_another_program_can_read_is_unchanged_except_on_a_terminal() {
    let home = Home::new();
    let team = format!(
        "name: t\nagents:\n  - {{name: Ann, system: \"{MARKS}\"}}\nchat: {{participants: [Ann], pattern: sequential}}\n\
         script: [{{Ann: \"{MARKS}\"}}]\n"
    );
    home.file("team.yaml", &team);
    assert_eq!(home.run_reading(&team, &["fmt", "-"]).ok().out, team);

    let agent = json!({"provider": "autogen_agentchat.agents.AssistantAgent", "config": {"name": "Ann", "system_message": MARKS}});
    let definition = json!({"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "config": {"participants": [agent], "max_turns": 2}});
    home.file("pair.json", &definition.to_string());
    home.run(&["import", "pair.json", "-o", "imported.yaml"]).ok();
    let imported = std::fs::read_to_string(home.path("imported.yaml")).unwrap();
    assert!(imported.contains(MARKS), "{imported}");
    assert_eq!(home.run(&["import", "pair.json"]).ok().out, imported);

    let run = ["run", "team.yaml", "Go", "--offline", "--quiet"];
    assert_eq!(home.run(&run).ok().out, format!("{MARKS}\n"));

    let file = "so\u{ad}ft.yaml";
    home.run(&["config", "set", "model", "openai:a\u{200e}b", "--config", file]).ok();
    let config = |args: &[&str]| home.run(&[&["config", "--config", file], args].concat()).ok().out;
    assert_eq!(config(&["get", "model"]), "openai:a\u{200e}b\n");
    assert_eq!(config(&["path"]), format!("{file}\n"));
    home.file(file, "name:  t\n");
    assert_eq!(home.run(&["fmt", "--check", file]).exits(1).out, format!("{file}\n"));

    for args in [&["import", "pair.json"][..], &run] {
        let terminal = Terminal::open(&home, (100, 40), args);
        terminal.wait_for("␤b");
        let shown = terminal.bytes();
        assert!(!shown.contains(['\u{ad}', '\u{202b}', '\u{202c}', '\u{200e}', '\u{2028}']), "{shown:?}");
    }
}

/// The words of an agent before a tool call, and the result of a call, in every layout.
#[test]
fn text_before_a_call_and_its_outcome_are_shown_once() {
    use crate::home::shipped;

    for (team, once) in [
        ("support-desk", "Good morning! I'm connecting you with a colleague who can look up your parcel."),
        (
            "support-desk",
            "A parcel that was due on Monday is missing, and the address of the next order may change.",
        ),
        ("caller-executor", "221487.8"),
    ] {
        let home = Home::new();
        let ran = home.run(&["run", &shipped(team), "--offline"]).ok().out;
        let reported = |text: &str| text.matches(once).count();
        // The caller says the result in the end.
        let most = if team == "support-desk" { 1 } else { 2 };
        assert_eq!(reported(&ran), most, "{ran}");
        for style in [&[][..], &["--markdown"], &["--style", "autogen"]] {
            let shown = home.run(&[&["show", "last"], style].concat()).ok().out;
            let said = shown.split("## Summary").next().unwrap();
            assert_eq!(reported(said), most, "{style:?}: {shown}");
        }
    }
}

/// Ann writes `code`, which Bob runs.
fn of_code(home: &Home, code: &[&str]) {
    let blocks: Vec<String> = code.iter().map(|code| format!("```sh\n{code}\n```")).collect();
    home.allow_programs();
    home.file(
        "team.yaml",
        &format!(
            "name: duo\ntask: Go.\nsandbox: {{backend: none}}\nagents: [{{name: Ann}}, {{name: Bob, model: none, code_execution: true}}]\n\
             chat: {{participants: [Ann, Bob], pattern: round_robin, stop: {{max_turns: 2}}}}\nscript: [{{Ann: {}}}]\n",
            json!(blocks.join("\n"))
        ),
    );
}

#[test]
fn the_results_of_code_in_messages_are_shown_once_in_every_layout() {
    for (code, once) in [
        (&["printf '%s-%s' to once"][..], &["to-once"][..]),
        (&["printf '%s-%s' to once; exit 3"], &["to-once", "exitcode: 3"]),
        (&["printf '%s-%s\n' to one", "printf '%s-%s\n' to two"], &["to-one", "to-two"]),
        (
            &["for i in $(seq 9); do echo line-$i-of-many-that-fill-the-row; done"],
            &["line-1-of", "line-9-of"],
        ),
    ] {
        let home = Home::new();
        of_code(&home, code);
        let ran = home.run(&["run", "team.yaml", "--offline", "--allow", "unsafe-host"]).ok().out;
        let familiar = home
            .run(&["run", "team.yaml", "--offline", "--allow", "unsafe-host", "--style", "autogen"])
            .ok()
            .out;
        let mut reported = vec![("run", ran), ("run, as AutoGen", familiar.clone())];
        for style in [&[][..], &["--markdown"], &["--style", "autogen"]] {
            let shown = home.run(&[&["show", "last"], style].concat()).ok().out;
            let shown = shown.split("## Summary").next().unwrap().to_owned();
            reported.push((style.last().unwrap_or(&"usual"), shown));
        }
        for (layout, text) in reported {
            for words in once {
                assert_eq!(text.matches(words).count(), 1, "{layout}, {words}: {text}");
            }
        }
        // As AutoGen prints it.
        let block = ">>>>>>>> EXECUTING CODE BLOCK (inferred language is sh)...\nBob (to Ann):\n\nexitcode: ";
        assert!(familiar.contains(block) && !familiar.contains("tool call"), "{familiar}");
    }
}

#[test]
fn shipped_teams_that_run_code_tell_each_result_once() {
    if !crate::pictures::can_enclose() {
        return;
    }
    for team in ["year-to-date", "coder-critic-executor"] {
        let home = Home::new();
        home.run(&["run", &crate::home::shipped(team), "--offline"]).ok();
        let events = home.events();
        let results = events.iter().filter(|event| event["type"] == "tool_returned").count();
        assert!(results > 0, "{team}");
        for style in [&[][..], &["--markdown"], &["--style", "autogen"]] {
            let shown = home.run(&[&["show", "last"], style].concat()).ok().out;
            let reported = shown.split("## Summary").next().unwrap();
            assert_eq!(reported.matches("exitcode: ").count(), results, "{team} {style:?}: {shown}");
        }
    }
}

/// What people read besides conversations: at a terminal, no row is left to it to be broken.
#[test]
fn help_tables_and_errors_are_broken_between_words() {
    let home = Home::new();
    home.run(&["run", "demo:writer-critic", "--quiet"]).ok();
    let team = |agent: &str| {
        format!(
            "name: t\nagents:\n  - {{name: Ann, {agent}}}\n  - {{name: Bob}}\nchat: {{participants: [Ann, Bob], stop: {{max_turns: 2}}}}\n"
        )
    };
    home.file("wrong.yaml", &team("tools: [get_weather]"));
    home.file("warned.yaml", &team("approval: always"));
    for args in [
        &["run", "--help"][..],
        &["check", "wrong.yaml"],
        &["check", "warned.yaml"],
        &["check", "warned.yaml", "--graph=dot", "-o", "graph.dot"],
        &["--help"],
        &["config"],
        &["doctor"],
        &["new", "--list"],
        &["runs"],
        &["show", "last", "--cost"],
        &["check", "demo:trading-bot", "--price"],
        &["run", "demo:nix"],
        &["resume", "last", "--attach", "picture.png"],
    ] {
        let piped = home.run(args);
        let is_long = |text: &str| text.lines().any(|line| line.chars().count() > 60);
        assert!(is_long(&piped.out) || is_long(&piped.err), "{args:?}: nothing is to be broken");
        let rows = Terminal::open(&home, (60, 1000), args).rows_at_end();
        let wide: Vec<&String> = rows.iter().filter(|row| row.chars().count() >= 60).collect();
        assert!(wide.is_empty(), "{args:?}: {wide:#?}");
        assert!(rows.iter().any(|row| !row.is_empty()), "{args:?}");
    }
}
