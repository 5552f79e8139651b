//! At a limit of the whole run, a person can be asked to raise it: a question of the run, which belongs to no turn.

use super::RunningChat;
use crate::transcript::LimitQuestion;
use crate::{
    Body, Chat, DefaultAnswer, LimitOverrides, LimitRaise, Name, OnLimit, Question, Result, Status,
    StopReason,
};

impl RunningChat<'_> {
    /// Asks a person to raise the limit of the whole run that was reached, if people are asked and may raise it. Else closes the
    /// outermost chat. Chats within it stay open, and so do turns: an answer continues them.
    pub(super) async fn ask_or_close(&mut self, chat: &Chat, reason: StopReason) -> Result<Status> {
        let Some(question) = self.question_at(chat, &reason).await else {
            return self.close_at_limit(reason).await;
        };
        self.append([Body::InputRequired(question)]).await?;
        Ok(Status::Waiting(self.log.questions().await?))
    }

    /// Takes in the answer to the question about a limit, if one was asked. Returns the status of the run if it does not continue.
    pub(super) async fn take_in_raise(&mut self) -> Result<Option<Status>> {
        if self.transcript.limit_question().is_none() || self.transcript.closed().is_some() {
            return Ok(None);
        }
        self.log.answer_raised().await?;
        self.transcript = self.log.transcript().await?;
        let asked = self.transcript.limit_question().cloned();
        let Some(LimitQuestion { question: Question { limit: Some(raise), .. }, answer, .. }) = asked else {
            return Ok(None);
        };
        if !self.log.limits_now().holds(&raise.reached) {
            return Ok(None);
        }
        let Some(answer) = answer else {
            return Ok(Some(Status::Waiting(self.log.questions().await?)));
        };
        match raise.allowed_by(&answer) {
            Some(more) => self.log.raise_limits(more).await?,
            None => return self.close_at_limit(raise.reached).await.map(Some),
        }
        self.transcript = self.log.transcript().await?;
        Ok(None)
    }

    /// The question at the limit `reason`; `None` if no answer could raise it.
    async fn question_at(&self, chat: &Chat, reason: &StopReason) -> Option<Question> {
        let (log, limits) = (self.log, self.log.limits_now());
        let last = log.look(LimitOverrides::last_allowed).await;
        let more = last.instead_of(reason.as_limit()).at_least(reason.next_needs());
        let raised = log.limits_beyond(more).await.at_most(limits.raise.ceiling);
        // A budget that is shared with other runs, or the bound, is not raised with the limits of this run.
        let can_raise = limits.holds(reason) && !raised.is_empty() && !raised.over(limits).holds(reason);
        if limits.on_limit != OnLimit::Ask || !can_raise {
            return None;
        }
        let raise = LimitRaise { reached: reason.clone(), more: log.limits_left(raised).await };
        let text = "no".into();
        let default = limits.raise.timeout_ms.map(|after_ms| DefaultAnswer { after_ms, text });
        let who = if chat.agent(&chat.name).is_some() { Name::user() } else { chat.name.clone() };
        Some(Question { default, ..Question::about_limit(who, raise) })
    }
}
