//! Chats from their start to their end: every participant can speak, something follows, and there is an end.

use std::collections::BTreeSet;

use polylogue_config::At;
use polylogue_core::Name;

use super::waits::{self, Wait};
use crate::agent::Agent;
use crate::chat::{Chat, InnerChat};
use crate::codes;
use crate::diagnostic::Report;
use crate::flow::{ChatFlow, FlowStep, Point, Ways};
use crate::outline::Outline;
use crate::pattern::{Group, Pattern, listed};
use crate::source::Span;
use crate::team::Team;

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    for (name, chat) in team.checked_chats() {
        let flow = chat.pattern.part().flow(&chat.frame(name), outline);
        let ways = flow.ways();
        let checked = CheckedChat { name, chat, outline, flow, ways };
        checked.warn_of_unreachable(report);
        checked.warn_of_dead_ends(report);
        checked.warn_of_endless(report);
        // Messages of another chat that is continued can be from any of its participants.
        let continues = |inner: &InnerChat| inner.name == *name && inner.continues.is_some();
        if !chat.late_joiners.is_empty() && !team.named_chats().any(continues) {
            let speak_without = |absent: &[&Name]| checked.speakers_without(absent);
            waits::check_late_joiners(chat, speak_without, |who| checked.before(who), report);
        }
    }
}

/// A chat with its flow.
struct CheckedChat<'c> {
    name: &'c Name,
    chat: &'c Chat,
    outline: &'c Outline<'c>,
    flow: ChatFlow<'c>,
    ways: Ways<'c>,
}

impl<'c> CheckedChat<'c> {
    /// The participants as agents.
    fn agents(&self) -> impl Iterator<Item = (&'c At<Name>, &'c Agent)> {
        let outline = self.outline;
        self.chat.everyone().filter_map(move |who| Some((who, outline.participant(who)?.agent()?)))
    }

    /// All points that the chat can reach.
    fn reached(&self) -> BTreeSet<Point<'c>> {
        self.reached_by(&self.ways)
    }

    /// All points to which `ways` lead. Participants that execute tools speak after a call of another one.
    fn reached_by(&self, ways: &Ways<'c>) -> BTreeSet<Point<'c>> {
        let suggests =
            |(_, agent): (_, &Agent)| agent.model().is_some_and(|keys| !keys.suggests_tools.is_empty());
        let is_called = self.agents().any(suggests);
        let executors = self.agents().filter(|(_, agent)| is_called && !agent.executes_tools.is_empty());
        let executors = executors.map(|(who, _)| Point::Speaker(&who.value));
        ways.reached(executors.chain([Point::Start]))
    }

    /// Who can speak while the participants `absent` have not joined.
    fn speakers_without(&self, absent: &[&Name]) -> Vec<&'c Name> {
        let is_here = |who: &&Name| !absent.contains(who);
        // Other patterns skip participants that are not there.
        let stops = match &self.chat.pattern {
            Pattern::StateMachine(_) | Pattern::Handoffs(_) => true,
            Pattern::Group(Group { transitions, .. }) => transitions.is_some(),
            _ => false,
        };
        if !stops || self.flow.selected.is_some() {
            return self.chat.everyone().map(|who| &who.value).filter(is_here).collect();
        }
        let leads_there =
            |step: &&FlowStep<'c>| !matches!(step.to, Point::Speaker(who) if absent.contains(&who));
        let steps = self.flow.steps.iter().filter(leads_there).cloned().collect();
        let reached = self.reached_by(&ChatFlow::of(steps).ways());
        reached.into_iter().filter_map(Point::speaker).filter(is_here).collect()
    }

    /// The participants after whom `who` can speak.
    fn before(&self, who: &Name) -> Vec<&'c Name> {
        let leads = |step: &&FlowStep<'c>| matches!(step.to, Point::Speaker(to) if to == who);
        let before = self.flow.steps.iter().filter(leads).filter_map(|step| step.from.speaker());
        before.filter(|from| *from != who).collect()
    }

    fn warn_of_unreachable(&self, report: &mut Report<'_>) {
        if self.flow.selected.is_some() {
            return;
        }
        let reached = self.reached();
        let never = |who: &&At<Name>| who.ok && !reached.contains(&Point::Speaker(&who.value));
        // A graph with an unreachable node cannot be built, which is reported as an error.
        let is_graph = matches!(self.chat.pattern, Pattern::Graph(_));
        let built = if is_graph { self.chat.participants.len() } else { 0 };
        let never: Vec<&'c At<Name>> = self.chat.everyone().skip(built).filter(never).collect();
        let waits = |who: &Name| {
            let leads = |name: &&'c At<Name>| {
                let is_it = |step: &FlowStep<'c>| {
                    step.from == Point::Speaker(&name.value)
                        && matches!(step.to, Point::Speaker(to) if to == who)
                };
                self.flow.steps.iter().any(is_it)
            };
            never.iter().copied().find(leads).map(|name| Wait::to_speak(&name.value))
        };
        let mut told = BTreeSet::new();
        for &who in &never {
            if report.full_of_warnings() {
                return;
            }
            if waits(who).is_some() {
                let hint = "add a transition to one of them from a participant that speaks, or begin with it";
                waits::warn(who, waits, hint, &mut told, report);
                continue;
            }
            let message = format!("no transition of the chat `{}` leads to `{who}`", self.name);
            let hint = "add a transition to it, or remove it from `participants`";
            report.warning(codes::UNREACHABLE, &who.span, message, hint);
        }
    }

    fn warn_of_dead_ends(&self, report: &mut Report<'_>) {
        let dead =
            |point: &Point<'c>| *point != Point::End && *point != Point::Start && !self.ways.leads_on(*point);
        for point in self.reached().into_iter().filter(dead) {
            let (Point::Speaker(who), false) = (point, report.full_of_warnings()) else { continue };
            let message = format!(
                "no transition leads from `{who}` to another participant: the chat `{}` ends after its turn",
                self.name
            );
            let hint = match self.chat.pattern {
                Pattern::StateMachine(_) => {
                    format!("add a transition to `after`, or `{who}: end` if it is meant")
                }
                _ => format!("add a transition, or `{who}: []` if it is meant"),
            };
            report.warning(codes::DEAD_END, self.place_of(point, who), message, hint);
        }
    }

    /// Where a transition leads to `point`; the place of the participant if it has none.
    fn place_of(&self, point: Point<'c>, who: &Name) -> &'c Span {
        let step = self.flow.steps.iter().find(|step| step.to == point && step.at.is_some());
        let participant = || self.chat.everyone().find(|one| *one == who).map(|one| &one.span);
        step.and_then(|step| step.at).or_else(participant).unwrap_or(self.chat.participants.key())
    }

    fn warn_of_endless(&self, report: &mut Report<'_>) {
        let is_limited = self.chat.stop.is_some() || self.chat.max_turns.given().is_some();
        // The loops of a graph are checked when it is built.
        if is_limited || matches!(self.chat.pattern, Pattern::Graph(_)) || self.is_ended() {
            return;
        }
        let name = self.name;
        let at = self.chat.participants.key();
        let reached = self.reached();
        let trapped = if self.flow.end.is_some() { Vec::new() } else { self.ways.trapped(&reached) };
        let is_explicit = self.flow.steps.iter().any(|step| step.at.is_some() || step.when.is_some());
        if is_explicit && !trapped.is_empty() {
            let (loops, who) = match trapped.as_slice() {
                [one] => ("follows itself", one.to_string()),
                several => ("follow one another", listed(several.iter().map(|name| name.as_str()))),
            };
            let is_within = |point| matches!(point, Point::Speaker(name) if trapped.contains(&name));
            let step = self.flow.steps.iter().find(|step| is_within(step.from) && step.at.is_some());
            let message = format!(
                "{who} {loops} without an exit: nothing ends the chat `{name}` before its 100th turn"
            );
            let hint = "add a transition to the end, or a `stop`, such as `stop: {max_turns: 20}`";
            report.warning(codes::NO_EXIT, step.and_then(|step| step.at).unwrap_or(at), message, hint);
        } else if self.flow.end.is_none() && !self.can_end(&reached) {
            let message = format!("nothing ends the chat `{name}` before its 100th turn");
            let hint = match self.chat.everyone().count() {
                1 => {
                    "give it `pattern: sequential`, for one turn, or a `stop`, such as `stop: {max_turns: 20}`"
                }
                _ => "give it a `stop`, such as `stop: {max_turns: 20}`",
            };
            report.warning(codes::NO_STOP, at, message, hint);
        }
    }

    /// Whether a way leads to an end.
    fn can_end(&self, reached: &BTreeSet<Point<'c>>) -> bool {
        reached
            .iter()
            .any(|point| *point == Point::End || *point != Point::Start && !self.ways.leads_on(*point))
    }

    /// Whether a participant may end the chat.
    fn is_ended(&self) -> bool {
        self.agents().any(|(_, agent)| {
            agent.human_input.is_some() || agent.terminate_on.is_some() || agent.max_auto_replies.is_some()
        })
    }
}
