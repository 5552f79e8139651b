//! Time from process start to the first request, time of whole runs that do little, and size of the program.

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

/// How often each program of the table of whole runs is started.
const STARTS: usize = 50;

/// The programs of that table.
const PROGRAMS: [&str; 4] =
    ["`true`", "`polylogue --version`", "`polylogue check TEAM`", "`polylogue run demo:trading-bot`"];

/// The team that is checked.
const CHECKED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../teams/trading-bot.yaml");

/// Prints the table of whole runs, and the size of the program.
pub(crate) fn alone() -> Result<()> {
    whole()?;
    size()
}

/// Prints the time of whole runs that do little, next to that of a program that does nothing.
pub(crate) fn whole() -> Result<()> {
    let (program, folder) = (program()?, tempfile::tempdir()?);
    let mut times: [Vec<Duration>; PROGRAMS.len()] = Default::default();
    for nth in 0..STARTS {
        for (command, times) in commands(&program, folder.path(), nth).into_iter().zip(&mut times) {
            times.push(to_end(command)?);
        }
    }
    times.iter_mut().for_each(|times| times.sort());
    let nothing = times.first().and_then(|times| median(times)).copied().unwrap_or_default();
    let rows: Vec<_> =
        PROGRAMS.iter().zip(&times).map(|(name, times)| compared(name, times, nothing)).collect();
    let title = format!("Milliseconds from the start of a program to its end, over {STARTS} starts");
    table::print(&title, &["", "least", "median", "to `true`"], &rows);
    Ok(())
}

/// The commands of [`PROGRAMS`], without anything of the user's environment: settings must not matter, nor keys of models.
fn commands(program: &Path, folder: &Path, nth: usize) -> [Command; PROGRAMS.len()] {
    let own = |args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args);
        command
    };
    let mut run = own(&["run", "demo:trading-bot", "--quiet", "--store"]);
    run.arg(folder.join(format!("{nth}.db")));
    let all = [Command::new("true"), own(&["--version"]), own(&["check", CHECKED]), run];
    let path = std::env::var_os("PATH").unwrap_or_default();
    all.map(|mut command| {
        command.current_dir(folder).env_clear().env("HOME", folder).env("PATH", &path);
        command
    })
}

fn to_end(mut command: Command) -> Result<Duration> {
    let begun = Instant::now();
    let output = command.stdin(Stdio::null()).output()?;
    let took = begun.elapsed();
    match output.status.success() {
        true => Ok(took),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(format!("{command:?} failed: {}: {said}", output.status).into())
        }
    }
}

/// A row, with the median as a multiple of `nothing`.
fn compared(name: &str, times: &[Duration], nothing: Duration) -> Vec<String> {
    let median = median(times).copied().unwrap_or_default();
    let ratio = format!("{:.1}x", median.as_secs_f64() / nothing.as_secs_f64());
    row(name, times).into_iter().chain([ratio]).collect()
}

/// The one in the middle of `times`, which are sorted.
fn median(times: &[Duration]) -> Option<&Duration> {
    times.get(times.len() / 2)
}

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
    vec![name.to_owned(), shown(times.first()), shown(median(times))]
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_compared_by_its_median_and_one_that_fails_is_an_error() {
        let times = [2, 6, 90].map(Duration::from_millis);
        assert_eq!(compared("it", &times, Duration::from_millis(4)), ["it", "2.0", "6.0", "1.5x"]);
        assert!(to_end(Command::new("true")).is_ok());
        let error = to_end(Command::new("false")).unwrap_err().to_string();
        assert!(error.contains("\"false\" failed: "), "{error}");
    }

    #[test]
    fn programs_start_without_the_environment_and_each_run_has_a_new_store() {
        let folder = Path::new("/folder");
        let [first, second] = [0, 1].map(|nth| commands(Path::new("polylogue"), folder, nth));
        let store = |commands: &[Command]| {
            let mut args: Vec<_> = commands.last()?.get_args().map(PathBuf::from).collect();
            args.pop()
        };
        assert_eq!(store(&first), Some(folder.join("0.db")));
        assert_eq!(store(&second), Some(folder.join("1.db")));
        for command in first {
            let names: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
            assert_eq!(names, ["HOME", "PATH"]);
        }
        assert!(Path::new(CHECKED).exists());
    }
}
