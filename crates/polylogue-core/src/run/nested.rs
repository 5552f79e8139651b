//! Chats that run within a turn.

use super::RunningChat;
use crate::{Chat, Interrupt, Message, OpeningContext, Result, Status, StopReason, Transcript, Turn};

impl Turn<'_> {
    /// Runs a nested chat within this turn. Its events have their own path; each further chat of the turn has another
    /// one.
    ///
    /// # Errors
    /// As [`Chat::run`]; [`Interrupt::Limit`] when chats are nested too deep.
    pub async fn run(&mut self, chat: &Chat, task: &str) -> Result<Status> {
        let turn = self.transcript.at().child(self.me(), self.transcript.turns_begun_by(self.me()));
        let at = turn.sibling(self.runs);
        self.runs += 1;
        if at.depth() > self.log.depth() {
            return Err(Interrupt::Limit(StopReason::Depth { limit: self.log.depth() }).into());
        }
        let mut transcript =
            if self.resumed { self.log.transcript_of(&at).await? } else { Transcript::new(at) };
        transcript.inherit(self.shared(&[]), 0);
        self.in_doubt &= transcript.closed().is_some();
        let earlier = if transcript.is_open() { Vec::new() } else { self.earlier(chat).await? };
        let start = OpeningContext { task, outer: Some(self.transcript), who: self.me() };
        let opening = chat.opening(&start, earlier);
        let mut running = RunningChat::new(self.log, transcript);
        running.doubt = self.doubt.take();
        let result = running.run(chat, opening).await;
        self.within.append(&mut running.replies);
        self.failed_within = result.is_err();
        self.cut_within = running.transcript().result_cut();
        self.result_within = running.transcript().result().cloned();
        result
    }

    /// The messages that `chat` continues: those of the last chat run here by the participant that it names.
    async fn earlier(&self, chat: &Chat) -> Result<Vec<Message>> {
        let Some(before) = chat.continues() else { return Ok(Vec::new()) };
        let begun = self.transcript.turns_begun_by(before);
        let last = if before == self.me() { begun.saturating_sub(1) } else { begun };
        for turn in (1..=last).rev() {
            let transcript = self.log.transcript_of(&self.transcript.at().child(before, turn)).await?;
            // One that was rolled back with its turn has no beginning.
            if transcript.is_open() {
                return Ok(transcript.messages().map(|line| line.message.clone()).collect());
            }
        }
        Ok(Vec::new())
    }
}
