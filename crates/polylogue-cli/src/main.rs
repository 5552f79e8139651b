//! The `polylogue` command-line program.

mod args;
mod attachments;
mod commands;
mod error;
mod hints;
mod launch;
mod limit;
mod logging;
mod place;
mod probe;
mod prompt;
#[cfg(test)]
mod reference;
mod remote;
mod runner;
mod screen;
mod shipped;
mod signals;
mod stderr;
mod steering;
mod text_arg;
mod trust;
mod user_config;
mod user_prices;
mod view;
mod whole_file;
mod work_dir;

use std::error::Error as _;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use args::{Cli, Command};
use error::{CliError, Exit};
use place::PlaceOption;
use screen::Size;
use shipped::NoDemo;

fn main() -> ExitCode {
    if let Some(error) = args::dashes::refused(std::env::args_os().skip(1)) {
        return failed(&error);
    }
    // Help is broken between words; in a pipe or a file, not at all.
    let width = if io::stdout().is_terminal() { Size::of_terminal().text_columns() } else { 0 };
    let matches = match Cli::command().term_width(width).try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return refused(args::guessed::explained(args::batch::explained(error))),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return refused(error),
    };
    stderr::set_colors(launch::wish(cli.color));
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failed(format!("the program cannot start: {error}")))
        .and_then(|runtime| {
            let done = runtime.block_on(run(&cli, &matches));
            // An unanswered question at the terminal must not keep the program running.
            runtime.shutdown_background();
            done
        });
    done.map_or_else(|error| failed(&error), Into::into)
}

/// Prints help, or why the command line is refused.
fn refused(error: clap::Error) -> ExitCode {
    // No option is wrong if the files of a demo cannot be written.
    if let Some(NoDemo::Unwritable(why)) = error.source().and_then(|source| source.downcast_ref::<NoDemo>()) {
        return failed(
            &CliError::failed(why).hint("set `TMPDIR` or `XDG_CACHE_HOME` to a folder that can be written"),
        );
    }
    if !error.use_stderr() {
        error.exit();
    }
    stderr::print_error(&error.render().to_string().trim_end());
    ExitCode::from(Exit::Usage)
}

fn failed(error: &CliError) -> ExitCode {
    stderr::print_error(error);
    error.exit.into()
}

async fn run(cli: &Cli, matches: &ArgMatches) -> Result<Exit, CliError> {
    // A server logs its requests, and a worker its conversations.
    let least = u8::from(matches!(cli.command, Command::Serve(_) | Command::Worker(_)));
    logging::start(cli.verbose.max(least))?;
    if let Some(server) = remote::wanted(cli, matches)? {
        return remote::run(cli, &server).await;
    }
    let place = PlaceOption::of_store(&cli.named_store());
    run_here(cli).await.map_err(|error| hints::of(hints::of_command(error, &cli.command), &place))
}

/// Runs the command on this machine.
async fn run_here(cli: &Cli) -> Result<Exit, CliError> {
    match &cli.command {
        Command::New(args) => commands::new::run(args),
        Command::Run(args) => commands::run::run(cli, args).await,
        Command::Chat(args) => commands::chat::run(cli, args).await,
        Command::Batch(args) => commands::batch::run(cli, args).await,
        Command::Resume(args) => commands::resume::run(cli, args).await,
        Command::Runs(args) => commands::runs::run(cli, args).await,
        Command::Send(args) => commands::steer::send(cli, args).await,
        Command::Cancel(args) => commands::steer::cancel(cli, args).await,
        Command::Pause(args) => commands::steer::pause(cli, args).await,
        Command::Next(args) => commands::steer::next(cli, args).await,
        Command::Raise(args) => commands::steer::raise(cli, args).await,
        Command::Waiting(args) => commands::waiting::run(cli, args).await,
        Command::Answer(args) => commands::waiting::answer(cli, args).await,
        Command::Fork(args) => commands::fork::run(cli, args).await,
        Command::Move(args) => commands::move_to::run(cli, args).await,
        Command::Show(args) => commands::show::run(cli, args).await,
        Command::Files(args) => commands::files::run(cli, args).await,
        Command::Verify(args) => commands::verify::run(cli, args).await,
        Command::Archive(args) => commands::keeping::archive(cli, args).await,
        Command::Rm(args) => commands::keeping::remove(cli, args).await,
        Command::Memory(args) => commands::memory::run(cli, args).await,
        Command::Check(args) => commands::check::run(cli, args),
        Command::Fmt(args) => commands::fmt::run(args),
        Command::Trust(args) => commands::trust::run(args),
        Command::Import(args) => commands::import::run(args),
        Command::Mcp(args) => commands::mcp::run(cli, args).await,
        Command::Serve(args) => commands::serve::run(cli, args).await,
        Command::Token(args) => commands::token::run(cli, args),
        Command::Worker(args) => commands::worker::run(cli, args).await,
        Command::Cluster(args) => commands::cluster::run(cli, args).await,
        Command::Migrate => commands::migrate::run(cli).await,
        Command::Dev(args) => commands::dev::run(cli, args).await,
        Command::Config(args) => commands::config::run(cli, args),
        Command::Models(args) => commands::models::run(cli, args).await,
        Command::Count(args) => commands::count::run(cli, args),
        Command::Doctor(args) => commands::doctor::run(cli, args).await,
        Command::Schema => commands::completions::schema(),
        Command::Completions(args) => commands::completions::run(args),
        Command::Man(args) => commands::completions::man(args),
    }
}
