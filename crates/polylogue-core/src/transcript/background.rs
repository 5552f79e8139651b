//! The background tasks of a chat: which are open, and what of them is visible.

use std::sync::Arc;

use super::background_entry::BackgroundEntry;
use super::{EndedTurn, Transcript, in_order, is_shared};
use crate::{
    BackgroundResult, BackgroundStatus, BackgroundTask, Body, Chooser, Event, Name, Path, TurnRequest,
};

/// Whether the event of a background task counts in transcripts when the task ends.
pub(crate) fn counts_at_end(body: &Body) -> bool {
    matches!(body, Body::ModelReplied(_) | Body::Charged(_) | Body::RolledBack { .. }) || is_shared(body)
}

impl Transcript {
    /// Returns the background tasks that were started in this chat, in order.
    pub fn background_tasks(&self) -> &[BackgroundEntry] {
        &self.background
    }

    /// Returns the background tasks that have not ended.
    pub fn open_background(&self) -> impl Iterator<Item = &BackgroundEntry> {
        self.background.iter().filter(|entry| entry.status.is_none())
    }

    /// Returns the participants that have not had a turn since the result of a background task was posted for them, in order.
    pub fn unseen_results(&self) -> impl Iterator<Item = &Name> {
        let unseen =
            |name: &&Name| self.background.iter().any(|entry| entry.is_unseen && entry.task.who == **name);
        self.present().filter(unseen)
    }

    /// The participants whose [turn](BackgroundTask::turn) has ended as a background task, and who have not said its result.
    pub(crate) fn unsaid_results(&self) -> impl Iterator<Item = &Name> {
        let unsaid = |name: &&Name| {
            self.background.iter().any(|entry| entry.is_unseen && entry.task.turn && entry.task.who == **name)
        };
        self.present().filter(unsaid)
    }

    /// Returns the result of a [turn](BackgroundTask::turn) of `who` that ended as a background task, if `who` has had no turn
    /// since: what it says in the turn that it has now.
    pub fn result_of_turn(&self, who: &Name) -> Option<&BackgroundResult> {
        let is_own = |turn: &&EndedTurn| turn.who == *who && !turn.is_private;
        let since = self.ended.iter().rev().find(is_own).map_or(0, |turn| turn.seq);
        let mut later = self.events.iter().rev().take_while(|event| event.seq > since);
        later.find_map(|event| match &event.body {
            Body::BackgroundEnded(result) if result.turn && result.who == *who => Some(result),
            _ => None,
        })
    }

    /// Whether `request` is a turn for the result of one that ended as a background task.
    pub(super) fn is_for_result(&self, request: &TurnRequest) -> bool {
        request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Background)
            && self.background.iter().any(|entry| entry.task.turn && entry.task.who == request.who)
    }

    /// How many turns `who` had for results of its background tasks since the chat was opened last.
    pub(crate) fn follow_ups_of(&self, who: &Name) -> u64 {
        self.follow_ups.get(who).copied().unwrap_or_default()
    }

    /// The number of the next background task of `who`.
    pub(crate) fn next_background(&self, who: &Name) -> u64 {
        self.background_begun.get(who).map_or(1, |begun| begun + 1)
    }

    /// The path of a background task that was started here.
    pub(crate) fn path_of_background(&self, task: &BackgroundTask) -> Path {
        self.at.background(&task.who, task.number)
    }

    pub(super) fn background_started(&mut self, task: &BackgroundTask, seq: u64) {
        let turn = self.open.iter().find(|turn| turn.request.who == task.who);
        let of_turn = in_order(turn.into_iter().flat_map(|turn| turn.events.iter().chain(&turn.within)));
        let around =
            self.shared().cloned().chain(of_turn.into_iter().filter(|event| event.seq < seq)).collect();
        let begun = self.background_begun.entry(task.who.clone()).or_default();
        *begun = task.number.max(*begun);
        self.background.push(BackgroundEntry {
            task: task.clone(),
            seq,
            status: None,
            is_unseen: false,
            around,
            within: Vec::new(),
            undone: Vec::new(),
            counted: seq,
        });
    }

    /// Counts what happened within a task that has ended. What it shares is visible from now on, or at the end of the turn in which
    /// the agent awaited it.
    pub(super) fn background_ended(&mut self, result: &BackgroundResult) -> Result<(), String> {
        let is_it = |entry: &&mut BackgroundEntry| {
            entry.task.who == result.who && entry.task.id == result.id && entry.status.is_none()
        };
        let Some(entry) = self.background.iter_mut().find(is_it) else {
            return Err(format!("there is no open background task `{}` of `{}`", result.id, result.who));
        };
        entry.status = Some(result.status);
        entry.is_unseen = !result.awaited && result.status != BackgroundStatus::Cancelled;
        let (begun, counted) = (entry.seq, entry.counted);
        entry.counted = entry.known_until();
        let used = entry.within.iter().chain(&entry.undone).filter(|event| event.seq > counted);
        used.for_each(|event| self.usage.add_event(event));
        let shared = in_order(&entry.within);
        if result.turn && result.status != BackgroundStatus::Cancelled {
            self.worked_since(begun, &result.who);
        }
        let turn = self.open.iter_mut().find(|turn| result.awaited && turn.request.who == result.who);
        match turn {
            Some(turn) => turn.within.extend(shared),
            None => self.share_all(shared),
        }
        Ok(())
    }

    /// The turn of `who` that the event `begun` made a background task had an effect. Before that it counts as silent: where all wait for
    /// such tasks, the chat would end, and so it waits for them.
    fn worked_since(&mut self, begun: u64, who: &Name) {
        let mut later = self.ended.iter_mut().skip_while(|turn| turn.seq < begun);
        if let Some(turn) = later.find(|turn| turn.who == *who) {
            turn.is_silent = false;
        }
    }

    /// Keeps an event within an open background task until that ends. Returns whether it is one.
    pub(super) fn keep_for_background(&mut self, event: &Arc<Event>) -> bool {
        if self.background.is_empty() {
            return false;
        }
        let Some((who, number)) = event.chat.as_background_of(&self.at) else { return false };
        let is_it = |entry: &&mut BackgroundEntry| {
            entry.task.number == number && entry.task.who.as_str() == who && entry.status.is_none()
        };
        let Some(entry) = self.background.iter_mut().find(is_it) else { return false };
        if let Body::RolledBack { since } = event.body {
            let is_undone = |other: &mut Arc<Event>| {
                other.chat == event.chat && other.seq >= since && is_shared(&other.body)
            };
            entry.undone.extend(entry.within.extract_if(.., is_undone));
        } else if counts_at_end(&event.body) {
            entry.within.push(Arc::clone(event));
        }
        true
    }

    /// A turn has begun, in which its agent sees what was posted.
    pub(super) fn sees_results(&mut self, request: &TurnRequest) {
        let who = &request.who;
        if request.choice.as_ref().is_some_and(|choice| choice.by == Chooser::Background) {
            *self.follow_ups.entry(who.clone()).or_default() += 1;
        }
        // The result of a turn is said in a public one.
        let sees = |entry: &&mut BackgroundEntry| {
            entry.task.who == *who && !(entry.task.turn && request.to.is_private())
        };
        self.background.iter_mut().filter(sees).for_each(|entry| entry.is_unseen = false);
    }

    /// After a rollback: what tasks that it left had within, and the numbers that were used.
    pub(super) fn keep_background_of(&mut self, before: &Self) {
        self.background_begun.clone_from(&before.background_begun);
        for entry in &mut self.background {
            if let Some(known) = before.background.iter().find(|known| known.seq == entry.seq) {
                entry.around.clone_from(&known.around);
                entry.within.clone_from(&known.within);
                entry.undone.clone_from(&known.undone);
                entry.counted = known.counted;
            }
        }
    }
}
