//! Critics that choose among proposals.

use std::sync::Arc;

use polylogue_core::{Agent, AnyAgent};

use super::prompts;
use super::prompts::RoleValues;
use crate::Assistant;
use crate::agents::reason::{BestOfN, ChoiceTexts};

/// Chooses among several proposals for each message of a [`RolePlay`](super::RolePlay).
///
/// Each proposal is its own model call, so the provider need not support several choices. The first whole number in the
/// critic's answer is its choice; an answer without a valid number is requested again, and after the last retry the
/// first option wins. Blank proposals are dropped; with one proposal left the critic is not asked. Each role has its
/// own critic, which remembers its choices for that role.
///
/// ```
/// # use polylogue::{AnyModel, Assistant};
/// # fn example(model: AnyModel) -> Result<(), polylogue::kernel::data::NameError> {
/// use polylogue::tasks::RolePlay;
/// use polylogue::tasks::role_play::Critic;
///
/// let (programmer, trader) = (Assistant::new("Programmer", &model)?, Assistant::new("Trader", &model)?);
/// let critic = Critic::new(Assistant::new("Critic", &model)?, 3).criteria("which of them is the most specific");
/// let role_play = RolePlay::new(programmer, trader).critic(critic);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Critic {
    who: Who,
    options: usize,
    criteria: Arc<str>,
    retries: u32,
    texts: CustomPrompts,
}

/// Custom prompts instead of the defaults.
#[derive(Debug, Clone, Default)]
struct CustomPrompts {
    prompt: Option<Arc<str>>,
    option: Option<Arc<str>>,
    retry_prompt: Option<Arc<str>>,
}

#[derive(Debug, Clone)]
enum Who {
    Model(Box<Assistant>),
    Person(AnyAgent),
}

impl Critic {
    /// Default criteria: CAMEL's, in other words.
    pub const DEFAULT_CRITERIA: &'static str = "which of them advances the task most";

    /// Creates a critic model that chooses among `options` proposals, at least 1. Its own system message comes after the rules
    /// of a critic.
    pub fn new(agent: Assistant, options: usize) -> Self {
        Self::of(Who::Model(Box::new(agent)), options)
    }

    /// Makes a critic of a person, who chooses among `options` proposals, at least 1, for each message: a
    /// [`Human`](crate::Human), or one with a default answer ([`AnswerTimeout`](crate::layers::AnswerTimeout)). The run waits
    /// for every choice.
    pub fn person(person: impl Agent, options: usize) -> Self {
        Self::of(Who::Person(AnyAgent::new(person)), options)
    }

    fn of(who: Who, options: usize) -> Self {
        let criteria = Self::DEFAULT_CRITERIA.into();
        Self {
            who,
            options: options.max(1),
            criteria,
            retries: BestOfN::DEFAULT_RETRIES,
            texts: CustomPrompts::default(),
        }
    }

    /// Sets the criteria of a critic model.
    pub fn criteria(self, criteria: impl Into<Arc<str>>) -> Self {
        Self { criteria: criteria.into(), ..self }
    }

    /// Sets how often an answer without a choice is requested again.
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Sets the prompt that shows the proposals, as [`ChoiceTexts::prompt`]. The default prompt names the language of
    /// the [`RolePlay`](super::RolePlay), this one does not.
    pub fn prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.prompt = Some(text.into());
        self
    }

    /// Sets the line before each proposal, as [`ChoiceTexts::option`].
    pub fn option_line(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.option = Some(text.into());
        self
    }

    /// Sets the prompt after an answer without a choice, as [`ChoiceTexts::retry_prompt`].
    pub fn retry_prompt(mut self, text: impl Into<Arc<str>>) -> Self {
        self.texts.retry_prompt = Some(text.into());
        self
    }

    /// The critic with its assistant changed, if it has one.
    pub(super) fn with(self, change: impl FnOnce(Assistant) -> Assistant) -> Self {
        let who = match self.who {
            Who::Model(agent) => Who::Model(Box::new(change(*agent))),
            person @ Who::Person(_) => person,
        };
        Self { who, ..self }
    }

    /// Its assistant, if it has one.
    pub(super) const fn assistant(&self) -> Option<&Assistant> {
        match &self.who {
            Who::Model(agent) => Some(agent),
            Who::Person(_) => None,
        }
    }

    pub(super) fn agent(&self) -> AnyAgent {
        match &self.who {
            Who::Model(agent) => AnyAgent::new(Assistant::clone(agent)),
            Who::Person(person) => person.clone(),
        }
    }

    /// Whether there is anything to choose.
    pub(super) const fn chooses(&self) -> bool {
        self.options > 1
    }

    /// Its rules.
    pub(super) fn rules(&self, values: &RoleValues<'_>) -> String {
        prompts::critic(values, &self.criteria)
    }

    /// The best proposal of `proposer`. `usual` completes a default prompt.
    pub(super) fn best(&self, proposer: Assistant, usual: impl Fn(&str) -> String) -> BestOfN {
        let ChoiceTexts { prompt, option, retry_prompt } = ChoiceTexts::default();
        let own = self.texts.clone();
        let texts = ChoiceTexts {
            prompt: own.prompt.unwrap_or_else(|| usual(&prompt).into()),
            option: own.option.unwrap_or(option),
            retry_prompt: own.retry_prompt.unwrap_or_else(|| usual(&retry_prompt).into()),
        };
        BestOfN::new(self.options, proposer, self.agent()).retries(self.retries).texts(texts)
    }
}
