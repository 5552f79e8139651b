//! Cost of `polylogue batch` with ten thousand rows, by script.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::job::Result;
use crate::start::program;
use crate::table;

/// 50 x 20 roles, and 10 tasks for each pair.
const LISTS: [(&str, usize); 3] = [("assistant", 50), ("user", 20), ("task", 10)];
const ROWS: usize = 10_000;
const TURNS: usize = 10;

/// Seconds, rows per second and peak memory, for several values of concurrency.
pub(crate) fn report() -> Result<()> {
    let program = program()?;
    let mut rows = Vec::new();
    for at_once in ["8", "64"] {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("team.yaml"), team()?)?;
        std::fs::write(folder.path().join("rows.yaml"), lists()?)?;
        let (time, peak) = run(&program, folder.path(), at_once)?;
        let records = std::fs::read_to_string(folder.path().join("out.jsonl"))?.lines().count();
        if records != ROWS {
            return Err(format!("there are {records} records of {ROWS} rows").into());
        }
        let seconds = time.as_secs_f64();
        let peak = peak.map_or("unknown".to_owned(), |kib| (kib / 1024).to_string());
        let per_second = 10_000.0 / seconds;
        rows.push(vec![
            format!("{at_once} at once"),
            format!("{seconds:.1}"),
            format!("{per_second:.0}"),
            peak,
        ]);
    }
    let title =
        "`polylogue batch`: 10,000 rows of 10 turns by script, logs in SQLite, each reply on disk; one run";
    table::print(title, &["", "seconds", "rows a second", "peak MiB"], &rows);
    Ok(())
}

fn team() -> Result<String> {
    let mut text = format!(
        "name: bench\nvars: {{assistant: a, user: b}}\nagents:\n  - {{name: Ann, system: 'You are {{{{assistant}}}}'}}\n  \
         - {{name: Bob, system: 'You are {{{{user}}}}'}}\nchat: {{participants: [Ann, Bob], stop: {{max_turns: {TURNS}}}}}\n\
         task: Talk\nscript:\n"
    );
    for turn in 0..TURNS {
        let who = if turn % 2 == 0 { "Ann" } else { "Bob" };
        writeln!(
            text,
            "  - {who}: This is what is said in turn {turn}, and it is about as long as a sentence is."
        )?;
    }
    Ok(text)
}

fn lists() -> Result<String> {
    let mut text = String::new();
    for (name, count) in LISTS {
        let values: Vec<String> = (0..count).map(|number| format!("{name} {number}")).collect();
        writeln!(text, "{name}: [{}]", values.join(", "))?;
    }
    Ok(text)
}

fn run(program: &Path, folder: &Path, at_once: &str) -> Result<(Duration, Option<u64>)> {
    let mut command = Command::new(program);
    command.current_dir(folder).env_remove("POLYLOGUE_STORE").stdin(Stdio::null()).stdout(Stdio::null());
    command.args(["batch", "team.yaml", "--cross", "rows.yaml", "-o", "out.jsonl", "--at-once", at_once]);
    let begun = Instant::now();
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let mut peak = None;
    let status = loop {
        peak = peak_kib(&child).or(peak);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    if !status.success() {
        return Err(format!("`polylogue batch` failed: {status}").into());
    }
    Ok((begun.elapsed(), peak))
}

/// The high-water mark of resident memory so far, which only Linux reports this way.
fn peak_kib(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}
