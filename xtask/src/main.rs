//! Chores of the repository. `cargo xtask` lists them.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

mod checks;
mod finding;
#[cfg(test)]
mod fixture;
mod layers_list;
mod lines;
mod manifest;
mod model_table;
mod modules;
mod repo;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use repo::Repo;

const USAGE: &str = "\
usage: cargo xtask <chore>

chores:
  layers [CRATE]                    lists the modules of a crate, or of all, from the bottom up
  lines [PATH]                      counts lines of code of the crates here or in another checkout, without tests
  tidy                              checks what neither rustc nor clippy checks: layers, lengths, printing, neutrality, links
  model-table FILE VERSION DATE     makes the table of models, with their prices, of a file of litellm";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["layers"] => layers(None),
        ["lines"] => lines(None),
        ["lines", path] => lines(Some(Path::new(path))),
        ["layers", name] => layers(Some(name)),
        ["model-table", file, version, date] => model_table(Path::new(file), version, date),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        other => {
            eprintln!("error: there is no chore `{}`\n\n{USAGE}", other.join(" "));
            ExitCode::from(2)
        }
    }
}

/// The repository that this program is part of.
fn open() -> Result<Repo, ExitCode> {
    open_at(&root())
}

/// The folder of the repository: Cargo names that of this program, also where the program was built for another clone.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&own).parent().unwrap_or(Path::new(".")).to_owned()
}

fn open_at(root: &Path) -> Result<Repo, ExitCode> {
    Repo::open(root).map_err(|error| {
        eprintln!("error: the repository cannot be read: {error}");
        ExitCode::from(2)
    })
}

fn layers(only: Option<&str>) -> ExitCode {
    let repo = match open() {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    match layers_list::list(&repo, only) {
        Some(list) => {
            print!("{list}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("error: there is no crate `{}`", only.unwrap_or_default());
            ExitCode::from(2)
        }
    }
}

fn lines(path: Option<&Path>) -> ExitCode {
    match path.map_or_else(open, open_at) {
        Ok(repo) => {
            print!("{}", lines::table(&repo));
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

fn tidy() -> ExitCode {
    let report = match open() {
        Ok(repo) => checks::tidy(&repo),
        Err(code) => return code,
    };
    for finding in &report.findings {
        println!("{finding}");
    }
    println!("{}", report.functions);
    match report.findings.len() {
        0 => {
            println!("tidy: {} files, nothing to find fault with", report.files);
            ExitCode::SUCCESS
        }
        flaws => {
            println!("tidy: {} files, {flaws} to put right", report.files);
            ExitCode::FAILURE
        }
    }
}

fn model_table(source: &Path, version: &str, date: &str) -> ExitCode {
    let place = root().join("crates/polylogue-models/data/models.jsonl");
    let made = model_table::table(source, version, date);
    match made.and_then(|table| std::fs::write(&place, table).map_err(|error| error.to_string())) {
        Ok(()) => {
            println!("wrote {}", place.display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
