//! Group chats: several participants in one chat, and a rule that selects the next speaker.
//!
//! # A model selects the speaker
//! ```
//! use polylogue::stop::max_messages;
//! use polylogue::policies::Selector;
//! use polylogue::{AnyModel, Assistant, Chat, Group};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let chat = Chat::builder("numbers")
//!     .participant(Assistant::new("Adder", model.clone())?.description("adds 1 to a number").system("Add 1."))
//!     .participant(Assistant::new("Doubler", model.clone())?.description("doubles a number").system("Double it."))
//!     .policy(Group::select_by(Selector::new("selector", model)?))
//!     .stop(max_messages(6))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # A person selects the speaker, with allowed transitions
//! ```
//! use polylogue::policies::group::{HumanSelector, Transitions};
//! # use polylogue::{AnyModel, Assistant, Chat, Group, Name};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let (coder, tester) = (Name::new("Coder")?, Name::new("Tester")?);
//! let transitions = Transitions::allowed([(coder.clone(), vec![coder.clone(), tester.clone()]), (tester, vec![coder])]);
//! let chat = Chat::builder("team")
//!     .participant(Assistant::new("Coder", model.clone())?)
//!     .participant(Assistant::new("Tester", model)?)
//!     .policy(Group::select_by(HumanSelector::new("chair")?).transitions(transitions))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # A state machine: a custom rule
//! ```
//! use polylogue::policies::group::{Method, Selected};
//! use polylogue::{Group, Name, Transcript};
//!
//! let (writer, critic) = (Name::new("Writer")?, Name::new("Critic")?);
//! let group = Group::custom(move |chat: &Transcript, _| match chat.last() {
//!     Some(last) if last.message.from == critic && last.message.text().contains("good") => Selected::End,
//!     Some(last) if last.message.from == writer => critic.clone().into(),
//!     Some(_) => writer.clone().into(),
//!     None => Method::RoundRobin.into(),
//! });
//! # Ok::<(), polylogue::kernel::data::NameError>(())
//! ```

mod answer;
mod candidates;
mod human_selector;
mod mention;
mod method;
mod selector;
mod tools;
mod transitions;

use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Agent, AnyAgent, Chooser, ConfigError, Name, PatternError, Policy, Result, Step, StopReason, Transcript,
    UnknownName,
};

pub use self::candidates::introduce;
pub use self::human_selector::HumanSelector;
pub use self::method::{Method, Selected};
pub use self::selector::Selector;
pub use self::transitions::{Repeat, Transitions, Warning};

use self::tools::Owners;
use crate::policies::order::without_participants;

/// Selects the next speaker of a group: a [`Policy`].
///
/// Each step, in this order:
///
/// 1. Calls of tools that participants run for others (see [`tool_owner`](Self::tool_owner)) go to those participants, in parallel;
///    then the caller continues. Such turns are not selections: repeats and transitions ignore them.
/// 2. The candidates are those who are present, and allowed by the rule of repeats and by the transitions after the
///    last speaker. Without candidates the chat ends: [`LibraryStopReason::NoSpeaker`].
/// 3. One of them is selected. With a single candidate nothing is asked. A participant who is not a candidate is never
///    selected.
///
/// The log has each selection: the candidates, who or what selected, and the reply ([`Choice`](polylogue_core::Choice)).
///
/// A custom agent can select, too: it is asked in a private turn, [`TurnRequest::choice`](polylogue_core::TurnRequest) has the
/// candidates, and it answers with a text that names one, or with the data `{"speaker": "Ann"}`; `{"speaker": null}`
/// selects the next in order.
///
/// A group never ends by itself; add a termination condition with [`with_termination`](crate::policies::with_termination).
#[derive(derive_more::Debug)]
#[must_use]
pub struct Group {
    #[debug(skip)]
    selection: Selection,
    transitions: Option<Transitions>,
    repeat: Option<Repeat>,
    owners: Owners,
    selector: Option<AnyAgent>,
}

enum Selection {
    Method(Method),
    Rule(Rule),
}

type Rule = Box<dyn Fn(&Transcript, &[Name]) -> Selected + Send + Sync>;

impl Group {
    /// Selects participants in order, repeatedly.
    pub fn round_robin() -> Self {
        Self::of(Selection::Method(Method::RoundRobin))
    }

    /// Selects at random. The same seed gives the same selection at the same point of the same chat; the default seed
    /// is the time of the chat's first event. Selections are logged either way.
    pub fn random(seed: Option<u64>) -> Self {
        Self::of(Selection::Method(Method::Random(seed)))
    }

    /// Asks `selector` in a private turn: a [`Selector`], a [`HumanSelector`] or a custom agent. It need not be added to
    /// the chat.
    pub fn select_by(selector: impl Agent) -> Self {
        let group = Self::select_by_name(selector.name().clone());
        Self { selector: Some(AnyAgent::new(selector)), ..group }
    }

    /// Selects speakers like [`select_by`](Self::select_by), by the name of a participant, or of an agent that was added to the chat with
    /// [`private_agent`](polylogue_core::ChatBuilder::private_agent).
    pub fn select_by_name(selector: Name) -> Self {
        Self::of(Selection::Method(Method::Agent(selector)))
    }

    /// Selects by a custom rule: a pure function of the transcript and the candidates.
    ///
    /// Naming a participant who is not a candidate is a bug of the rule, and ends the run with an error.
    pub fn custom(rule: impl Fn(&Transcript, &[Name]) -> Selected + Send + Sync + 'static) -> Self {
        Self::of(Selection::Rule(Box::new(rule)))
    }

    fn of(selection: Selection) -> Self {
        Self { selection, transitions: None, repeat: None, owners: Owners::default(), selector: None }
    }

    /// Sets who may speak after whom, including repeats: a rule of repeats cannot be set besides.
    pub fn transitions(self, transitions: Transitions) -> Self {
        Self { transitions: Some(transitions), ..self }
    }

    /// Sets who may speak twice in a row.
    ///
    /// ```
    /// use polylogue::Group;
    /// use polylogue::policies::group::Repeat;
    ///
    /// let group = Group::random(Some(7)).repeat(Repeat::No);
    /// ```
    pub fn repeat(self, repeat: Repeat) -> Self {
        Self { repeat: Some(repeat), ..self }
    }

    /// Sets that `owner` executes these tools for the others, who call them in messages: see
    /// [`Executor`](crate::layers::executor::Executor). Add an owner who does nothing else with
    /// [`private_agent`](polylogue_core::ChatBuilder::private_agent), so that it is never selected to speak.
    ///
    /// ```
    /// # use polylogue::kernel::tool::AnyTool;
    /// # use polylogue::layers::Executor;
    /// # use polylogue::{Group, Name, Tool};
    /// # fn example(tool: AnyTool) -> Result<(), Box<dyn std::error::Error>> {
    /// let executor = Executor::new().tool(tool);
    /// let tools: Vec<String> = executor.specs().map(|spec| spec.name.clone()).collect();
    /// let group = Group::round_robin().tool_owner(&Name::new("Runner")?, tools);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tool_owner(mut self, owner: &Name, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.owners.add(owner, tools);
        self
    }

    /// Checks the rules against `participants`, late joiners included, and returns warnings. A chat does this before its
    /// first turn.
    ///
    /// # Errors
    /// When transitions or repeats name unknown participants, or both are set.
    pub fn check(&self, participants: &[Name]) -> Result<Vec<Warning>> {
        match self.flaw(participants) {
            Some(flaw) => Err(flaw.into()),
            None => Ok(self.transitions.as_ref().map_or_else(Vec::new, |graph| graph.warnings(participants))),
        }
    }

    fn flaw(&self, participants: &[Name]) -> Option<ConfigError> {
        if self.transitions.is_some() && self.repeat.is_some() {
            let (of, has, but) =
                ("the group".into(), "has transitions".into(), "also a rule of repeats".into());
            let hint = Some("leave out the rule: the transitions alone say who may speak next");
            return Some(PatternError::Conflict { of, has, but, hint }.into());
        }
        let in_graph = self.transitions.iter().flat_map(Transitions::names);
        let in_graph = in_graph.map(|name| (name, "in the transitions of the group"));
        let repeats = self.repeat.iter().flat_map(Repeat::names);
        let repeats = repeats.map(|name| (name, "in the rule of repeats of the group"));
        let (unknown, place) = in_graph.chain(repeats).find(|(name, _)| !participants.contains(name))?;
        Some(UnknownName::new("participant", unknown).within(place).known(participants).into())
    }

    /// The candidates for the next turn.
    fn eligible(&self, chat: &Transcript) -> Vec<Name> {
        let may_follow = |last: &Name, next: &Name| match (&self.transitions, &self.repeat) {
            (Some(transitions), _) => transitions.allow(last, next),
            (None, Some(repeat)) => last != next || repeat.allows(last),
            (None, None) => true,
        };
        let last = chat.last_speaker().filter(|last| chat.participants().contains(last));
        chat.present().filter(|next| last.is_none_or(|last| may_follow(last, next))).cloned().collect()
    }

    fn choose(&self, chat: &Transcript, of: Vec<Name>) -> Step {
        let pick = match &self.selection {
            Selection::Method(method) => return method.choose(chat, of),
            Selection::Rule(rule) => rule(chat, &of),
        };
        match pick {
            Selected::Method(method) => method.choose(chat, of),
            Selected::Name(name) if of.contains(&name) => method::request(name, of, Chooser::Rule, None),
            Selected::Name(name) => {
                let participants: Vec<&str> = of.iter().map(Name::as_str).collect();
                Step::Fail(format!("picks `{name}` where only {} may speak", participants.join(", ")).into())
            }
            Selected::End => no_speaker(chat),
        }
    }
}

fn no_speaker(chat: &Transcript) -> Step {
    Step::close(StopReason::from(LibraryStopReason::NoSpeaker { after: chat.last_speaker().cloned() }), chat)
}

impl Policy for Group {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some((_, reason)) = chat.ended_by() {
            return Step::close(reason.clone(), chat);
        }
        if chat.turns() == 0 {
            let all: Vec<Name> = chat.participants().iter().chain(chat.late_joiners()).cloned().collect();
            if let Some(flaw) = self.flaw(&all) {
                return Step::Fail(format!("is invalid: {flaw}").into());
            }
        }
        if let Some(step) = self.owners.route(chat).or_else(|| without_participants(chat)) {
            return step;
        }
        let eligible = self.eligible(chat);
        if eligible.is_empty() { no_speaker(chat) } else { self.choose(chat, eligible) }
    }

    fn takes_next_speaker(&self, chat: &Transcript, who: &Name) -> Result<(), Arc<str>> {
        if self.owners.route(chat).is_some() {
            return Err("tool calls of the last message are executed first".into());
        }
        let eligible = self.eligible(chat);
        if eligible.contains(who) {
            return Ok(());
        }
        let may: Vec<String> = eligible.iter().map(|name| format!("`{name}`")).collect();
        Err(format!("the rules of the group let only {} speak next", may.join(", ")).into())
    }

    fn takes_follow_up(&self, chat: &Transcript, _: &Name) -> bool {
        self.owners.route(chat).is_none()
    }

    fn private_agents(&self) -> Vec<AnyAgent> {
        self.selector.iter().cloned().collect()
    }
}
