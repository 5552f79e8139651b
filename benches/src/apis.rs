//! What a call costs by each API, next to OpenAI's chat completions: CPU time, and instructions, which callgrind counts.

use polylogue_test::server::{Answer, Behavior, Playbook, Server};

use crate::child::{command, cost, instructions};
use crate::dialect::Dialect;
use crate::job::{RUNS, Result, What};
use crate::server::WORDS;
use crate::table;

/// Model calls of a chat.
const CALLS: u64 = 20;

/// Pieces of a streamed reply.
const PIECES: u64 = 500;

/// Chats of which the CPU time is measured.
const CHATS: u64 = 50;

/// Prints the CPU time of a call in a chat of [`CALLS`]; its instructions, and those of a reply streamed in [`PIECES`] deltas.
pub(crate) fn report() -> Result<()> {
    time()?;
    counted()
}

/// The CPU time. Instructions do not tell it where a processor has its own for the work, as for the digests of signatures:
/// valgrind runs these without.
fn time() -> Result<()> {
    let server = |_| Server::bind(([127, 0, 0, 1], 0).into(), Behavior::from(Playbook::always(WORDS)));
    let servers = Dialect::ALL.map(server).into_iter().collect::<std::result::Result<Vec<_>, _>>()?;
    let mut best = Dialect::ALL.map(|_| f64::INFINITY);
    for _ in 0..RUNS {
        for ((dialect, server), best) in Dialect::ALL.into_iter().zip(&servers).zip(&mut best) {
            let what = What::Api { dialect, chats: CHATS, calls: CALLS, stream: false };
            *best = best.min(cost(command(server.root_url(), what)?)?.cpu_us);
        }
    }
    let first = best.first().copied().unwrap_or(f64::NAN);
    let row = |(dialect, best): (Dialect, f64)| {
        let call = best / f64::from(u32::try_from(CHATS * CALLS).unwrap_or(u32::MAX));
        vec![dialect.name().to_owned(), format!("{call:.1} us"), format!("{:.2}x", best / first)]
    };
    let rows: Vec<_> = Dialect::ALL.into_iter().zip(best).map(row).collect();
    table::print(&format!("CPU time of a call in a chat of {CALLS}"), &["", "call", "ratio"], &rows);
    Ok(())
}

/// The instructions.
fn counted() -> Result<()> {
    let mut counts = Vec::new();
    for dialect in Dialect::ALL {
        let Some(call) = call(dialect)? else {
            println!("What a call costs by each API was not counted: `valgrind` is missing\n");
            return Ok(());
        };
        let streamed = streamed(dialect)?.unwrap_or_default();
        counts.push((dialect, call, streamed));
    }
    let Some(&(_, first_call, first_streamed)) = counts.first() else { return Ok(()) };
    let row = |&(dialect, call, streamed): &(Dialect, u64, u64)| {
        let cells = [(call, first_call), (streamed, first_streamed)];
        let cells =
            cells.map(|(count, first)| [count.to_string(), format!("{:.2}x", table::ratio(count, first))]);
        [vec![dialect.name().to_owned()], cells.concat()].concat()
    };
    let rows: Vec<_> = counts.iter().map(row).collect();
    let title = format!("Instructions of a call in a chat of {CALLS}, and of a reply in {PIECES} pieces");
    table::print(&title, &["", "call", "ratio", "streamed", "ratio"], &rows);
    Ok(())
}

/// Instructions of a call, `None` without valgrind.
fn call(dialect: Dialect) -> Result<Option<u64>> {
    each(dialect, CALLS, Answer::text(WORDS), |chats| What::Api {
        dialect,
        chats,
        calls: CALLS,
        stream: false,
    })
}

/// Instructions of a streamed reply, `None` without valgrind.
fn streamed(dialect: Dialect) -> Result<Option<u64>> {
    let pieces = usize::try_from(PIECES)?;
    let answer = Answer::text("word ".repeat(pieces)).pieces(pieces);
    each(dialect, 1, answer, |chats| What::Api { dialect, chats, calls: 1, stream: true })
}

/// Instructions of a call: what two more chats cost, so that the process itself and the connection do not count.
fn each(dialect: Dialect, calls: u64, answer: Answer, what: impl Fn(u64) -> What) -> Result<Option<u64>> {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), Behavior::from(Playbook::always(answer)))?;
    let count = |chats| instructions(&command(server.root_url(), what(chats))?);
    let (Some(less), Some(more)) = (count(1)?, count(3)?) else { return Ok(None) };
    match server.violations().first() {
        Some(violation) => {
            Err(format!("{} sends what its server refuses: {violation}", dialect.name()).into())
        }
        None => Ok(Some(more.saturating_sub(less) / (2 * calls))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chats;

    #[tokio::test]
    async fn every_api_is_asked_as_its_provider_wants() {
        for (dialect, stream) in
            Dialect::ALL.into_iter().flat_map(|dialect| [(dialect, false), (dialect, true)])
        {
            let server = Server::start(Playbook::always(WORDS)).await;
            chats::by_api(&server.root_url(), dialect, 1, 3, stream).await.unwrap();
            assert_eq!(server.violations(), [""; 0], "{dialect:?}");
            // Two to warm up.
            assert_eq!(server.requests().len(), 5, "{dialect:?}");
        }
    }
}
