//! The log of what the program does, on standard error: `-v`, `-vv` and `RUST_LOG`.

use std::io::{self, Write};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::error::CliError;
use crate::screen::text::neutral;
use crate::stderr::print_note;

/// The beginning of the targets of this project's crates.
const TARGET: &str = "polylogue";

/// Starts the log, unless nothing is to be logged: then events cost next to nothing.
pub(crate) fn start(verbose: u8) -> Result<(), CliError> {
    let wished = std::env::var("RUST_LOG").unwrap_or_default();
    let Some(targets) = targets(verbose, &wished)? else { return Ok(()) };
    let lines = tracing_subscriber::fmt::layer().with_writer(|| Stderr).with_ansi(false);
    let subscriber = tracing_subscriber::registry().with(targets).with(lines);
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| CliError::failed(format!("the log cannot be started: {error}")))
}

/// What is logged; `None` if nothing is. `RUST_LOG` counts more than `-v`.
fn targets(verbose: u8, wished: &str) -> Result<Option<Targets>, CliError> {
    let level = match verbose {
        _ if !wished.trim().is_empty() => return of_variable(wished).map(Some),
        0 => return Ok(None),
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    Ok(Some(Targets::new().with_target(TARGET, level)))
}

/// What `RUST_LOG` says. A word that names neither a level nor a module of this project most likely is a level with a typo: it
/// would be read as a module, and nothing be logged.
fn of_variable(wished: &str) -> Result<Targets, CliError> {
    for part in wished.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let hint = "write a level (`error`, `warn`, `info`, `debug`, `trace`, `off`) or `MODULE=LEVEL`, such as \
                    `RUST_LOG=polylogue=debug`";
        if let Err(error) = part.parse::<Targets>() {
            return Err(CliError::usage(format!("`{part}` in `RUST_LOG` cannot be read: {error}")).hint(hint));
        }
        let is_level = part.parse::<LevelFilter>().is_ok();
        if !is_level && !part.contains('=') && !part.starts_with(TARGET) {
            print_note(&format!("warning: `{part}` in `RUST_LOG` is not a level, and is taken for a module"));
            print_note(&format!("  hint: {hint}"));
        }
    }
    wished.parse().map_err(|error| CliError::usage(format!("`RUST_LOG` cannot be read: {error}")))
}

/// Standard error, on which nothing that models, tools or servers write drives the terminal.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Where it cannot be written, such as to a terminal that was closed, the program continues without.
        let _ = io::stderr().write_all(neutral(&String::from_utf8_lossy(bytes)).as_bytes());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_log_counts_more_than_the_option_and_has_to_be_legal() {
        let logs = |verbose, wished: &str| {
            let targets = targets(verbose, wished).unwrap()?;
            let enabled = |level| targets.would_enable("polylogue_core::run", &level);
            Some([tracing::Level::INFO, tracing::Level::DEBUG, tracing::Level::TRACE].map(enabled))
        };
        assert_eq!(logs(0, ""), None);
        assert_eq!(logs(1, " "), Some([true, false, false]));
        assert_eq!(logs(2, ""), Some([true, true, false]));
        assert_eq!(logs(2, "warn"), Some([false, false, false]));
        assert_eq!(logs(0, "polylogue=trace"), Some([true, true, true]));
        assert!(targets(1, "polylogue=loud").is_err());
    }
}
