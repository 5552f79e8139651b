//! `--server`: the commands on conversations, for those of a server instead of those of a store. What is shown is the same, because the same
//! events are shown in the same way.

mod batch;
mod begin;
mod chat;
mod files;
mod list;
mod memory;
mod named_server;
mod options;
mod show;
mod steer;
mod verify;
mod watch;

use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;
use polylogue_client::{Client, ClientError};
use polylogue_http::{Proxies, is_loopback};

pub(crate) use named_server::Remote;

use crate::args::{self, Command};
use crate::commands;
use crate::error::{CliError, Exit};
use crate::hints;
use crate::place::{self, PlaceOption};
use crate::stderr::print_note_wrapped;
use crate::trust;

/// The server, if the command is for one.
pub(crate) fn wanted(cli: &args::Cli, matches: &ArgMatches) -> Result<Option<Remote>, CliError> {
    let Some(url) = cli.server.as_deref().map(str::trim).filter(|url| !url.is_empty()) else {
        return Ok(None);
    };
    let is_named = matches.value_source("server") == Some(ValueSource::CommandLine);
    if !options::check(matches, is_named)? {
        return Ok(None);
    }
    // A `.env` file gives the token at most, and neither the server nor proxies.
    let address = Client::address(url)?;
    let env = trust::of_folder(&place::or_none(&cli.named_store()))?;
    let token = named_server::find_token(&env, url)?;
    let client = Client::new(url, &token, &Proxies::of(&env))?.with_retry_handler(print_retry);
    if address.scheme() == "http" && !is_loopback(&address) {
        print_note_wrapped(&format!(
            "warning: nothing between here and `{}` is encrypted, not even the token; put a server with TLS in front of it.",
            client.url()
        ));
    }
    let place = if is_named { PlaceOption::naming_server(url) } else { PlaceOption::default() };
    Ok(Some(Remote { client, place }))
}

/// Prints that the program waits for the server, which may restart or not run at all.
fn print_retry(error: &ClientError, at_most: Duration) {
    let seconds = at_most.as_secs();
    print_note_wrapped(&format!("{error}; trying again for at most {seconds} s, until Ctrl-C"));
}

/// Runs the command on the conversations of the server.
pub(crate) async fn run(cli: &args::Cli, remote: &Remote) -> Result<Exit, CliError> {
    run_there(cli, remote).await.map_err(|error| hints::of(error, &remote.place))
}

async fn run_there(cli: &args::Cli, remote: &Remote) -> Result<Exit, CliError> {
    match &cli.command {
        Command::Batch(args) => batch::run(cli, args, remote).await,
        Command::Chat(args) => chat::run(cli, args, remote).await,
        Command::Run(args) => begin::run(cli, args, remote).await,
        Command::Resume(args) => begin::resume(cli, args, remote).await,
        Command::Runs(args) => list::runs(args, remote).await,
        Command::Waiting(args) => list::waiting(args, remote).await,
        Command::Show(args) => show::run(cli, args, remote).await,
        Command::Files(args) => files::run(args, remote).await,
        Command::Send(args) => steer::send(args, remote).await,
        Command::Answer(args) => steer::answer(args, remote).await,
        Command::Cancel(args) => steer::cancel(args, remote).await,
        Command::Pause(args) => steer::pause(args, remote).await,
        Command::Next(args) => steer::next(args, remote).await,
        Command::Verify(args) => verify::run(args, remote).await,
        Command::Memory(args) => memory::run(args, remote).await,
        Command::Cluster(args) => {
            let limit = u64::try_from(args.limit).unwrap_or(u64::MAX);
            commands::cluster::show(&remote.client.cluster(Some(limit)).await?, args.json, &remote.place)
        }
        Command::Raise(args) => steer::raise(args, remote).await,
        Command::Fork(args) => steer::fork(args, remote).await,
        Command::Rm(args) => steer::rm(args, remote).await,
        // Refused before.
        _ => Err(CliError::usage("this command does not work with a server")),
    }
}
