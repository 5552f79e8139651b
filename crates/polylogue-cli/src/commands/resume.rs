//! `polylogue resume`: go on with a conversation.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polylogue::{
    Agent as _, AnyStore, Chat, Error, LimitOverrides, Limits, Log, LogId, Message, Name, RunOutcome,
    Store as _, StoreError,
};

use super::remote::{Remote, Wanted};
use super::run::{has_budget, manner, settings, text_or_input, usage};
use super::{StoredRun, limit, work};
use crate::error::{CliError, Exit};
use crate::model_builder::ModelBuilder;
use crate::runner::{Runner, tell};
use crate::team_memory::TeamMemoryStore;
use crate::trust::pins::Asking;
use crate::trust::{self, Request};
use crate::{args, place, team_memory};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, CliError> {
    let input = args.piped.of(args.message.as_deref(), args.answer.as_deref())?;
    let store = place::existing(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let kept = StoredRun::of(&store, &id).await?;
    // What a store says that this user has not sealed allows nothing.
    let is_sealed = kept.is_sealed()?;
    let trusted = if is_sealed { kept.digest.clone() } else { kept.own_digest() };
    let StoredRun { mut team, offline, capabilities, allowed, mcp, digest, limits: began_with, .. } = kept;
    let (before, mcp) = if is_sealed { (allowed, mcp) } else { (Vec::new(), None) };
    let by_script = offline && args.models.model.is_none() && args.models.replay.is_none();
    let capabilities = args.models.capabilities.or(capabilities);
    let wish =
        args::Models { offline: by_script || args.models.offline, capabilities, ..args.models.clone() };
    let given = args.limits.overrides();
    let events: Vec<_> = store.read(&id, 0).await?.into_iter().map(Arc::new).collect();
    let budget = has_budget(&team, given.or(LimitOverrides::last_of(&events).unwrap_or(began_with)));
    let settings = settings(cli.color, args.output);
    if let Some(model) = &wish.model {
        team.use_model(model);
    }
    let file = args.allowed.mcp.as_deref().or(mcp.as_deref());
    let tells = settings.output.is_conversation();
    let request = Request {
        team: &team,
        digest: &trusted,
        file: &format!("conversation {id}"),
        outside: &[],
        usage: usage(&wish, file)?,
        permits: &args.allowed.permits,
        before,
        memory: team_memory::of_others(&team, cli.store.as_deref(), &digest).await?,
        asks: args.answer.is_none(),
        tells,
    };
    let access = request.pass(trust::of_folder(cli.store.as_deref())?).await?;
    let crew = ModelBuilder::choose(&mut team, &manner(&wish, &settings, budget, true, &access)).await?;
    if tells {
        work::tell_refusals(&team);
    }
    let asking = Asking { permits: &args.allowed.permits, asks: args.answer.is_none() };
    let mut servers = Remote::start(&team, &Wanted { file, access: &access, asking }).await?;
    let workplace = servers.furnish(work::place_of(&team, cli.store.as_deref(), &id, &access)?);
    let workplace = TeamMemoryStore::of(&team, cli.store.as_deref(), &crew)?.furnish(workplace);
    work::prepare(&team, cli.store.as_deref(), &id)?;
    let chat = team.build_at(&|name| crew.model(name), &workplace)?;
    let mut log = open(store.clone(), id, args.take_over).await?;
    let kept = LimitOverrides::last_of(&log.events().await).unwrap_or(began_with);
    let overrides = given.or(kept);
    let limits = overrides.over(team.limits());
    log = log.limits(limits);
    crew.learn(&log.events().await);
    if args.answer.is_some() && log.questions().await?.is_empty() {
        return Err(CliError::usage(format!("there is no open question in `{}`", log.id())));
    }
    let more = more(args, &chat)?;
    reopen(&mut log, &chat, &limits, more.is_some(), Some(overrides).filter(|now| *now != kept)).await?;
    let task = team.task.clone().unwrap_or_default();
    let (answer, always) = (args.answer.clone(), access.always.clone());
    let (work, progress) = (cli.store.clone(), servers.progress.take());
    Runner { chat: &chat, log, limits, store, settings, task, more, answer, input, work, always, progress }
        .run()
        .await
}

/// Opens a conversation again that is over, unless it would end again at once. Limits that `changed` are kept with a conversation
/// that continues.
async fn reopen(
    log: &mut Log,
    chat: &Chat,
    limits: &Limits,
    is_more: bool,
    changed: Option<LimitOverrides>,
) -> Result<(), CliError> {
    let closed = log.transcript().await?.closed().map(|(reason, _)| reason.outcome());
    match closed {
        None if is_more => return Err(unfinished(log).await?),
        // One that is done is done.
        Some(RunOutcome::Done) if !is_more => return Ok(()),
        Some(_) if !is_more => {
            if let Some(reason) = chat.ends_again(log, limits).await? {
                let way = match limit::option(&reason, limits) {
                    Some(option) => format!("a higher limit (`{option}`) continues it"),
                    None => "raise the limit, or say something more".into(),
                };
                tell(&format!("nothing is done: `{}` would end again at once: {reason}; {way}", log.id()));
                return Ok(());
            }
        }
        _ => {}
    }
    if let Some(limits) = changed {
        log.change_limits(limits).await?;
    }
    if !is_more {
        log.reopen().await?;
    }
    Ok(())
}

/// Opens a conversation. A process that was just killed may hold it for a moment longer: so long as a program that it was about
/// to start has not let go of what it inherited.
async fn open(store: AnyStore, id: LogId, take_over: bool) -> Result<Log, CliError> {
    if take_over {
        return Ok(Log::take_over(store, id).await?);
    }
    const PATIENCE: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    loop {
        match Log::open(store.clone(), id.clone()).await {
            Err(Error::Store(StoreError::Busy { .. })) if begun.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            log => return Ok(log?),
        }
    }
}

/// What is said to a conversation that is over.
fn more(args: &args::Resume, chat: &Chat) -> Result<Option<Message>, CliError> {
    let Some(text) = args.message.as_deref().map(text_or_input).transpose()? else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(CliError::usage("there is nothing in the text that the conversation is to go on about"));
    }
    let speaker = args.speaker.as_deref().unwrap_or(Name::user().as_str()).to_owned();
    let members = || chat.participants().iter().map(|member| member.name().clone()).chain([Name::user()]);
    match members().find(|name| name.as_str() == Name::composed(&speaker)) {
        Some(name) => Ok(Some(Message::text(name, text))),
        None => {
            let names: Vec<String> = members().map(|name| format!("`{name}`")).collect();
            Err(CliError::usage(format!("there is no `{speaker}` who could say so"))
                .hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Something more is said to a conversation that is not over.
async fn unfinished(log: &Log) -> Result<CliError, CliError> {
    let id = log.id();
    let asked = log.questions().await?.first().map(|(_, question)| question.who.clone());
    let hint = match asked {
        Some(who) => format!("`polylogue resume {id} --answer TEXT` answers for {who}, who is asked"),
        None => format!("`polylogue resume {id}` continues it; say more when it has ended"),
    };
    Ok(CliError::usage(format!("the conversation `{id}` is not over")).hint(hint))
}
