//! Whether the stop reasons of a finished conversation are true: of its outermost chat, and of all chats within it.
//!
//! They are computed from the events and the team file, with none of the code that ends chats. What a log does not show is said
//! where it is checked.

mod agents;
mod behaviors;
mod conditions;
mod faults;
mod limits;
mod loops;
mod patterns;
mod plans;
mod talk;
mod votes;

use std::sync::Arc;

use polylogue::stop::LibraryStopReason;
use polylogue_core::{Body, Event, Path, RunOutcome, StopReason};
use polylogue_team::{Chat, Team};

use self::talk::Talk;

pub(super) use self::behaviors::{Others, misfit};

/// `Err` says what is not so.
type Check = Result<(), String>;

fn ensure(is_so: bool, what: impl Into<String>) -> Check {
    if is_so { Ok(()) } else { Err(what.into()) }
}

/// Why the stop reason of a chat in `events` is not true; `None` if all are.
pub(super) fn untrue(team: &Team, events: &[Arc<Event>]) -> Option<String> {
    events.iter().enumerate().find_map(|(index, event)| {
        let Body::Closed { reason, summary } = &event.body else { return None };
        let case = Case::of(team, &event.chat, &events[..index], summary)?;
        let what = case.check(reason).err()?;
        Some(format!("`{}` of {team} ends with {reason:?}, but {what}", event.chat, team = team.name))
    })
}

/// A chat that has ended.
struct Case<'a> {
    talk: Talk<'a>,
    /// What the team file says about it; `None` for chats that agents hold for themselves, such as the one that repairs an answer.
    spec: Option<&'a Chat>,
    /// The team whose chat it is: that of the file, or one within it.
    team: &'a Team,
    /// All events before its end, those of other chats included.
    events: &'a [Arc<Event>],
    summary: &'a str,
}

impl<'a> Case<'a> {
    /// The chat `at`; `None` if it has not begun.
    fn of(team: &'a Team, at: &Path, events: &'a [Arc<Event>], summary: &'a str) -> Option<Self> {
        let (team, spec) = declared(team, at);
        let talk = Talk::of(at, events)?;
        // Another chat of the agent, such as one that repairs an answer, has other participants.
        let is_it = |chat: &&Chat| {
            talk.opening.participants.iter().eq(chat.participants.iter().map(|who| &who.value))
        };
        Some(Self { spec: spec.filter(is_it), talk, team, events, summary })
    }

    fn check(&self, reason: &StopReason) -> Check {
        self.is_true(reason)?;
        self.has_output_if_done(reason)?;
        self.is_of_who_ended_it(reason)?;
        if self.is_limit_of_run(reason) { Ok(()) } else { self.ends_in_time() }
    }

    fn is_true(&self, reason: &StopReason) -> Check {
        let talk = &self.talk;
        match reason {
            StopReason::Finished => {
                ensure(talk.is_call && !talk.turns.is_empty(), "it is no call of an agent")
            }
            StopReason::Turns { limit, next } => self.turns(*limit, *next),
            StopReason::Calls { limit } => self.calls(*limit),
            StopReason::Tokens { .. } | StopReason::Cost { .. } => self.has_limit_on_usage(reason),
            StopReason::Time { limit_ms, used_ms } => self.time(*limit_ms, *used_ms),
            StopReason::Allowance { of, limit } => self.allowance(of, limit),
            StopReason::Depth { limit } => self.depth(*limit),
            StopReason::LoopDetected { pattern, evidence, .. } => self.loop_of(pattern, evidence),
            StopReason::NoOutput { ended } => {
                ensure(!talk.has_output(), "a participant said something")?;
                ensure(!matches!(**ended, StopReason::NoOutput { .. }), "that is said twice")?;
                self.is_true(ended)
            }
            StopReason::Left { who, why } => self.left(who, why),
            StopReason::All(reasons) => self.all(reasons),
            StopReason::Other(_) => match LibraryStopReason::of(reason) {
                Some(reason) => self.is_true_of_library(&reason),
                None => Err("there is no such reason".into()),
            },
            // Nothing stops these runs from outside, all prices are known, and a bound is never reached.
            StopReason::Stopped { .. } | StopReason::UnknownPrice { .. } | StopReason::Bound { .. } => {
                Err("that cannot be".into())
            }
            _ => Err("no check is known for it".into()),
        }
    }

    fn is_true_of_library(&self, reason: &LibraryStopReason) -> Check {
        if let Some(turn) = self.talk.stopped().find(|turn| is_reason_of(turn, reason)) {
            return self.is_true_of_agent(reason, turn);
        }
        match reason {
            LibraryStopReason::Replied { who } => self.replied(who),
            LibraryStopReason::AllSpoken => self.all_spoken(),
            LibraryStopReason::NoHandoff { who } => self.no_handoff(who),
            LibraryStopReason::GraphComplete => self.graph_complete(),
            LibraryStopReason::DagComplete => self.dag_complete(),
            LibraryStopReason::EndState { after } => self.end_state(after.as_ref()),
            LibraryStopReason::Voted { option } => self.voted(option),
            LibraryStopReason::ChairDecided { option, by } => self.chair_decided(option, by),
            LibraryStopReason::Undecided => self.undecided(),
            LibraryStopReason::RequestSatisfied { by } => self.request_satisfied(by),
            LibraryStopReason::TasksDone { count } => self.tasks_done(*count),
            LibraryStopReason::CountReached { count, of } => self.count_reached(*count, *of),
            LibraryStopReason::Mentioned { text, by } => self.mentioned(text, by),
            LibraryStopReason::Matched { pattern, by } => self.matched(pattern, by),
            LibraryStopReason::Condition { name } => self.condition(name),
            LibraryStopReason::Messages { limit } => self.role_play_messages(*limit),
            LibraryStopReason::Time { limit_ms } => self.time_of_chat(*limit_ms),
            LibraryStopReason::NoParticipants { last } => self.no_participants(last.as_ref()),
            LibraryStopReason::NoReply { who } => self.no_reply(who),
            LibraryStopReason::NoSpeaker { after } => self.no_speaker(after.as_ref()),
            LibraryStopReason::Stalled { plans } => self.stalled(*plans),
            LibraryStopReason::Completed { who } => self.completed(who),
            LibraryStopReason::Rounds { limit } => self.rounds(*limit),
            LibraryStopReason::Errors { who, of, limit } => self.role_play_errors(who, of, *limit),
            LibraryStopReason::ToolRounds { .. }
            | LibraryStopReason::ContextFull { .. }
            | LibraryStopReason::AutoReplies { .. } => Err("no agent ended its turn with it".into()),
            _ => Err("no check is known for it".into()),
        }
    }

    /// A chat that is complete has a result: something that was said, a summary, or, for conditions on calls, calls.
    fn has_output_if_done(&self, reason: &StopReason) -> Check {
        let (is_talk, by_calls) = match reason {
            StopReason::LoopDetected { pattern, .. } => (&**pattern != "calls", false),
            StopReason::All(_) => (reason.outcome() == RunOutcome::Done, true),
            StopReason::Other(other) => (reason.outcome() == RunOutcome::Done, other.by_calls),
            _ => (reason.outcome() == RunOutcome::Done, false),
        };
        let talk = &self.talk;
        let has_any = talk.has_output() || !self.summary.trim().is_empty() || by_calls && talk.has_calls();
        ensure(!is_talk || talk.is_call || has_any, "there is no output, which it does not say")
    }

    /// A participant that ended the chat ended it for its own reason, and no policy for another one.
    fn is_of_who_ended_it(&self, reason: &StopReason) -> Check {
        let reason = if let StopReason::NoOutput { ended } = reason { ended } else { reason };
        let mut reasons = self.talk.stopped().filter_map(|turn| match &turn.end.body {
            Body::Stopped { reason, .. } => Some(reason),
            _ => None,
        });
        let first = reasons.next();
        let is_it = first.is_none_or(|first| first == reason || reasons.any(|other| other == reason));
        ensure(is_it || self.is_limit_of_run(reason), format!("a participant ended it with {first:?}"))
    }

    /// Whether `reason` is a limit of the whole run, which ends a chat at any point, also within a turn.
    fn is_limit_of_run(&self, reason: &StopReason) -> bool {
        let is_of_run = matches!(
            reason,
            StopReason::Calls { .. }
                | StopReason::Tokens { .. }
                | StopReason::Cost { .. }
                | StopReason::Time { .. }
                | StopReason::Depth { .. }
                | StopReason::Allowance { .. }
        );
        is_of_run && self.talk.at.is_root()
    }
}

/// Whether `turn` ended the chat with `reason`.
fn is_reason_of(turn: &talk::Past<'_>, reason: &LibraryStopReason) -> bool {
    matches!(&turn.end.body, Body::Stopped { reason: own, .. } if LibraryStopReason::of(own).as_ref() == Some(reason))
}

/// The team and its chat that `at` is, if a file declares it.
fn declared<'a>(team: &'a Team, at: &Path) -> (&'a Team, Option<&'a Chat>) {
    let (mut team, mut chat) = (team, Some(&team.chat));
    for segment in at.to_string().split('/').skip(1) {
        let name = segment.split('.').next().unwrap_or_default();
        let is_turn = segment.split_once('.').is_some_and(|(_, nth)| nth.parse::<u64>().is_ok());
        let (inner, other) = (
            team.chats.iter().find(|chat| chat.name.as_str() == name),
            team.teams.iter().find(|other| other.name.as_str() == name),
        );
        (team, chat) = match (inner, other) {
            (Some(inner), _) if is_turn => (team, Some(&inner.chat)),
            (_, Some(other)) if is_turn => (&*other.team, Some(&other.team.chat)),
            _ if is_turn => (team, nested(team, name)),
            _ => (team, None),
        };
    }
    (team, chat)
}

/// The chat that an agent holds before it replies, if it is only one.
fn nested<'a>(team: &'a Team, agent: &str) -> Option<&'a Chat> {
    let agent = team.agents.iter().find(|own| own.name.as_str() == agent)?;
    let [only] = agent.nested_chats.as_slice() else { return None };
    team.chats.iter().find(|chat| chat.name.value == only.chat.value).map(|chat| &chat.chat)
}
