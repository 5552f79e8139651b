//! Role-play: two models in two roles work on a task, one instructing, the other solving.
//!
//! A person gives only an idea and two roles. An optional specifier turns the idea into a definite task; an optional
//! planner divides it. Then two system messages, each of which calls its reader "you" and the partner "I", keep the
//! conversation going: the *user* role gives one instruction at a time, and the *assistant* role answers with
//! solutions, until the user role writes only a marker. The method is that of CAMEL (Li et al. 2023, "CAMEL:
//! Communicative Agents for 'Mind' Exploration of Large Language Model Society"), with other prompts.
//!
//! It is made of ordinary assistants and builds an ordinary [`Chat`]. The specifier and the planner speak in private
//! turns, so their messages are in the transcript but not in the views of the roles.
//!
//! # Two roles and a specifier
//! ```
//! # fn example(model: polylogue::AnyModel) -> polylogue::Result<polylogue::Chat> {
//! use polylogue::tasks::RolePlay;
//! use polylogue::Assistant;
//! let chat = RolePlay::new(
//!     Assistant::new("Python_programmer", model.clone())?,
//!     Assistant::new("Stock_trader", model.clone())?,
//! )
//! .specify(Assistant::new("Specifier", model)?)
//! .max_rounds(5)
//! .build("role_play")?;
//! // chat.run_in(&mut log, "Develop a trading bot for the stock market").await?.status
//! # Ok(chat)
//! # }
//! ```
//!
//! # Termination
//!
//! | what happens | stop reason |
//! |---|---|
//! | the user role says that the task is done | [`LibraryStopReason::Mentioned`] with the marker |
//! | the limit on rounds or messages is reached | [`LibraryStopReason::Rounds`], [`LibraryStopReason::Messages`] |
//! | the user role gave no instruction, several times in a row | [`LibraryStopReason::Errors`] of the user role, in [`ModelMistake::Role`] |
//! | the assistant role gave an instruction: the roles are flipped | [`LibraryStopReason::Errors`] of the assistant role, in [`ModelMistake::Role`] |
//! | both repeat nearly the same messages, or say goodbye repeatedly | [`StopReason::LoopDetected`] |
//! | a reply was blank, and its retry, too | [`LibraryStopReason::Errors`] of that role, in [`ModelMistake::Reply`] |
//! | a custom condition holds | that of the condition; see [`RolePlay::stop`] |
//!
//! The summary is the last message of the assistant role.
//!
//! [`Chat`]: polylogue_core::Chat
//! [`LibraryStopReason::Mentioned`]: crate::stop::LibraryStopReason::Mentioned
//! [`LibraryStopReason::Rounds`]: crate::stop::LibraryStopReason::Rounds
//! [`LibraryStopReason::Messages`]: crate::stop::LibraryStopReason::Messages
//! [`LibraryStopReason::Errors`]: crate::stop::LibraryStopReason::Errors
//! [`StopReason::LoopDetected`]: polylogue_core::StopReason::LoopDetected
//! [`ModelMistake::Role`]: crate::stop::ModelMistake::Role
//! [`ModelMistake::Reply`]: crate::stop::ModelMistake::Reply

mod critic;
mod participants;
mod policy;
mod prompts;

use std::sync::Arc;

use polylogue_core::{Agent, Chat, ChatBuilder, Params, PatternError, Policy, Result, Transcript};

pub use self::critic::Critic;
pub use self::participants::AddedTexts;
use self::participants::{Participants, PromptFn, RolePlayAgent};
use self::policy::{Done, RolePlayPolicy, Rules};
pub use self::prompts::RoleValues;
use crate::Assistant;
use crate::stop::Stop;
use crate::termination::loop_detector::LoopDetector;

/// Two roles that work on a task by talking; see the [module](self).
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct RolePlay {
    cast: Participants,
    #[debug(skip)]
    rules: Rules,
    is_lenient: bool,
    sets_temperatures: bool,
}

impl RolePlay {
    /// Default marker of the user role for a finished task, as in CAMEL.
    pub const DEFAULT_DONE: &'static str = "<CAMEL_TASK_DONE>";
    /// Default limit on rounds, as in CAMEL's demonstrations.
    pub const DEFAULT_MAX_ROUNDS: u64 = 50;
    /// Default limit on the words of a specified task, as in CAMEL.
    pub const DEFAULT_WORD_LIMIT: u32 = 50;
    /// Default limit on messages in a row without an instruction, as in CAMEL.
    pub const DEFAULT_MAX_UNINSTRUCTED: usize = 3;
    /// Default temperature of the specifier, which should be creative. LazyLLM's value.
    pub const SPECIFIER_TEMPERATURE: f64 = 1.0;
    /// Default temperature of all others, which should keep to their roles. LazyLLM's value.
    pub const ROLE_TEMPERATURE: f64 = 0.2;

    /// Creates a role-play of `assistant`, who solves, and `user`, who instructs.
    ///
    /// They keep their tools, parameters and view options. Their own system messages come after the rules of their
    /// roles, and are made from the specified task. Their roles are their names, with a space for every `_`.
    pub fn new(assistant: Assistant, user: Assistant) -> Self {
        let rules = Rules {
            rounds: Self::DEFAULT_MAX_ROUNDS,
            messages: None,
            max_uninstructed: Self::DEFAULT_MAX_UNINSTRUCTED,
            max_flips: 1,
            loop_detector: LoopDetector { silence: 0, ..LoopDetector::default() },
            until: None,
        };
        let cast = Participants::new(assistant, user, Self::DEFAULT_DONE, Self::DEFAULT_WORD_LIMIT);
        Self { cast, rules, is_lenient: false, sets_temperatures: true }
    }

    /// Sets the names of the roles in the system messages: `C++ developer` is not a valid agent name, but can be a
    /// role.
    pub fn roles(mut self, assistant: impl Into<Arc<str>>, user: impl Into<Arc<str>>) -> Self {
        self.cast.roles = [assistant.into(), user.into()];
        self
    }

    /// Makes `specifier` turn the idea into a definite task, before all else. The idea stays the task of the chat. A
    /// blank reply is requested once more.
    pub fn specify(mut self, specifier: Assistant) -> Self {
        self.cast.specifier = Some(specifier);
        self
    }

    /// Sets the word limit in the prompt of the specifier. Longer texts are not truncated.
    pub const fn word_limit(mut self, words: u32) -> Self {
        self.cast.word_limit = words;
        self
    }

    /// Makes `planner` divide the specified task. Its plan comes after the task in both system messages.
    pub fn plan(mut self, planner: Assistant) -> Self {
        self.cast.planner = Some(planner);
        self
    }

    /// Makes a critic choose among several proposals, for each message of both roles.
    pub fn critic(mut self, critic: Critic) -> Self {
        self.cast.critic = Some(critic);
        self
    }

    /// Sets the language of all participants, such as `French`: adds a sentence to the system messages, the opening,
    /// and the prompts of specifier, planner and critic. The last call counts.
    pub fn language(mut self, language: impl Into<Arc<str>>) -> Self {
        self.cast.language = Some(language.into());
        self
    }

    /// Sets the opening message to the user role, instead of the default. Must be deterministic. The task in it is the
    /// idea.
    pub fn opening(mut self, text: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.opening = Some(Arc::new(text));
        self
    }

    /// Sets the prompt of the specifier, instead of the default; the word limit is not added to it. Must be
    /// deterministic.
    pub fn specifier_prompt(
        mut self,
        text: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.cast.texts.specifier = Some(Arc::new(text));
        self
    }

    /// Sets the prompt of the planner, instead of the default. Must be deterministic.
    pub fn planner_prompt(
        mut self,
        text: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.cast.texts.planner = Some(Arc::new(text));
        self
    }

    /// Sets the rules of the critic, instead of the default. Must be deterministic.
    pub fn critic_rules(mut self, text: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.critic = Some(Arc::new(text));
        self
    }

    /// Sets the marker of the user role for a finished task. Case and surrounding marks and punctuation are ignored.
    pub fn done(mut self, marker: impl Into<Arc<str>>) -> Self {
        self.cast.done = marker.into();
        self
    }

    /// Ends the chat also when the marker is anywhere in a message of the user role, and not only when it is the whole
    /// message. Reasoning never ends it.
    pub const fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    /// Sets the limit on rounds, each of an instruction and a solution.
    pub const fn max_rounds(mut self, rounds: u64) -> Self {
        self.rules.rounds = rounds;
        self
    }

    /// Sets the limit on messages of both roles, without the opening and blank replies.
    pub const fn max_messages(mut self, messages: u64) -> Self {
        self.rules.messages = Some(messages);
        self
    }

    /// Sets after how many messages of the user role in a row without `Instruction:` the chat ends; 0 for never.
    pub const fn max_uninstructed(mut self, messages: usize) -> Self {
        self.rules.max_uninstructed = messages;
        self
    }

    /// Sets after how many messages of the assistant role in a row with a line that starts with `Instruction:` the chat
    /// ends; 0 for never. Default: 1.
    pub const fn max_flips(mut self, messages: usize) -> Self {
        self.rules.max_flips = messages;
        self
    }

    /// Sets the loop detector. Its `silence` is ignored: a blank reply is requested once more, and a second one ends
    /// the chat.
    pub const fn loop_detector(mut self, detector: LoopDetector) -> Self {
        self.rules.loop_detector = LoopDetector { silence: 0, ..detector };
        self
    }

    /// Ends the chat also when `stop` holds. Can be called several times; any condition ends the chat.
    pub fn stop(mut self, stop: impl Into<Stop>) -> Self {
        let stop = stop.into();
        self.rules.until = Some(match self.rules.until.take() {
            Some(other) => other | stop,
            None => stop,
        });
        self
    }

    /// Sets the rules of the assistant role, instead of the default. Must be deterministic.
    pub fn assistant_rules(
        mut self,
        rules: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        let rules: PromptFn = Arc::new(rules);
        self.cast.prompts[0] = rules;
        self
    }

    /// Sets the rules of the user role, instead of the default. Must be deterministic.
    pub fn user_rules(mut self, rules: impl Fn(&RoleValues<'_>) -> String + Send + Sync + 'static) -> Self {
        let rules: PromptFn = Arc::new(rules);
        self.cast.prompts[1] = rules;
        self
    }

    /// Leaves temperatures that are not set to the models, such as to those that accept none. Default: the specifier gets
    /// [`SPECIFIER_TEMPERATURE`](Self::SPECIFIER_TEMPERATURE), and all others [`ROLE_TEMPERATURE`](Self::ROLE_TEMPERATURE).
    pub const fn model_temperatures(mut self) -> Self {
        self.sets_temperatures = false;
        self
    }

    /// Builds the role-play as a chat.
    ///
    /// # Errors
    /// When a name is illegal or used twice, or the marker is blank.
    pub fn build(self, name: impl AsRef<str>) -> Result<Chat> {
        self.builder(name)?.build()
    }

    /// Returns the role-play as a chat builder, to configure it further, such as its description.
    ///
    /// # Errors
    /// When the marker is blank.
    pub fn builder(self, name: impl AsRef<str>) -> Result<ChatBuilder> {
        let (chat, policy) = self.into_parts(name.as_ref())?;
        Ok(chat.policy(policy))
    }

    /// Returns the chat without its policy, and its policy, to wrap it, such as in [`with_summary_by`](crate::policies::with_summary_by).
    ///
    /// # Errors
    /// As [`builder`](Self::builder).
    pub fn into_parts(self, name: &str) -> Result<(ChatBuilder, impl Policy + use<>)> {
        if self.cast.done.trim().is_empty() {
            return Err(PatternError::Blank { what: "the marker of a completed task".into() }.into());
        }
        let role_play = if self.sets_temperatures { self.with_temperature() } else { self };
        let cast = Arc::new(role_play.cast);
        let user = cast.user.name().clone();
        let done = Done { marker: Arc::clone(&cast.done), anywhere: role_play.is_lenient, by: user };
        let opener = Arc::clone(&cast);
        // Each role speaks at most twice per message, and the last message has no successor.
        let cap = role_play.rules.rounds.saturating_mul(4).saturating_add(4);
        let mut chat = Chat::builder(name)
            .participant(Participants::player(&cast, RolePlayAgent::User))
            .participant(Participants::player(&cast, RolePlayAgent::Assistant))
            .opening(move |task| vec![opener.opening(task)])
            .max_turns(cap);
        for side in cast.private_roles() {
            chat = chat.private_agent(Participants::player(&cast, side));
        }
        Ok((chat, RolePlayPolicy { cast, rules: role_play.rules, done }))
    }

    /// Returns the assistants with the system messages and parameters that they have in `chat`, as their models receive them.
    /// For inspection.
    pub fn assistants_in(&self, chat: &Transcript) -> Vec<Assistant> {
        let role_play = if self.sets_temperatures { self.clone().with_temperature() } else { self.clone() };
        role_play.cast.prompted(chat)
    }

    /// Returns the texts that the role-play adds to the requests of its agents where their task is `task`, such as to compute how long these can be.
    pub fn added_texts(&self, task: &str) -> AddedTexts {
        self.cast.added(task)
    }

    fn with_temperature(self) -> Self {
        let cast = self.cast;
        let steady = |agent: Assistant| with_temperature(agent, Self::ROLE_TEMPERATURE);
        let cast = Participants {
            assistant: steady(cast.assistant),
            user: steady(cast.user),
            specifier: cast.specifier.map(|agent| with_temperature(agent, Self::SPECIFIER_TEMPERATURE)),
            planner: cast.planner.map(steady),
            critic: cast.critic.map(|critic| critic.with(steady)),
            ..cast
        };
        Self { cast, ..self }
    }
}

/// `agent` with this temperature, if it has none.
fn with_temperature(agent: Assistant, temperature: f64) -> Assistant {
    let params = agent.model_params().clone();
    let temperature = params.temperature.or(Some(temperature));
    agent.params(Params { temperature, ..params })
}
