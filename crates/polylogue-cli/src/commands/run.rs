//! `polylogue run`: a team on a task.

use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use polylogue::{AnyStore, Chat, LimitOverrides, Limits, Log, LogId, Meta, StoreError, Timestamp};
use polylogue_models::LearnedCapabilities;
use polylogue_team::{Loaded, Overrides, Stop, Team, Usage};

use super::limit::counted;
use super::remote::{self, Remote, Wanted};
use super::{StoredRun, work};
use crate::error::{CliError, Exit};
use crate::model_builder::{MODEL_HINT, ModelBuilder, ModelOptions};
use crate::runner::{Runner, tell, tell_wrapped};
use crate::screen::{ColourWish, Looks, Output, Settings};
use crate::team_memory::TeamMemoryStore;
use crate::trust::pins::Asking;
use crate::trust::{self, Access, Request};
use crate::{args, place, team_memory};

pub(crate) async fn run(cli: &args::Cli, args: &args::Run) -> Result<Exit, CliError> {
    let input = args.piped.of(args.task.as_deref(), None)?;
    let overrides = Overrides {
        vars: args.vars.iter().cloned().collect(),
        task: args.task.as_deref().map(text_or_input).transpose()?,
        model: args.models.model.clone(),
        ..Overrides::default()
    };
    let permits = &args.allowed.permits;
    let Loaded { mut team, warnings, digest, outside } = trust::load(&args.team, &overrides, permits)?;
    warnings.iter().for_each(|warning| tell(&warning.to_string()));
    let overridden = args.limits.overrides();
    let budget = has_budget(&team, overridden);
    let settings = settings(cli.color, args.output);
    let (mcp, tells) = (args.allowed.mcp.as_deref(), settings.output.is_conversation());
    let request = Request {
        team: &team,
        digest: &digest,
        file: &args.team.display().to_string(),
        outside: &outside,
        usage: usage(&args.models, mcp)?,
        permits,
        before: Vec::new(),
        memory: team_memory::of_others(&team, cli.store.as_deref(), &digest).await?,
        asks: true,
        tells,
    };
    let access = request.pass(trust::of_folder(cli.store.as_deref())?).await?;
    let crew =
        ModelBuilder::choose(&mut team, &manner(&args.models, &settings, budget, false, &access)).await?;
    if tells {
        work::tell_refusals(&team);
    }
    let mut servers =
        Remote::start(&team, &Wanted { file: mcp, access: &access, asking: Asking { permits, asks: true } })
            .await?;
    // Whatever is wrong with the team shows before there is a store.
    let memory = TeamMemoryStore::of(&team, cli.store.as_deref(), &crew)?;
    let chat = built(&team, &crew, cli, &place::fresh_id()?, (&access, &servers, &memory))?;
    let limits = overridden.over(team.limits());
    let store = place::open(cli.store.as_deref())?;
    if settings.output.is_conversation() {
        introduce(&team, &crew, &chat, &limits, overrides.task.is_some());
    }
    let task = team.task.clone().unwrap_or_default();
    let (offline, allowed) = (crew.is_scripted(), access.kept(&team));
    let (mcp, remote_tools) = (remote::kept(mcp)?, servers.described());
    let capabilities = args.models.capabilities;
    let kept = StoredRun {
        team,
        offline,
        capabilities,
        digest,
        allowed,
        mcp,
        remote_tools,
        limits: overridden,
        seal: None,
    }
    .sealed();
    let log = create(store.clone(), &kept).await?.limits(limits);
    let chat = built(&kept.team, &crew, cli, log.id(), (&access, &servers, &memory))?;
    work::prepare(&kept.team, cli.store.as_deref(), log.id())?;
    let (work, always, progress) = (cli.store.clone(), access.always.clone(), servers.progress.take());
    let (more, answer) = (None, None);
    Runner { chat: &chat, log, limits, store, settings, task, more, answer, input, work, always, progress }
        .run()
        .await
}

/// The chat of the conversation `id`, with what it is allowed and given.
fn built(
    team: &Team,
    crew: &ModelBuilder,
    cli: &args::Cli,
    id: &LogId,
    (access, servers, memory): (&Access, &Remote, &TeamMemoryStore),
) -> Result<Chat, CliError> {
    let workplace = work::place_of(team, cli.store.as_deref(), id, access)?;
    Ok(team.build_at(&|name| crew.model(name), &memory.furnish(servers.furnish(workplace)))?)
}

/// Begins a conversation under an id of its own.
pub(super) async fn create(store: AnyStore, kept: &StoredRun) -> Result<Log, CliError> {
    let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let meta = Meta {
        title: kept.team.name.to_string(),
        created: Timestamp(u64::try_from(created).unwrap_or(u64::MAX)),
        team: serde_json::to_value(kept)
            .map_err(|error| CliError::failed(format!("the team cannot be kept: {error}")))?,
    };
    loop {
        match Log::create(store.clone(), place::fresh_id()?, &meta).await {
            Err(polylogue::Error::Store(StoreError::Exists { .. })) => {}
            log => return Ok(log?),
        }
    }
}

/// Says what a person has to know before it begins: who speaks, and what ends it at the latest.
fn introduce(team: &Team, crew: &ModelBuilder, chat: &Chat, limits: &Limits, own_task: bool) {
    if crew.is_scripted() {
        let why = crew.why_scripted().map(|why| format!(", because {why}")).unwrap_or_default();
        tell_wrapped(&format!("This is a demonstration: the agents speak by the team's script{why}."));
        if own_task {
            tell_wrapped("The script does not know your task: it replies to the one it was written for.");
        }
        tell_wrapped(&format!("For a real model, use {MODEL_HINT}."));
    }
    let cost = match limits.cost {
        _ if crew.is_scripted() => String::new(),
        Some(cost) => format!(", {cost}"),
        None => "; no limit on cost (`--max-cost`)".into(),
    };
    tell_wrapped(&format!("{}: at most {}{cost}", team.name, bounds(team, chat, limits)));
    if limits.cost.is_some() {
        tell_unbounded(team, crew);
    }
}

/// Says which models have no known limit on what a call takes, under a budget.
pub(super) fn tell_unbounded(team: &Team, crew: &ModelBuilder) {
    for name in crew.unbounded(team) {
        tell_wrapped(&format!(
            "`{name}` has no known limit on the length of a reply: its calls are made one after the other, and the last one can \
             pass the budget. Set `max_tokens` in `parameters` to bound it."
        ));
    }
}

fn bounds(team: &Team, chat: &Chat, limits: &Limits) -> String {
    let stop = team.chat.stop.as_ref();
    let own =
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_turns)).filter(|turns| *turns < chat.max_turns());
    let mut bounds = vec![match (limits.turns, own) {
        (Some(turns), own) if own.is_none_or(|own| turns < own) => {
            format!("{} in all", counted(turns, "turn"))
        }
        (_, Some(own)) => counted(own, "turn"),
        (_, None) => format!("{} a chat", counted(chat.max_turns(), "turn")),
    }];
    bounds.extend(
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_messages)).map(|own| counted(own, "message")),
    );
    bounds.push(counted(limits.max_calls(), "model call"));
    let tokens =
        stop.and_then(|stop| fewest(stop, &|stop| stop.max_tokens)).into_iter().chain(limits.tokens).min();
    bounds.extend(tokens.map(|tokens| counted(tokens, "token")));
    bounds.join(", ")
}

/// The lowest limit of `stop`, or of one of the conditions each of which suffices.
fn fewest(stop: &Stop, limit: &dyn Fn(&Stop) -> Option<u64>) -> Option<u64> {
    let others = stop.any.iter().filter_map(|stop| fewest(stop, limit));
    limit(stop).into_iter().chain(others).min()
}

/// How the team is used, as far as it decides what it asks for.
pub(super) fn usage(wish: &args::Models, mcp: Option<&Path>) -> Result<Usage, CliError> {
    Ok(Usage { offline: wish.offline || wish.replay.is_some(), own_servers: remote::own_names(mcp)? })
}

/// How models are used: for whom, and under which limits.
pub(super) fn manner<'a>(
    wish: &'a args::Models,
    settings: &Settings,
    budget: bool,
    resumed: bool,
    access: &'a Access,
) -> ModelOptions<'a> {
    let watched = settings.output == Output::Talk && settings.looks.live;
    let known = place::of_skills().map(LearnedCapabilities::at);
    ModelOptions { wish, stream: settings.stream, budget, watched, resumed, known, access }
}

pub(super) fn has_budget(team: &Team, overrides: LimitOverrides) -> bool {
    overrides.over(team.limits()).cost.is_some()
}

pub(super) fn settings(color: args::Color, output: args::Output) -> Settings {
    let what = match output {
        args::Output { json: true, .. } => Output::Json,
        args::Output { quiet: true, .. } => Output::Result,
        args::Output { style: args::Style::Autogen, .. } => Output::Familiar,
        _ => Output::Talk,
    };
    let looks = Looks::of(wish(color), &io::stdout());
    Settings { output: what, looks, stream: !output.no_stream, thoughts: output.thoughts }
}

pub(super) const fn wish(color: args::Color) -> ColourWish {
    match color {
        args::Color::Auto => ColourWish::Auto,
        args::Color::Always => ColourWish::Always,
        args::Color::Never => ColourWish::Never,
    }
}

/// A text of the command line; `-` stands for the standard input.
pub(super) fn text_or_input(given: &str) -> Result<String, CliError> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(|error| {
        CliError::usage(format!("the text cannot be read from the standard input: {error}"))
    })?;
    Ok(text.trim().to_owned())
}
