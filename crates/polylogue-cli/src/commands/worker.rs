//! `polylogue worker`: runs conversations of a store that many processes share.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use polylogue_core::{Features, LogId, Status, Store as _, StoreError};
use polylogue_models::{Provider, Recording, check_model_name, local_file, model_names};
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::worker::{StoredTeams, Worker, WorkerMeter, WorkerOptions, offered_features};
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use polylogue_server::{LiveError, LiveNode, LiveOptions, StoreMetrics, WorkerMeters, WorkerMetrics};

use super::resume::Stored;
use super::team_version::TeamVersion;
use crate::args::worker::features;
use crate::error::{CliError, Exit};
use crate::launch::UNWATCHED;
use crate::limit::counted;
use crate::signals::Signals;
use crate::stderr::print_note;
use crate::{args, place, trust};

pub(crate) async fn run(cli: &args::Cli, args: &args::worker::Worker) -> Result<Exit, CliError> {
    let location = place::of(&cli.named_store())?;
    location.check_volume()?;
    let team_options = args.options();
    check_models(&team_options.models, args.only.is_some())?;
    let meters = args.metrics.map(|_| WorkerMeters::default());
    let options = WorkerOptions {
        at_once: args.takes.at_once(),
        slots: None,
        offers: offers(&location, &args.takes.offers, &team_options)?,
        address: None,
        keeps_files: args.takes.keep_files,
        meter: meters.clone().map(|meters| Arc::new(meters) as Arc<dyn WorkerMeter>),
    };
    let live = internal_stream(&location, &args.internal).await?;
    let metrics = meters.as_ref().map(WorkerMeters::store_metrics);
    let runtime = args.budgets.pay_for(runtime_of(location, live.as_ref(), metrics).await?).await?;
    let worker = worker(&runtime, &team_options, options.clone())?;
    let mut signals = Signals::new()?.with_hangup()?;
    if let Some(text) = &args.only {
        return run_only(&worker, &runtime.find(text).await?, &mut signals).await;
    }
    let offers = Some(options.offers.to_string()).filter(|offers| !offers.is_empty());
    let offers = offers.map(|offers| format!(", offers {offers}")).unwrap_or_default();
    let tenant = cli.named_store().tenant;
    let of = tenant.map(|tenant| format!(", tenant {tenant}")).unwrap_or_default();
    print_note(&format!(
        "a worker for {}{of}: up to {} at once{offers}",
        runtime.place().shown(),
        counted(options.at_once as u64, "conversation")
    ));
    match args.metrics.zip(meters) {
        None => worker.run(signals.next()).await?,
        Some((address, meters)) => {
            let metrics = WorkerMetrics::bind(address, runtime.clone(), meters).await.map_err(|error| {
                CliError::failed(error.to_string())
                    .hint("choose another address with `--metrics`; port 0 takes a free one")
            })?;
            print_note(&format!("metrics at http://{}/metrics", metrics.address()));
            // They are served until it has ended.
            tokio::select! {
                ended = worker.run(signals.next()) => ended?,
                () = metrics.run() => {}
            }
        }
    }
    Ok(Exit::Done)
}

/// Runs one conversation until it is at rest. If a signal stops the worker before, the exit code is that of a failure: it is worth running it again,
/// unlike a conversation that a person has stopped.
async fn run_only(worker: &Arc<Worker>, id: &LogId, signals: &mut Signals) -> Result<Exit, CliError> {
    let mut is_stopped = false;
    let stop = async {
        signals.next().await;
        is_stopped = true;
    };
    let status = worker.run_only(id, stop).await?;
    if is_stopped && status == Status::Cancelled {
        print_note(&format!("this worker was stopped: `{id}` continues when it is run again"));
        return Ok(Exit::Failed);
    }
    print_note(&format!("`{id}` {}", super::cluster::rest(&status)));
    Ok(Exit::from(&status))
}

/// Refuses options of models with which no conversation could run, before one is claimed: each would wait for another worker. The provider of
/// a model may be an endpoint of a team, which is known later.
pub(super) fn check_models(models: &args::Models, is_one: bool) -> Result<(), CliError> {
    if models.record.is_some() && !is_one {
        let what = "`--record` writes the calls of one conversation, and a worker runs many";
        return Err(CliError::usage(what).hint("`polylogue worker --only ID --record FILE` records one"));
    }
    if let Some(file) = &models.replay {
        Recording::open(file)?;
    }
    for name in models.model.iter().flat_map(|list| model_names(list)) {
        check_model_name(name)?;
        let provider = name.split([':', '/']).next().unwrap_or_default();
        if Provider::find(provider).is_none() && local_file(name).is_none() {
            print_note(&format!(
                "warning: there is no provider `{provider}`: this worker runs only conversations whose team has an endpoint of this name"
            ));
        }
    }
    Ok(())
}

/// What this process offers: what the command line says, where files are, and the keys, MCP servers and sandbox that it has.
pub(super) fn offers(
    place: &StoreLocation,
    said: &[String],
    options: &args::TeamOptions,
) -> Result<Features, CliError> {
    let args::Models { model, offline, replay, .. } = &options.models;
    let any_key = model.is_some() || *offline || replay.is_some();
    let found = offered_features(&trust::of_folder(place)?, options.allowed.mcp.as_deref(), any_key)?;
    let said = features("--offers", said)?;
    let words = said.words().chain(found.words()).map(str::to_owned);
    let all: Vec<String> = words.chain(place.files_feature()).collect();
    features("--offers", &all)
}

/// What servers follow that have the same store, if it is one that processes share.
async fn internal_stream(
    location: &StoreLocation,
    internal: &args::worker::Internal,
) -> Result<Option<LiveNode>, CliError> {
    match location.is_shared() {
        true => LiveNode::bind(&live_options(internal)).await.map(Some).map_err(with_hint),
        false => Ok(None),
    }
}

pub(super) fn live_options(internal: &args::worker::Internal) -> LiveOptions {
    LiveOptions { listen: internal.internal_listen, advertise: internal.advertise.clone() }
}

fn with_hint(error: LiveError) -> CliError {
    let hint = error.hint();
    match error {
        error @ LiveError::Listen { .. } => CliError::failed(error.to_string()),
        error => CliError::usage(error.to_string()),
    }
    .hint(hint)
}

/// The conversations at `location` of a process whose worker renews its claims. Servers follow them at `live`; `metrics` count what happens at the store.
pub(super) async fn runtime_of(
    location: StoreLocation,
    live: Option<&LiveNode>,
    metrics: Option<&StoreMetrics>,
) -> Result<Runtime, CliError> {
    let random = |error| CliError::failed(format!("the system has no random numbers: {error}"));
    let point = live.map(LiveNode::point).transpose().map_err(random)?;
    let location = location.with_live(point.clone());
    let store = location.open_for_worker()?;
    let store = metrics.iter().fold(store, |store, metrics| metrics.metered(store));
    let runtime = Runtime::with_store(location, store);
    if let (Some(live), Some(point)) = (live, &point) {
        live.offer(point, &runtime);
    }
    runtime.check().await?;
    // Tables of a later version may be read, and so may those of another user: a worker would ask for conversations without an end. Anything else
    // that is wrong, such as a full disk, may pass.
    if let Err(error @ (StoreError::Newer { .. } | StoreError::Unsuitable { .. })) =
        runtime.store().check_writable().await
    {
        return Err(error.into());
    }
    Ok(runtime)
}

/// A worker with the models, permissions and secrets of this process. Its conversations keep their own limits.
pub(super) fn worker(
    runtime: &Runtime,
    options: &args::TeamOptions,
    takes: WorkerOptions,
) -> Result<Arc<Worker>, CliError> {
    let options = args::TeamOptions::without_limits(&options.models, &options.allowed);
    Ok(Worker::new(runtime, Arc::new(OfCommandLine(options)), takes)?)
}

/// Teams with the models and permissions of the command line.
struct OfCommandLine(args::TeamOptions);

impl StoredTeams for OfCommandLine {
    fn prepare<'a>(
        &'a self,
        runtime: &'a Runtime,
        id: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, Result<Prepared, String>> {
        let options = args::RunOptions { team: self.0.clone(), ..args::RunOptions::default() };
        Box::pin(async move {
            // A conversation keeps the team that it has, whatever its file says now.
            let version = TeamVersion::Pinned;
            let stored = Stored {
                id,
                options: &options,
                asks: false,
                settings: &UNWATCHED,
                version,
                shared_budget: false,
            };
            let prepared = stored.prepare_document(runtime, document).await;
            prepared.map(|(prepared, _)| prepared).map_err(|error| {
                let (what, hint) = error.into_parts();
                hint.iter().fold(what, |what, hint| format!("{what}; hint: {hint}"))
            })
        })
    }
}
