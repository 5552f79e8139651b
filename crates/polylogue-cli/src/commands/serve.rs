//! `polylogue serve`: teams over HTTP.

mod team_files;
mod workers;

use std::pin::pin;
use std::sync::Arc;

use polylogue_core::Budget;
use polylogue_http::{Env, Proxies};
use polylogue_server::{ChatOptions, IssuerOptions, Reload, Server, ServerError, ServerOptions, TokenError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::worker::{check_models, live_options};
use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::signals::Signals;
use crate::stderr::print_note_wrapped;
use crate::{args, place};
use team_files::TeamFiles;
use workers::Workers;

pub(crate) async fn run(cli: &args::Cli, args: &args::serve::Serve) -> Result<Exit, CliError> {
    let tenant = (!args.tenants.is_empty()).then_some("`--tenant`");
    if let Some(option) = args.takes.given().or(tenant).filter(|_| !args.worker) {
        let what = format!("{option} is about the conversations of workers");
        return Err(CliError::usage(what).hint("`--worker` runs these, too"));
    }
    if args.worker {
        check_models(&args.options.models, false)?;
    }
    let options = options(cli, args)?;
    let teams = usable_teams(cli, args, &options).await?;
    let signals = Signals::new()?;
    let budget = options.budget.clone();
    let mut server = Server::bind(options, Arc::new(teams)).await?;
    announce(&mut server)?;
    serve(cli, args, server, (signals, budget)).await?;
    Ok(Exit::Done)
}

/// The options of the command line.
fn options(cli: &args::Cli, args: &args::serve::Serve) -> Result<ServerOptions, CliError> {
    let mut options = ServerOptions::new(args.listen, place::of(&cli.named_store())?);
    options.public_url.clone_from(&args.public_url);
    options.origins.clone_from(&args.origins);
    options.trusted_proxies.clone_from(&args.trusted_proxies);
    options.chat = ChatOptions {
        conversation_headers: args.conversation_headers.clone(),
        show: args.chat_show,
        answers_chores: !args.no_chores,
    };
    options.resume = !args.no_resume;
    for (name, number) in &args.limits {
        options.limits.set(name, *number).map_err(CliError::usage)?;
    }
    options.budget = args.budgets.of_process();
    options.shared_budgets = args.budgets.shared();
    options.live = live_options(&args.internal);
    options.issuer = args.issuer.clone().map(|url| IssuerOptions {
        url,
        audience: args.audience.clone(),
        proxies: Proxies::of(&Env::process()),
    });
    Ok(options)
}

/// The teams that can be served, with a warning for each other one.
async fn usable_teams(
    cli: &args::Cli,
    args: &args::serve::Serve,
    options: &ServerOptions,
) -> Result<TeamFiles, CliError> {
    let (teams, unusable) = TeamFiles::find(cli, args)?.usable(&options.place).await?;
    for (file, error) in unusable {
        let (what, hint) = error.into_parts();
        let what = what.strip_prefix("error: ").unwrap_or(&what);
        print_note_wrapped(&format!("warning: `{}` is not served: {what}", file.display()));
        hint.iter().for_each(|hint| print_note_wrapped(&format!("hint: {hint}")));
    }
    Ok(teams)
}

/// Prints where the server is, and how to log in.
fn announce(server: &mut Server) -> Result<(), CliError> {
    if !server.address().ip().is_loopback() && !server.url().starts_with("https://") {
        print_note_wrapped(
            "warning: other machines can connect, and nothing is encrypted: put a server with TLS in front of this one, and name its \
             address with `--public-url`",
        );
    }
    let token = server.take_first_token();
    let token = token.map(|token| format!("token {}\n", token.reveal())).unwrap_or_default();
    let page = server.login_url()?;
    write(&Sanitized::plain(&format!("{}\n{token}page {page}\n", server.url())))?;
    Ok(())
}

/// Serves until a signal, and then until all is at rest. A second signal stops at once.
async fn serve(
    cli: &args::Cli,
    args: &args::serve::Serve,
    server: Server,
    (mut signals, budget): (Signals, Option<Budget>),
) -> Result<(), CliError> {
    let (stop, mut stopped) = watch::channel(());
    let reloading = reload_by_signal(server.reload())?;
    let (live, metrics, tenants) = (server.live().cloned(), server.store_metrics(), server.tenants());
    let workers = Workers { cli, args, live, metrics, budget, tenants };
    let stopped_workers = stopped.clone();
    let mut serving = pin!(async {
        let working = async { if args.worker { workers.run(stopped_workers).await } else { Ok(()) } };
        let serving = async {
            // Resolves when the sender is dropped.
            server.run(async { drop(stopped.changed().await) }).await;
            Ok(())
        };
        tokio::try_join!(working, serving).map(drop)
    });
    tokio::select! {
        worked = serving.as_mut() => return worked,
        () = signals.next() => drop(stop),
        () = reloading => {}
    }
    tokio::select! {
        worked = serving => worked,
        () = signals.next() => Ok(()),
    }
}

/// Reads team files again at each `SIGHUP`. Never ends.
fn reload_by_signal(reload: Reload) -> Result<impl Future<Output = ()>, CliError> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| CliError::failed(format!("signals cannot be received: {error}")))?;
    Ok(async move {
        loop {
            match hangup.recv().await {
                Some(()) => reload.all().await,
                None => std::future::pending().await,
            }
        }
    })
}

impl From<ServerError> for CliError {
    fn from(error: ServerError) -> Self {
        let hint = error.hint();
        let error = match error {
            ServerError::Token(error) => return error.into(),
            ServerError::Store(error) => return (*error).into(),
            ServerError::Team { team, error } if error.is_usage => Self::usage(error.what).about(&team),
            ServerError::Team { team, error } => Self::failed(error.what).about(&team),
            ServerError::Listen { .. } => Self::failed(error.to_string()),
            error => Self::usage(error.to_string()),
        };
        hint.into_iter().fold(error, Self::hint)
    }
}

impl From<TokenError> for CliError {
    fn from(error: TokenError) -> Self {
        match error {
            error if error.is_usage() => Self::usage(error.to_string()),
            error => Self::failed(error.to_string()),
        }
    }
}
