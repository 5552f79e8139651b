//! The policy of a role-play: who is next, and when it ends.

use std::sync::Arc;

use crate::stop::{LibraryStopReason, ModelMistake};
use polylogue_core::{
    Agent, Body, EndedTurn, MessageSource, Name, Policy, Step, StopReason, Transcript, TranscriptMessage,
    TurnRequest,
};

use super::participants::{Participants, RolePlayAgent, said_in_private};
use super::prompts::INSTRUCTION;
use crate::policies::order::without_participants;
use crate::stop::{Condition, Stop};
use crate::termination::loop_detector::LoopDetector;

/// The limits.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) rounds: u64,
    pub(super) messages: Option<u64>,
    pub(super) max_uninstructed: usize,
    pub(super) max_flips: usize,
    pub(super) loop_detector: LoopDetector,
    pub(super) until: Option<Stop>,
}

/// The termination marker.
#[derive(Debug, Clone)]
pub(super) struct Done {
    /// The marker.
    pub(super) marker: Arc<str>,
    /// Whether it counts anywhere in a message.
    pub(super) anywhere: bool,
    /// The role that writes it.
    pub(super) by: Name,
}

impl Done {
    /// The stop reason of `line`, if it ends the chat. Case, bold and code marks, quotes and punctuation around the
    /// marker are ignored.
    fn of(&self, line: &TranscriptMessage) -> Option<StopReason> {
        let (text, marker) = (line.message.text().to_lowercase(), self.marker.to_lowercase());
        let found = match self.anywhere {
            true => text.contains(marker.trim()),
            false => text.trim() == marker.trim() || bare(&text) == bare(&marker),
        };
        let says = line.message.from == self.by && found;
        says.then(|| {
            StopReason::from(LibraryStopReason::Mentioned {
                text: Arc::clone(&self.marker),
                by: self.by.clone(),
            })
        })
    }
}

/// `text` without the marks that models put around a word. A text of only marks stays unchanged.
fn bare(text: &str) -> &str {
    let around = |mark: char| mark.is_whitespace() || "*_`'\"~#.,;:!?()[]。！“”‘’".contains(mark);
    let bare = text.trim_start_matches("> ").trim_matches(around);
    if bare.is_empty() { text.trim() } else { bare }
}

/// A blank reply, and a blank retry.
fn blank(who: Name) -> StopReason {
    StopReason::from(LibraryStopReason::Errors { who, of: ModelMistake::Reply, limit: 1 })
}

/// The policy of a role-play.
pub(super) struct RolePlayPolicy {
    pub(super) cast: Arc<Participants>,
    pub(super) rules: Rules,
    pub(super) done: Done,
}

impl Policy for RolePlayPolicy {
    fn next(&self, chat: &Transcript) -> Step {
        if let Some((_, reason)) = chat.ended_by() {
            return self.close(reason.clone(), chat);
        }
        if let Some(step) = self.preparation(chat).or_else(|| without_participants(chat)) {
            return step;
        }
        match self.end(chat) {
            Some(reason) => self.close(reason, chat),
            None => Step::Turn(TurnRequest::to_all(self.speaker(chat).clone())),
        }
    }
}

impl RolePlayPolicy {
    /// The next private turn of specifier or planner, if any is left.
    fn preparation(&self, chat: &Transcript) -> Option<Step> {
        let name = |side| self.cast.agent(side).name();
        let side = self.cast.private_roles().find(|side| said_in_private(chat, name(*side)).is_none())?;
        let who = name(side).clone();
        if chat.turns_of(&who) > 1 {
            return Some(self.close(blank(who), chat));
        }
        Some(Step::Turn(TurnRequest::private(who, self.cast.question(side, chat))))
    }

    /// The next speaker; after a blank reply, the same role again.
    fn speaker(&self, chat: &Transcript) -> &Name {
        let (user, assistant) = (self.user(), self.assistant());
        let is_silent = chat.recent_turns().next().is_some_and(|turn| turn.is_silent);
        let user_spoke = chat.last_speaker() == Some(user);
        let is_first = chat.last_speaker().is_none();
        if !is_first && user_spoke != is_silent { assistant } else { user }
    }

    /// The stop reason, if the chat ends.
    fn end(&self, chat: &Transcript) -> Option<StopReason> {
        let erred = |who: &Name, limit: usize| {
            StopReason::from(LibraryStopReason::Errors {
                who: who.clone(),
                of: ModelMistake::Role,
                limit: u64::try_from(limit).unwrap_or(u64::MAX),
            })
        };
        let Rules { max_uninstructed, max_flips, loop_detector, until, .. } = &self.rules;
        let (user, assistant) = (self.user(), self.assistant());
        chat.latest()
            .find_map(|line| self.done.of(line))
            .or_else(|| unanswered(chat).map(blank))
            .or_else(|| {
                in_a_row(chat, user, *max_uninstructed, |t| !instructs(t))
                    .then(|| erred(user, *max_uninstructed))
            })
            .or_else(|| in_a_row(chat, assistant, *max_flips, flipped).then(|| erred(assistant, *max_flips)))
            .or_else(|| loop_detector.now(chat))
            .or_else(|| until.as_ref()?.now(chat))
            .or_else(|| self.limit(chat))
    }

    fn limit(&self, chat: &Transcript) -> Option<StopReason> {
        let turns = usize::try_from(chat.turns()).unwrap_or(usize::MAX);
        let spoken = chat.recent_turns().take(turns).filter(|turn| !turn.is_silent).count();
        let spoken = u64::try_from(spoken).unwrap_or(u64::MAX);
        let Rules { rounds, messages, .. } = self.rules;
        let messages = messages
            .filter(|limit| spoken >= *limit)
            .map(|limit| StopReason::from(LibraryStopReason::Messages { limit }));
        messages.or_else(|| {
            (spoken / 2 >= rounds).then(|| StopReason::from(LibraryStopReason::Rounds { limit: rounds }))
        })
    }

    fn user(&self) -> &Name {
        self.cast.agent(RolePlayAgent::User).name()
    }

    fn assistant(&self) -> &Name {
        self.cast.agent(RolePlayAgent::Assistant).name()
    }

    /// Ends the chat. The summary is the last solution, not the marker.
    fn close(&self, reason: StopReason, chat: &Transcript) -> Step {
        let mut said = spoken(chat, self.assistant()).map(|line| line.message.to_text());
        Step::Close { reason, summary: said.next().unwrap_or_default().into() }
    }
}

/// The messages of `who` in the chat that are not blank, newest first.
fn spoken<'t>(chat: &'t Transcript, who: &'t Name) -> impl Iterator<Item = &'t TranscriptMessage> {
    let by_who = |line: &&TranscriptMessage| line.source == MessageSource::Turn && line.message.from == *who;
    chat.messages().rev().filter(by_who).filter(|line| !line.message.to_text().trim().is_empty())
}

/// The role whose reply and retry were blank.
fn unanswered(chat: &Transcript) -> Option<Name> {
    let mut turns = chat.recent_turns();
    let (last, before) = (turns.next()?, turns.next()?);
    let is_silent = |turn: &EndedTurn| turn.is_silent && turn.who == last.who;
    if !(is_silent(last) && is_silent(before)) {
        return None;
    }
    // A reopened chat starts with a new attempt.
    let again = chat.events().iter().rfind(|event| matches!(event.body, Body::Reopened { .. }));
    again.is_none_or(|again| again.seq < before.seq).then(|| last.who.clone())
}

/// Whether `who` spoke last, and `are` holds for its last `count` messages.
fn in_a_row(chat: &Transcript, who: &Name, count: usize, are: impl Fn(&str) -> bool) -> bool {
    count > 0
        && chat.latest().any(|line| line.message.from == *who)
        && spoken(chat, who).take(count).filter(|line| are(&line.message.text())).count() == count
}

/// Whether there is an instruction.
fn instructs(text: &str) -> bool {
    unmarked(text).contains(INSTRUCTION)
}

/// Whether a line starts with an instruction.
fn flipped(text: &str) -> bool {
    unmarked(text).lines().any(|line| line.trim_start().starts_with(INSTRUCTION))
}

/// `text` without bold and heading marks, and with ASCII colons: models write `**Instruction**:`, and `Instruction：` in
/// Chinese text.
fn unmarked(text: &str) -> String {
    let plain = |mark: char| if mark == '：' { ':' } else { mark };
    text.chars().filter(|mark| !matches!(mark, '*' | '_' | '#')).map(plain).collect()
}
