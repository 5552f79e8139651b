//! The questions of all conversations that wait for people.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use polylogue_core::{ListQuery, Listing, LogState, OpenQuestion, Timestamp};

use crate::{Result, Runtime};

/// How many conversations are read at the same time: with thousands that wait in a database, one after the other would take many seconds.
const READS: usize = 16;

/// The questions of one conversation that wait for people.
#[derive(Debug, Clone)]
pub struct WaitingRun {
    /// The conversation.
    pub listing: Listing,
    /// Its open questions, oldest first.
    pub questions: Vec<OpenQuestion>,
}

impl Runtime {
    /// Returns the conversations with questions that wait for people, newest first. Questions whose time is up, in
    /// conversations that no process runs, get their default answers, and are not among them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn waiting(&self) -> Result<Vec<WaitingRun>> {
        let states = vec![LogState::Waiting, LogState::Paused, LogState::Failed];
        let listings = self.list(&ListQuery { states, ..ListQuery::default() }).await?.logs;
        let asked = listings.into_iter().filter(|listing| !listing.summary.questions.is_empty());
        let read = stream::iter(asked).map(|listing| self.waiting_run(listing)).buffered(READS);
        let mut waiting: Vec<WaitingRun> = read.try_collect().await?;
        waiting.retain(|run| !run.questions.is_empty());
        Ok(waiting)
    }

    async fn waiting_run(&self, listing: Listing) -> Result<WaitingRun> {
        let mut questions = self.open_questions_of(&listing).await?;
        let is_up = questions.iter().any(|open| open.is_up(Timestamp::now()));
        if is_up && self.answer_expired(&listing.id).await? {
            questions = self.open_questions(&listing.id).await?;
        }
        Ok(WaitingRun { listing, questions })
    }
}
