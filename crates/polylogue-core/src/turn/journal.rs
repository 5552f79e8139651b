//! The journal of a turn: recording what happens in it, and replaying what happened before it was resumed.

use std::mem::discriminant;
use std::sync::Arc;

use super::Turn;
use crate::{Body, ConfigError, Error, Event, HistoryEntry, Name, Result};

impl Turn<'_> {
    /// Prompts the agent's own model, such as with what was wrong with its last reply. Logged, so no prompt is
    /// hidden.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn prompt(&mut self, text: impl Into<Arc<str>>) -> Result<()> {
        let prompted = Body::Prompted { who: self.me().clone(), text: text.into() };
        self.replay_or_record(prompted, "prompts its model").await
    }

    /// Removes earlier messages from the view of the agent `of`; `None` means all agents. The last `keep` messages stay visible,
    /// and so do tool calls in progress. The log keeps everything.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn clear_history(&mut self, of: Option<Name>, keep: usize) -> Result<()> {
        let cleared = Body::Cleared { who: self.me().clone(), of, keep };
        self.replay_or_record(cleared, "clears the history").await
    }

    /// Sets what the agent remembers of this turn, instead of everything in it: prompts, drafts and its message are
    /// then not in its view in later turns, unless they are among `words`. Others see its message as usual.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn remember(&mut self, words: Vec<HistoryEntry>) -> Result<()> {
        let remembered = Body::Remembered { who: self.me().clone(), entries: words };
        self.replay_or_record(remembered, "remembers its turn").await
    }

    /// Returns the next event of the turn in the run that it began in, apart from compactions of its history and other forms of
    /// requests, which precede model calls; `None` once it continues beyond that.
    pub fn next_logged(&self) -> Option<&Body> {
        let mut bodies = self.past.iter().map(|event| &event.body);
        bodies
            .find(|body| !body.is_of_form() && !body.is_of_compaction())
            .or_else(|| self.past.front().map(|event| &event.body))
    }

    /// Returns the answer to the question that this turn asked, if it is answered.
    pub fn answer(&mut self) -> Option<Arc<str>> {
        let [asked, answered] = [self.past.front()?, self.past.get(1)?];
        let (Body::InputRequired(_), Body::InputProvided { text, .. }) = (&asked.body, &answered.body) else {
            return None;
        };
        let text = Arc::clone(text);
        for event in self.past.drain(..2).collect::<Vec<_>>() {
            self.replay_event(event);
        }
        Some(text)
    }

    /// Replays the next event, if there is one and it `is_it`. Returns whether it did.
    pub(super) fn replay_if(&mut self, is_it: impl Fn(&Body) -> bool) -> bool {
        let event = self.past.pop_front_if(|event| is_it(&event.body));
        event.map(|event| self.replay_event(event)).is_some()
    }

    /// Replays the next event, which must be of the kind of `body`, or records `body` if there is none. `does` says what the agent does.
    pub(super) async fn replay_or_record(&mut self, body: Body, does: &'static str) -> Result<()> {
        let Some(event) = self.past.pop_front() else { return self.record([body]).await };
        if discriminant(&event.body) != discriminant(&body) {
            return Err(self.diverged(&event, does));
        }
        self.replay_event(event);
        Ok(())
    }

    pub(super) async fn record(&mut self, bodies: impl IntoIterator<Item = Body>) -> Result<()> {
        self.before_record().await?;
        for event in self.log.append(self.transcript.at(), bodies).await? {
            self.enter(event);
        }
        Ok(())
    }

    /// As [`record`](Self::record), but leaves the write to the next event, or to the moment when the run has to wait.
    pub(super) async fn record_with_next(&mut self, body: Body) -> Result<()> {
        self.before_record().await?;
        for event in self.log.append_with_next(self.transcript.at(), [body]).await? {
            self.enter(event);
        }
        Ok(())
    }

    pub(super) async fn before_record(&mut self) -> Result<()> {
        self.survive().await?;
        self.in_doubt = false;
        self.doubt = None;
        Ok(())
    }

    pub(crate) fn replay_event(&mut self, event: Arc<Event>) {
        self.returned += 1;
        self.lost_limit = match &event.body {
            Body::OutputLimited(limit) => Some(limit.tokens),
            _ => None,
        };
        self.enter(event);
    }

    pub(super) fn enter(&mut self, event: Arc<Event>) {
        if let Some(view) = &mut self.view {
            view.catch_up(self.transcript);
            view.see_own(&event);
        }
        self.journal.push(event);
    }

    pub(super) fn diverged(&self, event: &Event, does: &'static str) -> Error {
        ConfigError::TurnDiverged { who: self.me().clone(), does, event: event.seq }.into()
    }
}
