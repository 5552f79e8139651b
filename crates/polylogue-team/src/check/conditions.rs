//! Conditions on conversations: each can hold.

use polylogue_core::Name;

use crate::agent::Agent;
use crate::chat::{Chat, JoinCondition};
use crate::codes;
use crate::condition::Condition;
use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::pattern::Pattern;
use crate::source::Span;
use crate::stop::Stop;
use crate::suggest;
use crate::team::Team;

/// The sender of the task.
const USER: &str = "user";
/// The tools that change the state.
const STATEFUL: [&str; 2] = ["set_state", "chess"];

pub(super) fn check(team: &Team, outline: &Outline<'_>, report: &mut Report<'_>) {
    let facts = TeamFacts::of(team, outline);
    for (name, chat) in team.checked_chats() {
        let turns = chat.stop.as_ref().and_then(|stop| stop.max_turns).unwrap_or(u64::MAX);
        let turns = turns.min(*chat.max_turns);
        for (text, at) in conditions(chat) {
            // Mistakes are reported by the reader.
            if let Ok(condition) = Condition::new(text)
                && facts.check(&condition, at, report)
            {
                facts.check_turns(name, &condition, turns, at, report);
            }
        }
    }
}

/// The conditions of a chat, each with its place.
fn conditions(chat: &Chat) -> Vec<(&str, &Span)> {
    let mut found = Vec::new();
    if let Some(stop) = &chat.stop {
        of_stop(stop, &mut found);
    }
    for join in chat.late_joiners.iter() {
        match &join.when {
            JoinCondition::Holds(text) => found.push((text.as_str(), &join.who.span)),
            JoinCondition::Stop(stop) => of_stop(stop, &mut found),
        }
    }
    match &chat.pattern {
        Pattern::StateMachine(states) => found.extend(states.conditions()),
        Pattern::Graph(graph) => {
            let edges = graph.edges.values().flatten();
            found.extend(edges.filter_map(|edge| edge.when.as_ref()).map(|when| (when.as_str(), &when.span)));
        }
        _ => {}
    }
    found
}

fn of_stop<'c>(stop: &'c Stop, found: &mut Vec<(&'c str, &'c Span)>) {
    found.extend(stop.when.as_ref().map(|when| (when.as_str(), &when.span)));
    stop.all.iter().chain(&stop.any).for_each(|stop| of_stop(stop, found));
}

/// What conditions can find in conversations of a team.
struct TeamFacts<'t> {
    names: Vec<&'t str>,
    has_state: bool,
    has_values: bool,
}

impl<'t> TeamFacts<'t> {
    fn of(team: &'t Team, outline: &Outline<'t>) -> Self {
        let names = outline.participants().iter().map(|one| one.name().as_str());

        let of_tasks = team.checked_chats().flat_map(|(_, chat)| chat.pattern.part().tasks());
        let has_value = |agent: &Agent| {
            let keys = agent.model();
            keys.is_some_and(|keys| {
                keys.output_schema.is_some()
                    || !keys.output_blocks.is_empty()
                    || keys.parameters.schema.is_some()
            })
        };
        let is_open = !team.teams.is_empty();
        Self {
            names: names.chain([USER]).collect(),
            has_state: is_open || STATEFUL.iter().any(|tool| team.names_tool(tool)),
            has_values: is_open
                || outline.agents().any(has_value)
                || of_tasks.into_iter().any(|task| task.output_schema.is_some()),
        }
    }

    /// Reports what no conversation of the team has; `true` if it has everything.
    fn check(&self, condition: &Condition, at: &Span, report: &mut Report<'_>) -> bool {
        let before = report.attempts();
        for name in condition.compared_names() {
            if !name.is_empty() && !self.names.contains(&name) {
                let message =
                    format!("this condition asks for `{name}`, which is not a participant of the team");
                report.warning(
                    codes::NEVER_HOLDS,
                    at,
                    message,
                    suggest::hint(name, self.names.iter().copied()),
                );
            }
        }
        if condition.uses_state() && !self.has_state {
            let hint = "give an agent `tools: [set_state]`, or remove the condition";
            report.warning(codes::NEVER_HOLDS, at, "`state` is always empty: no agent can set it", hint);
        }
        if condition.uses_value() && !self.has_values {
            let hint = "give an agent `output_schema` or `output_blocks`, or use `last.text`";
            let message = "`last.value` is always empty: no agent writes structured replies";
            report.warning(codes::NEVER_HOLDS, at, message, hint);
        }
        report.attempts() == before
    }

    fn check_turns(
        &self,
        chat: &Name,
        condition: &Condition,
        turns: u64,
        at: &Span,
        report: &mut Report<'_>,
    ) {
        let speakers: Vec<&str> = self.names.iter().copied().chain([""]).collect();
        if !condition.can_hold(turns, &speakers) {
            let message =
                format!("this condition holds at none of the {turns} turns that the chat `{chat}` can have");
            let hint = "raise `max_turns`, fix the condition, or remove it";
            report.warning(codes::NEVER_HOLDS, at, message, hint);
        }
    }
}
