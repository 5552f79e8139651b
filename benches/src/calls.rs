//! What a call costs next to the bare loop: CPU time, memory, and instructions, which callgrind counts.

use crate::child::{command, instructions, least, measure};
use crate::job::{By, Cost, PIECES, Result, What};
use crate::server::{Server, Way};
use crate::table;

/// Chats one after the other, and their calls: about as many calls in each measurement.
const SHAPES: [(u32, u32); 2] = [(50, 20), (5, 400)];

/// Prints the figures of calls alone.
pub(crate) fn report() -> Result<()> {
    let server = Server::start()?;
    times(&server)?;
    counted(&server)
}

/// Prints CPU time, time and memory.
pub(crate) fn times(server: &Server) -> Result<()> {
    calls(server)?;
    pieces(server)?;
    crowd(server)
}

/// Prints the instructions of a call, and of a reply in pieces. They do not depend on what else the machine does.
pub(crate) fn counted(server: &Server) -> Result<()> {
    let mut rows = Vec::new();
    for by in By::ALL {
        let mut row = vec![by.name().to_owned()];
        for (_, calls) in SHAPES {
            let calls = u64::from(calls);
            let chat = |chats| (Way::Whole, What::Calls { by, chats, calls });
            row.push(cell(each(server, calls, chat)?));
        }
        let reply = |chats| (Way::Burst, What::Pieces { by, chats, watched: by != By::Bare });
        row.push(cell(each(server, 1, reply)?));
        rows.push(row);
    }
    let title = format!("Instructions of a call, and of a watched reply in {PIECES} pieces");
    table::print(&title, &["", "20 calls", "400 calls", "pieces"], &rows);
    Ok(())
}

fn cell(count: Option<u64>) -> String {
    count.map_or("not counted: `valgrind` is missing".to_owned(), |count| count.to_string())
}

/// Instructions of a call: what two more chats cost, so that the process itself and its connection do not count.
fn each(server: &Server, calls: u64, job: impl Fn(u64) -> (Way, What)) -> Result<Option<u64>> {
    let count = |chats| {
        let (way, what) = job(chats);
        instructions(&command(server.base_url(way), what)?)
    };
    let (Some(less), Some(more)) = (count(1)?, count(3)?) else { return Ok(None) };
    Ok(Some(more.saturating_sub(less) / (2 * calls)))
}

fn calls(server: &Server) -> Result<()> {
    let job = |by, (chats, calls): (u32, u32)| {
        (Way::Whole, What::Calls { by, chats: chats.into(), calls: calls.into() })
    };
    let mut columns = Vec::new();
    for shape in SHAPES {
        columns.push(least(server, &By::ALL.map(|by| job(by, shape)))?);
    }
    let mut rows = Vec::new();
    for (index, by) in By::ALL.into_iter().enumerate() {
        let mut row = vec![by.name().to_owned()];
        for ((chats, calls), costs) in SHAPES.iter().zip(&columns) {
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
