//! `polylogue dev`: a cluster of one command, for development: a database, workers, and a server with its page.

mod database;
mod guarded;

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use tokio::time::sleep;

use self::database::LocalDatabase;
use self::guarded::Guarded;
use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::signals::Signals;
use crate::stderr::print_note;
use crate::{args, place};

/// How often it is checked that all processes run.
const CHECK: Duration = Duration::from_millis(300);

/// How long workers and the server get to end: a worker lets steps end for up to 25 seconds.
const FAREWELL: Duration = Duration::from_secs(35);

/// The most workers that it starts: each is a process.
const MOST_WORKERS: u64 = 64;

/// How many connections a worker has at most.
const OF_WORKER: u64 = 8;

/// How many connections are left for the server and for commands in other terminals.
const OF_OTHERS: u64 = 84;

pub(crate) async fn run(cli: &args::Cli, args: &args::dev::Dev) -> Result<Exit, CliError> {
    if let Some(option) = place::PlaceOption::of_store(&cli.named_store()).options(false).next() {
        let what = format!("`dev` has a database of its own, and `{option}` names another one");
        return Err(CliError::usage(what)
            .hint("leave out `--store`, or start `polylogue worker` and `polylogue serve`"));
    }
    if args.workers > MOST_WORKERS {
        let what = format!("`dev` starts at most {MOST_WORKERS} workers");
        return Err(CliError::usage(what).hint("each of them runs up to 200 conversations at the same time"));
    }
    let mut signals = Signals::new()?.with_hangup()?;
    let folder = args.postgres.as_ref().and_then(|folder| folder.as_deref());
    let mut database = LocalDatabase::start(folder, OF_WORKER * args.workers + OF_OTHERS).await?;
    write(&Sanitized::row(&format!("store {}", database.address())))?;
    let mut processes = Vec::new();
    let started = start(cli, args, database.address(), &mut processes);
    let ended = match started {
        Ok(()) => tokio::select! {
            () = signals.next() => Ok(Exit::Done),
            ended = first_end(&mut processes, &mut database) => Err(ended),
        },
        Err(error) => Err(error),
    };
    print_note("ending workers, the server and the database");
    tokio::select! {
        () = stop_all(&mut processes) => {}
        // A second signal ends them at once.
        () = signals.next() => {}
    }
    drop(processes);
    database.stop().await;
    ended
}

/// Starts the workers and the server.
fn start(
    cli: &args::Cli,
    args: &args::dev::Dev,
    store: &str,
    processes: &mut Vec<Guarded>,
) -> Result<(), CliError> {
    for number in 1..=args.workers {
        let mut worker = program(cli)?;
        worker.push("worker".into());
        worker.extend(of_team(args));
        processes.push(guarded(&format!("worker {number}"), &worker, store)?);
    }
    let mut server = program(cli)?;
    server.push("serve".into());
    match args.teams.as_slice() {
        [] => server.push("demo:writer-critic".into()),
        teams => server.extend(teams.iter().map(|team| team.clone().into_os_string())),
    }
    server.extend(["--listen".into(), args.listen.to_string().into()]);
    server.extend(of_team(args));
    processes.push(guarded("the server", &server, store)?);
    Ok(())
}

/// This program, with the user's configuration.
fn program(cli: &args::Cli) -> Result<Vec<OsString>, CliError> {
    let own = std::env::current_exe()
        .map_err(|error| CliError::failed(format!("the program is not found: {error}")))?;
    let mut words = vec![own.into_os_string()];
    if let Some(config) = cli.config() {
        words.extend(["--config".into(), config.as_os_str().to_owned()]);
    }
    Ok(words)
}

/// The options that workers and the server take alike: models, and what teams are allowed.
fn of_team(args: &args::dev::Dev) -> Vec<OsString> {
    let args::Allowed { permits, mcp } = &args.allowed;
    let mut words = Vec::new();
    for grant in &permits.grants {
        words.extend(["--allow".into(), grant.word().into()]);
    }
    if permits.trust {
        words.push("--trust".into());
    }
    if let Some(file) = mcp {
        words.extend(["--mcp".into(), file.into()]);
    }
    if let Some(model) = &args.model {
        words.extend(["--model".into(), model.into()]);
    }
    if args.offline {
        words.push("--offline".into());
    }
    words
}

fn guarded(name: &str, words: &[OsString], store: &str) -> Result<Guarded, CliError> {
    let change = |command: &mut Command| {
        command.env("POLYLOGUE_STORE", store).env_remove("POLYLOGUE_SERVER");
    };
    Guarded::spawn(name, "TERM", words, change)
}

/// Waits until one of the processes has ended, which is an error.
async fn first_end(processes: &mut [Guarded], database: &mut LocalDatabase) -> CliError {
    loop {
        sleep(CHECK).await;
        if let Some(name) =
            processes.iter_mut().find_map(|process| process.is_over().then(|| process.name().to_owned()))
        {
            return CliError::failed(format!("{name} has ended")).hint("its last lines above say why");
        }
        if database.is_over() {
            return CliError::failed("the database has ended")
                .hint(format!("see `{}`", database.log().display()));
        }
    }
}

async fn stop_all(processes: &mut [Guarded]) {
    processes.iter_mut().for_each(Guarded::ask_to_end);
    let mut waited = Duration::ZERO;
    while waited < FAREWELL && !processes.iter_mut().all(Guarded::is_over) {
        sleep(CHECK).await;
        waited += CHECK;
    }
}
