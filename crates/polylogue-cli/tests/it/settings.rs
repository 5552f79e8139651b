//! The user's settings: the default model, its precedence, and the command `config`.

use std::fs;

use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::Value;

use crate::home::{Home, KEY, serve};
use crate::remote::use_server;
use crate::serving::Serving;

/// Ann names a model, Bob does not, and there is a script.
const TEAM: &str = r#"
name: pair
task: Talk
agents:
  - {name: Ann, model: "openai:own"}
  - {name: Bob}
chat: {participants: [Ann, Bob], pattern: sequential}
script: [{Ann: Scripted.}, {Bob: Scripted.}]
"#;

fn talker() -> Behavior {
    Behavior::from(Playbook::new(|_, _| Answer::text("Hello."))).key(KEY)
}

/// The models that the server was asked for.
fn asked(server: &polylogue_test::server::Server) -> Vec<String> {
    let requests = server.requests().into_iter();
    requests.map(|request| request.body["model"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_default_model_is_for_agents_without_one_and_options_and_the_variable_precede_the_file() {
    let server = serve(talker());
    let mut home = Home::at(&server).with_team(TEAM);
    home.run(&["config", "set", "model", "openai:file"]).ok();
    let ran = home.run(&["run", "team.yaml"]).ok();
    assert_eq!(asked(&server), ["own", "file"]);
    let place = home.path(".config/polylogue/config.yaml").display().to_string();
    let expected = format!("use `openai:file`, your default ({place})");
    assert!(ran.err.contains(&expected), "{}", ran.err);
    let checked = home.run(&["check", "team.yaml"]).ok();
    assert!(checked.out.contains(&expected), "{}", checked.out);

    home.set("POLYLOGUE_MODEL", "openai:variable");
    let ran = home.run(&["run", "team.yaml"]).ok();
    assert_eq!(asked(&server)[2..], ["own", "variable"]);
    assert!(ran.err.contains("your default (POLYLOGUE_MODEL)"), "{}", ran.err);
    // The conversation keeps the model that it began with.
    home.set("POLYLOGUE_MODEL", "openai:later");
    home.run(&["resume", "last", "More."]).ok();
    assert_eq!(asked(&server)[4..], ["own", "variable"]);

    let ran = home.run(&["run", "team.yaml", "-m", "openai:option"]).ok();
    assert_eq!(asked(&server)[6..], ["option", "option"]);
    assert!(!ran.err.contains("your default"), "{}", ran.err);
    let ran = home.run(&["run", "team.yaml", "--offline"]).ok();
    assert!(asked(&server).len() == 8 && ran.out.contains("Scripted."), "{}", ran.out);
}

#[test]
fn a_team_that_names_all_its_models_needs_no_default() {
    let server = serve(talker());
    let home = Home::at(&server)
        .var("POLYLOGUE_MODEL", "anthropic:unused")
        .with_team(&TEAM.replace("{name: Bob}", "{name: Bob, model: \"openai:b\"}"));
    let ran = home.run(&["run", "team.yaml"]).ok();
    assert_eq!(asked(&server), ["own", "b"]);
    assert!(!ran.err.contains("default"), "{}", ran.err);
}

#[test]
fn rows_of_a_batch_use_the_default_model_and_another_default_is_another_batch() {
    let server = serve(talker());
    let mut home = Home::at(&server).var("POLYLOGUE_MODEL", "openai:first").with_team(TEAM);
    home.file("rows.csv", "task,id\n\"Say \"\"a, b\"\"\",one\n");
    let batch = ["batch", "team.yaml", "--over", "rows.csv", "-o", "out.jsonl"];
    home.run(&batch).ok();
    assert_eq!(asked(&server), ["own", "first"]);
    let record: Value =
        serde_json::from_str(fs::read_to_string(home.path("out.jsonl")).unwrap().trim()).unwrap();
    assert_eq!((&record["id"], &record["task"]), (&Value::from("one"), &Value::from("Say \"a, b\"")));
    home.set("POLYLOGUE_MODEL", "openai:second");
    let ran = home.run(&batch).exits(2);
    assert!(ran.err.contains("is of another team, model or setting"), "{}", ran.err);
}

#[test]
fn settings_are_listed_with_where_they_come_from() {
    let mut home = Home::new();
    let get = ["config", "get", "model"];
    assert_eq!(home.run(&get).exits(1).out, "");
    let listed = home.run(&["config"]).ok().out;
    assert!(listed.starts_with("model: not set  (`POLYLOGUE_MODEL`, or `polylogue config set`)"), "{listed}");
    home.run(&["config", "set", "model", "ollama:llama3.2"]).ok();
    assert_eq!(home.run(&get).ok().out, "ollama:llama3.2\n");
    home.set("POLYLOGUE_MODEL", "openai:x");
    assert_eq!(home.run(&get).ok().out, "openai:x\n");
    let line: Value = home.run(&["config", "list", "--json"]).ok().lines().remove(0);
    assert_eq!((&line["value"], &line["from"]), (&Value::from("openai:x"), &Value::from("POLYLOGUE_MODEL")));
    let set = home.run(&["config", "set", "model", "ollama:other"]).ok();
    assert!(set.err.contains("`POLYLOGUE_MODEL` overrides it with `openai:x`"), "{}", set.err);
    home.run(&["config", "unset", "model"]).ok();
    home.set("POLYLOGUE_MODEL", "");
    home.run(&get).exits(1);
    // Another file, by the option and by the variable.
    home.run(&["config", "set", "model", "openai:y", "--config", "mine.yaml"]).ok();
    home.set("POLYLOGUE_CONFIG", "mine.yaml");
    assert_eq!(home.run(&get).ok().out, "openai:y\n");
    assert_eq!(home.run(&["config", "path"]).ok().out, "mine.yaml\n");
    let missing = home.run(&["config", "get", "model", "--config", "no.yaml"]).exits(2);
    assert!(missing.err.contains("there is no configuration file `no.yaml`"), "{}", missing.err);
}

/// Ten tokens a turn, at a dollar each.
const COSTLY: &str = r#"
name: pair
task: Talk
prices: {"openai:test": {input: 0, output: 1000000}}
model: openai:test
agents: [{name: Ann, parameters: {max_tokens: 10}}, {name: Bob, parameters: {max_tokens: 10}}]
chat: {participants: [Ann, Bob], stop: {max_turns: 4}}
"#;

#[test]
fn the_users_limit_on_cost_counts_where_the_command_line_gives_none_and_the_team_allows_more() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("x").usage(1, 10))).key(KEY));
    let mut home = Home::at(&server).with_team(COSTLY);
    home.file("low.yaml", &format!("{COSTLY}limits: {{cost: 15}}\n"));
    home.run(&["config", "set", "max_cost", "25"]).ok();
    assert!(home.run(&["config", "get", "max_cost"]).ok().out.starts_with("25"));
    let calls = |home: &Home, args: &[&str], code| {
        let before = server.count();
        home.run(args).exits(code);
        server.count() - before
    };
    assert_eq!(calls(&home, &["run", "team.yaml"], 4), 2);
    assert_eq!(calls(&home, &["run", "low.yaml"], 4), 1);
    assert_eq!(calls(&home, &["run", "team.yaml", "--max-cost", "1000"], 0), 4);
    home.set("POLYLOGUE_MAX_COST", "35");
    assert_eq!(calls(&home, &["run", "team.yaml"], 4), 3);
    // A batch has it for all rows together.
    home.file("rows.csv", "id,task\na,Talk\nb,Talk\n");
    let batch = ["batch", "team.yaml", "--over", "rows.csv", "-o", "out.jsonl"];
    assert_eq!(calls(&home, &batch, 4), 3);
    assert_eq!(calls(&home, &[&batch[..], &["--budget", "1000"]].concat(), 0), 5);
    home.set("POLYLOGUE_MAX_COST", "much");
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    assert!(ran.err.contains("`POLYLOGUE_MAX_COST`: "), "{}", ran.err);
}

#[test]
fn the_users_limit_on_cost_counts_on_a_server_and_a_batch_there_says_that_it_does_not() {
    let server = serve(Behavior::from(Playbook::new(|_, _| Answer::text("x").usage(1, 10))).key(KEY));
    let mut home = Home::at(&server).with_team(COSTLY);
    home.file("low.yaml", &format!("{COSTLY}limits: {{cost: 15}}\n"));
    let serving = Serving::with(&home, &["team.yaml", "low.yaml", "--listen", "127.0.0.1:0"], true);
    use_server(&mut home, &serving);
    home.run(&["config", "set", "max_cost", "25"]).ok();
    let calls = |home: &Home, args: &[&str], code| {
        let before = server.count();
        home.run(args).exits(code);
        server.count() - before
    };
    assert_eq!(calls(&home, &["run", "team"], 4), 2);
    assert_eq!(calls(&home, &["run", "low"], 4), 1);
    assert_eq!(calls(&home, &["run", "team", "--max-cost", "1000"], 0), 4);
    home.set("POLYLOGUE_MAX_COST", "35");
    assert_eq!(calls(&home, &["run", "team"], 4), 3);
    let before = server.count();
    home.run_reading("Talk\n", &["chat", "team"]);
    assert_eq!(server.count() - before, 3);
    home.file("rows.csv", "id,task\na,Talk\n");
    let batch = ["batch", "team", "--over", "rows.csv", "-o", "out.jsonl"];
    let ran = home.run(&batch).ok();
    let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Your limit on cost, $35.00, does not apply to a batch on a server"), "{said}");
    serving.end();
}

#[test]
fn wrong_settings_are_refused_with_what_to_write_and_secrets_are_not_shown() {
    let mut home = Home::new();
    for (args, what, hint) in [
        (["modle", "openai:x"], "there is no setting `modle`", "did you mean `model`?"),
        (["model", "gpt-4o"], "`gpt-4o` is not a model", "write `openai:gpt-4o`"),
        (["model", "mine"], "`mine` is not a model", "write `provider:model`"),
        (["model", "opnai:gpt-4o"], "there is no provider `opnai`", "did you mean `openai`?"),
        (["model", KEY], "keys and other secrets are not kept", "`OPENAI_API_KEY`"),
        (["openai_api_key", "x"], "keys and other secrets are not kept", "`OPENAI_API_KEY`"),
    ] {
        let ran = home.run(&[&["config", "set"], &args[..]].concat()).exits(2);
        assert!(ran.err.contains(what) && ran.err.contains(hint), "{args:?}: {}", ran.err);
    }
    assert!(!home.path(".config").exists(), "nothing was written");
    home.set("POLYLOGUE_MODEL", "gpt-4o");
    home.file("team.yaml", TEAM);
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    assert!(ran.err.contains("`POLYLOGUE_MODEL`: `gpt-4o` is not a model"), "{}", ran.err);
    home.set("POLYLOGUE_MODEL", "");
    fs::create_dir_all(home.path(".config/polylogue")).unwrap();
    home.file(".config/polylogue/config.yaml", "modle: openai:x\napi_key: hush\n");
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    assert!(
        ran.err.contains("unknown key `modle`") && ran.err.contains("did you mean `model`?"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("keys are not kept in this file") && !ran.err.contains("hush"), "{}", ran.err);
    home.file(".config/polylogue/config.yaml", &format!("model: openai:x\n{KEY}: - x\n"));
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    assert!(ran.err.contains("this is not valid YAML") && !ran.err.contains(KEY), "{}", ran.err);
    // Where the default cannot count, the file is not needed.
    home.run(&["run", "team.yaml", "--offline"]).ok();
    fs::remove_file(home.path(".config/polylogue/config.yaml")).unwrap();
}

#[test]
fn without_a_model_the_error_says_how_to_set_a_default() {
    let home = Home::new();
    let ran = home.run(&["chat"]).exits(2);
    assert!(
        ran.err.contains("no model is set\n") && ran.err.contains("use `--model openai:gpt-4o-mini`"),
        "{}",
        ran.err
    );
    home.file("team.yaml", TEAM.split("script:").next().unwrap());
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    assert!(
        ran.err.contains("no model is set for `Bob`: `pair` names none and has no script"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("`polylogue config set model openai:gpt-4o-mini` sets a default"),
        "{}",
        ran.err
    );
    let ran = home.run(&["run", "team.yaml", "--offline"]).exits(2);
    assert!(ran.err.contains("`pair` has no script"), "{}", ran.err);
}

#[test]
fn a_task_comes_from_a_file_from_the_input_or_begins_with_an_at_sign() {
    let home = Home::new().with_team(TEAM);
    home.file("task.md", "\nWrite *much*.\n\n");
    let opening = |args: &[&str], input: &str| {
        let ran = home.run_reading(input, &[&["run", "team.yaml", "--offline"], args].concat()).ok();
        ran.out.lines().nth(3).unwrap().to_owned()
    };
    assert_eq!(opening(&["@task.md"], ""), "Write *much*.");
    assert_eq!(opening(&["@-"], "From the input.\n"), "From the input.");
    assert_eq!(opening(&["@@Ann, hello"], ""), "@Ann, hello");
    let ran = home.run(&["run", "team.yaml", "@gone.md", "--offline"]).exits(2);
    assert!(ran.err.contains("the file `gone.md`") && ran.err.contains("@@gone.md"), "{}", ran.err);
    let long = "a".repeat((4 << 20) + 1);
    let ran = home.run_reading(&long, &["run", "team.yaml", "-", "--offline"]).exits(2);
    assert!(ran.err.contains("it has more than 4 MiB, which is the limit"), "{}", ran.err);
    home.run(&["send", "last", "@task.md"]).ok();
    assert!(home.run(&["show", "last"]).ok().out.contains("Write *much*."));
}

#[test]
fn structured_replies_are_values_in_records() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: bill\ntask: Read it\nagents:\n  - name: Reader\n    output_schema: {type: object, properties: {total: {type: number}}, required: [total]}\n\
         chat: {participants: [Reader], pattern: sequential, summary: last}\nscript: [{Reader: '{\"total\": 7}'}]\n",
    );
    home.file("rows.jsonl", "{\"id\": \"a\"}\n");
    home.run(&["batch", "team.yaml", "--over", "rows.jsonl", "-o", "out.jsonl", "--offline"]).ok();
    let record: Value =
        serde_json::from_str(fs::read_to_string(home.path("out.jsonl")).unwrap().trim()).unwrap();
    assert_eq!(record["summary"]["total"], 7, "{record}");
    let reply = &record["messages"][1];
    assert_eq!((&reply["data"]["total"], reply.get("text")), (&Value::from(7), None), "{record}");
}
