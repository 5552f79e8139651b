//! `show --as`: the requests to an agent's model, made again from the log.

use std::sync::Arc;

use polylogue::agents::tooling::ModelSettings;
use polylogue::tasks::group_solve::Check;
use polylogue::{Agent as _, AnyModel, Assistant, Name, Transcript};
use polylogue_core::{Body, Capability, Entry, Event, ModelReply, View};
use polylogue_models::{Provider, RequestFormat, Script};
use polylogue_runtime::StoredTeam;
use polylogue_team::{Pattern, Team};
use serde_json::{Value, json};

use crate::args;
use crate::commands::unwritable;
use crate::error::CliError;
use crate::limit::counted;
use crate::screen::{OutputStyle, Sanitized, document};
use crate::stderr::print_note;

/// One request of the agent: what its view was when the model was asked.
pub(super) fn shown(
    kept: &StoredTeam,
    events: &[Event],
    agent: &str,
    args: &args::Show,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let no_such_agent = || no_such_agent(kept, agent);
    let who = Name::new(agent).map_err(|_| no_such_agent())?;
    let calls: Vec<(&Event, &ModelReply)> =
        events.iter().filter_map(|event| sample_of(event, &who)).collect();
    if calls.is_empty() && !kept.team.answering_models().contains(&who) {
        return Err(no_such_agent());
    }
    let nth = args.call.unwrap_or(calls.len() as u64);
    let Some((event, sample)) = nth.checked_sub(1).and_then(|at| calls.get(usize::try_from(at).ok()?)) else {
        return Err(CliError::usage(format!(
            "`{who}` has made {}",
            counted(calls.len() as u64, "model call")
        )));
    };
    let before: Vec<Arc<Event>> =
        events.iter().take_while(|before| before.seq < event.seq).cloned().map(Arc::new).collect();
    let mut asked = asked_of(kept, &who, &before, event, sample)?;
    if asked.is_empty() {
        let what =
            format!("what `{who}` was sent cannot be shown: the team has changed and has no such agent");
        return Err(
            CliError::usage(what).hint("`--json` without `--as` has its replies, and `--cost` what it cost")
        );
    }
    // Teams within a team may have agents of one name: the digest tells which of them it was.
    let shown = asked.swap_remove(asked.iter().position(|asked| asked.is_exact).unwrap_or(0));
    if !shown.is_exact {
        print_note(
            "The team was changed since: what was sent differed in the system text, tools or parameters.",
        );
    }
    let examples = kept.team.examples_of(&who).unwrap_or_default().iter();
    let examples = examples.flat_map(|shot| [Entry::user(&*shot.user), Entry::assistant(&*shot.assistant)]);
    let entries: Vec<Entry> = examples.chain(shown.view.entries().iter().cloned()).collect();
    let entries = forms(kept, &before, sample).sent(&entries);
    match args.json {
        true => Sanitized::json(&shown.as_json(sample, &entries)).map_err(unwritable),
        false => Ok(document::received(shown.system.as_deref(), &entries, looks.color)),
    }
}

/// The error for an agent that has no model.
pub(super) fn no_such_agent(kept: &StoredTeam, agent: &str) -> CliError {
    let names: Vec<_> = kept.team.answering_models().iter().map(|name| format!("`{name}`")).collect();
    CliError::usage(format!("no model speaks for `{agent}`")).hint(format!("there are {}", names.join(", ")))
}

/// The forms in which the request was sent: as the endpoint is configured, and as its refusals before had taught. Scripts have
/// no endpoint.
fn forms(kept: &StoredTeam, before: &[Arc<Event>], sample: &ModelReply) -> RequestFormat {
    let mut forms = RequestFormat::NONE;
    let provider = sample.model.split(':').next().and_then(Provider::find);
    let endpoint = kept.team.endpoint_of(&sample.model).map(|(_, endpoint)| endpoint);
    forms.merge = endpoint.map_or(provider.is_some(), |endpoint| endpoint.merge.unwrap_or(true));
    if kept.offline {
        return forms;
    }
    let usual = provider.map(Provider::capabilities).unwrap_or_default();
    let of_endpoint =
        endpoint.and_then(|endpoint| endpoint.capabilities.map(|capabilities| capabilities.over(usual)));
    let capabilities = kept.capabilities.or(of_endpoint).unwrap_or(usual);
    let is_refusal = |event: &Arc<Event>| match &event.body {
        Body::CapabilityMissing { model, capability: lacks, .. } => {
            **model == *sample.model && *lacks == Capability::UserAfterTool
        }
        _ => false,
    };
    forms.vision = capabilities.vision == Some(true);
    forms.bridge = capabilities.user_after_tool.map_or_else(|| before.iter().any(is_refusal), |takes| !takes);
    forms
}

/// The requests that `who` may have made: those of an agent, of a participant that is made of the chat around it, and of a picker.
fn asked_of(
    kept: &StoredTeam,
    who: &Name,
    before: &[Arc<Event>],
    event: &Event,
    sample: &ModelReply,
) -> Result<Vec<RebuiltRequest>, CliError> {
    let mut assistants = kept.assistants()?;
    let here = Transcript::of(&event.at, before).map_err(CliError::failed)?;
    for at in std::iter::once(event.at.clone()).chain(event.at.ancestors()) {
        let chat = Transcript::of(&at, before).map_err(CliError::failed)?;
        assistants.extend(kept.team.assistants_in(&chat, &|_| Ok(silent()))?);
    }
    assistants.retain(|assistant| assistant.name() == who);
    let of_agent = |assistant: &Assistant| ways_of(assistant, &kept.team, &here);
    let mut ways: Vec<Vec<RequestSettings>> = assistants.iter().map(of_agent).collect();
    let choices = kept.team.choices_of(who, &candidates(&here, who), &|_| Ok(silent()))?;
    ways.extend(choices.into_iter().map(|(asks, system)| vec![(asks, Some(system.into()))]));
    Ok(ways.into_iter().filter_map(|ways| RebuiltRequest::of(who, ways, &here, sample)).collect())
}

/// Those among whom `who` chooses in its turn.
fn candidates(chat: &Transcript, who: &Name) -> Vec<Name> {
    let of = |event: &Arc<Event>| match &event.body {
        Body::TurnStarted { turns: cues } => {
            let request = cues.iter().find(|request| request.who == *who)?;
            Some(request.choice.as_ref().map(|choice| choice.of.clone()))
        }
        _ => None,
    };
    let turn_started = chat.events().iter().rev().find_map(of).flatten();
    turn_started.unwrap_or_else(|| chat.present().cloned().collect())
}

/// How a model is asked, and with which system text.
type RequestSettings = (ModelSettings, Option<Arc<str>>);

fn ways_of(assistant: &Assistant, team: &Team, chat: &Transcript) -> Vec<RequestSettings> {
    let system = assistant.system_for(chat.task());
    let checks = checks(team).into_iter().flat_map(|check| check.asks(assistant));
    let ways = assistant.asks().into_iter().chain(checks);
    // An agent that repairs its own answer does so in a request apart, without its system text.
    ways.flat_map(|asks| [(asks.clone(), system.clone()), (asks, None)]).collect()
}

/// What an agent's model was asked, made again from the events before the reply.
struct RebuiltRequest {
    asks: ModelSettings,
    view: View,
    system: Option<Arc<str>>,
    /// Whether it is what was sent, by its digest.
    is_exact: bool,
}

impl RebuiltRequest {
    /// The way whose request has the digest of `sample`; else the first, which is the usual one.
    fn of(who: &Name, ways: Vec<RequestSettings>, chat: &Transcript, sample: &ModelReply) -> Option<Self> {
        let mut usual = None;
        for (asks, system) in ways {
            let view = View::of(chat, who, asks.view.clone());
            let digest = view.digest(&sample.model, system.as_deref(), &asks.tools, &asks.params);
            let asked = Self { asks, view, system, is_exact: digest == sample.request };
            if asked.is_exact {
                return Some(asked);
            }
            usual = usual.or(Some(asked));
        }
        usual
    }

    fn as_json(&self, sample: &ModelReply, entries: &[Entry]) -> Value {
        let ModelSettings { tools, params, .. } = &self.asks;
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
        Pattern::GroupSolve(solve) => Some(solve.check.build()),
        _ => None,
    });
    own.chain(team.teams.iter().flat_map(|sub| checks(&sub.team))).collect()
}

fn sample_of<'e>(event: &'e Event, who: &Name) -> Option<(&'e Event, &'e ModelReply)> {
    match &event.body {
        Body::ModelReplied(sample) if sample.who == *who => Some((event, sample)),
        _ => None,
    }
}

/// Replaces models where no agent speaks.
pub(super) fn silent() -> AnyModel {
    AnyModel::new(Script::default().model("silent"))
}
