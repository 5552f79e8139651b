//! Group chats: several in one conversation, and a rule for who speaks next.
//!
//! # A model chooses who speaks
//! ```
//! use polylogue::stop::max_messages;
//! use polylogue::{AnyModel, Assistant, Chat, Group, Name, Selector, until};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let group = Group::picked_by(Name::new("selector")?);
//! let chat = Chat::named("numbers")
//!     .with(Assistant::new("Adder", model.clone())?.description("adds 1 to a number").system("Add 1."))
//!     .with(Assistant::new("Doubler", model.clone())?.description("doubles a number").system("Double it."))
//!     .aside(Selector::new("selector", model)?)
//!     .policy(until(max_messages(6), group))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # A person chooses, and not everybody may follow everybody
//! ```
//! use polylogue::group::{Chair, Transitions};
//! # use polylogue::{AnyModel, Assistant, Chat, Group, Name};
//!
//! # fn example(model: AnyModel) -> Result<(), Box<dyn std::error::Error>> {
//! let (coder, tester) = (Name::new("Coder")?, Name::new("Tester")?);
//! let transitions = Transitions::allowed([(coder.clone(), vec![coder.clone(), tester.clone()]), (tester, vec![coder])]);
//! let chat = Chat::named("team")
//!     .with(Assistant::new("Coder", model.clone())?)
//!     .with(Assistant::new("Tester", model)?)
//!     .aside(Chair::new("chair")?)
//!     .policy(Group::picked_by(Name::new("chair")?).transitions(transitions))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # States: a rule of one's own
//! ```
//! use polylogue::group::{Method, Pick};
//! use polylogue::{Group, Name, Transcript};
//!
//! let (writer, critic) = (Name::new("Writer")?, Name::new("Critic")?);
//! let group = Group::by(move |chat: &Transcript, _| match chat.last() {
//!     Some(last) if last.message.from == critic && last.message.plain().contains("good") => Pick::End,
//!     Some(last) if last.message.from == writer => critic.clone().into(),
//!     Some(_) => writer.clone().into(),
//!     None => Method::RoundRobin.into(),
//! });
//! # Ok::<(), polylogue::NameError>(())
//! ```

mod answer;
mod candidates;
mod chair;
mod introduction;
mod mention;
mod method;
mod selector;
mod tools;
mod transitions;

use std::fmt;

use polylogue_core::{Chooser, Error, Name, Policy, Result, Step, StopReason, Transcript};

pub use self::chair::HumanSelector;
pub use self::introduction::introduce;
pub use self::method::{Method, Pick};
pub use self::selector::Selector;
pub use self::transitions::{Repeat, Transitions, Warning};

use self::tools::Owners;
use crate::order::deserted;

/// Who speaks next in a group: a [`Policy`].
///
/// Each step, in this order:
///
/// 1. Calls of tools that members run for others (see [`runs`](Self::runs)) go to those members, several at the same
///    time; then whoever asked goes on. Such turns are no choice: repeats and transitions do not look at them.
/// 2. Those may speak who are present, whom the rule of repeats allows, and whom the transitions allow after the last
///    speaker. If there are none, the chat is over: [`StopReason::NoSpeaker`].
/// 3. One of them is chosen. Where only one may speak, nobody is asked. No way of choosing ever leads to somebody who may
///    not speak.
///
/// The log has each choice: among whom, by whom or what, and the reply of whoever was asked ([`Choice`](crate::Choice)).
///
/// An agent of your own can choose, too: it is asked aside, [`TurnRequest::choice`](crate::TurnRequest) says among whom, and it answers
/// with a text that names one, or with the data `{"speaker": "Ann"}`; `{"speaker": null}` leaves it to the order of the
/// members.
///
/// A group has no end of its own besides; give it one with [`until`](crate::until).
pub struct Group {
    picker: Picker,
    transitions: Option<Transitions>,
    repeat: Option<Repeat>,
    owners: Owners,
}

enum Picker {
    Method(Method),
    Rule(Rule),
}

type Rule = Box<dyn Fn(&Transcript, &[Name]) -> Pick + Send + Sync>;

impl From<Method> for Pick {
    fn from(method: Method) -> Self {
        Self::Method(method)
    }
}

impl Group {
    /// The members speak in their order.
    #[must_use]
    pub fn round_robin() -> Self {
        Self::of(Picker::Method(Method::RoundRobin))
    }

    /// Chance chooses. The same seed chooses the same at the same place of the same chat; without a seed it is the time of
    /// the chat's first event. The log has it either way.
    #[must_use]
    pub fn random(seed: Option<u64>) -> Self {
        Self::of(Picker::Method(Method::Random(seed)))
    }

    /// `staff` chooses, asked aside: a [`Selector`] or a [`HumanSelector`], added to the chat by
    /// [`aside`](crate::ChatBuilder::private_agent).
    #[must_use]
    pub fn selected_by(staff: Name) -> Self {
        Self::of(Picker::Method(Method::Staff(staff)))
    }

    /// A rule of one's own: a pure function of the transcript and of those who may speak.
    ///
    /// Naming somebody who may not speak is a mistake of the rule, and ends the run with an error.
    #[must_use]
    pub fn by(rule: impl Fn(&Transcript, &[Name]) -> Pick + Send + Sync + 'static) -> Self {
        Self::of(Picker::Rule(Box::new(rule)))
    }

    fn of(picker: Picker) -> Self {
        Self { picker, transitions: None, repeat: None, owners: Owners::default() }
    }

    /// Sets who may speak after whom. They say who may go on, too: there is no rule of repeats beside them.
    #[must_use]
    pub fn transitions(self, transitions: Transitions) -> Self {
        Self { transitions: Some(transitions), ..self }
    }

    /// Sets whether somebody may speak twice in a row.
    #[must_use]
    pub fn repeat(self, repeat: Repeat) -> Self {
        Self { repeat: Some(repeat), ..self }
    }

    /// Adds tools that `owner` runs for the others, who ask for them in messages: see [`Executor`](crate::executor::Executor).
    /// An owner who does nothing else is best added by [`aside`](crate::ChatBuilder::private_agent): then it is never chosen to
    /// speak.
    ///
    /// ```
    /// # use polylogue::{AnyTool, Executor, Group, Name, Tool};
    /// # fn example(tool: AnyTool) -> Result<(), Box<dyn std::error::Error>> {
    /// let executor = Executor::new().tool(tool);
    /// let tools: Vec<String> = executor.specs().map(|spec| spec.name.clone()).collect();
    /// let group = Group::round_robin().runs(&Name::new("Runner")?, tools);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn runs(mut self, owner: &Name, tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.owners.add(owner, tools);
        self
    }

    /// Whether the group can be one of `members`, those who may join later included, and what about it is hardly meant.
    /// A chat checks it by itself before its first turn.
    ///
    /// # Errors
    /// When transitions or repeats name somebody else, or there are both transitions and repeats.
    pub fn check(&self, members: &[Name]) -> Result<Vec<Warning>> {
        match self.flaw(members) {
            Some(flaw) => Err(Error::Config(format!("the group {flaw}"))),
            None => Ok(self.transitions.as_ref().map_or_else(Vec::new, |graph| graph.warnings(members))),
        }
    }

    fn flaw(&self, members: &[Name]) -> Option<String> {
        if self.transitions.is_some() && self.repeat.is_some() {
            return Some(
                "has transitions and a rule of repeats; the transitions alone say who may go on".into(),
            );
        }
        let in_graph =
            self.transitions.iter().flat_map(Transitions::names).map(|name| (name, "its transitions"));
        let repeats = self.repeat.iter().flat_map(Repeat::names).map(|name| (name, "its rule of repeats"));
        let (stranger, place) = in_graph.chain(repeats).find(|(name, _)| !members.contains(name))?;
        Some(format!("has `{stranger}` in {place}, who is no member"))
    }

    /// Those who may speak now.
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
        let pick = match &self.picker {
            Picker::Method(method) => return method.choose(chat, of),
            Picker::Rule(rule) => rule(chat, &of),
        };
        match pick {
            Pick::Method(method) => method.choose(chat, of),
            Pick::Name(name) if of.contains(&name) => method::cue(name, of, Chooser::Rule, None),
            Pick::Name(name) => {
                let members: Vec<&str> = of.iter().map(Name::as_str).collect();
                Step::Fail(format!("picks `{name}` where only {} may speak", members.join(", ")).into())
            }
            Pick::End => no_speaker(chat),
        }
    }
}

fn no_speaker(chat: &Transcript) -> Step {
    Step::close(StopReason::NoSpeaker { after: chat.last_speaker().cloned() }, chat)
}

impl Policy for Group {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some((_, reason)) = chat.ended_by() {
            return Step::close(reason.clone(), chat);
        }
        if chat.turns() == 0 {
            let everybody: Vec<Name> =
                chat.participants().iter().chain(chat.late_joiners()).cloned().collect();
            if let Some(flaw) = self.flaw(&everybody) {
                return Step::Fail(flaw.into());
            }
        }
        if let Some(step) = self.owners.route(chat).or_else(|| deserted(chat)) {
            return step;
        }
        let eligible = self.eligible(chat);
        if eligible.is_empty() { no_speaker(chat) } else { self.choose(chat, eligible) }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Group")
    }
}
