//! The reasons that no run can have of models that behave in a way, whatever the team and its pattern.

use std::sync::Arc;

use polylogue_core::{BackgroundStatus, Body, Event, StopReason};
use polylogue_team::{Agent, AgentKind, Team};

use super::super::adversary::Behavior;

/// Reasons that rest on what a model writes.
const BY_WORDS: [&str; 6] =
    ["mentioned", "matched", "request_satisfied", "completed", "voted", "chair_decided"];

/// Reasons that rest on calls of a model.
const BY_CALLS: [&str; 2] = ["tool_rounds", "loop of calls"];

/// Loops of texts.
const BY_TEXTS: [&str; 3] = ["loop of silence", "loop of farewells", "loop of repetition"];

/// What else speaks in a run, besides models.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Others {
    /// People, programs, tools and chats that reply for an agent, also with the same text each time.
    pub(in super::super) speak: bool,
    /// A participant whose task in the background failed says nothing, whatever its model says.
    pub(in super::super) failed: bool,
}

impl Others {
    pub(in super::super) fn of(team: &Team, events: &[Arc<Event>]) -> Self {
        let speaks = |agent: &Agent| {
            let is_model = matches!(agent.kind, AgentKind::Model(_));
            !is_model
                || agent.human_input.is_some()
                || agent.default_reply.is_some()
                || !agent.nested_chats.is_empty()
                || !agent.executes_tools.is_empty()
        };
        let is_failed = |event: &Arc<Event>| matches!(&event.body, Body::BackgroundEnded(end) if end.status == BackgroundStatus::Failed);
        let speak = team.agents.iter().any(speaks) || !team.teams.is_empty();
        Self { speak, failed: events.iter().any(is_failed) }
    }
}

/// Why a run of models that behave so cannot end for `reason`.
pub(in super::super) fn misfit(behavior: Behavior, reason: &StopReason, others: Others) -> Option<String> {
    let label = label(reason);
    let is_impossible = impossible(behavior).iter().any(|reasons| reasons.contains(&&*label));
    let is_of_others = others.speak && BY_TEXTS.contains(&&*label) || others.failed && label == BY_TEXTS[0];
    (is_impossible && !is_of_others).then(|| format!("models that are {behavior:?} cannot lead to `{label}`"))
}

fn impossible(behavior: Behavior) -> Vec<&'static [&'static str]> {
    match behavior {
        // Texts of numbers, no two of them alike.
        Behavior::Longest | Behavior::Slow => vec![&BY_WORDS, &BY_CALLS, &BY_TEXTS],
        Behavior::Worst
        | Behavior::Mistaken
        | Behavior::Late
        | Behavior::Waiting
        | Behavior::EndlessCalls
        | Behavior::WrongTool
        // Agents that hand over say so with the same words each time.
        | Behavior::SameId => vec![&BY_WORDS, &["loop of silence", "loop of farewells"]],
        // In every second turn.
        Behavior::Sparse => vec![&BY_WORDS, &["loop of farewells", "loop of repetition"]],
        Behavior::Empty => vec![&BY_WORDS, &BY_CALLS, &["loop of farewells", "loop of repetition"]],
        // `Not yet`, with a number that is another one each time. Its `no` says that no objectives are left.
        Behavior::NeverDone => {
            vec![&["mentioned", "matched", "request_satisfied", "voted", "chair_decided"], &BY_CALLS, &BY_TEXTS]
        }
        // What it claims is no ledger and no vote.
        Behavior::Done => vec![
            &BY_CALLS,
            &["request_satisfied", "voted", "chair_decided", "loop of silence", "loop of farewells"],
        ],
        Behavior::Thanks => vec![&BY_WORDS, &BY_CALLS, &["loop of silence"]],
        Behavior::Drip => vec![&BY_WORDS, &BY_CALLS, &["loop of silence", "loop of farewells"]],
        Behavior::Word => vec![&BY_CALLS, &BY_TEXTS],
        // It says what others said, such as the words of a prompt.
        Behavior::Echo => vec![&BY_CALLS],
        Behavior::Coder | Behavior::Formal | Behavior::Any | Behavior::Huge => Vec::new(),
    }
}

/// The code of a reason; of a loop with its kind, and of a run without output that of it.
fn label(reason: &StopReason) -> String {
    match reason {
        StopReason::LoopDetected { pattern, .. } => format!("loop of {pattern}"),
        StopReason::NoOutput { ended } => label(ended),
        other => other.code().to_owned(),
    }
}
