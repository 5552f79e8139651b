//! The tables of docs/models.md are those of the code. `UPDATE=1 cargo test -p polylogue-models --test it page` writes them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use polylogue_core::{Model, Params};
use polylogue_models::{Api, Config, Endpoint, Env, KnownModel, MediaLimits, MediaLimitsRow, Provider};

#[test]
fn the_tables_of_the_page_on_models_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models.md");
    let page = fs::read_to_string(&path).unwrap();
    let current = with_table(&page, "providers", &providers());
    let current = with_table(&current, "capabilities", &capabilities());
    let current = with_table(&current, "limits", &limits());
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

/// What providers take of pictures and documents at most.
fn limits() -> String {
    let mut table = "| provider | models | a picture | pictures | a PDF | documents | a request |\n\
                     |---|---|---|---|---|---|---|\n"
        .to_owned();
    for row in MediaLimits::rows() {
        let MediaLimits { picture_side, pictures, many_pictures, in_message, all_document_bytes, .. } =
            row.limits;
        let MediaLimits {
            picture_bytes, pdf_bytes, document_bytes, pdf_pages, all_pages, request_bytes, ..
        } = row.limits;
        let side = picture_side.map(|side| format!("{side} pixels on a side"));
        let many = many_pictures.map(|(few, side)| format!("with more than {few}, {side} pixels on a side"));
        let pictures = pictures.map(|count| format!("{count} in a request"));
        let in_message = in_message.map(|(pictures, documents)| {
            (format!("{pictures} in a message"), format!("{documents} in a message"))
        });
        let (some_pictures, some_documents) = in_message.unzip();
        let each = document_bytes.map(|bytes| format!("{} each", megabytes(bytes)));
        let all = all_document_bytes.map(|bytes| format!("{} in a request", megabytes(bytes)));
        let pages = |count: u64| format!("{count} pages");
        let in_all = all_pages.map(|count| format!("{count} pages in a request"));
        let cells = [
            joined([picture_bytes.map(megabytes), side]),
            joined([some_pictures.or(pictures), many]),
            joined([pdf_bytes.map(megabytes), pdf_pages.map(pages)]),
            joined([each, some_documents.or(all), in_all]),
            joined([request_bytes.map(megabytes)]),
        ];
        let (provider, models) = (row.provider, models_of(row));
        writeln!(table, "| `{provider}` | {models} | {} |", cells.join(" | ")).unwrap();
    }
    table
}

fn joined(cells: impl IntoIterator<Item = Option<String>>) -> String {
    cells.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Which models a row is for, but for those of rows before it.
fn models_of(row: &MediaLimitsRow) -> String {
    let rows = MediaLimits::rows().iter().filter(|other| other.provider == row.provider);
    match (row.models, row.window) {
        ("", 0) if rows.count() == 1 => "all".to_owned(),
        ("", 0) => "all others".to_owned(),
        ("", window) => format!("with a window of {window} tokens or more"),
        (part, 0) => format!("`{part}`"),
        (part, window) => format!("`{part}` with a window of {window} tokens or more"),
    }
}

/// As providers write it.
fn megabytes(bytes: u64) -> String {
    let hundredths = (bytes * 100) >> 20;
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{} MB", text.trim_end_matches('0').trim_end_matches('.'))
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
