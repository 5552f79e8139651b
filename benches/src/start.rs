//! Time from process start to the first request, and size of the program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::command;
use crate::job::{By, RUNS, Result, What};
use crate::server::{Server, Way};
use crate::table;

/// The shortest possible team.
const TEAM: &str = "\
name: bench
model: compatible:bench
agents:
  - {name: Ann, system: You are one of two who talk.}
  - {name: Bob, system: You are one of two who talk.}
chat:
  pattern: round_robin
  participants: [Ann, Bob]
  stop: {max_turns: 2}
";

/// Time from process start to the first request, as the endpoint sees it.
pub(crate) fn report(server: &Server) -> Result<()> {
    let mut rows = Vec::new();
    for by in By::ALL {
        let what = What::Calls { by, chats: 0, calls: 2 };
        let times = times(server, || command(server.base_url(Way::Whole), what))?;
        rows.push(row(by.name(), &times));
    }
    match program().and_then(|program| of_program(server, &program)) {
        Ok(of_program) => rows.extend(of_program),
        Err(error) => rows.push(vec![format!("`polylogue run`: {error}")]),
    }
    let title = "Milliseconds from the start of a program to its first request";
    table::print(title, &["", "least", "median"], &rows);
    Ok(())
}

fn of_program(server: &Server, program: &Path) -> Result<Vec<Vec<String>>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("team.yaml"), TEAM)?;
    let run = |store: &str| {
        let mut command = Command::new(program);
        command.current_dir(&folder).args(["run", "team.yaml", "talk", "--quiet", "--store", store]);
        // The endpoint needs no key, and the user's own settings must not matter.
        command.env("OPENAI_BASE_URL", server.base_url(Way::Whole)).env("OPENAI_API_KEY", "none");
        command
    };
    let mut fresh = 0..;
    let new = times(server, || Ok(run(&format!("{}.db", fresh.next().unwrap_or(0)))))?;
    let same = times(server, || Ok(run("same.db")))?;
    Ok(vec![row("`polylogue run`, new database", &new), row("`polylogue run`, same database", &same)])
}

/// Four times [`RUNS`] times, in order.
fn times(server: &Server, mut command: impl FnMut() -> Result<Command>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..4 * RUNS {
        times.push(to_first_request(server, &mut command()?)?);
    }
    times.sort();
    Ok(times)
}

fn row(name: &str, times: &[Duration]) -> Vec<String> {
    let shown = |time: Option<&Duration>| {
        time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
    };
    vec![name.to_owned(), shown(times.first()), shown(times.get(times.len() / 2))]
}

fn to_first_request(server: &Server, command: &mut Command) -> Result<Duration> {
    server.forget();
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let silent =
        || format!("no request came: {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(server.first().ok_or_else(silent)?.duration_since(begun))
}

/// The size of the program.
pub(crate) fn size() -> Result<()> {
    let bytes = std::fs::metadata(program()?)?.len();
    println!("The `polylogue` program: {}.{} MiB", bytes >> 20, ((bytes % (1 << 20)) * 10) >> 20);
    Ok(())
}

/// The `polylogue` program, built like this one.
pub(crate) fn program() -> Result<PathBuf> {
    // Set by `cargo run`. Otherwise the existing program is used.
    if let Ok(cargo) = std::env::var("CARGO") {
        let built =
            Command::new(cargo).args(["build", "--release", "--package", "polylogue-cli"]).status()?;
        if !built.success() {
            return Err("the `polylogue` program could not be built".into());
        }
    }
    let name = format!("polylogue{}", std::env::consts::EXE_SUFFIX);
    let program = std::env::current_exe()?.with_file_name(name);
    if program.exists() { Ok(program) } else { Err(format!("there is no `{}`", program.display()).into()) }
}
