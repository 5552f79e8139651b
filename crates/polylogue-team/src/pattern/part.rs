//! What a pattern does for its chat: checks, description, build.

use polylogue::policies::with_termination;
use polylogue::stop::{LoopDetector, Stop as Condition};
use polylogue::{AnyModel, Assistant, Name, Policy, Result, Transcript};
use polylogue_config::At;
use polylogue_core::text::enumerated;
use polylogue_core::{AnyAgent, ChatBuilder, ConfigError};

use super::task::Task;
use crate::diagnostic::Report;
use crate::flow::ChatFlow;
use crate::outline::Outline;
use crate::source::Span;
use crate::stop::Stop;
use crate::suggest;

/// A pattern, besides its keys.
pub(crate) trait Part {
    /// Reports mistakes in it. Unknown names are reported by the resolver.
    fn check(&self, _: &ChatFrame<'_>, _: &Outline<'_>, _: &mut Report<'_>) {}

    /// Reports why it cannot be built, if the file has no other mistakes.
    fn check_built(&self, _: &ChatFrame<'_>, _: &mut Report<'_>) {}

    /// Describes it in words that follow the names of the participants.
    fn describe(&self, chat: &ChatFrame<'_>) -> String;

    /// Names of agents that it asks and that do not take part. A human selector is another kind of agent and not included.
    fn private_agents(&self) -> Vec<&Name> {
        Vec::new()
    }

    /// All tasks that it gives.
    fn tasks(&self) -> Vec<&Task> {
        Vec::new()
    }

    /// Whether every participant has one turn and no more.
    fn has_one_turn_each(&self) -> bool {
        false
    }

    /// Whether its own keys limit how often participants speak, whatever they say.
    fn has_own_limit(&self) -> bool {
        false
    }

    /// Whether the result of its chat is a text of its own, such as an option that won a vote, and not the last message of a participant.
    fn has_own_result(&self) -> bool {
        false
    }

    /// Whether a participant can have one more turn at the end, for the result of a background task, as its policy
    /// [says](Policy::takes_follow_up).
    fn takes_follow_ups(&self) -> bool {
        false
    }

    /// Whether turns of participants can be background tasks: its policy continues without their messages.
    fn has_background_turns(&self) -> bool {
        false
    }

    /// Who can follow whom in its chat.
    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, outline: &Outline<'c>) -> ChatFlow<'c>;

    /// Builds the library's policy.
    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built>;

    /// The agents as they are in `chat`, if their system messages depend on it.
    fn assistants_in(&self, _: &Transcript, _: &dyn Agents) -> Result<Vec<Assistant>> {
        Ok(Vec::new())
    }
}

/// What a pattern is built to.
pub(crate) enum Built {
    /// A policy for the participants of the chat, and private agents that it asks.
    Policy(Box<dyn Policy>, Vec<AnyAgent>),
    /// A chat with participants and its own opening.
    Chat(Box<ChatBuilder>, Box<dyn Policy>),
}

impl Built {
    /// A policy that asks no private agents.
    #[expect(clippy::unnecessary_wraps, reason = "it is what builds return")]
    pub(super) fn policy(policy: impl Policy) -> Result<Self> {
        Ok(Self::Policy(Box::new(policy), Vec::new()))
    }
}

/// The agents of the team that is being built.
pub(crate) trait Agents {
    /// The model of `who`: its `own`, or that of the team.
    fn model(&self, who: &Name, own: Option<&str>) -> Result<AnyModel>;

    /// The agent `name`, which replies only by a model.
    fn speaker(&self, name: &Name) -> Result<Assistant>;

    /// The person `name` with their default answer, if it is a person.
    fn person(&self, name: &Name) -> Result<Option<AnyAgent>>;

    /// `agent`, which asks the person `name`, with the default answer of this person.
    fn with_default_answer(&self, name: &Name, agent: AnyAgent) -> AnyAgent;

    /// The agent, chat or team `name`.
    fn participant(&self, name: &Name) -> Result<AnyAgent>;

    /// The agent of a task with what it has for this task only; `None` if it does not reply only by a model.
    fn worker(&self, task: &Task) -> Result<Option<Assistant>>;

    /// The description of the agent, chat or team `name`.
    fn description_of(&self, name: &Name) -> &str;

    /// Agents that execute tools for others, with the names of these.
    fn executors(&self) -> Vec<(&Name, Vec<String>)>;
}

/// The chat of a pattern, besides the pattern.
pub(crate) struct ChatFrame<'c> {
    pub(crate) name: &'c Name,
    pub(crate) participants: &'c [At<Name>],
    pub(crate) late_joiners: Vec<&'c At<Name>>,
    pub(crate) stop: Option<&'c Stop>,
    pub(crate) loop_detector: LoopDetector,
    /// Keys that some patterns do not use, and where the file gives them.
    pub(crate) given: [(&'static str, Option<&'c Span>); 5],
}

impl<'c> ChatFrame<'c> {
    /// The participants, late joiners included.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = &'c At<Name>> {
        self.participants.iter().chain(self.late_joiners.iter().copied())
    }

    /// Whether `who` takes part.
    pub(crate) fn has(&self, who: &Name) -> bool {
        self.everyone().any(|participant| participant == who)
    }

    /// `start`, or the first participant.
    pub(super) fn start(&self, start: Option<&Name>) -> Result<Name> {
        let first = start.or(self.participants.first().map(|name| &name.value));
        first.cloned().ok_or_else(|| ConfigError::missing(format!("`{}`", self.name), "participants").into())
    }

    /// The termination condition, if there is one.
    pub(super) fn condition(&self) -> Result<Option<Condition>> {
        self.stop.map_or(Ok(None), Stop::build)
    }

    /// `policy` with the termination condition and, if `detects_loops`, with loop detection.
    pub(crate) fn ended(&self, policy: Box<dyn Policy>, detects_loops: bool) -> Result<Box<dyn Policy>> {
        let loops = Some(self.loop_detector).filter(|loops| detects_loops && *loops != LoopDetector::OFF);
        let conditions = self.condition()?.into_iter().chain(loops.map(Condition::from));
        Ok(match conditions.reduce(|one, other| one | other) {
            Some(condition) => Box::new(with_termination(policy, condition)),
            None => policy,
        })
    }

    /// Reports keys of the chat that `what` does not use, each with the reason.
    pub(super) fn check_without(&self, what: &str, keys: &[(&str, &str)], report: &mut Report<'_>) {
        for (key, why) in keys {
            let at = self.given.iter().find(|(given, _)| given == key).and_then(|(_, at)| *at);
            if let Some(at) = at {
                report.error_with_hint(at, format!("{what} has no `{key}`"), format!("leave it out: {why}"));
            }
        }
    }

    /// Reports a participant of the team that is none of the chat.
    pub(super) fn check_has(&self, who: &At<Name>, outline: &Outline<'_>, report: &mut Report<'_>) {
        if who.ok && outline.participant(who).is_some() && !self.has(who) && !report.full() {
            let names: std::collections::BTreeSet<&str> = self.everyone().map(|name| name.as_str()).collect();
            let hint = suggest::hint(who.as_str(), names.into_iter().collect::<Vec<_>>());
            report.error_with_hint(&who.span, format!("`{who}` does not take part in this chat"), hint);
        }
    }
}

/// `A, B, and C`; only the first of many names.
pub(crate) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = names.collect();
    match names.get(..SHOWN) {
        Some(shown) if names.len() > SHOWN + 1 => {
            let others = format!("{} others", names.len() - SHOWN);
            enumerated(shown.iter().copied().chain([others.as_str()]))
        }
        _ => enumerated(names),
    }
}
