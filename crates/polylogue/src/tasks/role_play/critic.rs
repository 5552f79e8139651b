//! Who chooses among proposals.

use std::sync::Arc;

use polylogue_core::AnyAgent;

use super::casting::Casting;
use super::prompts;
use crate::reason::{Best, ChoiceTexts};
use crate::{Assistant, Human};

/// Who chooses among several proposals for each message of a [`RolePlay`](super::RolePlay), and by what.
///
/// A role is asked for every proposal by itself, so that it needs no provider that gives several. The first whole number in the
/// critic's answer is its choice; an answer that names none of the options is asked for again, and in the end the first option is
/// taken. Blank proposals are none, and of one nobody is asked. Each role has its critic: it remembers what it chose for
/// that role.
#[derive(Debug, Clone)]
pub struct Critic {
    who: Who,
    options: usize,
    criteria: Arc<str>,
    retries: u32,
    texts: OwnTexts,
}

/// Texts that are set instead of the usual ones.
#[derive(Debug, Clone, Default)]
struct OwnTexts {
    prompt: Option<Arc<str>>,
    option: Option<Arc<str>>,
    retry_prompt: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
enum Who {
    Model(Box<Assistant>),
    Person(Human),
}

impl Critic {
    /// By what it chooses, unless it is told otherwise: CAMEL's criterion, in other words.
    pub const DEFAULT_CRITERIA: &'static str = "which of them brings the task forward most";

    /// A critic who chooses among so many options, at least 1. The system text that it has stands after the rules of a critic.
    #[must_use]
    pub fn new(agent: Assistant, options: usize) -> Self {
        Self::of(Who::Model(Box::new(agent)), options)
    }

    /// A person who chooses among so many options, at least 1, for each message: the run waits for every choice.
    #[must_use]
    pub fn person(person: Human, options: usize) -> Self {
        Self::of(Who::Person(person), options)
    }

    fn of(who: Who, options: usize) -> Self {
        let criteria = Self::DEFAULT_CRITERIA.into();
        Self {
            who,
            options: options.max(1),
            criteria,
            retries: Best::DEFAULT_RETRIES,
            texts: OwnTexts::default(),
        }
    }

    /// Sets by what a model chooses.
    #[must_use]
    pub fn criteria(self, criteria: impl Into<Arc<str>>) -> Self {
        Self { criteria: criteria.into(), ..self }
    }

    /// Sets how often it is asked again when it chooses nothing.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Sets the text in which the proposals are shown to it, as [`ChoiceTexts::prompt`]. The usual text names the language of
    /// the [`RolePlay`](super::RolePlay), this one does not.
    #[must_use]
    pub fn prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.prompt = Some(text.into());
        self
    }

    /// Sets the line before each proposal, as [`ChoiceTexts::option`].
    #[must_use]
    pub fn option_line(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.option = Some(text.into());
        self
    }

    /// Sets what it receives when it chose nothing, as [`ChoiceTexts::retry_prompt`].
    #[must_use]
    pub fn retry_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.retry_prompt = Some(text.into());
        self
    }

    /// The same critic, with a change of the assistant that it is, if it is one.
    pub(super) fn with(self, change: impl FnOnce(Assistant) -> Assistant) -> Self {
        let who = match self.who {
            Who::Model(agent) => Who::Model(Box::new(change(*agent))),
            person @ Who::Person(_) => person,
        };
        Self { who, ..self }
    }

    /// The assistant that it is, if it is one.
    pub(super) const fn assistant(&self) -> Option<&Assistant> {
        match &self.who {
            Who::Model(agent) => Some(agent),
            Who::Person(_) => None,
        }
    }

    pub(super) fn agent(&self) -> AnyAgent {
        match &self.who {
            Who::Model(agent) => AnyAgent::new(Assistant::clone(agent)),
            Who::Person(person) => AnyAgent::new(person.clone()),
        }
    }

    /// Whether there is anything to choose.
    pub(super) const fn chooses(&self) -> bool {
        self.options > 1
    }

    /// The rules it goes by.
    pub(super) fn rules(&self, casting: &Casting<'_>) -> String {
        prompts::critic(casting, &self.criteria)
    }

    /// The best of what `proposer` says. `usual` completes a usual text.
    pub(super) fn best(&self, proposer: Assistant, usual: impl Fn(&str) -> String) -> Best {
        let ChoiceTexts { prompt, option, retry_prompt } = ChoiceTexts::default();
        let own = self.texts.clone();
        let texts = ChoiceTexts {
            prompt: own.prompt.unwrap_or_else(|| usual(&prompt).into()),
            option: own.option.unwrap_or(option),
            retry_prompt: own.retry_prompt.unwrap_or_else(|| usual(&retry_prompt).into()),
        };
        Best::of(self.options, proposer, self.agent()).retries(self.retries).texts(texts)
    }
}
