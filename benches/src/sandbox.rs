//! Cost of the sandbox per program, from start to end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use polylogue_sandbox::{Cancellation, Program, Sandbox};

use crate::job::{RUNS, Result};
use crate::table;

/// Programs: one that does nothing, an interpreter that starts, and one with many system calls.
const PROGRAMS: [(&str, &[&str]); 3] = [
    ("`true`", &["true"]),
    ("`python3`, an empty program", &["python3", "-c", "pass"]),
    (
        "`python3`, 200,000 system calls",
        &["python3", "-c", "import os\nfor _ in range(200_000): os.getppid()"],
    ),
];

/// Milliseconds from start to end, without and with the sandbox.
pub(crate) fn report() -> Result<()> {
    let work = tempfile::tempdir()?;
    let sandbox = Sandbox::enclosed(work.path());
    let mut rows = Vec::new();
    for (name, words) in PROGRAMS {
        // In turn, so that disturbances affect both.
        let (mut bare, mut enclosed) = (Vec::new(), Vec::new());
        for _ in 0..4 * RUNS {
            bare.push(run_bare(words)?);
            match run_enclosed(&sandbox, words) {
                Ok(time) => enclosed.push(time),
                Err(error) => {
                    println!("The sandbox cannot be measured: {error}\n");
                    return Ok(());
                }
            }
        }
        let [bare_least, bare_median] = least_and_median(&mut bare);
        let [enclosed_least, enclosed_median] = least_and_median(&mut enclosed);
        rows.push(vec![name.to_owned(), bare_least, enclosed_least, bare_median, enclosed_median]);
    }
    let head = ["", "bare, least", "sandbox", "bare, median", "sandbox"];
    table::print(
        "Milliseconds from the start of a program to its end, without and within a sandbox",
        &head,
        &rows,
    );
    Ok(())
}

fn run_bare(words: &[&str]) -> Result<Duration> {
    let (first, rest) = words.split_first().ok_or("no program")?;
    let begun = Instant::now();
    // The search path in the sandbox, too.
    let path = "/usr/local/bin:/usr/bin:/bin";
    let output = Command::new(first).args(rest).env("PATH", path).stdin(Stdio::null()).output()?;
    if output.status.success() { Ok(begun.elapsed()) } else { Err(format!("`{first}` failed").into()) }
}

fn run_enclosed(sandbox: &Sandbox, words: &[&str]) -> Result<Duration> {
    let (first, rest) = words.split_first().ok_or("no program")?;
    let program = rest.iter().fold(Program::new(first), |program, word| program.arg(word));
    let ended = sandbox.run(&program, &Cancellation::new())?;
    if ended.how.code() == 0 { Ok(ended.took) } else { Err(format!("`{first}`: {}", ended.how).into()) }
}

/// The minimum and the median.
fn least_and_median(times: &mut [Duration]) -> [String; 2] {
    times.sort();
    [times.first(), times.get(times.len() / 2)]
        .map(|time| time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64() * 1e3)))
}
