//! Conditions on conversations: each can hold, and reads what is there.

use std::cell::OnceCell;

use polylogue_core::Name;

use super::replies::Replies;
use super::state_keys::StateKeys;
use crate::chat::{Chat, JoinCondition};
use crate::codes;
use crate::condition::{Cast, Condition};
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::pattern::Pattern;
use crate::source::Span;
use crate::stop::Stop;
use crate::suggest;
use crate::team::Team;
use crate::yaml::{Entry, Node};

/// The sender of the task.
pub(super) const USER: &str = "user";
/// The sender of messages from outside that neither the user nor a participant says.
pub(super) const SYSTEM: &str = "system";

pub(super) fn check(
    root: &Node,
    team: &Team,
    (outline, is_included): (&Outline<'_>, bool),
    report: &mut Report<'_>,
) {
    check_late_stop(root.get("chat"), &team.name, &team.chat, report);
    for (node, inner) in root.get("chats").items().iter().zip(&team.chats) {
        check_late_stop(node, &inner.name, &inner.chat, report);
    }
    let facts = TeamFacts::of(team, outline, is_included);
    for (name, chat) in team.checked_chats() {
        let turns = chat.stop.as_ref().and_then(|stop| stop.max_turns).unwrap_or(u64::MAX);
        let turns = turns.min(*chat.max_turns);
        check_parallel(name, chat, report);
        for given in conditions(chat) {
            if let Some(condition) = facts.check(&given, report)
                && facts.check_participants((name, chat), &condition, given.at, report)
            {
                facts.check_turns(name, &condition, turns, given.at, report);
            }
        }
    }
    // An agent can have its nested chats in several chats: the turns before them are not known.
    let nested = outline.agents().flat_map(|agent| &agent.nested_chats);
    for when in nested.filter_map(|nested| nested.when.when.as_ref()) {
        facts.check(&Given { text: when, at: &when.span, after: None }, report);
    }
}

/// Warns of numbers of turns in the `stop` of a chat, which is at `node`, that the chat does not have.
fn check_late_stop(node: &Node, name: &Name, chat: &Chat, report: &mut Report<'_>) {
    let (most, stop) = (*chat.max_turns, node.get("stop"));
    let any = std::iter::once(stop).chain(stop.get("any").one_or_many());
    for Entry { key_span, value, .. } in any.filter_map(|stop| stop.entry("max_turns")) {
        let Some(turns) = value.to_value().as_u64().filter(|turns| *turns > most) else { continue };
        let message = format!("the chat `{name}` ends before that, at its limit of {most} turns");
        let hint = match chat.max_turns.given() {
            Some(_) => "lower it, or raise the `max_turns` of the chat".to_owned(),
            None => format!("set `max_turns: {turns}` of the chat, too, next to `stop`"),
        };
        report.warning(codes::NEVER_HOLDS, key_span, message, hint);
    }
}

/// Warns of a chat that ends before its only step, because that has more turns than the chat.
fn check_parallel(name: &Name, chat: &Chat, report: &mut Report<'_>) {
    let turns = chat.participants.len() as u64;
    let at = chat.max_turns.given().filter(|_| *chat.max_turns < turns);
    if let (Some(at), Pattern::Parallel) = (at, &chat.pattern) {
        let message = format!(
            "the chat `{name}` ends before its {turns} participants speak at the same time, all or none"
        );
        report.warning(codes::UNREACHABLE, at, message, format!("set `max_turns: {turns}`, or leave it out"));
    }
}

/// A condition with its place.
struct Given<'c> {
    text: &'c str,
    at: &'c Span,
    /// The speaker after whose turns it is evaluated, if it always is the same one.
    after: Option<&'c Name>,
}

/// The conditions of a chat.
fn conditions(chat: &Chat) -> Vec<Given<'_>> {
    let mut found = Vec::new();
    if let Some(stop) = &chat.stop {
        of_stop(stop, &mut found);
    }
    for join in chat.late_joiners.iter() {
        match &join.when {
            JoinCondition::Holds(text) => found.push(Given { text, at: &join.who.span, after: None }),
            JoinCondition::Stop(stop) => of_stop(stop, &mut found),
        }
    }
    match &chat.pattern {
        Pattern::StateMachine(states) => {
            let given =
                states.exits().filter_map(|(after, exit)| Some((after, exit.when.as_deref()?, &exit.span)));
            found.extend(given.map(|(after, text, at)| Given { text, at, after }));
        }
        Pattern::Graph(graph) => {
            let conditions = graph.edges.values().flatten().filter_map(|edge| edge.when.as_ref());
            found.extend(conditions.map(|when| Given { text: when, at: &when.span, after: None }));
        }
        _ => {}
    }
    found
}

fn of_stop<'c>(stop: &'c Stop, found: &mut Vec<Given<'c>>) {
    found.extend(stop.when.as_ref().map(|when| Given { text: when, at: &when.span, after: None }));
    stop.all.iter().chain(&stop.any).for_each(|stop| of_stop(stop, found));
}

/// What conditions can find in conversations of a team.
struct TeamFacts<'t> {
    team: &'t Team,
    outline: &'t Outline<'t>,
    names: Vec<&'t str>,
    /// Whether the teams around it can set the state, too.
    is_included: bool,
    state: OnceCell<StateKeys<'t>>,
    replies: Replies<'t>,
}

impl<'t> TeamFacts<'t> {
    fn of(team: &'t Team, outline: &'t Outline<'t>, is_included: bool) -> Self {
        let names = outline.participants().iter().map(|one| one.name().as_str());
        Self {
            team,
            outline,
            names: names.chain([USER]).collect(),
            is_included,
            state: OnceCell::new(),
            replies: Replies::of_team(team, outline),
        }
    }

    /// Reports what no conversation of the team has, and conditions that cannot hold whatever is said. The condition, if there is nothing of this.
    fn check(&self, given: &Given<'_>, report: &mut Report<'_>) -> Option<Condition> {
        // Mistakes are reported by the reader.
        let condition = Condition::new(given.text).ok()?;
        let before = report.attempts();
        for name in condition.compared_names() {
            if !name.is_empty() && !self.names.contains(&name) {
                let message =
                    format!("this condition asks for `{name}`, which is not a participant of the team");
                report.warning(
                    codes::NEVER_HOLDS,
                    given.at,
                    message,
                    suggest::hint(name, self.names.iter().copied()),
                );
            }
        }
        if condition.uses_state() && !self.is_included {
            let keys = self.state.get_or_init(|| StateKeys::of_team(self.team, &self.replies));
            for (message, hint) in keys.mistakes(&condition) {
                report.warning(codes::NEVER_HOLDS, given.at, message, hint);
            }
        }
        if condition.uses_value() {
            self.check_value(&condition, given, report);
        }
        if let Some(why) = condition.impossible() {
            report.warning(codes::NEVER_HOLDS, given.at, why.to_string(), "correct it, or remove it");
        }
        (report.attempts() == before).then_some(condition)
    }

    /// Reports what no structured reply has that can be the last message.
    fn check_value(&self, condition: &Condition, given: &Given<'_>, report: &mut Report<'_>) {
        let speaker = given.after.and_then(|name| self.outline.participant(name)?.agent());
        // What replies otherwise may say the result of others.
        let speaker = speaker.filter(|agent| agent.plain().is_some());
        let own = speaker.map(Replies::of_agent);
        match &own {
            _ if self.replies.is_empty() => {
                let hint = "give an agent `output_schema` or `output_blocks`, or use `last.text`";
                let message = "`last.value` is always empty: no agent writes structured replies";
                report.warning(codes::NEVER_HOLDS, given.at, message, hint);
            }
            Some(own) if own.is_empty() => {
                let who = speaker.map(|agent| agent.name.as_str()).unwrap_or_default();
                let message = format!("`last.value` is always empty after a turn of `{who}`");
                let hint = format!("give `{who}` an `output_schema`, or use `last.text`");
                report.warning(codes::NEVER_HOLDS, given.at, message, hint);
            }
            own => {
                let replies = own.as_ref().unwrap_or(&self.replies);
                for (message, hint) in condition.fields().iter().filter_map(|field| replies.mistake(field)) {
                    report.warning(codes::NEVER_HOLDS, given.at, message, hint);
                }
            }
        }
    }

    /// Warns of participants of other chats, and of the user: they never speak in this one. Returns whether there are none.
    fn check_participants(
        &self,
        (name, chat): (&Name, &Chat),
        condition: &Condition,
        at: &Span,
        report: &mut Report<'_>,
    ) -> bool {
        // Participants of other patterns can have turns that their files do not name.
        let are_named = matches!(
            chat.pattern,
            Pattern::RoundRobin
                | Pattern::Sequential
                | Pattern::Parallel
                | Pattern::Group(_)
                | Pattern::StateMachine(_)
                | Pattern::Graph(_)
                | Pattern::Handoffs(_)
        );
        let own: Vec<&str> = chat.everyone().map(|who| who.as_str()).collect();
        let others = condition.compared_participants();
        let others: Vec<&str> =
            others.into_iter().filter(|who| are_named && !who.is_empty() && !own.contains(who)).collect();
        for who in &others {
            let message =
                format!("this condition asks for `{who}`, which is not a participant of the chat `{name}`");
            let hint = match *who {
                USER => "the user sends messages and has no turns: compare `last.from`".to_owned(),
                who => suggest::hint(who, own.iter().copied()),
            };
            report.warning(codes::NEVER_HOLDS, at, message, hint);
        }
        others.is_empty()
    }

    fn check_turns(
        &self,
        chat: &Name,
        condition: &Condition,
        turns: u64,
        at: &Span,
        report: &mut Report<'_>,
    ) {
        let speakers: Vec<&str> = self.names.iter().copied().chain([SYSTEM, ""]).collect();
        if !condition.can_hold(turns, Cast { speakers: &speakers, present: &self.names }) {
            let message =
                format!("this condition holds at none of the {turns} turns that the chat `{chat}` can have");
            let hint = "raise `max_turns`, fix the condition, or remove it";
            report.warning(codes::NEVER_HOLDS, at, message, hint);
        }
    }
}
