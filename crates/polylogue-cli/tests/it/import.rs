//! Definitions of AutoGen, and the team files made of them.

use std::fs;

use expect_test::expect;

use crate::home::{Home, KEY};

/// A team as AutoGen Studio writes it.
fn studio() -> String {
    let agent = |name: &str| {
        format!(
            r#"{{"provider": "autogen_agentchat.agents.AssistantAgent", "component_type": "agent", "version": 1, "config": {{
                "name": "{name}", "system_message": "You are {name}.", "tools": [{{"label": "calculator", "config": {{}}}}],
                "model_client": {{"provider": "autogen_ext.models.openai.OpenAIChatCompletionClient", "component_type": "model",
                    "config": {{"model": "gpt-4o-mini", "api_key": "{KEY}"}}}}}}}}"#
        )
    };
    format!(
        r#"{{"provider": "autogen_agentchat.teams.RoundRobinGroupChat", "component_type": "team", "version": 1,
            "component_version": 1, "description": "Two talk", "label": "pair",
            "config": {{"participants": [{}, {}], "max_turns": 2}}}}"#,
        agent("Ann"),
        agent("Bob")
    )
}

#[test]
fn a_team_of_autogen_studio_is_imported_checked_and_run() {
    let home = Home::new();
    fs::create_dir(home.path("there")).unwrap();
    // Outside of what is looked through for the key: it is the user's own file.
    let outside = tempfile::tempdir().unwrap();
    let definition = outside.path().join("pair.json");
    fs::write(&definition, studio()).unwrap();
    let definition = definition.to_str().unwrap();
    expect![[r#"
        --- 0
        Not converted, or changed:
          $.config.participants[0].config.tools[0]: the tool `calculator` is left out: Python code is not converted, and nothing in a definition is executed
          $.config.participants[1].config.tools[0]: the tool `calculator` is left out: Python code is not converted, and nothing in a definition is executed
        Set `OPENAI_API_KEY`, in the environment or in `.env`: keys are not allowed in team files.
        `polylogue run team.yaml "TASK"` runs it.
    "#]]
    .assert_eq(&home.run(&["import", definition, "-o", "team.yaml"]).ok().masked(&home));
    home.run(&["check", "team.yaml"]).ok();
    let text = fs::read_to_string(home.path("team.yaml")).unwrap();
    let printed = home.run(&["import", definition]).ok();
    assert_eq!(printed.out, text);

    // What the hint names can be copied into a shell.
    let spaced = home.run(&["import", definition, "-o", "there/it's ö $HOME.yaml"]).ok();
    let hint = spaced.err.lines().last().unwrap().strip_prefix("`polylogue ").unwrap();
    let words = hint.split_once("` runs it.").unwrap().0;
    let shell =
        std::process::Command::new("sh").args(["-c", &format!("printf '%s|' {words}")]).output().unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), "run|there/it's ö $HOME.yaml|TASK|", "{hint}");

    fs::write(home.path("team.yaml"), format!("{text}script: [{{Ann: Hello}}, {{Bob: Hi}}]\n")).unwrap();
    let ran = home.run(&["run", "team.yaml", "Greet", "--offline", "--style", "autogen"]).ok();
    assert!(ran.out.contains("Bob (to Ann):\n\nHi\n"), "{}", ran.out);

    expect![[r#"
        --- 2
        error (config): `team.yaml` exists
          hint: name another file, or overwrite it with `--force`
    "#]]
    .assert_eq(&home.run(&["import", definition, "-o", "team.yaml"]).exits(2).masked(&home));
    home.run(&["import", definition, "-o", "team.yaml", "--force"]).ok();
    assert_eq!(fs::read_to_string(home.path("team.yaml")).unwrap(), text);
}

#[test]
fn a_definition_that_cannot_be_imported_is_reported_and_no_file_is_written() {
    let home = Home::new();
    home.file(
        "bad.json",
        "{\"provider\": \"autogen_agentchat.teams.RoundRobinGroupChat\", \"config\": {\"participants\": 3}}",
    );
    expect![[r#"
        --- 2
        error (config): `bad.json` cannot be imported: $.config.participants: must be a list
          hint: it takes component JSON of AutoGen Studio or AgentChat, and agents and chats of AutoGen 0.2, which you write as JSON: see docs/from-autogen.md
    "#]]
    .assert_eq(&home.run(&["import", "bad.json", "-o", "team.yaml"]).exits(2).masked(&home));
    home.file("script.py", "from autogen import AssistantAgent");
    expect![[r#"
        --- 2
        error (config): `script.py` is a Python program, and nothing in it is executed
          hint: of AgentChat, import what `print(team.dump_component().model_dump_json())` prints; of AutoGen 0.2, write its agents and chats as JSON: see docs/from-autogen.md
    "#]]
    .assert_eq(&home.run(&["import", "script.py", "-o", "team.yaml"]).exits(2).masked(&home));
    assert!(!home.path("team.yaml").exists());
    let missing = home.run(&["import", "missing.json"]).exits(2);
    assert!(missing.err.starts_with("error (config): `missing.json` cannot be read: "), "{}", missing.err);
    fs::write(home.path("bytes.json"), [0xff, 0xfe]).unwrap();
    let bytes = home.run(&["import", "bytes.json"]).exits(2);
    assert_eq!(bytes.err, "error (config): `bytes.json` cannot be read: it is not UTF-8 text\n");
}

#[test]
fn a_team_file_with_the_errors_of_its_definition_is_written_and_reported() {
    let home = Home::new();
    let hot = studio()
        .replace("\"model\": \"gpt-4o-mini\"", "\"model\": \"gpt-4o-mini\", \"temperature\": -1")
        .replace(KEY, "");
    home.file("hot.json", &hot);
    let ran = home.run(&["import", "hot.json", "-o", "hot.yaml"]).exits(2);
    assert!(ran.err.contains("The team file cannot be used unchanged:\n\nerror: "), "{}", ran.err);
    home.run(&["check", "hot.yaml"]).exits(2);
}

#[test]
fn a_definition_or_a_program_that_is_run_as_a_team_is_recognized() {
    let home = Home::new();
    home.file("duo.json", r#"{"agents": [{"name": "A"}], "initiate_chat": {"message": "Hi"}}"#);
    home.file("studio team.json", r#"{"provider": "autogen_agentchat.teams.Swarm", "config": {}}"#);
    home.file("script.py", "from autogen import AssistantAgent");
    expect![[r#"
        --- 2
        error: this is a definition of AutoGen, not a team file
         --> duo.json
        hint: `polylogue import duo.json -o team.yaml` converts it
    "#]]
    .assert_eq(&home.run(&["run", "duo.json"]).exits(2).masked(&home));
    let checked = home.run(&["check", "studio team.json"]).exits(2);
    assert!(checked.err.contains("import 'studio team.json' -o team.yaml"), "{}", checked.err);
    expect![[r#"
        --- 2
        error: this is a Python program, not a team file
         --> script.py
        hint: docs/from-autogen.md shows programs as team files; `polylogue new` writes a team file
    "#]]
    .assert_eq(&home.run(&["run", "script.py"]).exits(2).masked(&home));
    // A team file in JSON with a mistake is one.
    home.file("team.json", r#"{"name": "t", "groupchat": {}, "chat": {}}"#);
    assert!(home.run(&["check", "team.json"]).exits(2).err.contains("`groupchat` is"));
}

#[test]
fn files_of_other_systems_that_are_run_as_teams_are_recognized() {
    let home = Home::new();
    for (file, text, what, page) in [
        ("crew.py", "import os\nfrom crewai import Agent\n", "a Python program", "docs/from-crewai.md"),
        ("graph.py", "from langgraph.graph import END\n", "a Python program", "docs/from-langgraph.md"),
        ("solve.py", "import yacana\n", "a Python program", "docs/from-yacana.md"),
        (
            "agents.yaml",
            "poet:\n  role: Poet\n  backstory: >\n    A\n",
            "a definition of CrewAI",
            "docs/from-crewai.md",
        ),
        ("tasks.yaml", "poem:\n  expected_output: A poem\n", "a definition of CrewAI", "docs/from-crewai.md"),
        (
            "langgraph.json",
            r#"{"graphs": {"a": "./a.py:graph"}}"#,
            "a configuration of LangGraph",
            "docs/from-langgraph.md",
        ),
        (
            "OAI_CONFIG_LIST",
            r#"[{"model": "gpt-4o"}]"#,
            "a list of models of AutoGen",
            "docs/from-autogen.md",
        ),
        ("duo.ipynb", r#"{"cells": [], "nbformat": 4}"#, "a notebook", "docs/from-autogen.md"),
    ] {
        home.file(file, text);
        let err = home.run(&["check", file]).exits(2).err;
        assert!(err.starts_with(&format!("error: this is {what}, not a team file\n --> {file}\n")), "{err}");
        assert!(err.contains(page), "{err}");
    }
    // Keys of CrewAI in a team file are answered at their lines.
    home.file(
        "team.yaml",
        "name: t\nagents:\n  - name: A\n    backstory: x\nchat: {participants: [A], pattern: sequential}\n",
    );
    let err = home.run(&["check", "team.yaml"]).exits(2).err;
    assert!(err.contains("unknown key `backstory`\n --> team.yaml:4:5\n"), "{err}");
}

#[test]
fn a_team_file_is_not_imported() {
    let home = Home::new();
    home.run(&["new", "debate", "my team.yaml"]).ok();
    let err = home.run(&["import", "my team.yaml"]).exits(2).err;
    let expected = "error (config): `my team.yaml` is a team file already\n  hint: `polylogue run 'my team.yaml'` runs it\n";
    assert_eq!(err, expected);
}
