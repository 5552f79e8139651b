//! `polylogue check` in all its forms.

use polylogue_test::server::{Answer, Playbook};
use serde_json::Value;

use crate::home::{Home, of_type, serve, shipped};
use crate::sarif;

const DOUBTFUL: &str = "name: t\nagents: [{name: Ann}, {name: Bob}]\nchat: {participants: [Ann, Bob]}\n";
const BROKEN: &str =
    "name: t\nagents: [{name: Ann, sytem: x}]\nchat: {participants: [Ann], stop: {max_turns: 2}}\n";

#[test]
fn warnings_fail_only_when_they_are_to() {
    let home = Home::new().with_team(DOUBTFUL);
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.err.contains("warning[no-stop]: nothing ends the chat `t`"), "{}", ran.err);
    home.run(&["check", "--strict", "team.yaml"]).exits(2);
    home.run(&["check", "--strict", &shipped("writer-critic")]).ok();
}

#[test]
fn a_finding_has_its_code_in_json() {
    let home = Home::new();
    home.file("doubtful.yaml", DOUBTFUL);
    home.file("broken.yaml", BROKEN);
    let lines = home.run(&["check", "--json", "doubtful.yaml", "broken.yaml"]).exits(2).lines();
    let codes: Vec<&Value> = lines.iter().map(|line| &line["problems"][0]["code"]).collect();
    assert_eq!(codes, ["no-stop", "unknown-key"]);
}

#[test]
fn findings_of_several_files_are_one_sarif_document() {
    let home = Home::new();
    home.file("doubt ful.yaml", DOUBTFUL);
    home.file("broken.yaml", BROKEN);
    let ran = home.run(&["check", "--sarif", "doubt ful.yaml", "broken.yaml", &shipped("bill")]).exits(2);
    let [document] = ran.lines().try_into().unwrap();
    sarif::check(&document);
    let results = document["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    let places: Vec<_> = results.iter().map(|result| &result["locations"][0]["physicalLocation"]).collect();
    assert_eq!(places[0]["artifactLocation"]["uri"], "doubt%20ful.yaml");
    assert_eq!(places[1]["region"]["startLine"], 2);
    assert_eq!(places[1]["region"]["startColumn"], 22);
    assert_eq!([&results[0]["level"], &results[1]["level"]], ["warning", "error"]);
}

#[test]
fn columns_in_sarif_are_those_of_editors() {
    let home = Home::new().with_team(&BROKEN.replace("name: Ann,", "name: Ann, description: \"😀é漢\","));
    let [document] = home.run(&["check", "--sarif", "team.yaml"]).exits(2).lines().try_into().unwrap();
    sarif::check(&document);
    let run = &document["runs"][0];
    assert_eq!(run["columnKind"], "utf16CodeUnits");
    let region = &run["results"][0]["locations"][0]["physicalLocation"]["region"];
    // An emoji has two code units.
    assert_eq!(
        (&region["startColumn"], &region["endColumn"]),
        (&Value::from(43), &Value::from(48)),
        "{region}"
    );
}

#[test]
fn standard_input_is_checked_and_drawn() {
    let home = Home::new();
    home.file("inner.yaml", DOUBTFUL);
    let outer = "name: o\nagents: [{name: X}]\nteams: [{name: t, file: inner.yaml}]\nchat: {participants: [X, t], stop: {max_turns: 2}}\n";
    let ran = home.run_reading(outer, &["check", "-"]).ok();
    assert!(ran.out.starts_with("-: `o`, 1 agent, 1 chat\n"), "{}", ran.out);
    assert!(ran.err.contains(" --> inner.yaml:3:8\n"), "{}", ran.err);
    let ran = home.run_reading(BROKEN, &["check", "--json", "-"]).exits(2);
    assert_eq!(ran.lines()[0]["problems"][0]["file"], "<stdin>");
    let ran = home.run_reading(outer, &["check", "--graph=dot", "-"]).ok();
    assert!(ran.out.starts_with("digraph "), "{}", ran.out);
}

#[test]
fn all_broken_files_of_the_corpus_are_one_sarif_document() {
    let corpus =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../polylogue-team/tests/corpus/broken");
    let files = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let files: Vec<String> = files.filter(|file| file.ends_with(".yaml")).collect();
    assert!(files.len() >= 60, "{}", files.len());
    let args: Vec<&str> = ["check", "--sarif"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let [document] = Home::new().run(&args).exits(2).lines().try_into().unwrap();
    sarif::check(&document);
    let results = document["runs"][0]["results"].as_array().unwrap();
    assert!(results.len() >= files.len(), "{} findings in {} files", results.len(), files.len());
}

#[test]
fn a_team_is_drawn_in_three_formats() {
    let home = Home::new();
    home.file("doubtful.yaml", DOUBTFUL);
    home.file("broken.yaml", BROKEN);
    let team = shipped("writer-critic");
    for (format, begin) in [
        ("--graph", "<svg "),
        ("--graph=svg", "<svg "),
        ("--graph=mermaid", "flowchart TB"),
        ("--graph=dot", "digraph "),
    ] {
        let ran = home.run(&["check", format, &team]).ok();
        assert!(ran.out.starts_with(begin) && ran.out.contains("Critic"), "{}", ran.out);
    }
    let ran = home.run(&["check", "--graph", "--output", "team.svg", "doubtful.yaml"]).ok();
    assert!(ran.out.is_empty() && ran.err.contains("warning[no-stop]"), "{}{}", ran.out, ran.err);
    assert!(std::fs::read_to_string(home.path("team.svg")).unwrap().ends_with("</svg>\n"));
    home.run(&["check", "--graph", "--strict", "doubtful.yaml"]).exits(2);
    let ran = home.run(&["check", "--graph", "broken.yaml"]).exits(2);
    assert!(ran.out.is_empty() && ran.err.contains("did you mean `system`?"), "{}{}", ran.out, ran.err);
    let ran = home.run(&["check", "--graph", "dot", "doubtful.yaml"]).exits(2);
    assert!(ran.err.contains("write `--graph=dot`"), "{}", ran.err);
}

#[test]
fn a_file_is_formatted_with_its_comments() {
    let home = Home::new();
    let untidy =
        "name:  t # mine\nagents:\n- {name: Ann}\nchat: {participants: [Ann], stop: {max_turns: 2}}\n";
    let tidy =
        "name: t # mine\nagents:\n  - {name: Ann}\nchat: {participants: [Ann], stop: {max_turns: 2}}\n";
    home.file("untidy.yaml", untidy);
    home.file("tidy.yaml", tidy);
    home.file("broken.yaml", "name: t\n\tagents: 1\n");
    let read = |name: &str| std::fs::read_to_string(home.path(name)).unwrap();

    let ran = home.run(&["fmt", "--check", "untidy.yaml", "tidy.yaml"]).exits(1);
    assert_eq!((ran.out.as_str(), read("untidy.yaml").as_str()), ("untidy.yaml\n", untidy));
    // A file that is not YAML does not keep the others from being formatted.
    let ran = home.run(&["fmt", "broken.yaml", "untidy.yaml"]).exits(2);
    assert!(ran.err.contains("indent with spaces"), "{}", ran.err);
    assert_eq!(read("untidy.yaml"), tidy);
    home.run(&["fmt", "--check", "untidy.yaml"]).ok();
}

#[test]
fn a_missing_key_of_a_provider_is_named() {
    let mut home = Home::new();
    let team = "name: t\nmodel: [openai:gpt-4o-mini, ollama:llama3, mistral:mistral-small]\nagents: [{name: Ann}]\nchat: {participants: [Ann], stop: {max_turns: 2}}\n";
    home.file("team.yaml", team);
    home.set("MISTRAL_API_KEY", crate::home::KEY);
    let ran = home.run(&["check", "team.yaml"]).ok();
    let rows: Vec<&str> = ran.out.lines().filter(|line| line.contains("key")).collect();
    assert_eq!(rows, ["  no key for `openai`: set `OPENAI_API_KEY`"]);
    let json = home.run(&["check", "--json", "team.yaml"]).ok().lines().remove(0);
    assert_eq!(
        json["missing_keys"],
        serde_json::json!([{"provider": "openai", "variables": ["OPENAI_API_KEY"]}])
    );
    home.set("OPENAI_API_KEY", crate::home::KEY);
    assert!(!home.run(&["check", "team.yaml"]).ok().out.contains("no key"));
}

#[test]
fn agents_without_a_model_are_named_with_what_to_set() {
    let mut home = Home::new();
    let team = "name: t\nagents:\n  - {name: Ann}\n  - {name: Bob, model: openai:gpt-4o-mini}\n  - {name: Cid}\n\
        chat: {participants: [Ann, Bob, Cid], stop: {max_turns: 3}}\n";
    home.file("team.yaml", team);
    let ran = home.run(&["check", "--strict", "team.yaml"]).ok();
    let row = "  no model for `Ann` (line 3) and `Cid` (line 5): set `model` in the file, `POLYLOGUE_MODEL`, \
        or a default with `polylogue config set model PROVIDER:MODEL`\n";
    assert!(ran.out.contains(row), "{}", ran.out);
    let without = |home: &Home| {
        home.run(&["check", "--json", "team.yaml"]).ok().lines().remove(0)["without_model"].take()
    };
    let both = serde_json::json!([{"agent": "Ann", "line": 3}, {"agent": "Cid", "line": 5}]);
    assert_eq!(without(&home), both);
    home.file(
        "outer.yaml",
        "name: o\nteams: [{name: helper, file: team.yaml}]\nchat: {participants: [helper]}\n",
    );
    let ran = home.run(&["check", "outer.yaml"]).ok();
    assert!(ran.out.contains("no model for `Ann` and `Cid`: set"), "{}", ran.out);

    let none = serde_json::json!([]);
    home.set("POLYLOGUE_MODEL", "openai:gpt-4o-mini");
    assert_eq!(without(&home), none);
    home.set("POLYLOGUE_MODEL", "");
    assert_eq!(without(&home), both);
    for enough in ["model: openai:gpt-4o-mini\n", "script: [{Ann: Hello.}]\n"] {
        home.file("team.yaml", &format!("{team}{enough}"));
        assert_eq!(without(&home), none, "{enough}");
    }
    home.file("team.yaml", team);
    home.run(&["config", "set", "model", "openai:gpt-4o-mini"]).ok();
    assert_eq!(without(&home), none);
}

/// With a memory that finds facts by their words only, the run would look as if it worked.
#[test]
fn a_missing_key_of_the_embedding_model_ends_a_run_before_its_first_call() {
    let server = serve(Playbook::always(Answer::text("Hello.")));
    let mut home = Home::at(&server);
    let team = "name: t\nmodel: openai:test\nmemory: {embed: 'mistral:mistral-embed'}\n\
        agents: [{name: Ann, memory: true}]\nchat: {participants: [Ann], stop: {max_turns: 1}}\ntask: Greet me.\n";
    home.file("team.yaml", team);
    let row = "  no key for `mistral`: set `MISTRAL_API_KEY`\n";
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.out.contains(row), "{}", ran.out);
    let ran = home.run(&["run", "team.yaml"]).exits(2);
    let error = "error (config): mistral:mistral-embed: no API key is set for this provider\n";
    assert!(ran.err.contains(error) && ran.err.contains("set `MISTRAL_API_KEY`"), "{}", ran.err);
    assert_eq!(server.count(), 0);
    home.set("MISTRAL_API_KEY", crate::home::KEY);
    assert!(!home.run(&["check", "team.yaml"]).ok().out.contains(row));
    // An agent without a memory needs none.
    home.file("plain.yaml", &team.replace(", memory: true", ""));
    home.run(&["run", "plain.yaml"]).ok();
}

#[test]
fn a_missing_key_of_an_endpoint_is_named_when_the_file_may_use_it() {
    let mut home = Home::new();
    let team = "name: t\nmodel: [mine:big, theirs:big, openai:gpt-4o-mini]\nendpoints:\n  \
                mine: {base_url: 'http://127.0.0.1:9/v1', key: [MINE_KEY, MINE_OTHER_KEY]}\n  \
                theirs: {base_url: 'http://127.0.0.1:9/v1', headers: {X-Token: {env: THEIR_TOKEN}, X-Team: a}}\n  \
                openai: {retries: 1}\nagents: [{name: Ann}]\nchat: {participants: [Ann], stop: {max_turns: 2}}\n";
    home.file("team.yaml", team);
    let missing = |home: &Home, args: &[&str]| {
        let args = [&["check", "--json", "team.yaml"][..], args].concat();
        home.run(&args).ok().lines().remove(0)["missing_keys"].take()
    };
    let of = |provider: &str, variables: &[&str]| serde_json::json!({"provider": provider, "variables": variables});
    let (mine, theirs, openai) = (
        of("mine", &["MINE_KEY", "MINE_OTHER_KEY"]),
        of("theirs", &["THEIR_TOKEN"]),
        of("openai", &["OPENAI_API_KEY"]),
    );
    // No variable is looked up that an untrusted file names.
    assert_eq!(missing(&home, &[]), serde_json::json!([openai]));
    assert_eq!(missing(&home, &["--allow", "endpoints"]), serde_json::json!([openai]));
    assert_eq!(missing(&home, &["--allow", "endpoints,env"]), serde_json::json!([mine, openai, theirs]));
    home.set("MINE_OTHER_KEY", crate::home::KEY);
    home.set("THEIR_TOKEN", crate::home::KEY);
    assert_eq!(missing(&home, &["--trust"]), serde_json::json!([openai]));
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.out.contains("no key for `openai`") && !ran.out.contains("`mine`: set"), "{}", ran.out);
}

#[test]
fn a_model_of_an_unknown_provider_is_an_error_unless_a_script_replaces_it() {
    let home = Home::new();
    let team = "name: t\ntask: Begin.\nmodel: acme:big\nagents: [{name: Ann}]\nchat: {participants: [Ann], stop: {max_turns: 1}}\n";
    let line = "[unknown-model]: there is no provider `acme`\n --> team.yaml:3:8\n";
    home.file("team.yaml", team);
    let ran = home.run(&["check", "team.yaml"]).exits(2);
    assert!(ran.err.contains("error: there is no provider `acme`\n --> team.yaml:3:8\n"), "{}", ran.err);
    assert!(ran.err.contains("`endpoints: {acme: {base_url: ...}}`"), "{}", ran.err);
    home.run(&["run", "team.yaml"]).exits(2);
    home.run(&["check", "team.yaml", "--price", "--model", "openai:gpt-4o"]).ok();
    home.file("team.yaml", &format!("{team}script: [{{Ann: Done.}}]\n"));
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.err.contains(line), "{}", ran.err);
    home.run(&["check", "--strict", "team.yaml"]).exits(2);
    home.run(&["run", "team.yaml", "--offline"]).ok();
    home.file("team.yaml", &format!("{team}endpoints: {{acme: {{base_url: 'http://127.0.0.1:9/v1'}}}}\n"));
    home.run(&["check", "--strict", "team.yaml"]).ok();
}

#[test]
fn mistakes_of_models_and_warnings_are_found_at_once_in_the_order_of_the_lines() {
    let home = Home::new();
    home.file(
        "team.yaml",
        "name: t\nmodel: opnai:gpt-4o\nvars: {unused: 1}\nlimits: {cost: 1}\nagents:\n  \
         - {name: Ann, model: 'acme:big'}\n  - {name: Bob, model: 'openai:unpriced'}\n  - {name: Cleo}\n  \
         - {name: Dan, model: 'acme:big'}\nchat: {participants: [Ann, Bob, Cleo, Dan]}\n",
    );
    let found = home.run(&["check", "--json", "team.yaml"]).exits(2).lines().remove(0);
    let found = found["problems"].as_array().unwrap().iter();
    let brief = |one: &Value| {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (one["place"]["line"].as_u64().unwrap(), text(&one["severity"]), text(&one["code"]))
    };
    let found: Vec<_> = found.map(brief).collect();
    let expected = [
        (2, "error", "unknown-model"),
        (3, "warning", "unused"),
        (6, "error", "unknown-model"),
        (7, "error", "invalid-value"),
        (9, "error", "unknown-model"),
        (10, "warning", "no-stop"),
    ];
    assert_eq!(found, expected.map(|(line, severity, code)| (line, severity.to_owned(), code.to_owned())));
}

#[test]
fn an_embedding_model_of_an_unknown_provider_is_an_error_if_it_is_used() {
    let home = Home::new();
    let team = "name: t\nmodel: openai:gpt-4o\nmemory: {embed: 'acme:big'}\n\
        agents: [{name: Ann, memory: true}]\nchat: {participants: [Ann], stop: {max_turns: 1}}\n";
    home.file("team.yaml", team);
    let ran = home.run(&["check", "team.yaml"]).exits(2);
    assert!(ran.err.contains("error: there is no provider `acme`\n --> team.yaml:3:17\n"), "{}", ran.err);
    home.file("team.yaml", &team.replace(", memory: true", ""));
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(!ran.err.contains("acme`"), "{}", ran.err);
    home.file("team.yaml", &format!("{team}endpoints: {{acme: {{base_url: 'http://127.0.0.1:9/v1'}}}}\n"));
    home.run(&["check", "team.yaml"]).ok();
}

/// A run refuses them, too: with the keys of all, and nothing is sent.
#[test]
fn a_model_that_makes_no_embeddings_is_an_error_if_the_memory_needs_it() {
    let home = Home::new().var("OPENAI_API_KEY", "sk-test").var("AWS_REGION", "eu-west-1");
    let team = "name: t\nmodel: openai:gpt-4o\nmemory:\n  embed: MODEL\n\
        agents: [{name: Ann, memory: true}]\nchat: {participants: [Ann], stop: {max_turns: 1}}\ntask: Greet me.\n";
    for (model, why, hint) in [
        (
            "anthropic:claude-haiku-4-5",
            "its API has no embeddings",
            "such as `openai:text-embedding-3-small`",
        ),
        (
            "local:models/a.gguf",
            "models in the process make no embeddings",
            "such as `ollama:nomic-embed-text`",
        ),
        (
            "bedrock:amazon.nova-pro-v1:0",
            "it is unknown how `amazon.nova-pro-v1:0` embeds texts",
            "`titan-embed`",
        ),
    ] {
        let named = team.replace("MODEL", &format!("'{model}'"));
        home.file("team.yaml", &named);
        let ran = home.run(&["check", "team.yaml"]).exits(2);
        let error =
            format!("error: `{model}`, the embedding model of the memory: {why}\n --> team.yaml:4:10\n");
        assert!(ran.err.contains(&error) && ran.err.contains(hint), "{}", ran.err);
        let ran = home.run(&["run", "team.yaml"]).exits(2);
        assert!(ran.err.contains(why) && ran.err.contains(hint), "{}", ran.err);
        // Nothing is made by a model where the script speaks.
        home.file("team.yaml", &format!("{named}script: [{{Ann: Hello.}}]\n"));
        let ran = home.run(&["check", "team.yaml"]).ok();
        assert!(ran.err.contains("warning[unknown-model]: ") && ran.err.contains(why), "{}", ran.err);
        home.file("team.yaml", &named.replace(", memory: true", ""));
        assert!(!home.run(&["check", "team.yaml"]).ok().err.contains(why));
    }
    // A region can be set where it runs. Of an endpoint of the team, its API counts.
    let home = Home::new();
    for (model, api, code) in [
        ("bedrock:amazon.titan-embed-text-v2:0", "messages", 0),
        ("house:mine", "chat_completions", 0),
        ("house:mine", "messages", 2),
    ] {
        let endpoint = format!("endpoints: {{house: {{api: {api}, base_url: 'http://127.0.0.1:9'}}}}\n");
        home.file("team.yaml", &format!("{}{endpoint}", team.replace("MODEL", &format!("'{model}'"))));
        let ran = home.run(&["check", "team.yaml", "--allow", "endpoints"]).exits(code);
        assert_eq!(ran.err.contains("its API has no embeddings"), code == 2, "{model}: {}", ran.err);
    }
}

#[test]
fn operations_that_cannot_be_called_are_named_and_fail_nothing() {
    let home = Home::new();
    let post = |name: &str, kind: &str| {
        let body = format!("{{required: true, content: {{{kind}: {{}}}}}}");
        format!("  /{name}: {{post: {{operationId: {name}, requestBody: {body}}}}}\n")
    };
    let paths = ["a", "b", "c", "d"].map(|name| post(name, "multipart/form-data")).concat()
        + &post("e", "application/json");
    let document = format!("openapi: 3.1.0\nservers: [{{url: 'https://pets.example'}}]\npaths:\n{paths}");
    home.file("pets.yaml", &document);
    let team = |include: &str| {
        format!(
            "name: t\nagents: [{{name: Ann, tools: [pets]}}]\nopenapi: {{pets: {{file: pets.yaml{include}}}}}\n\
             chat: {{participants: [Ann], stop: {{max_turns: 2}}}}\n"
        )
    };
    home.file("team.yaml", &team(""));
    let why = "(what it is sent is not JSON)";
    let row = format!(
        "the service `pets` leaves out 4 operations that cannot be called: `a` {why}, `b` {why}, `c` {why} and 1 more\n"
    );
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.out.contains(&row), "{}", ran.out);
    let json = home.run(&["check", "--json", "team.yaml"]).ok().lines().remove(0);
    assert_eq!(json["left_out"]["pets"].as_array().unwrap().len(), 4);
    assert_eq!(json["left_out"]["pets"][3]["name"], "d");
    // Of a team within another one, too.
    home.file(
        "outer.yaml",
        "name: o\nagents: [{name: Bea}]\nteams: [{name: helper, file: team.yaml}]\n\
         chat: {participants: [Bea, helper], stop: {max_turns: 2}}\n",
    );
    let ran = home.run(&["check", "outer.yaml"]).ok();
    assert!(ran.out.contains("the service `helper/pets` leaves out 4 operations"), "{}", ran.out);
    let json = home.run(&["check", "--json", "outer.yaml"]).ok().lines().remove(0);
    assert_eq!(json["left_out"]["helper/pets"][3]["name"], "d");
    home.file("team.yaml", &team(", include: [e]"));
    assert!(!home.run(&["check", "team.yaml"]).ok().out.contains("leaves out"));
    assert_eq!(home.run(&["check", "--json", "team.yaml"]).ok().lines()[0].get("left_out"), None);
}

// Responses, by which OpenAI's own models that reason are asked, has no field for it; chat completions, the API of other servers, does.
#[test]
fn parameters_are_checked_by_the_api_that_a_run_uses_at_the_address() {
    let home = Home::new();
    let team = "name: t\nmodel: openai:gpt-5\nagents: [{name: Ann, parameters: {top_k: 5}}]\n\
        chat: {participants: [Ann], stop: {max_turns: 1}}\n";
    home.file("team.yaml", team);
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.err.contains("warning[no-effect]: `openai:gpt-5`, the model of `Ann`"), "{}", ran.err);
    assert!(ran.err.contains("does not take `top_k`: it is left out\n --> team.yaml:3:"), "{}", ran.err);
    home.run(&["check", "--strict", "team.yaml"]).exits(2);
    let server = serve(Playbook::always(Answer::text("Hello.")));
    let home = home.var("OPENAI_BASE_URL", &server.base_url());
    home.run(&["check", "--strict", "team.yaml"]).ok();
    let ran = home.run(&["run", "team.yaml", "Greet me."]).ok();
    assert!(!ran.err.contains("top_k"), "{}", ran.err);
    assert_eq!(server.requests()[0].body["top_k"], 5);
    assert!(of_type(&home.events(), "parameters_ignored").is_empty());
    assert_eq!(server.violations(), [""; 0]);
}

#[test]
fn a_parameter_that_no_model_of_an_agent_takes_is_an_error_if_it_is_strict() {
    let home = Home::new().var("OPENAI_API_KEY", "sk-test");
    let team = "name: t\nmodel: openai:gpt-5\nagents: [{name: Ann, parameters: {top_k: 5, strict: true}}]\n\
        chat: {participants: [Ann], stop: {max_turns: 1}}\ntask: Greet me.\n";
    home.file("team.yaml", team);
    let error = "error: `openai:gpt-5`, the model of `Ann`, does not take `top_k`, and `strict` refuses it\n --> team.yaml:3:";
    for command in ["check", "run"] {
        let ran = home.run(&[command, "team.yaml"]).exits(2);
        assert!(ran.err.contains(error), "{}", ran.err);
    }
    // By its script the team can run.
    home.file("team.yaml", &format!("{team}script: [{{Ann: Hello.}}]\n"));
    let ran = home.run(&["check", "team.yaml"]).ok();
    assert!(ran.err.contains("warning[no-effect]: `openai:gpt-5`"), "{}", ran.err);
    home.run(&["run", "team.yaml", "--offline"]).ok();
}

/// A selector and the author of a summary have their own parameters, and a team within a team can use the model of the outer one.
#[test]
fn parameters_are_checked_for_all_that_call_a_model() {
    let home = Home::new().var("OPENAI_API_KEY", "sk-test");
    let strict = "parameters: {top_k: 5, strict: true}";
    let team = |keys: &str| {
        format!(
            "name: t\nmodel: openai:gpt-5\nagents: [{{name: Ann}}, {{name: Bob}}]\ntask: Greet me.\n{keys}\n"
        )
    };
    let selector = format!(
        "chat: {{participants: [Ann, Bob], max_turns: 2, pattern: {{group: {{select: {{model: {{{strict}}}}}}}}}}}"
    );
    let summary =
        format!("chat: {{participants: [Ann, Bob], max_turns: 2, summary: {{reflect: {{{strict}}}}}}}");
    let within = "teams: [{name: one, file: inner.yaml}, {name: two, file: inner.yaml}]\n\
        chat: {participants: [one, two], max_turns: 2}";
    home.file(
        "inner.yaml",
        &format!("name: i\nagents: [{{name: Cid, {strict}}}]\nchat: {{participants: [Cid], max_turns: 1}}\n"),
    );
    let extra = "chat: {participants: [Ann, Bob], max_turns: 2, summary: {reflect: {parameters: {extra: {truncation: auto}}}}}";
    let refuses = "does not take `top_k`, and `strict` refuses it";
    for (keys, who, why, place) in [
        (&*selector, "t_selector", refuses, "team.yaml:5:"),
        (&*summary, "t_summary", refuses, "team.yaml:5:"),
        (within, "Cid", refuses, "inner.yaml:2:"),
        (extra, "t_summary", "`truncation` cannot be an extra field", "team.yaml:5:"),
    ] {
        home.file("team.yaml", &team(keys));
        for command in ["check", "run"] {
            let ran = home.run(&[command, "team.yaml"]).exits(2);
            let errors: Vec<&str> = ran.err.lines().filter(|line| line.starts_with("error: ")).collect();
            let [error] = errors[..] else { panic!("{}", ran.err) };
            assert!(error.contains(&format!("`openai:gpt-5`, the model of `{who}`")), "{error}");
            assert!(error.contains(why) && ran.err.contains(&format!(" --> {place}")), "{}", ran.err);
        }
    }
}

/// Of an endpoint of the team, when it is allowed: before, it is unknown what is there.
#[test]
fn parameters_are_checked_for_endpoints_of_the_team() {
    let home = Home::new();
    let team = |parameters: &str, api: &str| {
        format!(
            "name: t\nendpoints: {{own: {{base_url: 'http://127.0.0.1:9/v1', {api}}}}}\nmodel: own:big\n\
             agents: [{{name: Ann, parameters: {{{parameters}}}}}]\n\
             chat: {{participants: [Ann], stop: {{max_turns: 1}}}}\ntask: Greet me.\n"
        )
    };
    for (parameter, api) in [("top_k", "drop_parameters: [top_k]"), ("seed", "api: messages")] {
        home.file("team.yaml", &team(&format!("{parameter}: 5, strict: true"), api));
        home.run(&["check", "--strict", "team.yaml"]).ok();
        for command in ["check", "run"] {
            let ran = home.run(&[command, "team.yaml", "--allow", "endpoints"]).exits(2);
            let error = format!(
                "error: `own:big`, the model of `Ann`, does not take `{parameter}`, and `strict` refuses it"
            );
            assert!(ran.err.contains(&error), "{}", ran.err);
        }
    }
    // Neither its temperatures nor the length of its replies are in the table.
    home.file("team.yaml", &team("max_tokens: 900000", "api: messages"));
    home.run(&["check", "--strict", "team.yaml", "--allow", "endpoints"]).ok();
}
