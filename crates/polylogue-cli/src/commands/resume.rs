//! `polylogue resume`: go on with a conversation.

use std::time::{Duration, Instant};

use polylogue::{Agent as _, AnyStore, Chat, Ending, Error, Log, LogId, Message, Name, StoreError};

use super::remote::{Remote, Wanted};
use super::run::{has_budget, limits, manner, settings, text_or_input, usage};
use super::{Kept, work};
use crate::crew::Crew;
use crate::play::{Play, tell};
use crate::remembered::Remembered;
use crate::trouble::{Exit, Trouble};
use crate::trust::pins::Asking;
use crate::trust::{self, Request};
use crate::{args, place, remembered};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, Trouble> {
    let input = args.piped.of(args.message.as_deref(), args.answer.as_deref())?;
    let store = place::existing(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let kept = Kept::of(&store, &id).await?;
    // What a store says that this user has not sealed allows nothing.
    let is_sealed = kept.is_sealed()?;
    let trusted = if is_sealed { kept.digest.clone() } else { kept.own_digest() };
    let Kept { mut team, offline, skills, allowed, mcp, digest, .. } = kept;
    let (before, mcp) = if is_sealed { (allowed, mcp) } else { (Vec::new(), None) };
    let by_script = offline && args.models.model.is_none() && args.models.replay.is_none();
    let skills = args.models.skills.or(skills);
    let wish = args::Models { offline: by_script || args.models.offline, skills, ..args.models.clone() };
    let budget = has_budget(&team, &args.limits);
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
        memory: remembered::of_others(&team, cli.store.as_deref(), &digest).await?,
        asks: args.answer.is_none(),
        tells,
    };
    let access = request.pass(trust::of_folder(cli.store.as_deref())?).await?;
    let crew = Crew::choose(&mut team, &manner(&wish, &settings, budget, true, &access)).await?;
    if tells {
        work::tell_refusals(&team);
    }
    let asking = Asking { permits: &args.allowed.permits, asks: args.answer.is_none() };
    let mut servers = Remote::start(&team, &Wanted { file, access: &access, asking }).await?;
    let workplace = servers.furnish(work::place_of(&team, cli.store.as_deref(), &id, &access)?);
    let workplace = Remembered::of(&team, cli.store.as_deref(), &crew)?.furnish(workplace);
    work::prepare(&team, cli.store.as_deref(), &id)?;
    let chat = team.build_at(&|name| crew.model(name), &workplace)?;
    let limits = limits(&team, &args.limits);
    let mut log = open(store.clone(), id, args.take_over).await?.limits(limits);
    crew.learn(&log.events().await);
    if args.answer.is_some() && log.questions().await?.is_empty() {
        return Err(Trouble::usage(format!("nobody is asked anything in `{}`", log.id())));
    }
    let closed = log.transcript().await?.closed().map(|(reason, _)| reason.ending());
    let more = more(args, &chat)?;
    match closed {
        None if more.is_some() => return Err(unfinished(&log).await?),
        // One that is done is done; what is not over, or has not begun, goes on as it is.
        Some(ending) if ending != Ending::Done && more.is_none() => {
            match chat.ends_again(&log, &limits).await? {
                None => log.reopen().await?,
                Some(reason) => tell(&format!(
                    "nothing is done: `{}` would end again at once: {reason}; raise the limit, or say something more",
                    log.id()
                )),
            }
        }
        _ => {}
    }
    let task = team.task.clone().unwrap_or_default();
    let (answer, always) = (args.answer.clone(), access.always.clone());
    let (work, progress) = (cli.store.clone(), servers.progress.take());
    Play { chat: &chat, log, store, settings, task, more, answer, input, work, always, progress }.run().await
}

/// Opens a conversation. A process that was just killed may hold it for a moment longer: so long as a program that it was about
/// to start has not let go of what it inherited.
async fn open(store: AnyStore, id: LogId, take_over: bool) -> Result<Log, Trouble> {
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
fn more(args: &args::Resume, chat: &Chat) -> Result<Option<Message>, Trouble> {
    let Some(text) = args.message.as_deref().map(text_or_input).transpose()? else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(Trouble::usage("there is nothing in the text that the conversation is to go on about"));
    }
    let speaker = args.speaker.as_deref().unwrap_or(Name::user().as_str()).to_owned();
    let members = || chat.members().iter().map(|member| member.name().clone()).chain([Name::user()]);
    match members().find(|name| name.as_str() == Name::composed(&speaker)) {
        Some(name) => Ok(Some(Message::text(name, text))),
        None => {
            let names: Vec<String> = members().map(|name| format!("`{name}`")).collect();
            Err(Trouble::usage(format!("there is no `{speaker}` who could say so"))
                .hint(format!("there are {}", names.join(", "))))
        }
    }
}

/// Something more is said to a conversation that is not over.
async fn unfinished(log: &Log) -> Result<Trouble, Trouble> {
    let id = log.id();
    let asked = log.questions().await?.first().map(|(_, question)| question.who.clone());
    let hint = match asked {
        Some(who) => format!("`polylogue resume {id} --answer TEXT` answers for {who}, who is asked"),
        None => format!("`polylogue resume {id}` goes on with it; say more when it is over"),
    };
    Ok(Trouble::usage(format!("the conversation `{id}` is not over")).hint(hint))
}
