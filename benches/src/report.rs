//! The measurements, their order, and the output.

use crate::child::{command, instructions, measure};
use crate::job::{By, Cost, RUNS, Result, What};
use crate::server::{Server, Way};
use crate::{apis, appends, batch, cancel, checks, long_turn, sandbox, start, stores, table};

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
    calls(&server)?;
    pieces(&server)?;
    crowd(&server)?;
    groups(&server)?;
    start::report(&server)?;
    sandbox::report()?;
    batch::report()?;
    self::stores()?;
    long_turn::report()?;
    checks::report()?;
    linear()?;
    apis::report()?;
    cancel::report()?;
    start::size()
}

/// Measures each job [`RUNS`] times, in turn.
fn least(server: &Server, jobs: &[(Way, What)]) -> Result<Vec<Cost>> {
    let mut best: Vec<Option<Cost>> = vec![None; jobs.len()];
    for _ in 0..RUNS {
        for ((way, what), best) in jobs.iter().zip(&mut best) {
            let cost = measure(server, *way, *what)?;
            let least = best.map_or(cost, |best| Cost {
                cpu_us: best.cpu_us.min(cost.cpu_us),
                wall_us: best.wall_us.min(cost.wall_us),
                peak_kib: best.peak_kib.min(cost.peak_kib),
            });
            *best = Some(least);
        }
    }
    Ok(best.into_iter().flatten().collect())
}

fn calls(server: &Server) -> Result<()> {
    // About as many calls in each measurement.
    let shapes = [(50_u32, 20_u32), (5, 400)];
    let job = |by, (chats, calls): (u32, u32)| {
        (Way::Whole, What::Calls { by, chats: chats.into(), calls: calls.into() })
    };
    let mut columns = Vec::new();
    for shape in shapes {
        columns.push(least(server, &By::ALL.map(|by| job(by, shape)))?);
    }
    let mut rows = Vec::new();
    for (index, by) in By::ALL.into_iter().enumerate() {
        let mut row = vec![by.name().to_owned()];
        for ((chats, calls), costs) in shapes.iter().zip(&columns) {
            row.extend(next_to_first(costs, index, f64::from(chats * calls)));
        }
        row.push(kib_per_call(server, by)?);
        rows.push(row);
    }
    let head = ["", "20 calls", "ratio", "wall", "400 calls", "ratio", "wall", "KiB per request"];
    table::print("One chat of two agents: CPU and time per call, in microseconds", &head, &rows);
    Ok(())
}

/// The cost per unit of the `index`-th, its ratio to the first, and its time.
fn next_to_first(costs: &[Cost], index: usize, units: f64) -> Vec<String> {
    let (Some(first), Some(cost)) = (costs.first(), costs.get(index)) else { return Vec::new() };
    let ratio = cost.cpu_us / first.cpu_us;
    vec![
        format!("{:.0}", cost.cpu_us / units),
        format!("{ratio:.2}x"),
        format!("{:.0}", cost.wall_us / units),
    ]
}

/// The mean size of a request in a chat of 400 calls: shows that all send the same.
fn kib_per_call(server: &Server, by: By) -> Result<String> {
    server.forget();
    measure(server, Way::Whole, What::Calls { by, chats: 1, calls: 400 })?;
    let (requests, bytes) = server.bodies();
    Ok(bytes.checked_div(requests * 1024).unwrap_or_default().to_string())
}

/// Prints the time of an append to each store, and to Postgres with many conversations at once.
pub(crate) fn stores() -> Result<()> {
    stores::report()?;
    appends::report()
}

fn pieces(server: &Server) -> Result<()> {
    let shapes = [(Way::Burst, 40_u32), (Way::Paced, 1)];
    let who = [
        ("bare loop", By::Bare, false),
        ("Polylogue, log in memory", By::Memory, false),
        ("Polylogue, log in memory, watched", By::Memory, true),
        ("Polylogue, log in SQLite, watched", By::Sqlite, true),
    ];
    let mut columns = Vec::new();
    for (way, chats) in shapes {
        let jobs = who.map(|(_, by, watched)| (way, What::Pieces { by, chats: chats.into(), watched }));
        columns.push(least(server, &jobs)?);
    }
    let mut rows = Vec::new();
    for (index, (name, ..)) in who.iter().enumerate() {
        let mut row = vec![(*name).to_owned()];
        for ((_, chats), costs) in shapes.iter().zip(&columns) {
            row.extend(next_to_first(costs, index, f64::from(*chats)).into_iter().take(2));
        }
        rows.push(row);
    }
    let head = ["", "at once", "ratio", "1 ms apart", "ratio"];
    table::print("A reply in 2,000 pieces: CPU per reply, in microseconds", &head, &rows);
    Ok(())
}

fn crowd(server: &Server) -> Result<()> {
    let (chats, calls) = (1_000_u32, 10_u32);
    let crowd = |by| (Way::Slow, What::Crowd { by, chats: chats.into(), calls: calls.into() });
    let jobs = [(Way::Slow, What::Nothing), crowd(By::Memory), crowd(By::Sqlite)];
    let names = ["a process that does nothing", By::Memory.name(), By::Sqlite.name()];
    let row = |(name, cost): (&str, Cost)| {
        let peak = cost.peak_kib.map_or("unknown".to_owned(), |kib| format!("{}", kib / 1024));
        let per_call = cost.cpu_us / f64::from(chats * calls);
        vec![name.to_owned(), peak, format!("{per_call:.0}"), format!("{:.2}", cost.wall_us / 1e6)]
    };
    let rows: Vec<_> = names.into_iter().zip(least(server, &jobs)?).map(row).collect();
    let title = "1,000 chats at the same time, of 10 calls each that take 20 ms; 256 in flight at most";
    table::print(title, &["", "peak MiB", "CPU us per call", "seconds"], &rows);
    Ok(())
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
