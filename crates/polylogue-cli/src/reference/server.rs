//! The tables of `docs/server.md`: options, limits and routes. That of metrics is in the tests of the server, which has them when it runs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::CommandFactory;
use polylogue_server::{ServerLimits, openapi};
use polylogue_test::generated::check_part;
use serde_json::{Map, Value};
use syn::Item;

use super::events::docs;
use super::row;
use crate::args::Cli;

fn check(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.md");
    let hint = "regenerate it with `UPDATE=1 cargo nextest run -p polylogue-cli --bins -E 'test(reference)'`";
    check_part(&file, name, text, hint);
}

/// All at once: each is written into the same file.
#[test]
fn the_tables_of_the_server_are_those_of_the_program() {
    check("options", &options());
    check("limits", &limits());
    check("routes", &routes());
}

/// The options that `serve` has and `run` has not.
fn options() -> String {
    let mut program = Cli::command();
    program.build();
    let of = |name: &str| program.find_subcommand(name).unwrap().get_arguments();
    let of_run: BTreeSet<_> = of("run").filter_map(clap::Arg::get_long).collect();
    let is_own = |arg: &&clap::Arg| {
        let is_positional = arg.is_positional();
        is_positional || arg.get_long().is_some_and(|long| !of_run.contains(long))
    };
    let rows: String = of("serve").filter(is_own).map(row).collect();
    format!("| option | meaning |\n|---|---|\n{rows}")
}

fn limits() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../polylogue-server/src/limits.rs");
    let file = syn::parse_file(&fs::read_to_string(source).unwrap()).unwrap();
    let limits = file.items.into_iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == "ServerLimits" => Some(item.fields),
        _ => None,
    });
    let defaults = serde_json::to_value(ServerLimits::default()).unwrap();
    let mut table = "| limit | default | meaning |\n|---|---|---|\n".to_owned();
    for field in &limits.unwrap() {
        let name = field.ident.as_ref().unwrap().to_string();
        let (default, meaning) = (shown(&name, &defaults[&name]), docs(&field.attrs));
        let _ = writeln!(table, "| `{name}` | {default} | {} |", meaning.trim_end_matches('.'));
    }
    table
}

/// A default with its unit.
fn shown(name: &str, value: &Value) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = KIB * KIB;
    match (value.as_u64(), value.as_f64()) {
        (Some(bytes), _) if name.ends_with("_bytes") && bytes >= MIB => format!("{} MiB", bytes / MIB),
        (Some(bytes), _) if name.ends_with("_bytes") => format!("{} KiB", bytes / KIB),
        (Some(number), _) => number.to_string(),
        (None, seconds) => format!("{} s", seconds.unwrap()),
    }
}

fn routes() -> String {
    let mut table = "| route | scope | | parameters and fields |\n|---|---|---|---|\n".to_owned();
    for (path, operations) in openapi()["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let scope = operation["x-polylogue-scope"].as_str().unwrap_or("none");
            let (does, takes) = (operation["summary"].as_str().unwrap(), takes(operation));
            let method = method.to_uppercase();
            let _ =
                writeln!(table, "| `{method} {path}` | {scope} | {} | {takes} |", does.replace('|', "\\|"));
        }
    }
    table
}

/// The parameters of its query, with a question mark, and the fields of its body.
fn takes(operation: &Value) -> String {
    let query = operation["parameters"].as_array().unwrap().iter().filter(|one| one["in"] == "query");
    let query = query.map(|one| format!("`?{}`", one["name"].as_str().unwrap()));
    let none = Map::new();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"]["properties"];
    let body = body.as_object().unwrap_or(&none).keys().map(|name| format!("`{name}`"));
    query.chain(body).collect::<Vec<_>>().join(", ")
}
