//! `models` and `count`.

use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::{Value, json};

use crate::home::{Home, KEY, serve};

fn server() -> polylogue_test::server::Server {
    serve(Behavior::from(Playbook::new(|_, _| Answer::text("Hello."))).key(KEY).models(["gpt-4o", "mine"]))
}

#[test]
fn without_a_key_the_table_is_listed_and_says_so() {
    let home = Home::new();
    let ran = home.run(&["models", "openai", "--price"]).ok();
    assert!(ran.err.contains("no key is set (`OPENAI_API_KEY`)"), "{}", ran.err);
    assert!(ran.err.contains("list prices in US dollars per million tokens, as of 20"), "{}", ran.err);
    let row = ran.out.lines().find(|line| line.starts_with("gpt-4o ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[1..11].join(" "), "128k in 16k out $2.5 in, cached 1.25, $10 out");
    assert!(words.contains(&"vision"), "{row}");
    // The table has nothing instead.
    let ran = home.run(&["models", "openrouter"]).exits(2);
    assert!(ran.err.contains("error (config)"), "{}", ran.err);
    assert!(ran.err.contains("no key is set (`OPENROUTER_API_KEY`)") && ran.out.is_empty(), "{}", ran.err);
    let ran = home.run(&["models", "openrouter", "--offline"]).ok();
    assert!(ran.err.contains("the table has no models of `openrouter`"), "{}", ran.err);
}

#[test]
fn providers_are_listed_and_a_wrong_name_gets_a_suggestion() {
    let home = Home::new();
    let ran = home.run(&["models"]).ok();
    assert!(ran.out.contains("anthropic ") && ran.out.contains("ollama "), "{}", ran.out);
    let ran = home.run(&["models", "opnai"]).exits(2);
    assert!(ran.err.contains("there is no provider `opnai`") && ran.err.contains("`openai`"), "{}", ran.err);
    let ran = home.run(&["models", "google"]).exits(2);
    assert!(ran.err.contains("did you mean `gemini`?"), "{}", ran.err);
}

#[test]
fn the_provider_is_asked_once_a_day_and_again_on_request() {
    let server = server();
    let home = Home::at(&server);
    let ran = home.run(&["models", "openai", "--json"]).ok();
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0]["model"], "gpt-4o");
    assert_eq!(rows[0]["price"]["input"], json!(2.5));
    assert_eq!(
        rows[1],
        json!({
            "provider": "openai", "model": "mine", "max_input": null, "max_output": null, "can": null,
            "price": null, "price_date": null,
        })
    );
    let lists = || server.requests().len();
    assert_eq!(lists(), 1);
    assert_eq!(home.run(&["models", "openai", "--json"]).ok().out, ran.out);
    assert_eq!(lists(), 1, "the list is kept");
    home.run(&["models", "openai", "--refresh"]).ok();
    assert_eq!(lists(), 2);
    let offline = home.run(&["models", "openai", "--offline"]).ok();
    assert!(offline.out.lines().count() > 50 && lists() == 2);
}

/// The table knows nothing of the models of a server in the house.
#[test]
fn limits_that_a_server_tells_are_listed_and_kept() {
    let server =
        serve(Behavior::from(Playbook::always(Answer::text("Hello."))).models(["mine"]).window(32_768));
    let home = Home::at(&server).var("VLLM_BASE_URL", &server.base_url()).var("OPENROUTER_API_KEY", KEY);
    let home = home.var("OPENROUTER_BASE_URL", &server.base_url());
    for provider in ["vllm", "openrouter", "openrouter"] {
        let ran = home.run(&["models", provider]).ok();
        assert_eq!(ran.out, "mine     32k in       ? out  not in the table\n", "{provider}");
        let ran = home.run(&["models", provider, "--json"]).ok();
        let row: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!((&row["max_input"], &row["max_output"]), (&json!(32_768), &Value::Null));
    }
    assert_eq!(server.requests().len(), 3, "that of a provider is kept");
}

/// A list of three pages, of which one model makes vectors and one pictures.
#[test]
fn all_models_that_can_be_used_are_listed_and_those_for_vectors_are_marked() {
    let names = ["a-chat", "b-embedding", "c-image", "d-chat", "e-chat"];
    let server =
        serve(Behavior::from(Playbook::always(Answer::text("Hello."))).models(names).models_per_page(2));
    let home = Home::new().var("GEMINI_API_KEY", KEY).var("GEMINI_BASE_URL", &server.root_url());
    let ran = home.run(&["models", "gemini"]).ok();
    let row = |name: &str| format!("{name:<11}    1.0M in     65k out  not in the table");
    let expected = [row("a-chat"), row("b-embedding") + "  embedding", row("d-chat"), row("e-chat")];
    assert_eq!(ran.out.lines().collect::<Vec<_>>(), expected);
    assert_eq!(server.requests().len(), 3);
    // The list is kept with that.
    let ran = home.run(&["models", "gemini", "--json"]).ok();
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["can"], &rows[1]["can"]), (&Value::Null, &json!(["embedding"])));
    assert_eq!((rows.len(), server.requests().len()), (4, 3));
    let endless =
        Behavior::from(Playbook::always(Answer::text("Hello."))).models_per_page(1).endless_models();
    let endless = serve(endless);
    let home = Home::new().var("MISTRAL_API_KEY", KEY).var("MISTRAL_BASE_URL", &endless.base_url());
    let ran = home.run(&["models", "mistral", "--refresh"]).exits(1);
    assert!(ran.err.contains("does not end after 20 pages") && ran.out.is_empty(), "{}", ran.err);
}

#[test]
fn a_server_that_refuses_leaves_the_table_and_one_without_a_table_is_an_error() {
    let home =
        Home::at(&server()).var("OPENAI_API_KEY", "sk-wrong").var("VLLM_BASE_URL", "http://127.0.0.1:1/v1");
    let ran = home.run(&["models", "openai"]).ok();
    assert!(
        ran.err.contains("these are the models of the table") && !ran.err.contains("sk-wrong"),
        "{}",
        ran.err
    );
    let ran = home.run(&["models", "vllm"]).exits(1);
    assert!(ran.err.contains("127.0.0.1:1") && ran.out.is_empty(), "{}", ran.err);
}

/// What was asked for is the list of the provider: that of the table would look like it.
#[test]
fn a_refresh_that_cannot_ask_is_an_error() {
    let home = Home::new().var("ANTHROPIC_API_KEY", KEY).var("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let table = "hint: ";
    for (provider, exit, why) in [
        ("openai", 2, "no key is set (`OPENAI_API_KEY`)"),
        ("azure", 2, "`AZURE_OPENAI_ENDPOINT`"),
        ("anthropic", 1, "127.0.0.1:1"),
        ("perplexity", 2, "only in the table"),
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = home.run(&[&["models", provider, "--refresh"][..], json].concat()).exits(exit);
            assert!(ran.err.contains(why) && ran.err.contains(table), "{provider}: {}", ran.err);
            assert!(ran.err.contains("`--refresh`") && ran.out.is_empty(), "{provider}: {}", ran.err);
        }
        let ran = home.run(&["models", provider]).ok();
        assert!(!ran.out.is_empty(), "{provider}: {}", ran.err);
    }
}

#[test]
fn tokens_are_counted_exactly_or_bounded() {
    let home = Home::new();
    let count = |model: &str, text: &str| home.run(&["count", "--model", model, text]).ok().out;
    assert_eq!(
        count("openai:gpt-4o", "Hello, world!"),
        "4 tokens of openai:gpt-4o, less than $0.0001 as input\n"
    );
    assert_eq!(count("house:mine", "Hello"), "at most 5 tokens of house:mine, its price is unknown\n");
    assert_eq!(count("ollama:mine", "Hello"), "at most 5 tokens of ollama:mine, free\n");
    assert_eq!(count("openai:gpt-4o", ""), "0 tokens of openai:gpt-4o, $0.00\n");
    assert_eq!(count("anthropic:claude-sonnet-4-5", ""), "0 tokens of anthropic:claude-sonnet-4-5, $0.00\n");
    // A list is a list, and the name of a deployment says nothing of its model.
    assert_eq!(
        count("openai:gpt-4o, ollama:mine", "Hello"),
        "1 token of openai:gpt-4o, less than $0.0001 as input\nat most 5 tokens of ollama:mine, free\n"
    );
    assert_eq!(count("azure:gpt-4o", "Hello"), "at most 5 tokens of azure:gpt-4o, its price is unknown\n");
    assert_eq!(count("house:mine", ""), "0 tokens of house:mine, its price is unknown\n");
    home.file("long.txt", &"word ".repeat(10_000));
    assert_eq!(count("openai:gpt-4o", "@long.txt"), "10000 tokens of openai:gpt-4o, $0.0250 as input\n");
    let row = home.run(&["count", "-m", "openai:gpt-4o", "--json", "Hello"]).ok().out;
    let row: Value = serde_json::from_str(&row).unwrap();
    assert_eq!(row, json!({"model": "openai:gpt-4o", "tokens": 1, "exact": true, "picodollars": 2_500_000}));
    for (model, meant) in [
        ("openia:gpt-4o", Some("openai:gpt-4o")),
        ("google:gemini-2.5-pro", Some("gemini:gemini-2.5-pro")),
        ("OpenAI:gpt-4o", None),
        ("house:mine", None),
    ] {
        let note = meant.map(|meant| format!("did you mean `{meant}`?\n"));
        let said = home.run(&["count", "-m", model, "Hello"]).ok().err;
        assert!(note.map_or(said.is_empty(), |note| said.ends_with(&note)), "{model}: {said}");
    }
    let ran = home.run(&["count", "Hello"]).exits(2);
    assert!(ran.err.contains("no model is named"), "{}", ran.err);
    for (model, hint) in [
        ("gpt-4o", "write `openai:gpt-4o`"),
        ("mine", "write `provider:model`"),
        ("openai:", "write `openai:`"),
        ("openai:gpt-4o, mine", "write `provider:model`"),
        (",", "write `provider:model`"),
    ] {
        let ran = home.run(&["count", "-m", model, "Hello"]).exits(2);
        assert!(ran.err.contains(hint) && ran.out.is_empty(), "{model}: {}", ran.err);
    }
    // The file is missing, or the program is built without models in the process.
    for model in ["local:none.gguf", "Local:none.gguf"] {
        let ran = home.run(&["count", "-m", model, "Hello"]).exits(2);
        assert!(ran.err.contains(model) && ran.err.contains("hint: "), "{}", ran.err);
        assert!(!ran.err.contains("there is no provider"), "{}", ran.err);
    }
    let ran = home.run(&["models", "local"]).exits(2);
    assert!(ran.err.contains("`local:models/qwen3-4b-q4_k_m.gguf`"), "{}", ran.err);
}
