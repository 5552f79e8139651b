//! `polylogue resume`: go on with a conversation.

use polylogue::Log;

use super::Kept;
use super::run::{has_budget, limits, settings};
use crate::crew::Crew;
use crate::play::Play;
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, Trouble> {
    let store = place::open(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let Kept { mut team, offline } = Kept::of(&store, &id).await?;
    let by_script = offline && args.models.model.is_none() && args.models.replay.is_none();
    let wish = args::Models {
        model: args.models.model.clone(),
        offline: by_script || args.models.offline,
        record: args.models.record.clone(),
        replay: args.models.replay.clone(),
    };
    let budget = has_budget(&team, &args.limits);
    let crew = Crew::choose(&mut team, &wish, !args.output.no_stream, budget, true)?;
    let chat = team.build(&|name| crew.model(name))?;
    let mut log = Log::open(store.clone(), id).await?.limits(limits(&team, &args.limits));
    // A log that a crash left without its first event has not begun: it is run from the start.
    if !log.events().await.is_empty() {
        log.reopen().await?;
    }
    let task = team.task.clone().unwrap_or_default();
    let settings = settings(cli.color, args.output);
    Play { chat: &chat, log, store, settings, task, answer: args.answer.clone() }.run().await
}
