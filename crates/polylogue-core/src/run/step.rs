//! The next step of a chat: what the policy wants, as far as the chat can do it.

use super::{RunningChat, Wanted};
use crate::turn::ChatInfo as _;
use crate::{
    Agent as _, Body, Chat, Choice, Chooser, ConfigError, Error, ImpossibleStep, JoinHistory, Name, Part,
    Result, RunOutcome, Step, StopReason, Transcript, TurnRequest,
};

impl RunningChat<'_> {
    /// The next step of the policy.
    pub(crate) fn wanted(&self, chat: &Chat) -> Result<Wanted> {
        let max_turns = chat.max_turns().max(self.transcript.raised().turns);
        let step = match chat.policy().next(&self.transcript) {
            // A policy that has finished may not have checked whether a participant ended the chat before.
            Step::Close { reason: StopReason::Finished, summary } => {
                let over = self.transcript.ended_by().map(|(_, reason)| reason.clone());
                Step::Close { reason: over.unwrap_or(StopReason::Finished), summary }
            }
            end @ (Step::Close { .. } | Step::Fail(_)) => end,
            step if !is_private(&step) && self.transcript.ended_by().is_some() => self.over(),
            step => {
                let step = if is_turn(&step) { self.turn_before(step) } else { step };
                self.unless_too_many(chat, step, max_turns)
            }
        };
        let step = match step {
            Step::Close { reason, summary } if self.waits_at(chat, &reason) => {
                if self.transcript.open_background().next().is_some() {
                    return Ok(Wanted::Wait);
                }
                let more = self.result_turn().or_else(|| self.follow_up(chat));
                let more = more.filter(|step| self.too_many_turns(step, max_turns).is_none());
                more.unwrap_or(Step::Close { reason, summary })
            }
            step => step,
        };
        // Policies may add private turns, several to each turn, but not without end.
        if self.transcript.steps() > max_turns.saturating_mul(16).saturating_add(64) {
            return Err(Error::Bug(format!(
                "the policy of `{}` requests private turns without end",
                chat.name()
            )));
        }
        self.bodies_of(chat, step).map(Wanted::Step)
    }

    /// The turn that goes before `step`, which is one: for a result that is there, or of the speaker that was chosen from outside; else
    /// `step`. What a policy posts, and whom it admits, comes first: it may not want that again after another turn.
    fn turn_before(&self, step: Step) -> Step {
        // A speaker whom private turns selected speaks first.
        let result = self.result_turn().filter(|_| !self.transcript.follows_private_turn());
        result.unwrap_or_else(|| self.transcript.next_speaker().map_or(step, chosen))
    }

    /// A step as events.
    fn bodies_of(&self, chat: &Chat, step: Step) -> Result<Vec<Body>> {
        match step {
            Step::Turn(request) => self.requests(chat, vec![request]),
            Step::Parallel(requests) => self.requests(chat, requests),
            Step::Post(message) => Ok(vec![Body::Posted(message)]),
            Step::Admit { who, sees } => self.admission(chat, who, sees),
            Step::Close { reason, summary } => {
                let reason =
                    if chat.is_for_calls() { reason } else { outcome(reason, &summary, &self.transcript) };
                Ok(vec![Body::Closed { reason, summary }])
            }
            Step::Fail(why) => Err(impossible(chat, ImpossibleStep::Failed(why))),
        }
    }

    /// `step`, or how the policy ends a chat of at most `max_turns`, if `step` may not follow.
    fn unless_too_many(&self, chat: &Chat, step: Step, max_turns: u64) -> Step {
        let Some(reason) = self.too_many_turns(&step, max_turns) else { return step };
        let end = chat.policy().at_end(&self.transcript, reason.clone());
        let is_end = matches!(end, Step::Close { .. } | Step::Fail(_)) || is_private(&end);
        if is_end { end } else { Step::close(reason, &self.transcript) }
    }

    /// Why `step` may not follow in a chat of at most `max_turns`.
    fn too_many_turns(&self, step: &Step, max_turns: u64) -> Option<StopReason> {
        let next = match step {
            Step::Parallel(requests) => {
                requests.iter().filter(|request| !request.to.is_private()).count() as u64
            }
            _ => 1,
        };
        let turns = self.transcript.turns();
        (turns.saturating_add(next.max(1)) > max_turns).then(|| StopReason::turns(max_turns, turns, next))
    }

    /// A participant ended the chat: nothing more is said in it, whatever the policy wants.
    fn over(&self) -> Step {
        let reason = self.transcript.ended_by().map_or(StopReason::Finished, |(_, reason)| reason.clone());
        Step::close(reason, &self.transcript)
    }

    fn admission(&self, chat: &Chat, who: Name, sees: JoinHistory) -> Result<Vec<Body>> {
        let left = self.transcript.left().iter().any(|(gone, _)| *gone == who);
        if left || self.transcript.late_joiners().any(|name| *name == who) {
            return Ok(vec![Body::Joined { who, sees }]);
        }
        Err(impossible(chat, ImpossibleStep::NotWaiting(who)))
    }

    fn requests(&self, chat: &Chat, requests: Vec<TurnRequest>) -> Result<Vec<Body>> {
        if requests.is_empty() {
            return Err(impossible(chat, ImpossibleStep::NoTurns));
        }
        for (index, request) in requests.iter().enumerate() {
            let wrong = |step: fn(Name) -> ImpossibleStep| Err(impossible(chat, step(request.who.clone())));
            if chat.agent(&request.who).is_none() {
                return wrong(ImpossibleStep::UnknownParticipant);
            }
            if self.transcript.late_joiners().any(|name| *name == request.who) {
                return wrong(ImpossibleStep::NotJoined);
            }
            if requests.iter().take(index).any(|other| other.who == request.who) {
                return wrong(ImpossibleStep::TwoTurns);
            }
        }
        Ok(vec![Body::TurnStarted { turns: requests }])
    }
}

/// A turn of the speaker that was chosen from outside.
fn chosen(who: &Name) -> Step {
    let choice = Choice { of: vec![who.clone()], by: Chooser::User, reply: None };
    Step::Turn(TurnRequest::to_all(who.clone()).with_choice(choice))
}

/// The error of a policy that requests a step that the chat cannot make.
fn impossible(chat: &Chat, step: ImpossibleStep) -> Error {
    ConfigError::Policy { chat: chat.name().clone(), step }.into()
}

/// The stop reason. A chat in which no participant said anything has no result, whatever ended it.
fn outcome(reason: StopReason, summary: &str, chat: &Transcript) -> StopReason {
    if !is_end_of_talk(&reason) || !summary.trim().is_empty() || has_output(&reason, chat) {
        return reason;
    }
    StopReason::NoOutput { ended: Box::new(reason) }
}

/// Whether a chat that ends for `reason` is complete, or has nothing more to say.
pub(super) fn is_end_of_talk(reason: &StopReason) -> bool {
    // In a loop of calls, the calls are the output.
    let is_talk =
        matches!(reason, StopReason::LoopDetected { pattern, .. } if **pattern != *StopReason::CALLS);
    is_talk || reason.outcome() == RunOutcome::Done
}

/// Whether a participant said something, or did what the chat was for: a condition may hold because of a tool call.
fn has_output(reason: &StopReason, chat: &Transcript) -> bool {
    let is_content = |part: &Part| match part {
        Part::Text(_) | Part::Data(_) | Part::Media(_) => !part.is_blank(),
        _ => false,
    };
    let is_reached = match reason {
        StopReason::All(_) => true,
        StopReason::Other(reason) => reason.by_calls,
        _ => false,
    };
    is_reached && chat.calls().next().is_some()
        || chat.replies().any(|line| line.message.parts.iter().any(is_content))
}

/// Whether turns begin with the step.
const fn is_turn(step: &Step) -> bool {
    matches!(step, Step::Turn(_) | Step::Parallel(_))
}

/// Whether no participant sees the step.
fn is_private(step: &Step) -> bool {
    match step {
        Step::Turn(request) => request.to.is_private(),
        Step::Parallel(requests) => requests.iter().all(|request| request.to.is_private()),
        Step::Post(_) | Step::Admit { .. } | Step::Close { .. } | Step::Fail(_) => false,
    }
}
