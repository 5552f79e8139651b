//! `polylogue resume`: go on with a conversation.

use polylogue::{Ending, Log};

use super::Kept;
use super::run::{has_budget, limits, manner, settings};
use crate::crew::Crew;
use crate::play::Play;
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, Trouble> {
    let store = place::open(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let Kept { mut team, offline } = Kept::of(&store, &id).await?;
    let by_script = offline && args.models.model.is_none() && args.models.replay.is_none();
    let wish = args::Models { offline: by_script || args.models.offline, ..args.models.clone() };
    let budget = has_budget(&team, &args.limits);
    let settings = settings(cli.color, args.output);
    let crew = Crew::choose(&mut team, &manner(&wish, &settings, budget, true)).await?;
    let chat = team.build(&|name| crew.model(name))?;
    let mut log = Log::open(store.clone(), id).await?.limits(limits(&team, &args.limits));
    if args.answer.is_some() && log.questions().await?.is_empty() {
        return Err(Trouble::usage(format!("nobody is asked anything in `{}`", log.id())));
    }
    // One that is done is done; what is not over, or has not begun, goes on as it is.
    let closed = log.transcript().await?.closed().map(|(reason, _)| reason.ending());
    if closed.is_some_and(|ending| ending != Ending::Done) {
        log.reopen().await?;
    }
    let task = team.task.clone().unwrap_or_default();
    Play { chat: &chat, log, store, settings, task, answer: args.answer.clone() }.run().await
}
