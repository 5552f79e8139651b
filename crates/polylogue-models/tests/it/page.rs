//! The tables of docs/models.md are those of the code. `UPDATE=1 cargo test -p polylogue-models --test it page` writes them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use polylogue_core::{Model, Params};
use polylogue_models::{Api, Config, Endpoint, Env, KnownModel, Provider};

#[test]
fn the_tables_of_the_page_on_models_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let page = fs::read_to_string(&path).unwrap();
    let current = with_table(&page, "providers", &providers());
    let current = with_table(&current, "capabilities", &capabilities());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path, current).unwrap();
    } else {
        assert!(
            page == current,
            "docs/models.md is out of date; run `UPDATE=1 cargo test -p polylogue-models --test it page`"
        );
    }
}

/// `page` with `table` between the marks `name`.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&begin).unwrap();
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}\n{table}\n{end}{after}")
}

fn providers() -> String {
    let mut table = "| name | API | key | other address |\n|---|---|---|---|\n".to_owned();
    for provider in Provider::all() {
        let Some(config) = config(provider) else { continue };
        let api = match config.reasoning_api {
            Some(other) => format!("{}, {} for reasoning", api_name(config.api), api_name(other)),
            None => api_name(config.api).to_owned(),
        };
        let (keys, urls) = (code(provider.key_variables()), code(provider.url_variables()));
        writeln!(table, "| `{}` | {api} | {keys} | {urls} |", provider.name()).unwrap();
    }
    table
}

fn code(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

const CAPABILITIES: [&str; 6] = ["tools", "schema", "vision", "documents", "audio", "thinking"];

fn capabilities() -> String {
    let mut table =
        format!("| provider | models | {} | prompt cache | not sent |\n", CAPABILITIES.join(" | "));
    table += &format!("|{}\n", "---|".repeat(CAPABILITIES.len() + 4));
    for provider in Provider::all().iter().filter(|provider| provider.name() == provider.table_name()) {
        let models: Vec<KnownModel> =
            KnownModel::all().filter(|model| model.provider == provider.name()).collect();
        if models.is_empty() {
            continue;
        }
        let with = |name: &str| models.iter().filter(|model| model.can.iter().any(|can| can == name)).count();
        let counts: Vec<String> = CAPABILITIES.iter().map(|name| with(name).to_string()).collect();
        let cached = models.iter().filter(|model| model.price().cached.is_some()).count();
        let (all, counts) = (models.len(), counts.join(" | "));
        let ignored = ignored(provider);
        writeln!(table, "| `{}` | {all} | {counts} | {cached} | {ignored} |", provider.name()).unwrap();
    }
    writeln!(table, "\nThe table is of {}.", KnownModel::table_date()).unwrap();
    table
}

/// The parameters that its API has no field for.
fn ignored(provider: &Provider) -> String {
    let Some(config) = config(provider) else { return String::new() };
    let Ok(endpoint) = Endpoint::new(config) else { return String::new() };
    let params: Params = serde_json::from_value(serde_json::json!({
        "temperature": 0.5, "top_p": 0.5, "top_k": 5, "seed": 1, "max_tokens": 9, "stop": ["x"],
        "effort": "low", "thinking": "summary", "tool_choice": "auto", "parallel_tool_calls": false,
    }))
    .unwrap();
    code(&endpoint.model("an-unknown-model").ignored(&params))
}

/// Its configuration, with an environment that has what its address consists of.
fn config(provider: &Provider) -> Option<Config> {
    let own = provider.url_variables().first().map(|name| (*name, "http://127.0.0.1:1"));
    let given =
        [("AWS_REGION", "eu-central-1"), ("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "l")];
    let plain = provider.config(&Env::of(given)).ok();
    plain.or_else(|| provider.config(&Env::of(given.into_iter().chain(own))).ok())
}

fn api_name(api: Api) -> &'static str {
    match api {
        Api::ChatCompletions => "chat completions",
        Api::Responses => "Responses",
        Api::Messages => "Messages",
        Api::Gemini => "Gemini",
        Api::Converse => "Converse",
        Api::Ollama => "Ollama",
        _ => panic!("{api:?} has no name on the page"),
    }
}
