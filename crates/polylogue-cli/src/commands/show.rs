//! `polylogue show`: a whole conversation, or what one agent's model was sent.

use std::io;
use std::sync::Arc;

use polylogue::{
    Agent as _, AnyModel, Assistant, Body, Event, Intact, Name, Path, Sample, Store, ToolSpec, Transcript,
    View,
};
use polylogue_models::Script;
use serde_json::json;

use super::run::wish;
use super::{Kept, write};
use crate::play::tell;
use crate::screen::{Looks, Size, document, json};
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Show) -> Result<Exit, Trouble> {
    let store = place::open(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let Intact { events, damage } = store.read_intact(&id).await?;
    let looks = Looks::of(wish(cli.color), &io::stdout());
    let text = match &args.agent {
        Some(agent) => {
            let team = Kept::of(&store, &id).await?;
            received(&team, &events, agent, args, looks)?
        }
        None if args.json => {
            events.iter().map(json::line).collect::<Result<String, _>>().map_err(unwritable)?
        }
        None if args.markdown => document::markdown(&store.meta(&id).await?.title, &events),
        None => document::shown(&events, looks.colour.then(|| Size::of_terminal().text_columns())),
    };
    write(&text)?;
    damage.map_or(Ok(Exit::Done), |damage| Err(damage.into()))
}

fn unwritable(error: serde_json::Error) -> Trouble {
    Trouble::failed(format!("an event cannot be written: {error}"))
}

/// One request of the agent: what its view was when the model was asked.
fn received(
    kept: &Kept,
    events: &[Event],
    agent: &str,
    args: &args::Show,
    looks: Looks,
) -> Result<String, Trouble> {
    let nobody = || {
        let names: Vec<_> = kept.team.voices().iter().map(|name| format!("`{name}`")).collect();
        Trouble::usage(format!("no model speaks for `{agent}`"))
            .hint(format!("there are {}", names.join(", ")))
    };
    let who = Name::new(agent).map_err(|_| nobody())?;
    let assistants = kept.team.assistants(&|_| Ok(silent()))?;
    let assistant = assistants.iter().find(|assistant| *assistant.name() == who).ok_or_else(nobody)?;
    let calls: Vec<(&Event, &Sample)> = events.iter().filter_map(|event| sample_of(event, &who)).collect();
    let nth = args.call.unwrap_or(calls.len() as u64);
    let Some((event, sample)) = nth.checked_sub(1).and_then(|at| calls.get(usize::try_from(at).ok()?)) else {
        return Err(Trouble::usage(format!("`{who}` has made {} model calls", calls.len())));
    };
    let (view, system) = view_before(assistant, events, event)?;
    let specs = assistant.specs();
    let digest = view.digest(&sample.model, system.as_deref(), specs, assistant.sampling());
    if digest != sample.request {
        tell("The team was changed since: what was sent differed in the system text, tools or parameters.");
    }
    if args.json {
        let tools: Vec<&ToolSpec> = specs.iter().collect();
        let request = json!({
            "model": sample.model, "system": system, "entries": view.entries(), "tools": tools,
            "params": assistant.sampling(), "digest": sample.request,
        });
        return json::line(&request).map_err(unwritable);
    }
    Ok(document::received(system.as_deref(), view.entries(), looks.colour))
}

fn sample_of<'e>(event: &'e Event, who: &Name) -> Option<(&'e Event, &'e Sample)> {
    match &event.body {
        Body::Sampled(sample) if sample.who == *who => Some((event, sample)),
        _ => None,
    }
}

fn view_before(
    assistant: &Assistant,
    events: &[Event],
    sampled: &Event,
) -> Result<(View, Option<Arc<str>>), Trouble> {
    let before: Vec<Arc<Event>> =
        events.iter().take_while(|event| event.seq < sampled.seq).cloned().map(Arc::new).collect();
    let at: &Path = &sampled.at;
    let transcript = Transcript::of(at, &before).map_err(Trouble::failed)?;
    let view = View::of(&transcript, assistant.name(), assistant.sees().clone());
    Ok((view, assistant.system_for(transcript.task())))
}

/// Stands in for models where nobody speaks.
fn silent() -> AnyModel {
    AnyModel::new(Script::default().model("silent"))
}
