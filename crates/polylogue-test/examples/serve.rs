//! Runs the scripted chat-completions server, for a person or a program to point a client at.
//!
//! ```text
//! serve [--script FILE | --echo | --text TEXT] [--port N] [--latency-ms N] [--misbehave KIND]...
//!
//!   --script FILE     answer from a JSON script; see `Playbook::from_script`
//!   --echo            repeat the last message (what is done when nothing else is asked for)
//!   --text TEXT       give always this answer
//!   --port N          listen on 127.0.0.1:N; default: a free port
//!   --latency-ms N    wait so long before each answer
//!   --misbehave KIND  deviate in every answer, for instance `no-usage` or `stall=5000`; may be repeated
//!   --history RULES   `strict` (default), `loose` or `any`: how requests are judged
//!   --record FILE     write all requests to FILE, a JSON object per line, when standard input ends
//!   --list            print the kinds of misbehavior and end
//!   --help            print this and end
//! ```
//!
//! The first line on standard output is the base URL. Requests that break a rule are reported on standard error as
//! they come. It runs until it is killed, or with `--record` until standard input ends.
//!
//! ```sh
//! cargo run -p polylogue-test --example serve -- --echo --port 8080 --misbehave crlf --misbehave pace=50
//! curl http://127.0.0.1:8080/v1/chat/completions -H 'content-type: application/json' \
//!   -d '{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hello to you"}]}'
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use polylogue_test::server::{Answer, Behavior, History, Playbook, Quirk, Received, Server};
use serde_json::json;

/// How often it looks for new violations.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the command line asks for.
enum Wish {
    Serve(Listen, Box<Behavior>),
    List,
    Help,
}

/// Where it listens, and where it writes the requests it got.
struct Listen {
    port: u16,
    record: Option<PathBuf>,
}

fn main() -> ExitCode {
    match wish(std::env::args().skip(1)) {
        Ok(Wish::Serve(listen, behavior)) => serve(&listen, *behavior),
        Ok(Wish::List) => {
            Quirk::CATALOG.iter().for_each(|entry| println!("{:24}{:?}", entry.name, entry.quirk));
            ExitCode::SUCCESS
        }
        Ok(Wish::Help) => {
            println!("{}", help());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}\nhint: `serve --help` lists the options");
            ExitCode::from(2)
        }
    }
}

/// The usage from this file's own documentation.
fn help() -> String {
    let lines = include_str!("serve.rs").lines().map(|line| line.trim_start_matches("//!"));
    let usage =
        lines.skip_while(|line| !line.contains("```text")).skip(1).take_while(|line| !line.contains("```"));
    usage.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn serve(listen: &Listen, behavior: Behavior) -> ExitCode {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port));
    // A record is of every request, which a forgetful server drops.
    let behavior = if listen.record.is_some() { behavior } else { behavior.forgetful() };
    let server = match Server::bind(address, behavior) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: cannot listen on `{address}`: {error}\nhint: choose another `--port`, or none");
            return ExitCode::FAILURE;
        }
    };
    println!("{}", server.base_url());
    match &listen.record {
        None => report(&server),
        Some(file) => record(&server, file),
    }
}

/// Reports violations as they come, until the process is killed.
fn report(server: &Server) -> ! {
    let mut printed = 0;
    loop {
        std::thread::sleep(LOOK_EVERY);
        let violations = server.violations();
        violations.iter().skip(printed).for_each(|violation| eprintln!("{violation}"));
        printed = violations.len();
    }
}

/// Waits for the end of standard input, then writes every request as a line of JSON.
fn record(server: &Server, file: &Path) -> ExitCode {
    let waited = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    let requests = server.requests();
    let line = |received: &Arc<Received>| json!({"path": received.path, "body": received.body}).to_string();
    let lines: String = requests.iter().map(|received| line(received) + "\n").collect();
    server.violations().iter().for_each(|violation| eprintln!("{violation}"));
    match waited.and_then(|_| std::fs::write(file, lines)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write `{}`: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}

fn wish(mut args: impl Iterator<Item = String>) -> Result<Wish, String> {
    let mut playbook = None;
    let mut listen = Listen { port: 0, record: None };
    let mut latency = Duration::ZERO;
    let mut history = History::Strict;
    let mut quirks: Vec<Quirk> = Vec::new();
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("`{option}` needs a value"));
        match option.as_str() {
            "--help" | "-h" => return Ok(Wish::Help),
            "--list" => return Ok(Wish::List),
            "--echo" => choose(&mut playbook, Playbook::echo())?,
            "--text" => choose(&mut playbook, Playbook::always(Answer::text(value()?)))?,
            "--script" => choose(&mut playbook, script(&value()?)?)?,
            "--port" => listen.port = number(&option, &value()?)?,
            "--record" => listen.record = Some(value()?.into()),
            "--latency-ms" => latency = Duration::from_millis(number(&option, &value()?)?),
            "--history" => history = rules(&value()?)?,
            "--misbehave" => quirks.push(value()?.parse()?),
            _ => return Err(format!("there is no option `{option}`")),
        }
    }
    let behavior = Behavior::from(playbook.unwrap_or_else(Playbook::echo)).latency(latency).history(history);
    Ok(Wish::Serve(listen, Box::new(quirks.into_iter().fold(behavior, Behavior::with))))
}

fn choose(chosen: &mut Option<Playbook>, playbook: Playbook) -> Result<(), String> {
    match chosen.replace(playbook) {
        None => Ok(()),
        Some(_) => Err("`--script`, `--echo` and `--text` exclude each other".into()),
    }
}

fn script(path: &str) -> Result<Playbook, String> {
    let json = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    Playbook::from_script(&json).map_err(|error| format!("`{path}` is not a script: {error}"))
}

fn number<N: std::str::FromStr>(option: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| format!("`{option}` does not take `{value}`"))
}

fn rules(value: &str) -> Result<History, String> {
    match value {
        "strict" => Ok(History::Strict),
        "loose" => Ok(History::Loose),
        "any" => Ok(History::Any),
        _ => Err(format!("`--history` does not take `{value}`: it is `strict`, `loose` or `any`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish_of(line: &str) -> Result<Wish, String> {
        wish(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_become_a_behavior() {
        let line = "--echo --port 8080 --latency-ms 50 --history loose --misbehave crlf --misbehave stall=5";
        let Ok(Wish::Serve(listen, behavior)) = wish_of(line) else { panic!("it serves") };
        let shown = format!("{behavior:?}");
        assert_eq!((listen.port, listen.record), (8080, None));
        for part in ["latency: 50ms", "history: Loose", "quirks: [Crlf, Stall(5ms)]"] {
            assert!(shown.contains(part), "{shown}");
        }
    }

    #[test]
    fn wrong_options_are_refused() {
        for (line, why) in [
            ("--nonsense", "no option `--nonsense`"),
            ("--port", "`--port` needs a value"),
            ("--port 70000", "`--port` does not take `70000`"),
            ("--echo --text x", "exclude each other"),
            ("--misbehave oddly", "no misbehavior `oddly`"),
            ("--history lax", "does not take `lax`"),
            ("--record", "`--record` needs a value"),
            ("--script /nowhere/script.json", "cannot read `/nowhere/script.json`"),
        ] {
            let error = wish_of(line).err().unwrap();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn the_help_is_the_documentation() {
        let help = help();
        for option in [
            "--script", "--echo", "--text", "--port", "--latency-ms", "--misbehave", "--history", "--record",
            "--list",
        ] {
            assert!(help.contains(option), "{help}");
        }
        assert!(help.starts_with("serve [") && !help.contains("```"));
    }
}
