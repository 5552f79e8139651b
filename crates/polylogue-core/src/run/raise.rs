//! At a limit, a person can be asked to raise it: a question of the run, which belongs to no turn.

use super::RunningChat;
use crate::log::AtLimit;
use crate::transcript::LimitQuestion;
use crate::{Body, Chat, DefaultAnswer, LimitRaise, Name, Question, Result, Status, StopReason};

impl RunningChat<'_> {
    /// Asks a person to raise the limit that was reached, if people are asked and may raise it. Else closes the outermost chat. Chats within
    /// it stay open, and so do turns: an answer continues them. `None` if it was raised meanwhile: the run continues.
    pub(super) async fn ask_or_close(&mut self, chat: &Chat, reason: StopReason) -> Result<Option<Status>> {
        match self.log.at_limit(&reason).await {
            AtLimit::Asks(raise) => {
                self.append([Body::InputRequired(self.question_about(chat, raise))]).await?;
                Ok(Some(Status::Waiting(self.log.questions().await?)))
            }
            AtLimit::Ends => self.close_at_limit(reason).await.map(Some),
            AtLimit::Raised => {
                // What is left to the next write would be lost with this run.
                self.log.flush().await?;
                Ok(None)
            }
        }
    }

    /// Takes in the answer to the question about a limit, if one was asked: a run at whose limits no person is asked does not wait for one.
    /// Returns the status of the run if it does not continue.
    pub(super) async fn take_in_raise(&mut self) -> Result<Option<Status>> {
        if self.transcript.limit_question().is_none() || self.transcript.closed().is_some() {
            return Ok(None);
        }
        self.log.answer_about_limit(self.log.limits_now().on_limit).await?;
        self.read_again().await?;
        let asked = self.transcript.limit_question().cloned();
        let Some(LimitQuestion { question: Question { limit: Some(raise), .. }, answer, .. }) = asked else {
            return Ok(None);
        };
        if self.log.is_raised(&raise.reached).await {
            return Ok(None);
        }
        let Some(answer) = answer else {
            return Ok(Some(Status::Waiting(self.log.questions().await?)));
        };
        match raise.allowed_by(&answer) {
            Some(more) => self.log.raise(&raise.reached, more).await?,
            None => return self.close_at_limit(raise.reached).await.map(Some),
        }
        self.read_again().await?;
        Ok(None)
    }

    /// Takes in what others have appended, before the chat runs.
    async fn read_again(&mut self) -> Result<()> {
        let chat = self.log.take_chat(self.transcript.at()).await?;
        (self.transcript, self.extent) = (chat.transcript, Some(chat.extent));
        Ok(())
    }

    /// The question whether to allow `raise`.
    fn question_about(&self, chat: &Chat, raise: LimitRaise) -> Question {
        let (after_ms, text) = (self.log.limits_now().raise.timeout_ms, "no".into());
        let default = after_ms.map(|after_ms| DefaultAnswer { after_ms, text });
        let who = if chat.agent(&chat.name).is_some() { Name::user() } else { chat.name.clone() };
        Question { default, ..Question::about_limit(who, raise) }
    }
}
