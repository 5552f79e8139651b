//! Cost of Polylogue: `cargo run --release -p polylogue-bench` prints it as tables.
//!
//! The endpoint runs in this process and every measurement in a new one, so that neither the endpoint's CPU and memory
//! nor those of an earlier measurement are counted. The reference is a loop over hyper that keeps its serialized
//! history and appends to it: the least possible work.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

mod apis;
mod appends;
mod bare;
mod batch;
mod calls;
mod cancel;
mod chats;
mod checks;
mod child;
mod cluster;
mod dialect;
mod groups;
mod job;
mod long_turn;
mod meter;
mod report;
mod sandbox;
mod scripted;
mod serve;
mod server;
mod start;
mod stores;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => report::all(),
        ["apis"] => report::optimized().and_then(|()| apis::report()),
        ["calls"] => report::optimized().and_then(|()| calls::report()),
        ["check"] => report::optimized().and_then(|()| checks::report()),
        ["cancel"] => report::optimized().and_then(|()| cancel::report()),
        ["long-turn"] => report::optimized().and_then(|()| long_turn::report()),
        ["start"] => report::optimized().and_then(|()| start::alone()),
        ["stores"] => report::optimized().and_then(|()| report::stores()),
        ["serve"] => report::optimized().and_then(|()| serve::report(10_000)),
        ["serve", most] => match most.parse() {
            Ok(most) => report::optimized().and_then(|()| serve::report(most)),
            Err(_) => Err("`serve` takes a number of conversations".into()),
        },
        ["cluster", options @ ..] => cluster::Options::parse(options)
            .and_then(|options| report::optimized().and_then(|()| cluster::report(&options))),
        [cluster::WORKER, url, latency] => cluster::work(url, latency),
        [child::MEASURE, job] => child::answer(job),
        [job::HOST, folder] => serve::host(folder),
        _ => {
            const USAGE: &str = "usage: cargo run --release -p polylogue-bench \
                [apis|calls|cancel|check|cluster [PROCESSES,... [SECONDS [RUNS]]]|long-turn|serve [CONVERSATIONS]|start|stores]";
            Err(USAGE.into())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
