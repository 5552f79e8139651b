//! Role-play societies: two models in two roles do a task by talking, one instructing, the other solving.
//!
//! A person gives no more than an idea and two roles. A specifier makes a definite task of the idea, if there is one; a planner
//! divides it, if there is one. Then two system texts, each of which calls its reader "you" and the partner "I", keep the
//! conversation going: the *user* role instructs, one instruction at a time, and the *assistant* role answers with solutions,
//! until the user role writes nothing but a marker. The method is that of CAMEL (Li et al. 2023, "CAMEL: Communicative Agents for
//! 'Mind' Exploration of Large Language Model Society"); the words are our own.
//!
//! What a society is made of are ordinary assistants, and what comes of it is an ordinary [`Chat`]. The specifier and the planner
//! are asked aside, so that what they said stands in the transcript and in nobody's way.
//!
//! # Two roles and a specifier
//! ```
//! # fn example(model: polylogue::AnyModel) -> polylogue::Result<polylogue::Chat> {
//! use polylogue::{Assistant, Society};
//! let chat = Society::new(
//!     Assistant::new("Python_programmer", model.clone())?,
//!     Assistant::new("Stock_trader", model.clone())?,
//! )
//! .specify(Assistant::new("Specifier", model)?)
//! .max_rounds(5)
//! .build("society")?;
//! // chat.run(&mut log, "Develop a trading bot for the stock market").await?
//! # Ok(chat)
//! # }
//! ```
//!
//! # How it ends
//!
//! | what happens | the reason |
//! |---|---|
//! | the user role says that the task is done | [`StopReason::Mentioned`] with the marker |
//! | the rounds, or the messages, are used up | [`StopReason::Rounds`], [`StopReason::Messages`] |
//! | the user role gave no instruction, so often in a row | [`StopReason::Errors`] of the user role, in [`ModelMistake::Role`] |
//! | the assistant role gave an instruction: the roles are flipped | [`StopReason::Errors`] of the assistant role, in [`ModelMistake::Role`] |
//! | both say nearly the same again and again, or take leave again and again | [`StopReason::LoopDetected`] |
//! | a reply was blank, and that to the second asking was, too | [`StopReason::Errors`] of that role, in [`ModelMistake::Reply`] |
//! | a condition of one's own held | what it says; see [`RolePlay::until`] |
//!
//! What came of it, its summary, is what the assistant role said last.
//!
//! [`Chat`]: polylogue_core::Chat
//! [`StopReason::Mentioned`]: polylogue_core::StopReason::Mentioned
//! [`StopReason::Rounds`]: polylogue_core::StopReason::Rounds
//! [`StopReason::Messages`]: polylogue_core::StopReason::Messages
//! [`StopReason::Errors`]: polylogue_core::StopReason::Errors
//! [`StopReason::LoopDetected`]: polylogue_core::StopReason::LoopDetected
//! [`ModelMistake::Role`]: polylogue_core::ModelMistake::Role
//! [`ModelMistake::Reply`]: polylogue_core::ModelMistake::Reply

mod cast;
mod casting;
mod course;
mod critic;
mod prompts;

use std::fmt;
use std::sync::Arc;

use polylogue_core::{Agent, Chat, ChatBuilder, Error, Params, Policy, Result, Transcript};

use self::cast::{Cast, PromptFn, Side};
pub use self::casting::Casting;
use self::course::{Course, Done, Rules};
pub use self::critic::Critic;
use crate::Assistant;
use crate::loop_detector::LoopDetector;
use crate::stop::Stop;

/// Two roles that do a task by talking; see the [module](self).
#[derive(Clone)]
pub struct RolePlay {
    cast: Cast,
    rules: Rules,
    is_lenient: bool,
    sets_temperatures: bool,
}

impl fmt::Debug for RolePlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (assistant, user) = (&self.cast.assistant, &self.cast.user);
        f.debug_struct("Society").field("assistant", assistant).field("user", user).finish_non_exhaustive()
    }
}

impl RolePlay {
    /// What the user role writes when the task is done, unless it is told otherwise: CAMEL's marker.
    pub const DEFAULT_DONE: &'static str = "<CAMEL_TASK_DONE>";
    /// How many rounds there are at most, unless it is told otherwise: as in CAMEL's demonstrations.
    pub const DEFAULT_MAX_ROUNDS: u64 = 50;
    /// In how many words a task is specified, unless it is told otherwise: CAMEL's limit.
    pub const DEFAULT_WORD_LIMIT: u32 = 50;
    /// After how many messages without an instruction in a row it is over, unless it is told otherwise: as in CAMEL.
    pub const DEFAULT_UNINSTRUCTED: usize = 3;
    /// The temperature of the specifier, unless it has one: what invents is to be creative. LazyLLM's value.
    pub const SPECIFIER_TEMPERATURE: f64 = 1.0;
    /// The temperature of everybody else, unless they have one: what keeps to a role is to be steady. LazyLLM's value.
    pub const ROLE_TEMPERATURE: f64 = 0.2;

    /// A society of one who solves, `assistant`, and one who instructs, `user`.
    ///
    /// Whatever tools, parameters and sight of the room they have, they keep. The system text that they have stands after the
    /// rules of their roles: it is made of the task as it was specified. Their roles are their names, with a space for every `_`.
    #[must_use]
    pub fn new(assistant: Assistant, user: Assistant) -> Self {
        let rules = Rules {
            rounds: Self::DEFAULT_MAX_ROUNDS,
            messages: None,
            uninstructed: Self::DEFAULT_UNINSTRUCTED,
            flips: 1,
            circles: LoopDetector { silence: 0, ..LoopDetector::default() },
            until: None,
        };
        let cast = Cast::new(assistant, user, Self::DEFAULT_DONE, Self::DEFAULT_WORD_LIMIT);
        Self { cast, rules, is_lenient: false, sets_temperatures: true }
    }

    /// Sets what the roles are called in the system texts: `C++ developer` is no name, but it is a role.
    #[must_use]
    pub fn roles(mut self, assistant: impl Into<Arc<str>>, user: impl Into<Arc<str>>) -> Self {
        self.cast.roles = [assistant.into(), user.into()];
        self
    }

    /// Lets `specifier` make a definite task of the idea, before all else. The idea stays the task of the chat. A blank reply is
    /// asked for once more.
    #[must_use]
    pub fn specify(mut self, specifier: Assistant) -> Self {
        self.cast.specifier = Some(specifier);
        self
    }

    /// Sets in how many words the specifier is to write. It is asked to; nothing is cut off.
    #[must_use]
    pub const fn word_limit(mut self, words: u32) -> Self {
        self.cast.word_limit = words;
        self
    }

    /// Lets `planner` divide the task, as it was specified. Its plan stands after the task in both system texts.
    #[must_use]
    pub fn plan(mut self, planner: Assistant) -> Self {
        self.cast.planner = Some(planner);
        self
    }

    /// Lets a critic choose among several proposals, for each message of both roles.
    #[must_use]
    pub fn critic(mut self, critic: Critic) -> Self {
        self.cast.critic = Some(critic);
        self
    }

    /// Sets the language in which everybody writes, such as `French`: a sentence at the end of the system texts, of the opening,
    /// and of what specifier, planner and critic are asked. Set again, it is replaced.
    #[must_use]
    pub fn language(mut self, language: impl Into<Arc<str>>) -> Self {
        self.cast.language = Some(language.into());
        self
    }

    /// Sets what the user role receives at the beginning, instead of the usual text. It must be deterministic. The task in it is
    /// the idea.
    #[must_use]
    pub fn opening(mut self, text: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.opening = Some(Arc::new(text));
        self
    }

    /// Sets what the specifier is asked, instead of the usual prompt; the word limit is not added to it. It must be
    /// deterministic.
    #[must_use]
    pub fn specifier_prompt(mut self, text: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.specifier = Some(Arc::new(text));
        self
    }

    /// Sets what the planner is asked, instead of the usual prompt. It must be deterministic.
    #[must_use]
    pub fn planner_prompt(mut self, text: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.planner = Some(Arc::new(text));
        self
    }

    /// Sets the rules of the critic, instead of the usual ones. They must be deterministic.
    #[must_use]
    pub fn critic_rules(mut self, text: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        self.cast.texts.critic = Some(Arc::new(text));
        self
    }

    /// Sets what the user role writes when the task is done. Upper and lower case, and marks and punctuation around it, do not
    /// matter.
    #[must_use]
    pub fn done(mut self, marker: impl Into<Arc<str>>) -> Self {
        self.cast.done = marker.into();
        self
    }

    /// Ends the chat also when the marker stands somewhere in a message of the user role, and not only when the message is
    /// nothing else. What is only thought never ends it.
    #[must_use]
    pub const fn lenient(mut self) -> Self {
        self.is_lenient = true;
        self
    }

    /// Sets how many rounds there are at most, each of an instruction and a solution.
    #[must_use]
    pub const fn max_rounds(mut self, rounds: u64) -> Self {
        self.rules.rounds = rounds;
        self
    }

    /// Sets how many messages the two write at most. The opening and blank replies are none.
    #[must_use]
    pub const fn max_messages(mut self, messages: u64) -> Self {
        self.rules.messages = Some(messages);
        self
    }

    /// Sets after how many messages of the user role in a row that hold no `Instruction:` it is over; 0 for never.
    #[must_use]
    pub const fn uninstructed(mut self, messages: usize) -> Self {
        self.rules.uninstructed = messages;
        self
    }

    /// Sets after how many messages of the assistant role in a row with a line that begins with `Instruction:` it is over; 0 for
    /// never. 1 if it is not set.
    #[must_use]
    pub const fn flips(mut self, messages: usize) -> Self {
        self.rules.flips = messages;
        self
    }

    /// Sets when the conversation is held to go in circles. What is said of silence in it does not matter here: a blank reply is
    /// asked for once more, and a second one ends it.
    #[must_use]
    pub const fn circles(mut self, circles: LoopDetector) -> Self {
        self.rules.circles = LoopDetector { silence: 0, ..circles };
        self
    }

    /// Ends the chat also when `stop` holds. Set again, either ends it.
    #[must_use]
    pub fn until(mut self, stop: impl Into<Stop>) -> Self {
        let stop = stop.into();
        self.rules.until = Some(match self.rules.until.take() {
            Some(other) => other | stop,
            None => stop,
        });
        self
    }

    /// Sets the rules of the assistant role, in place of the usual ones. They have to be the same for the same.
    #[must_use]
    pub fn assistant_rules(mut self, rules: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        let rules: PromptFn = Arc::new(rules);
        self.cast.prompts[0] = rules;
        self
    }

    /// Sets the rules of the user role, in place of the usual ones. They have to be the same for the same.
    #[must_use]
    pub fn user_rules(mut self, rules: impl Fn(&Casting<'_>) -> String + Send + Sync + 'static) -> Self {
        let rules: PromptFn = Arc::new(rules);
        self.cast.prompts[1] = rules;
        self
    }

    /// Leaves it to the models how random they are, where nothing is set: there are models that refuse to be told.
    #[must_use]
    pub const fn own_temperatures(mut self) -> Self {
        self.sets_temperatures = false;
        self
    }

    /// The society as a chat.
    ///
    /// # Errors
    /// When a name is illegal or used twice, or the marker is blank.
    pub fn build(self, name: &str) -> Result<Chat> {
        self.builder(name)?.build()
    }

    /// The society as a chat that more can be said of, such as what it is good at.
    ///
    /// # Errors
    /// When the marker is blank.
    pub fn builder(self, name: &str) -> Result<ChatBuilder> {
        let (chat, policy) = self.begin(name)?;
        Ok(chat.policy(policy))
    }

    /// The chat without its policy, and its policy: for whoever wants to wrap it, such as in
    /// [`reflected`](crate::reflected).
    ///
    /// # Errors
    /// As [`builder`](Self::builder).
    pub fn begin(self, name: &str) -> Result<(ChatBuilder, impl Policy + use<>)> {
        if self.cast.done.trim().is_empty() {
            return Err(Error::Config("the marker that says that a task is done is blank".into()));
        }
        let society = if self.sets_temperatures { self.tempered() } else { self };
        let cast = Arc::new(society.cast);
        let user = cast.user.name().clone();
        let done = Done { marker: Arc::clone(&cast.done), anywhere: society.is_lenient, by: user };
        let opener = Arc::clone(&cast);
        // Each speaks at most twice for one message, and the last cannot be followed by another.
        let cap = society.rules.rounds.saturating_mul(4).saturating_add(4);
        let mut chat = Chat::named(name)
            .participant(Cast::player(&cast, Side::User))
            .participant(Cast::player(&cast, Side::Assistant))
            .opening(move |task| vec![opener.opening(task)])
            .max_turns(cap);
        for side in cast.staff() {
            chat = chat.private_agent(Cast::player(&cast, side));
        }
        Ok((chat, Course { cast, rules: society.rules, done }))
    }

    /// Those who take part by a model, each with the system text and the parameters that it has in `chat`: what their models
    /// are sent besides the conversation. For whoever looks on.
    #[must_use]
    pub fn told(&self, chat: &Transcript) -> Vec<Assistant> {
        let society = if self.sets_temperatures { self.clone().tempered() } else { self.clone() };
        society.cast.told(chat)
    }

    fn tempered(self) -> Self {
        let cast = self.cast;
        let steady = |agent: Assistant| tempered(agent, Self::ROLE_TEMPERATURE);
        let cast = Cast {
            assistant: steady(cast.assistant),
            user: steady(cast.user),
            specifier: cast.specifier.map(|agent| tempered(agent, Self::SPECIFIER_TEMPERATURE)),
            planner: cast.planner.map(steady),
            critic: cast.critic.map(|critic| critic.with(steady)),
            ..cast
        };
        Self { cast, ..self }
    }
}

/// `agent` with this temperature, if it has none.
fn tempered(agent: Assistant, temperature: f64) -> Assistant {
    let params = agent.model_params().clone();
    let temperature = params.temperature.or(Some(temperature));
    agent.params(Params { temperature, ..params })
}
