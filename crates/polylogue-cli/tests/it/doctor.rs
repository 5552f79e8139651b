//! `doctor`: what is found on this machine.

use expect_test::expect;
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::json;

use crate::home::{Home, KEY, UNREACHABLE, serve, shipped};
use crate::models::{TALK, talk};

#[test]
fn it_tells_keys_by_name_and_endpoints_by_address() {
    let server = serve(talk());
    let unreachable = UNREACHABLE;
    let with_secret = server.base_url().replace("http://", &format!("http://me:{KEY}@")) + "?key=" + KEY;
    let mut home = Home::at(&server).var("VLLM_BASE_URL", &with_secret);
    let locals = ["OLLAMA_HOST", "LLAMACPP_BASE_URL", "SGLANG_BASE_URL", "TGI_BASE_URL", "LMSTUDIO_BASE_URL"];
    for local in locals {
        home.set(local, unreachable);
    }
    home.file(".env", &format!("DEEPSEEK_API_KEY={}\n", "sk-of-the-file"));
    home.run(&["run", &shipped("writer-critic"), "--offline"]).ok();
    let ran = home.run(&["doctor"]).ok();
    assert!(!ran.out.contains("sk-of-the-file"));
    let text = ran.masked(&home).replace(&server.base_url(), "SERVER").replace(unreachable, "UNREACHABLE");
    let text = text.replace(unreachable.trim_end_matches("/v1"), "OLLAMA");
    let (version, rest) = text.split_once('\n').unwrap();
    // The age of the table is that of the day.
    let is_of_prices = |line: &&str| line.contains("list prices of 20") || line.contains(" days old: ");
    assert_eq!(
        rest.lines().filter(|line| line.starts_with("  prices            list prices of 20")).count(),
        1
    );
    // Whether models in the process are built in, and their memory, differ from build to build.
    let is_of_local = |line: &&str| line.starts_with("  local             ");
    let local = rest.lines().find(is_of_local).unwrap();
    assert!(local.contains(" built in: "), "{local}");
    let rest: String = rest
        .lines()
        .filter(|line| !is_of_prices(line) && !is_of_local(line))
        .flat_map(|line| [line, "\n"])
        .collect();
    let rest = without_code(&rest);
    assert!(version.starts_with(concat!("polylogue ", env!("CARGO_PKG_VERSION"), ", ")), "{version}");
    expect![[r#"

        models
          openai            key found in `OPENAI_API_KEY`, at SERVER
          ollama            nothing answers at OLLAMA
          ollama-openai     nothing answers at UNREACHABLE
          anthropic         no key: set `ANTHROPIC_API_KEY`
          bedrock           no region is set: set `AWS_REGION`, such as `us-east-1`, or `region` in the profile
          deepseek          key found in `DEEPSEEK_API_KEY`, at https://api.deepseek.com/v1
          qwen              no key: set `DASHSCOPE_API_KEY` or `QWEN_API_KEY`
          mistral           no key: set `MISTRAL_API_KEY`
          cohere            no key: set `COHERE_API_KEY` or `CO_API_KEY`
          groq              no key: set `GROQ_API_KEY`
          together          no key: set `TOGETHER_API_KEY`
          openrouter        no key: set `OPENROUTER_API_KEY`
          xai               no key: set `XAI_API_KEY`
          fireworks         no key: set `FIREWORKS_API_KEY`
          deepinfra         no key: set `DEEPINFRA_API_KEY`
          cerebras          no key: set `CEREBRAS_API_KEY`
          moonshot          no key: set `MOONSHOT_API_KEY`
          zai               no key: set `ZAI_API_KEY`
          nebius            no key: set `NEBIUS_API_KEY`
          sambanova         no key: set `SAMBANOVA_API_KEY`
          gemini            no key: set `GEMINI_API_KEY` or `GOOGLE_API_KEY`
          vertex            no project: set `GOOGLE_CLOUD_PROJECT` to the id of the project, or `GOOGLE_VERTEX_API_KEY` to an API key
          vllm              answers at SERVER
          llamacpp          nothing answers at UNREACHABLE
          sglang            nothing answers at UNREACHABLE
          tgi               nothing answers at UNREACHABLE
          lmstudio          nothing answers at UNREACHABLE
          azure             not configured: set `AZURE_OPENAI_ENDPOINT`
          foundry           not configured: set `ANTHROPIC_FOUNDRY_BASE_URL` or `ANTHROPIC_FOUNDRY_RESOURCE`
          bedrock-mantle    no region is set: set `AWS_REGION`, such as `us-east-1`, or `region` in the profile
          compatible        key found in `OPENAI_API_KEY`, at SERVER

        capabilities of models (cached in HOME/.cache/polylogue/capabilities.json)
          not probed yet: detected in use, or tested by `--probe`

        conversations
          1 in HOME/store.db (SQLite, format 10)
        --- 0
    "#]]
    .assert_eq(&rest);
    assert_eq!(server.count(), 0, "it asks nothing that costs");
}

/// Without the section on code, which differs from machine to machine.
fn without_code(text: &str) -> String {
    let (before, after) = text.split_once("\nsandbox\n").unwrap();
    let (code, after) = after.split_once("\n\n").unwrap();
    for row in ["namespaces", "seccomp", "limits", "landlock", "containers"] {
        let shown = code.lines().find_map(|line| line.trim_start().strip_prefix(row)).unwrap().trim_start();
        let is_shown = shown.starts_with("yes: ")
            || shown.starts_with("no: ")
            || shown.starts_with("no, which is not needed: ");
        assert!(is_shown || row == "containers" && shown.contains("`docker`"), "{code}");
    }
    assert_eq!(code.contains("  namespaces      no"), code.contains("hint: code is refused"), "{code}");
    format!("{before}\n{after}")
}

#[test]
fn doctor_lists_the_models_of_ollama() {
    let server = serve(talk().models(["llama3.2:latest", "qwen3:8b"]));
    let ollama = |home: Home| {
        let text = home.run(&["doctor"]).ok().out.replace(&server.ollama_url(), "OLLAMA");
        let lines = text.lines().skip_while(|line| !line.starts_with("  ollama"));
        lines
            .take_while(|line| !line.starts_with("  anthropic"))
            .fold("models\n".to_owned(), |all, line| all + line + "\n")
    };
    expect![[r#"
        models
          ollama            answers at OLLAMA
                            Ollama 0.13.0
                            models: llama3.2:latest (2.0 GB), qwen3:8b (2.0 GB)
          ollama-openai     answers at OLLAMA/v1
    "#]]
    .assert_eq(&ollama(Home::new().var("OLLAMA_HOST", &server.address().to_string())));
    expect![[r#"
        models
          ollama            answers at OLLAMA/elsewhere
                            which models it has is not known: the provider answered with status 404: Invalid URL (GET /elsewhere/api/version)
          ollama-openai     answers at OLLAMA/elsewhere/v1
    "#]]
    .assert_eq(&ollama(Home::new().var("OLLAMA_HOST", &format!("{}/elsewhere", server.ollama_url()))));
    assert_eq!(server.count(), 0, "it asks nothing that costs");
}

#[test]
fn doctor_fails_when_the_store_cannot_be_written() {
    let home = Home::new();
    home.file("store.db", "this is not a database, and longer than the header of one ".repeat(4).as_str());
    let ran = home.run(&["doctor"]).exits(1);
    assert!(ran.out.ends_with("\nconversations\n  cannot be used\n"), "{}", ran.out);
    assert!(
        ran.err.contains("store.db` does not keep conversations: it is not an SQLite database"),
        "{}",
        ran.err
    );
}

/// The section on what models can do.
fn abilities(home: &Home, server: &Server, args: &[&str]) -> String {
    let ran = home.run(&[&["doctor"], args].concat()).ok();
    let text = ran.masked(home).replace(&server.base_url(), "SERVER");
    let lines = text.lines().skip_while(|line| !line.starts_with("capabilities of models"));
    lines.skip(1).take_while(|line| !line.is_empty()).map(|line| format!("{}\n", &line[2..])).collect()
}

#[test]
fn what_a_model_sees_is_configured_or_in_the_table() {
    let server = serve(Playbook::always(Answer::text("Hi.")));
    let home = Home::at(&server);
    let by_table = abilities(&home, &server, &["-m", "openai:gpt-4o"]);
    assert!(by_table.contains("\n  vision     yes, by the table of models\n"), "{by_table}");
    home.file(
        "team.yaml",
        "name: t\nmodel: openai:gpt-4o\nendpoints: {openai: {capabilities: {vision: false}}}\n\
         agents: [{name: A}]\nchat: {participants: [A], pattern: sequential}\n",
    );
    // Each model of a list is shown, as a run asks them.
    let both = abilities(&home, &server, &["-m", "openai:gpt-4o, openai:gpt-3.5-turbo"]);
    assert!(
        both.starts_with(&by_table) && both.contains("\n  vision     no, by the table of models\n"),
        "{both}"
    );
    let configured = abilities(&home, &server, &["team.yaml"]);
    assert!(configured.contains("\n  vision     no, as configured\n"), "{configured}");
}

#[test]
fn it_tells_what_models_can_do_and_finds_it_out() {
    let server = serve(Behavior::from(Playbook::always("plain")).text_only());
    let home = Home::at(&server);
    expect![[r#"
          openai:small
            tools      unknown
            schema     unknown
            JSON mode  unknown
    "#]]
    .assert_eq(&abilities(&home, &server, &["-m", "openai:small"]));
    assert_eq!(server.count(), 0, "without `--probe` it asks nothing that costs");
    expect![[r#"
          openai:small
            asked now
            tools      no: the provider answered with status 400: Unsupported parameter: 'tools' is not supported with this model
            schema     no: the provider answered with status 400: Unsupported parameter: 'response_format' is not supported with this model
            JSON mode  no: the provider answered with status 400: Unsupported parameter: 'response_format' is not supported with this model
    "#]]
    .assert_eq(&abilities(&home, &server, &["-m", "openai:small", "--probe"]));
    assert_eq!((server.count(), server.violations()), (3, Vec::new()));
    // It is remembered, and a run need not find it out again.
    let all = abilities(&home, &server, &[]);
    assert!(all.starts_with("small at SERVER\n  tools      no: the provider"), "{all}");
    home.file("team.yaml", TALK);
    home.run(&["run", "team.yaml", "-m", "openai:small", "--max-turns", "2"]).exits(3);
    assert!(server.requests().iter().skip(3).all(|request| request.body.get("tools").is_none()));
    // A model with all of it.
    let able =
        serve(Playbook::new(|asked: &Received, _| match asked.body["response_format"]["type"].as_str() {
            None => Answer::tool("note", json!({"word": "ready"})).usage(50, 10),
            Some("json_schema") => Answer::text(r#"{"shade_of_grass": "green"}"#).usage(20, 10),
            Some(_) => Answer::text(r#"{"color": "green"}"#).usage(20, 10),
        }));
    let home = Home::at(&able).with_team(&format!("model: openai:able\n{TALK}"));
    expect![[r#"
          openai:able
            asked now, with 120 tokens
            tools      yes
            schema     yes
            JSON mode  yes
    "#]]
    .assert_eq(&abilities(&home, &able, &["team.yaml", "--probe"]));
}

#[test]
fn a_probe_says_what_it_costs_and_what_went_wrong() {
    let server = serve(Behavior::from("x").key("another"));
    let home = Home::at(&server);
    let ran = home.run(&["doctor", "-m", "openai:small", "--probe"]).ok();
    assert!(ran.err.contains("three short questions, which cost a few hundred tokens"), "{}", ran.err);
    assert!(ran.out.contains("    could not be asked now: "), "{}", ran.out);
    assert_eq!(server.count(), 1);
    let ran = home.run(&["doctor", "--probe"]).exits(2);
    assert!(ran.err.contains("there is no model to ask"), "{}", ran.err);
    let ran = home.run(&["doctor", "-m", "unknown:x"]).ok();
    assert!(ran.out.contains("    cannot be asked: there is no provider `unknown`"), "{}", ran.out);
    // Whether the program is built with models in the process or not.
    let ran = home.run(&["doctor", "-m", "local:none.gguf", "--probe"]).ok();
    assert!(ran.out.contains("  local:none.gguf\n    cannot be used: "), "{}", ran.out);
    assert_eq!(server.count(), 1);
}

#[test]
fn what_is_configured_is_shown_as_such_and_an_endpoint_that_cannot_be_used_is_named() {
    let server = serve(talk());
    let mut home = Home::new().var("HOUSE_KEY", KEY);
    let settings = "key: HOUSE_KEY, capabilities: {tools: false}, headers: {X-Team: {env: TEAM}}";
    let endpoint = format!("endpoints:\n  house: {{base_url: \"{}\", {settings}}}\n", server.base_url());
    home.file("team.yaml", &format!("model: house:big\n{endpoint}{TALK}"));
    let shown = abilities(&home, &server, &["team.yaml"]);
    assert!(
        shown.contains("cannot be asked: the endpoint `house` of the team file is not trusted"),
        "{shown}"
    );
    let shown = abilities(&home, &server, &["team.yaml", "--allow", "endpoints,env"]);
    assert!(shown.starts_with("house:big\n  cannot be asked: "), "{shown}");
    assert!(shown.contains("TEAM") && !shown.contains("no provider"), "{shown}");
    home.set("TEAM", "blue");
    expect![[r#"
          house:big
            tools      no, as configured
            schema     unknown
            JSON mode  unknown
    "#]]
    .assert_eq(&abilities(&home, &server, &["team.yaml", "--allow", "endpoints,env"]));
}
