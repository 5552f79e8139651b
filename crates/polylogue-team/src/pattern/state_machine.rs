//! State machines: each state has a speaker, and conditions select the next state.

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue::policies::group::{Group, Selected};
use polylogue::stop::LibraryStopReason;
use polylogue::{Policy, Result, Step, Transcript};
use polylogue_config::{At, ByName, Config, Ref, Same};
use polylogue_core::{Name, StopReason, steerable};

use super::group::executing;
use super::part::{Agents, Built, ChatFrame, Part};
use crate::codes;
use crate::condition::{Condition, Verdict};
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point};
use crate::outline::Outline;
use crate::source::Span;
use crate::text::{ConditionText, END, Member, MemberOrEnd};

/// State machine: each state has a speaker, and conditions select the next state.
/// Example: `pattern: {state_machine: {start: Writer, after: {Writer: Critic,
/// Critic: [{when: "last.text.contains('APPROVED')", then: end}, {then: Writer}]}}}`.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "StateMachine")]
pub struct StateMachine {
    /// First speaker: a name, or a list of transitions of which the first whose condition holds is taken.
    #[key(none = "the first participant")]
    pub start: Option<NextStates>,
    /// Transitions by current speaker: a name, `end`, or a list of transitions of which the first whose condition holds
    /// is taken. The chat ends if none holds.
    #[key(as = ByName<Member, Same<NextStates>>, required, nonempty)]
    pub after: BTreeMap<At<Name>, NextStates>,
}

/// The transitions from a state.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "", by_shape)]
pub enum NextStates {
    /// This speaker, or the end.
    #[key(as = Ref<MemberOrEnd>)]
    To(Name),
    /// The first of these whose condition holds.
    First(Vec<At<Exit>>),
}

/// A transition of a state machine.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Transition")]
pub struct Exit {
    /// Condition of the transition, in CEL.
    #[key(as = Option<ConditionText>, none = "always", nonempty)]
    pub when: Option<String>,
    /// Next speaker, or `end`.
    #[key(as = Ref<MemberOrEnd>)]
    pub then: Name,
}

/// Transitions with their conditions.
pub(crate) type CompiledExits = Vec<(Option<Condition>, Name)>;

/// The speakers that can be next by `exits` after `turns` turns, the last of which was one of `speaker`.
pub(crate) fn possible_next<'e>(
    exits: &'e [(Option<Condition>, Name)],
    turns: u64,
    speaker: &str,
) -> Vec<&'e Name> {
    let mut all = Vec::new();
    for (condition, then) in exits {
        let verdict = condition.as_ref().map_or(Verdict::Holds, |when| when.after(turns, speaker));
        if verdict != Verdict::Fails && then.as_str() != END {
            all.push(then);
        }
        if verdict == Verdict::Holds {
            break;
        }
    }
    all
}

impl StateMachine {
    /// Its transitions, each with the speaker after whose turns it can be taken; `None` for those from the start.
    pub(crate) fn exits(&self) -> impl Iterator<Item = (Option<&Name>, &At<Exit>)> {
        let start = self.start.iter().map(|next| (None, next));
        let after = self.after.iter().map(|(from, next)| (Some(&from.value), next));
        start.chain(after).flat_map(|(from, next)| next.exits().iter().map(move |exit| (from, exit)))
    }
}

impl Exit {
    /// Whether it is taken whatever is said.
    fn is_always_taken(&self) -> bool {
        let always_holds = |when: &str| Condition::new(when).is_ok_and(|when| when.always_holds());
        self.when.as_deref().is_none_or(always_holds)
    }
}

impl NextStates {
    /// Its transitions, unless it leads to one speaker in any case.
    fn exits(&self) -> &[At<Exit>] {
        match self {
            Self::To(_) => &[],
            Self::First(exits) => exits,
        }
    }

    /// The steps from `from`, whose entry is at `at`. If no condition holds, the chat ends.
    fn steps<'c>(&'c self, from: Point<'c>, at: Option<&'c Span>) -> Vec<FlowStep<'c>> {
        let to = |name: &'c Name| if name.as_str() == END { Point::End } else { Point::Speaker(name) };
        match self {
            Self::To(then) => vec![FlowStep { at, ..FlowStep::new(from, to(then)) }],
            Self::First(exits) => {
                let always = exits.iter().position(|exit| exit.when.is_none());
                let taken = exits.iter().take(always.map_or(usize::MAX, |at| at + 1));
                let step = |(at, exit): (usize, &'c At<Exit>)| {
                    let otherwise = (at > 0).then_some("otherwise");
                    let when = exit.when.as_deref().or(otherwise);
                    FlowStep::new(from, to(&exit.then)).when(when).at(&exit.span)
                };
                let none = always
                    .is_none()
                    .then(|| FlowStep::new(from, Point::End).when(Some("no condition holds")));
                taken.enumerate().map(step).chain(none).collect()
            }
        }
    }

    /// All speakers that can be next, whatever the conditions say.
    pub(crate) fn targets(&self) -> Vec<&Name> {
        let all = match self {
            Self::To(then) => vec![then],
            Self::First(exits) => exits.iter().map(|exit| &exit.then).collect(),
        };
        all.into_iter().filter(|then| then.as_str() != END).collect()
    }

    pub(crate) fn compile(&self) -> Result<CompiledExits> {
        let compiled = |exit: &At<Exit>| {
            let when = exit.when.as_deref().map(Condition::compile).transpose()?;
            Ok((when, exit.then.clone()))
        };
        match self {
            Self::To(then) => Ok(vec![(None, then.clone())]),
            Self::First(exits) => exits.iter().map(compiled).collect(),
        }
    }
}

impl Part for StateMachine {
    fn check(&self, _: &ChatFrame<'_>, _: &Outline<'_>, report: &mut Report<'_>) {
        for next in self.after.values().chain(&self.start) {
            let exits = next.exits();
            // Nothing follows the last one.
            let mut before = exits.iter().take(exits.len().saturating_sub(1));
            let Some(always) = before.position(|exit| exit.is_always_taken()) else { continue };
            let hint = match exits.get(always).and_then(|exit| exit.when.as_ref()) {
                Some(when) => {
                    format!("the condition `{when}` before it always holds: put that transition last")
                }
                None => "a transition without `when` is always taken: put it last".to_owned(),
            };
            for never in exits.iter().skip(always + 1) {
                report.warning(codes::NEVER_HOLDS, &never.span, "this transition is unreachable", &*hint);
            }
        }
    }

    fn describe(&self, chat: &ChatFrame<'_>) -> String {
        let first = chat.participants.first().map(|name| name.as_str()).unwrap_or_default();
        let start = match &self.start {
            None => first.to_owned(),
            Some(NextStates::To(then)) => then.to_string(),
            Some(NextStates::First(exits)) => match exits.as_slice() {
                [] => first.to_owned(),
                [At { value: Exit { when: None, then }, .. }] => then.to_string(),
                exits => {
                    let names: Vec<&str> = exits.iter().map(|exit| exit.then.as_str()).collect();
                    format!("{} by conditions", names.join(" or "))
                }
            },
        };
        format!("state machine, starting with {start}")
    }

    fn flow<'c>(&'c self, chat: &ChatFrame<'c>, _: &Outline<'c>) -> ChatFlow<'c> {
        let first =
            chat.participants.first().map(|name| FlowStep::new(Point::Start, Point::Speaker(&name.value)));
        let mut steps = match &self.start {
            Some(start) => start.steps(Point::Start, None),
            None => first.into_iter().collect(),
        };
        for (from, next) in &self.after {
            steps.extend(next.steps(Point::Speaker(from), Some(&from.span)));
        }
        ChatFlow::of(steps)
    }

    fn build(&self, chat: &ChatFrame<'_>, agents: &dyn Agents) -> Result<Built> {
        let start = match &self.start {
            Some(start) => start.compile()?,
            None => vec![(None, chat.start(None)?)],
        };
        let mut exits = BTreeMap::new();
        for (name, given) in &self.after {
            exits.insert(name.value.clone(), given.compile()?);
        }
        Built::policy(policy(start, exits, |group| executing(group, chat, agents)))
    }
}

/// The transitions of the last speaker select the next one.
fn policy(
    start: CompiledExits,
    exits: BTreeMap<Name, CompiledExits>,
    executing: impl FnOnce(Group) -> Group,
) -> impl Policy {
    let targets = Targets::of(&start, &exits);
    let next = Arc::new(move |chat: &Transcript| {
        let last = chat.last_speaker().filter(|last| chat.participants().contains(last));
        let holds =
            |when: &Option<Condition>| when.as_ref().is_none_or(|when| when.holds_or_records_error(chat));
        last.map_or(Some(&start), |last| exits.get(last))?
            .iter()
            .find(|(when, _)| holds(when))
            .map(|(_, then)| then.clone())
    });
    let rule = Arc::clone(&next);
    let group = executing(Group::custom(move |chat, _| rule(chat).map_or(Selected::End, Selected::Name)));
    let machine = move |chat: &Transcript| {
        // Tool calls are answered first, without evaluating a condition.
        if chat.ended_by().is_some() || !chat.pending_calls().is_empty() {
            return group.next(chat);
        }
        match next(chat) {
            Some(name) if name.as_str() == END => Step::close(
                StopReason::from(LibraryStopReason::EndState { after: chat.last_speaker().cloned() }),
                chat,
            ),
            Some(name) if !chat.present().any(|here| *here == name) => Step::close(
                StopReason::from(LibraryStopReason::NoSpeaker { after: chat.last_speaker().cloned() }),
                chat,
            ),
            _ => group.next(chat),
        }
    };
    steerable(machine, move |chat, who| targets.refuse(chat, who))
}

/// Where transitions lead, whether their conditions hold or not: a person can choose among these.
struct Targets {
    start: Vec<Name>,
    after: BTreeMap<Name, Vec<Name>>,
}

impl Targets {
    fn of(start: &CompiledExits, exits: &BTreeMap<Name, CompiledExits>) -> Self {
        let names = |exits: &CompiledExits| {
            let names = exits.iter().map(|(_, then)| then.clone());
            names.filter(|name| name.as_str() != END).collect()
        };
        let after = exits.iter().map(|(from, exits)| (from.clone(), names(exits))).collect();
        Self { start: names(start), after }
    }

    /// Why `who` cannot be the next speaker.
    fn refuse(&self, chat: &Transcript, who: &Name) -> Option<Arc<str>> {
        if !chat.pending_calls().is_empty() {
            return Some("tool calls of the last message are executed first".into());
        }
        let last = chat.last_speaker().filter(|last| chat.participants().contains(last));
        let targets =
            last.map_or(Some(&self.start), |last| self.after.get(last)).map_or(&[][..], Vec::as_slice);
        if targets.contains(who) {
            return None;
        }
        let from = last.map_or_else(|| "at the start".to_owned(), |last| format!("after `{last}`"));
        let names: Vec<String> = targets.iter().map(|name| format!("`{name}`")).collect();
        Some(format!("the state machine leads only to {} {from}", names.join(", ")).into())
    }
}
