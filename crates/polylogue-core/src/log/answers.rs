//! Answers to questions: those of turns that wait while others are in progress, and those that come when the run waits.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::{Body, Event, Instruction, Log, OpenQuestion, Pending};
use crate::{Responder, Result};

/// An answer that is not in the log yet.
pub(crate) enum Answer {
    /// A person gave it.
    Given(Pending),
    /// It is the default answer to this question, whose time is up.
    Default(OpenQuestion),
}

impl Log {
    /// Waits for the first answer to one of the questions `asked`: by a person, or the default answer. Without a
    /// [timer](Self::timer), default answers count from the next run on.
    pub(crate) async fn answer_to(&self, asked: &[OpenQuestion]) -> Answer {
        let numbers: Vec<u64> = asked.iter().map(|open| open.seq).collect();
        let given = pin!(self.inbox.take_answer(&numbers));
        match select(given, pin!(self.first_up(asked))).await {
            Either::Left((given, _)) => Answer::Given(given),
            Either::Right((open, _)) => Answer::Default(open.clone()),
        }
    }

    /// As [`answer_to`](Self::answer_to), but leaves an answer of a person in the inbox while the conversation is paused.
    pub(crate) async fn answer_outside_pauses(&self, asked: &[OpenQuestion]) -> Answer {
        loop {
            self.pause.out_of_effect().await;
            match select(pin!(self.pause.in_effect()), pin!(self.answer_to(asked))).await {
                Either::Left(_) => {}
                Either::Right((answer, _)) => return answer,
            }
        }
    }

    /// Waits until the time of one of the questions `asked` is up, and returns it.
    async fn first_up<'q>(&self, asked: &'q [OpenQuestion]) -> &'q OpenQuestion {
        let first = asked.iter().filter(|open| open.until().is_some()).min_by_key(|open| open.until());
        let (Some(first), Some(timer)) = (first, &self.timer) else { return pending().await };
        while !first.is_up(self.time_now()) {
            let left = first.until().map_or(0, |until| until.0.saturating_sub(self.time_now().0));
            timer.wait(Duration::from_millis(left.max(1))).await;
        }
        first
    }

    /// Logs an answer. Returns its events.
    pub(crate) async fn provide(&self, answer: Answer) -> Result<Vec<Arc<Event>>> {
        match answer {
            Answer::Given(pending) => self.post_answer(pending).await,
            Answer::Default(open) => match open.default_answer() {
                Some((at, body)) => self.append(&at, [body]).await,
                None => Ok(Vec::new()),
            },
        }
    }

    /// Logs the answer of an instruction, or that nothing asks for it. Returns the events of the answer.
    pub(crate) async fn post_answer(&self, pending: Pending) -> Result<Vec<Arc<Event>>> {
        let Instruction::Answer { question, text, by } = &pending.instruction else { return Ok(Vec::new()) };
        let open = self.open_questions().await;
        let Some(open) = open.into_iter().find(|open| open.seq == *question) else {
            let why = format!("there is no open question {question}: it was answered before, or never asked");
            self.refuse(pending, why).await?;
            return Ok(Vec::new());
        };
        let (to, text, by) = (open.question.who, Arc::clone(text), Responder::person(by.clone()));
        let body = Body::InputProvided { to, text, by };
        let events = self.append_instructed(&open.chat, pending.number, body).await?;
        pending.confirm(Ok(()));
        Ok(events)
    }
}
