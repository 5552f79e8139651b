//! The measurements, their order, and the output.

use crate::child::{command, instructions, least};
use crate::job::{Cost, RUNS, Result, What};
use crate::server::{Server, Way};
use crate::{apis, appends, batch, calls, cancel, checks, long_turn, sandbox, start, stores, table};

/// Refuses to measure a debug build.
pub(crate) fn optimized() -> Result<()> {
    if cfg!(debug_assertions) {
        return Err("this is a debug build, whose figures mean nothing\n  hint: add `--release`".into());
    }
    Ok(())
}

/// Measures and prints everything.
pub(crate) fn all() -> Result<()> {
    optimized()?;
    let server = Server::start()?;
    println!(
        "Each figure is the least of {RUNS} runs, each in a fresh process; the endpoint is another process.\n"
    );
    calls::times(&server)?;
    groups(&server)?;
    start::report(&server)?;
    start::whole()?;
    sandbox::report()?;
    batch::report()?;
    stores::report()?;
    appends::print()?;
    long_turn::report()?;
    checks::print()?;
    linear()?;
    calls::counted(&server)?;
    apis::report()?;
    cancel::report()?;
    start::size()
}

/// Prints the time of an append to each store, and to Postgres with many conversations at once. A goal that is missed is an error.
pub(crate) fn stores() -> Result<()> {
    stores::report()?;
    appends::report()
}

fn groups(server: &Server) -> Result<()> {
    let (groups, rounds) = (1_000_u32, 50_u32);
    let group = |picked| (Way::Whole, What::Groups { groups: groups.into(), rounds: rounds.into(), picked });
    let jobs = [(Way::Whole, What::Nothing), group(false), group(true)];
    let names = ["a process that does nothing", "round robin", "a model chooses each speaker"];
    let row = |(name, cost): (&str, Cost)| {
        let peak = cost.peak_kib.map_or("unknown".to_owned(), |kib| format!("{}", kib / 1024));
        let per_turn = cost.cpu_us / f64::from(groups * rounds);
        let seconds = |us: f64| format!("{:.2}", us / 1e6);
        vec![name.to_owned(), peak, format!("{per_turn:.1}"), seconds(cost.cpu_us), seconds(cost.wall_us)]
    };
    let rows: Vec<_> = names.into_iter().zip(least(server, &jobs)?).map(row).collect();
    let title =
        "1,000 groups of four at the same time, of 50 rounds each, without an endpoint; logs in memory";
    table::print(title, &["", "peak MiB", "CPU us per turn", "CPU seconds", "seconds"], &rows);
    Ok(())
}

/// Instructions of long chats: twice the messages should cost twice as much.
fn linear() -> Result<()> {
    let title = "One long chat without an endpoint: instructions, counted by callgrind";
    let (short, long) = (long_chat(5_000)?, long_chat(10_000)?);
    let rows = match (short, long) {
        (Some(short), Some(long)) => vec![
            vec!["5,000 messages".to_owned(), format!("{short}"), String::new()],
            vec![
                "10,000 messages".to_owned(),
                format!("{long}"),
                format!("{:.3}x", table::ratio(long, short)),
            ],
        ],
        _ => vec![vec!["not counted: `valgrind` is missing".to_owned()]],
    };
    table::print(title, &["", "instructions", "ratio"], &rows);
    Ok(())
}

/// `None` without valgrind.
fn long_chat(count: u64) -> Result<Option<u64>> {
    instructions(&command(String::new(), What::Messages { count })?)
}
