//! `polylogue show`: a whole conversation, what one agent's model was sent, or what every agent knows.

mod cost;
mod sides;

use std::io;
use std::sync::Arc;

use polylogue::solve::Check;
use polylogue::tooling::Asks;
use polylogue::{
    Agent as _, AnyModel, Assistant, Body, Entry, Event, Intact, Name, Sample, Skills, Store, Transcript,
    View,
};
use polylogue_models::{Provider, Script, with_pictures};
use polylogue_team::{DecisionTemperature, Pattern, Team};
use serde_json::{Value, json};

use super::run::wish;
use super::{Kept, work, write};
use crate::play::tell;
use crate::screen::{Looks, Shown, Size, document};
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Show) -> Result<Exit, Trouble> {
    let store = place::existing(cli.store.as_deref())?;
    let id = place::find(&store, &args.id).await?;
    let Intact { events, damage } = store.read_intact(&id).await?;
    let looks = Looks::of(wish(cli.color), &io::stdout());
    let pictures = work::pictures(cli.store.as_deref(), &id, looks);
    let text = match &args.agent {
        _ if args.cost => cost::shown(&events, args.json, looks.colour).map_err(unwritable)?,
        _ if args.history || args.side_by_side => {
            sides::shown(&Kept::of(&store, &id).await?, &events, args, looks)?
        }
        Some(agent) => {
            let kept = Kept::of(&store, &id).await?;
            match args.call.is_none() && !args.json && sides::works_on_tasks(&kept, agent)? {
                true => sides::shown(&kept, &events, args, looks)?,
                false => received(&kept, &events, agent, args, looks)?,
            }
        }
        None if args.json => {
            events.iter().map(Shown::json).collect::<Result<Shown, _>>().map_err(unwritable)?
        }
        None if args.markdown => document::markdown(&store.meta(&id).await?.title, &events, pictures),
        None if args.style == args::Style::Autogen => {
            document::familiar(&store.meta(&id).await?.title, &events, looks.colour)
        }
        None => document::shown(&events, looks.colour.then(|| Size::of_terminal().text_columns()), pictures),
    };
    write(&text)?;
    let is_whole = args.agent.is_none() && !args.cost && !args.json && !args.history && !args.side_by_side;
    if let Some(files) = work::told(cli.store.as_deref(), &id).filter(|_| is_whole) {
        write(&Shown::plain("\n"))?;
        write(&Shown::row(&files))?;
    }
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
) -> Result<Shown, Trouble> {
    let nobody = || nobody(kept, agent);
    let who = Name::new(agent).map_err(|_| nobody())?;
    let mut assistants = kept.assistants()?;
    assistants.retain(|assistant| *assistant.name() == who);
    // Whoever chooses or sums up is there only in the chat where it does.
    if assistants.is_empty() && !kept.team.voices().contains(&who) {
        return Err(nobody());
    }
    let calls: Vec<(&Event, &Sample)> = events.iter().filter_map(|event| sample_of(event, &who)).collect();
    let nth = args.call.unwrap_or(calls.len() as u64);
    let Some((event, sample)) = nth.checked_sub(1).and_then(|at| calls.get(usize::try_from(at).ok()?)) else {
        return Err(Trouble::usage(format!("`{who}` has made {} model calls", calls.len())));
    };
    let before: Vec<Arc<Event>> =
        events.iter().take_while(|before| before.seq < event.seq).cloned().map(Arc::new).collect();
    // What those are told who choose or propose is made of the chat around them.
    for at in std::iter::once(event.at.clone()).chain(event.at.ancestors()) {
        let chat = Transcript::of(&at, &before).map_err(Trouble::failed)?;
        let there = kept.team.assistants_in(&chat, &|_| Ok(silent()))?;
        assistants.extend(there.into_iter().filter(|assistant| *assistant.name() == who));
    }
    if assistants.is_empty() {
        let what = format!(
            "what `{who}` was sent cannot be shown: it is no agent, but chooses or sums up in a chat"
        );
        return Err(
            Trouble::usage(what).hint("`--json` without `--as` has its replies, and `--cost` what it cost")
        );
    }
    let asked = assistants.iter().map(|assistant| Asked::of(assistant, &kept.team, &before, event, sample));
    let mut asked = asked.collect::<Result<Vec<_>, _>>()?;
    // Teams within a team may have agents of one name: the digest tells which of them it was.
    let shown = asked.swap_remove(asked.iter().position(|asked| asked.is_exact).unwrap_or(0));
    if !shown.is_exact {
        tell("The team was changed since: what was sent differed in the system text, tools or parameters.");
    }
    let examples = kept.team.examples_of(&who).unwrap_or_default().iter();
    let examples = examples.flat_map(|shot| [Entry::user(&*shot.asked), Entry::assistant(&*shot.said)]);
    let entries: Vec<Entry> = examples.chain(shown.view.entries().iter().cloned()).collect();
    let entries = if sees(kept, &sample.model) { with_pictures(&entries) } else { entries };
    let entries = sent(&entries, merges(&kept.team, &sample.model));
    match args.json {
        true => Shown::json(&shown.as_json(sample, &entries)).map_err(unwritable),
        false => Ok(document::received(shown.system.as_deref(), &entries, looks.colour)),
    }
}

fn nobody(kept: &Kept, agent: &str) -> Trouble {
    let names: Vec<_> = kept.team.voices().iter().map(|name| format!("`{name}`")).collect();
    Trouble::usage(format!("no model speaks for `{agent}`")).hint(format!("there are {}", names.join(", ")))
}

/// Whether the endpoint of `model` is sent as one message what several others said in a row. Scripts have no endpoint.
fn merges(team: &Team, model: &str) -> bool {
    let is_known = model.split(':').next().is_some_and(|name| Provider::find(name).is_some());
    team.endpoint_of(model).map_or(is_known, |(_, endpoint)| endpoint.merge.unwrap_or(true))
}

/// Whether `model` is sent the pictures that tools return.
fn sees(kept: &Kept, model: &str) -> bool {
    let of_endpoint = || {
        let (_, endpoint) = kept.team.endpoint_of(model)?;
        endpoint.skills.map(|skills| skills.over(Skills::default()))
    };
    !kept.offline && kept.skills.or_else(of_endpoint).is_some_and(|skills| skills.vision == Some(true))
}

/// The entries as they went out.
fn sent(entries: &[Entry], merge: bool) -> Vec<Entry> {
    let mut sent: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match (entry, sent.last_mut()) {
            (Entry::User { parts }, Some(Entry::User { parts: before })) if merge => {
                before.extend(parts.iter().cloned());
            }
            _ => sent.push(entry.clone()),
        }
    }
    sent
}

/// What an agent's model was asked, made anew from the events before the reply.
struct Asked {
    asks: Asks,
    view: View,
    system: Option<Arc<str>>,
    /// Whether it is what was sent, by its digest.
    is_exact: bool,
}

impl Asked {
    fn of(
        assistant: &Assistant,
        team: &Team,
        before: &[Arc<Event>],
        sampled: &Event,
        sample: &Sample,
    ) -> Result<Self, Trouble> {
        let transcript = Transcript::of(&sampled.at, before).map_err(Trouble::failed)?;
        let system = assistant.system_for(transcript.task());
        let checks = checks(team).into_iter().flat_map(|check| check.asks(assistant));
        let ways = assistant.asks().into_iter().chain(checks);
        // Whoever repairs its own answer does so apart, without its system text.
        let ways = ways.flat_map(|asks| [(asks.clone(), system.clone()), (asks, None)]);
        let made = ways.map(|(asks, system)| {
            let view = View::of(&transcript, assistant.name(), asks.lens.clone());
            let digest = view.digest(&sample.model, system.as_deref(), &asks.tools, &asks.params);
            Self { asks, view, system, is_exact: digest == sample.request }
        });
        // The first is the usual one.
        let mut usual = None;
        for asked in made {
            if asked.is_exact {
                return Ok(asked);
            }
            usual = usual.or(Some(asked));
        }
        usual.ok_or_else(|| Trouble::failed("an agent asks in no way at all"))
    }

    fn as_json(&self, sample: &Sample, entries: &[Entry]) -> Value {
        let Asks { tools, params, .. } = &self.asks;
        json!({
            "model": sample.model, "system": self.system, "entries": entries, "tools": tools, "params": params,
            "digest": sample.request,
        })
    }
}

/// How agents are asked whether their tasks are complete. The words of the questions are in the log.
fn checks(team: &Team) -> Vec<Check> {
    let chats = std::iter::once(&team.chat).chain(team.chats.iter().map(|inner| &inner.chat));
    let own = chats.filter_map(|chat| match &chat.pattern {
        Pattern::Solve(solve) => Some(match solve.check.temperature {
            None => Check::default(),
            Some(DecisionTemperature::Own(_)) => Check::default().temperature(None),
            Some(DecisionTemperature::Of(temperature)) => Check::default().temperature(Some(temperature)),
        }),
        _ => None,
    });
    own.chain(team.teams.iter().flat_map(|sub| checks(&sub.team))).collect()
}

fn sample_of<'e>(event: &'e Event, who: &Name) -> Option<(&'e Event, &'e Sample)> {
    match &event.body {
        Body::Sampled(sample) if sample.who == *who => Some((event, sample)),
        _ => None,
    }
}

/// Stands in for models where nobody speaks.
fn silent() -> AnyModel {
    AnyModel::new(Script::default().model("silent"))
}
