//! What an agent's model was sent, made again from the log.

use std::sync::Arc;

use polylogue::agents::tooling::ModelSettings;
use polylogue::layers::parse::as_sent;
use polylogue::tasks::group_solve::Check;
use polylogue::{Agent as _, Assistant, Transcript};
use polylogue_core::{
    AnyModel, Body, Capabilities, Capability, Entry, Event, LimitOverrides, ModelReply, Name, Path, View,
};
use polylogue_models::{KnownModel, Provider, RequestFormat, Script};
use polylogue_team::{Pattern, Team};
use serde_json::{Value, json};

use crate::stored::StoredTeam;
use crate::{Error, Result};

/// The request of one model call, rebuilt from the events before its reply.
#[derive(Debug, Clone)]
pub struct RebuiltRequest {
    /// The agent.
    pub who: Name,
    /// The number of the call among the agent's model calls, counted from 1.
    pub call: u64,
    /// The number of model calls that the agent has made.
    pub calls: u64,
    /// The `seq` of the event of the reply.
    pub seq: u64,
    /// The chat.
    pub chat: Path,
    /// The system message.
    pub system: Option<Arc<str>>,
    /// The entries that the model received, in the form in which its endpoint takes it.
    pub entries: Vec<Entry>,
    /// Whether it is exactly what was sent, by its digest. If not, the team was changed since.
    pub is_exact: bool,
    settings: ModelSettings,
    reply: ModelReply,
}

impl RebuiltRequest {
    /// Rebuilds the request of a model call of `agent`. Default of `call`: the last one.
    ///
    /// # Errors
    /// When the agent has no model, or has not made that call, or is not in the team any more.
    pub fn of(stored: &StoredTeam, events: &[Event], agent: &str, call: Option<u64>) -> Result<Self> {
        let who = Name::new(agent).map_err(|_| stored.no_model_for(agent))?;
        let replies: Vec<(&Event, &ModelReply)> =
            events.iter().filter_map(|event| reply_of(event, &who)).collect();
        if replies.is_empty() && !stored.team.answering_models().contains(&who) {
            return Err(stored.no_model_for(agent));
        }
        let calls = replies.len() as u64;
        let call = call.unwrap_or(calls);
        let at = call.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let Some((event, reply)) = at.and_then(|at| replies.get(at)) else {
            return Err(Error::NoCall { who, calls });
        };
        let before: Vec<Arc<Event>> =
            events.iter().take_while(|before| before.seq < event.seq).cloned().map(Arc::new).collect();
        let mut candidates = candidates(stored, &who, &before, event, reply)?;
        if candidates.is_empty() {
            return Err(Error::NoSuchAgentNow { who });
        }
        // Teams within a team may have agents of one name: the digest tells which of them it was.
        let exact = candidates.iter().position(|candidate| candidate.is_exact).unwrap_or(0);
        let Candidate { settings, view, system, is_exact } = candidates.swap_remove(exact);
        let examples = stored.team.examples_of(&who).unwrap_or_default().iter();
        let examples =
            examples.flat_map(|example| [Entry::user(&*example.user), Entry::assistant(&*example.assistant)]);
        let said = view.entries().to_vec();
        let said = match stored.team.output_blocks_of(&who) {
            Some(blocks) => as_sent(&blocks, said),
            None => said,
        };
        let entries: Vec<Entry> = examples.chain(said).collect();
        let entries = request_format(stored, &before, reply).sent(&entries);
        let (seq, at, reply) = (event.seq, event.chat.clone(), (*reply).clone());
        Ok(Self { who, call, calls, seq, chat: at, system, entries, is_exact, settings, reply })
    }

    /// Returns the request as JSON: model, system text, entries, tools, parameters and digest.
    pub fn to_json(&self) -> Value {
        let ModelSettings { tools, params, .. } = &self.settings;
        json!({
            "model": self.reply.model, "system": self.system, "entries": self.entries, "tools": tools,
            "params": params, "digest": self.reply.request,
        })
    }
}

impl StoredTeam {
    /// Returns the error for an agent that has no model.
    pub fn no_model_for(&self, agent: &str) -> Error {
        Error::NoModelFor { agent: agent.to_owned(), agents: self.team.answering_models() }
    }
}

/// What is known of the model called `name`, unless the team or the caller says something else.
fn usual(provider: Option<&Provider>, name: &str) -> Capabilities {
    let of_provider = provider.map(Provider::capabilities).unwrap_or_default();
    let known = name.split_once(':').and_then(|(provider, model)| KnownModel::find(provider, model));
    of_provider.or(known.as_ref().map(KnownModel::capabilities).unwrap_or_default())
}

/// The format in which the request was sent: as the endpoint is configured, and as its refusals before had taught. Scripts have
/// no endpoint.
fn request_format(stored: &StoredTeam, before: &[Arc<Event>], reply: &ModelReply) -> RequestFormat {
    let mut format = RequestFormat::NONE;
    let provider = reply.model.split(':').next().and_then(Provider::find);
    let endpoint = stored.team.endpoint_of(&reply.model).map(|(_, endpoint)| endpoint);
    format.merge = endpoint.map_or(provider.is_some(), |endpoint| endpoint.merge.unwrap_or(true));
    if stored.offline {
        return format;
    }
    let usual = usual(provider, &reply.model);
    let of_endpoint =
        endpoint.and_then(|endpoint| endpoint.capabilities.map(|capabilities| capabilities.or(usual)));
    let capabilities = stored.capabilities.or(of_endpoint).unwrap_or(usual);
    let is_refusal = |event: &Arc<Event>| match &event.body {
        Body::CapabilityMissing { model, capability, .. } => {
            **model == *reply.model && *capability == Capability::UserAfterTool
        }
        _ => false,
    };
    format.vision = capabilities.vision == Some(true);
    format.bridge =
        capabilities.user_after_tool.map_or_else(|| before.iter().any(is_refusal), |takes| !takes);
    format
}

/// The requests that `who` may have made: those of an agent, of a participant that is made of the chat around it, and of a picker.
fn candidates(
    stored: &StoredTeam,
    who: &Name,
    before: &[Arc<Event>],
    event: &Event,
    reply: &ModelReply,
) -> Result<Vec<Candidate>> {
    let mut assistants = stored.assistants()?;
    let here = Transcript::from_events(&event.chat, before).map_err(polylogue_core::Error::Bug)?;
    for at in std::iter::once(event.chat.clone()).chain(event.chat.ancestors()) {
        let chat = Transcript::from_events(&at, before).map_err(polylogue_core::Error::Bug)?;
        assistants.extend(stored.team.assistants_in(&chat, &|_| Ok(silent()))?);
    }
    assistants.retain(|assistant| assistant.name() == who);
    let of_agent = |assistant: &Assistant| request_settings_of(assistant, &stored.team, &here);
    let mut settings: Vec<Vec<RequestSettings>> = assistants.iter().map(of_agent).collect();
    let limits = LimitOverrides::last_of(before).unwrap_or(stored.limits);
    if let Some(most) = limits.reply_tokens {
        settings.iter_mut().for_each(|settings| limit_replies(settings, most));
    }
    let choices = stored.team.choices_of(who, &speakers(&here, who), &|_| Ok(silent()))?;
    settings.extend(choices.into_iter().map(|(asks, system)| vec![(asks, Some(system.into()))]));
    if let Some(most) = lowered(before, event, who) {
        settings.iter_mut().for_each(|settings| limit_replies(settings, most));
    }
    Ok(settings.into_iter().filter_map(|settings| Candidate::of(who, settings, &here, reply)).collect())
}

/// Adds the same settings with at most `most` tokens in the reply, which come first.
fn limit_replies(all: &mut Vec<RequestSettings>, most: u64) {
    let limited = |(settings, system): &RequestSettings| {
        let params = settings.params.with_reply_limit(most)?;
        Some((ModelSettings { params, ..settings.clone() }, system.clone()))
    };
    let limited: Vec<RequestSettings> = all.iter().filter_map(limited).collect();
    all.splice(0..0, limited);
}

/// The output limit of the call that ended with `event`, if it was lowered to what was left of a limit.
fn lowered(before: &[Arc<Event>], event: &Event, who: &Name) -> Option<u64> {
    let here = before.iter().rev().filter(|before| before.chat == event.chat);
    here.map_while(|before| match &before.body {
        Body::ModelReplied(reply) if reply.who == *who => None,
        Body::OutputLimited(limit) if limit.who == *who => Some(Some(limit.tokens)),
        _ => Some(None),
    })
    .flatten()
    .next()
}

/// Those among whom `who` chooses in its turn.
fn speakers(chat: &Transcript, who: &Name) -> Vec<Name> {
    let of = |event: &Arc<Event>| match &event.body {
        Body::TurnStarted { turns } => {
            let request = turns.iter().find(|request| request.who == *who)?;
            Some(request.choice.as_ref().map(|choice| choice.of.clone()))
        }
        _ => None,
    };
    let turn_started = chat.events().iter().rev().find_map(of).flatten();
    turn_started.unwrap_or_else(|| chat.present().cloned().collect())
}

/// How a model is asked, and with which system text.
type RequestSettings = (ModelSettings, Option<Arc<str>>);

fn request_settings_of(assistant: &Assistant, team: &Team, chat: &Transcript) -> Vec<RequestSettings> {
    let system = assistant.system_for(chat.task());
    let checks = checks(team).into_iter().flat_map(|check| check.request_settings(assistant));
    let settings = assistant.request_settings().into_iter().chain(checks);
    // An agent that repairs its own answer does so in a request apart, without its system text.
    settings.flat_map(|settings| [(settings.clone(), system.clone()), (settings, None)]).collect()
}

/// A request that may have been the one that was sent.
struct Candidate {
    settings: ModelSettings,
    view: View,
    system: Option<Arc<str>>,
    /// Whether it is what was sent, by its digest.
    is_exact: bool,
}

impl Candidate {
    /// The one of `all` settings whose request has the digest of `reply`; else the first, which is the usual one.
    fn of(who: &Name, all: Vec<RequestSettings>, chat: &Transcript, reply: &ModelReply) -> Option<Self> {
        let mut usual = None;
        for (settings, system) in all {
            let view = View::of(chat, who, settings.view.clone());
            let digest = view.digest(&reply.model, system.as_deref(), &settings.tools, &settings.params);
            let asked = Self { settings, view, system, is_exact: digest == reply.request };
            if asked.is_exact {
                return Some(asked);
            }
            usual = usual.or(Some(asked));
        }
        usual
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

fn reply_of<'e>(event: &'e Event, who: &Name) -> Option<(&'e Event, &'e ModelReply)> {
    match &event.body {
        Body::ModelReplied(reply) if reply.who == *who => Some((event, reply)),
        _ => None,
    }
}

/// Replaces models where no agent speaks.
fn silent() -> AnyModel {
    AnyModel::new(Script::default().model("silent"))
}
