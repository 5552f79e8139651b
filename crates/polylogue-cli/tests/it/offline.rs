//! Without a model, a key or a server.

use expect_test::expect;

use crate::home::{Home, UNREACHABLE, of_type, shipped};
use crate::models::said;

#[test]
fn every_team_that_ships_plays_its_script_and_says_so() {
    let home = Home::new();
    for team in ["writer-critic", "student-teacher", "trading-bot"] {
        let ran = home.run(&["run", &shipped(team)]).ok();
        let [first, second, ..] = ran.err.lines().collect::<Vec<_>>()[..] else { panic!("{}", ran.err) };
        let demonstration =
            "This is a demonstration: the agents speak by the team's script, because no model is named.";
        assert_eq!(first, demonstration);
        assert!(
            second.starts_with("For a real model, use `--model openai:gpt-4o-mini` and `OPENAI_API_KEY`"),
            "{second}"
        );
        assert!(ran.out.contains("\ndone: "), "{}", ran.out);
        let events = home.events();
        assert!(
            of_type(&events, "model_replied").iter().all(|event| event["model"] == format!("script:{team}"))
        );
    }
    let states: Vec<_> =
        home.listed().into_iter().map(|row| (row["title"].clone(), row["state"].clone())).collect();
    expect![[r#"
        [
            (
                String("trading-bot"),
                String("done: every participant has spoken"),
            ),
            (
                String("student-teacher"),
                String("done: Student said `Now I see it.`"),
            ),
            (
                String("writer-critic"),
                String("done: Critic's message matched `^APPROVED`"),
            ),
        ]
    "#]]
    .assert_debug_eq(&states);
}

#[test]
fn a_short_play_as_a_person_reads_it() {
    let home = Home::new();
    home.file(
        "team.yaml",
        r#"
name: greeting
task: Greet {{whom}}.
vars: {whom: the world}
agents:
  - {name: Ann, system: Be nice., tools: [get_history]}
  - {name: Bob, system: Be short.}
chat: {participants: [Ann, Bob], stop: {says: BYE}, summary: {reflect: {prompt: What was that?}}}
script:
  - Ann: {calls: [{tool: get_history, args: {limit: 1}}]}
  - Ann: {think: Be *nice*., say: "**Hello** to you, Bob!"}
  - Bob: BYE
  - greeting_summary: They greeted.
"#,
    );
    let ran = home.run(&["run", "team.yaml", "Greet me.", "--var", "whom=Zoe"]).ok();
    expect![[r#"
        with Ann, Bob

        user -> all:
        Greet me.

        Ann -> Bob:
        ⚙ get_history(limit: 1) → user: Greet me.
        **Hello** to you, Bob!

        Bob -> Ann:
        BYE

        summary
        They greeted.

        done: Bob said `BYE` · 2 turns · tokens unknown · $0 · TIME
        `polylogue show ID`
        --- 0
        This is a demonstration: the agents speak by the team's script, because no model is named.
        The script does not know your task: it replies to the one it was written for.
        For a real model, use `--model openai:gpt-4o-mini` and `OPENAI_API_KEY` set, or `--model ollama:llama3.2` and Ollama running.
        greeting: at most 100 turns a chat, 1000 model calls
    "#]].assert_eq(&ran.masked(&home));
    let ran = home.run(&["run", "team.yaml", "--var", "whom=Zoe", "--offline", "--thoughts"]).ok();
    expect![[r#"
        with Ann, Bob

        user -> all:
        Greet Zoe.

        Ann -> Bob:
        ⚙ get_history(limit: 1) → user: Greet Zoe.
        (thinks:)
        Be *nice*.
        **Hello** to you, Bob!

        Bob -> Ann:
        BYE

        summary
        They greeted.

        done: Bob said `BYE` · 2 turns · tokens unknown · $0 · TIME
        `polylogue show ID`
        --- 0
        This is a demonstration: the agents speak by the team's script.
        For a real model, use `--model openai:gpt-4o-mini` and `OPENAI_API_KEY` set, or `--model ollama:llama3.2` and Ollama running.
        greeting: at most 100 turns a chat, 1000 model calls
    "#]].assert_eq(&ran.masked(&home));
    assert_eq!(said(&home.events())[0], "Greet Zoe.");
    let ran = home.run(&["run", "team.yaml", "--quiet"]).ok();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("They greeted.\n", ""));
    let ran =
        home.run_reading("  Read from the pipe.\nTwo lines.\n", &["run", "team.yaml", "-", "--json"]).ok();
    assert_eq!(ran.err, "");
    let lines = ran.lines();
    assert_eq!(lines[1..lines.len() - 1], home.events());
    assert_eq!(said(&home.events())[0], "Read from the pipe.\nTwo lines.");
}

#[test]
fn nothing_moves_the_cursor_where_no_terminal_is_and_colors_come_only_when_asked_for() {
    let home = Home::new();
    let team = shipped("writer-critic");
    let plain = home.run(&["run", &team]).ok().out;
    assert!(!plain.contains('\x1b'));
    let colored = home.run(&["run", &team, "--color", "always"]).ok().out;
    assert!(colored.contains("\x1b[1m\x1b[36mWriter") || colored.contains("\x1b["), "{colored}");
    assert!(!colored.contains("\x1b[J"), "nothing changes in place");
    let show = home.run(&["show", "last"]).ok().out;
    assert!(!show.contains('\x1b'));
}

#[test]
fn a_team_without_a_script_gets_a_clear_error() {
    let home = Home::new();
    let team = "name: mute\nagents: [{name: A}, {name: B}]\nchat: {participants: [A, B]}\n";
    home.file("team.yaml", team);
    home.file("modeled.yaml", &format!("{team}model: openai:gpt-4o-mini\n"));
    home.file("local.yaml", &format!("{team}model: ollama:llama3.2\n"));
    expect![[r#"
        --- 2
        warning: nothing ends the chat `mute` before its 100th turn
         --> team.yaml:3:8
          |
        3 | chat: {participants: [A, B]}
          |        ^^^^^^^^^^^^
        hint: give it a `stop`, such as `stop: {max_turns: 20}`

        error (config): `mute` names no model for `A`, `B`, and has no script
          hint: `--model openai:gpt-4o-mini` and `OPENAI_API_KEY` set, or `--model ollama:llama3.2` and Ollama running; `polylogue config set model openai:gpt-4o-mini` sets a default
    "#]].assert_eq(&home.run(&["run", "team.yaml"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        warning: nothing ends the chat `mute` before its 100th turn
         --> team.yaml:3:8
          |
        3 | chat: {participants: [A, B]}
          |        ^^^^^^^^^^^^
        hint: give it a `stop`, such as `stop: {max_turns: 20}`

        error (config): `mute` has no script
          hint: add a `script`, or leave out `--offline` and use a model
    "#]]
    .assert_eq(&home.run(&["run", "team.yaml", "--offline"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        warning: nothing ends the chat `mute` before its 100th turn
         --> modeled.yaml:3:8
          |
        3 | chat: {participants: [A, B]}
          |        ^^^^^^^^^^^^
        hint: give it a `stop`, such as `stop: {max_turns: 20}`

        error (config): openai:gpt-4o-mini: no API key is set for `openai`
          hint: set `OPENAI_API_KEY`, in the environment or in `.env`
    "#]]
    .assert_eq(&home.run(&["run", "modeled.yaml"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        error (config): openai:gpt-4o-mini: no API key is set for `openai`
          hint: set `OPENAI_API_KEY`, in the environment or in `.env`
    "#]]
    .assert_eq(
        &home.run(&["run", &shipped("writer-critic"), "-m", "openai:gpt-4o-mini"]).exits(2).masked(&home),
    );
    expect![[r#"
        --- 2
        warning: nothing ends the chat `mute` before its 100th turn
         --> team.yaml:3:8
          |
        3 | chat: {participants: [A, B]}
          |        ^^^^^^^^^^^^
        hint: give it a `stop`, such as `stop: {max_turns: 20}`

        error (config): gpt-4o-mini: the model's name has no provider
          hint: write `openai:gpt-4o-mini`
    "#]]
    .assert_eq(&home.run(&["run", "team.yaml", "-m", "gpt-4o-mini"]).exits(2).masked(&home));
    expect![[r#"
        --- 2
        warning: nothing ends the chat `mute` before its 100th turn
         --> team.yaml:3:8
          |
        3 | chat: {participants: [A, B]}
          |        ^^^^^^^^^^^^
        hint: give it a `stop`, such as `stop: {max_turns: 20}`

        error (config): opnai:gpt-4o-mini: there is no provider `opnai`
          hint: did you mean `openai:gpt-4o-mini`? known providers: openai, ollama, ollama-openai, anthropic, deepseek, qwen, mistral, groq, together, openrouter, xai, gemini, vllm, llamacpp, lmstudio, compatible
    "#]]
        .assert_eq(&home.run(&["run", "team.yaml", "-m", "opnai:gpt-4o-mini"]).exits(2).masked(&home));
    assert_eq!(home.listed().len(), 0, "nothing was begun");
}

#[test]
fn the_script_is_in_for_models_that_the_team_names_and_that_are_unreachable() {
    let unreachable = UNREACHABLE;
    let home = Home::new().var("VLLM_BASE_URL", unreachable);
    let script = "chat: {participants: [A, B], pattern: sequential}\nscript: [{A: one}, {B: two}]\n";
    for (model, why) in [
        ("vllm:llama", format!("nothing answers at {unreachable}")),
        ("openai:gpt-4o-mini", "no API key is set for `openai`".to_owned()),
    ] {
        home.file(
            "team.yaml",
            &format!("name: pair\nmodel: {model}\nagents: [{{name: A}}, {{name: B}}]\n{script}"),
        );
        let ran = home.run(&["run", "team.yaml"]).ok();
        let first =
            format!("This is a demonstration: the agents speak by the team's script, because {why}.\n");
        assert!(ran.err.starts_with(&first), "{}", ran.err);
        assert!(ran.out.contains("\nB -> A:\ntwo\n"), "{}", ran.out);
    }
}

#[test]
fn a_block_of_code_is_printed_exactly() {
    let home = Home::new();
    let code = "def f():\n\treturn 1  \n\n# done\n";
    let say =
        serde_json::json!({"Ann": format!("First:\n\n```sh\nls\n```\n\nThen:\n\n```python\n{code}```\n")});
    let team = format!(
        "name: t\ntask: go\nagents: [{{name: Ann}}]\nchat: {{participants: [Ann], pattern: sequential}}\nscript: [{say}]\n"
    );
    home.file("team.yaml", &team);
    home.run(&["run", "team.yaml", "--offline"]).ok();
    assert_eq!(home.run(&["show", "last", "--code", "1"]).ok().out, "ls\n");
    assert_eq!(home.run(&["show", "last", "--code", "2"]).ok().out, code);
    let none = home.run(&["show", "last", "--code", "3"]).exits(2);
    assert!(none.err.contains("the conversation has 2 code blocks"), "{}", none.err);
}
