//! Results of runs, whole or as a stream of updates.

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{BoxStream, StreamExt as _, unfold};

use crate::{
    Body, Event, Message, Path, Question, Result, Status, StopReason, Subscription, TotalUsage, Update,
};

/// The result of a run: text, messages, stop reason, usage and cost.
///
/// Printed, it is the conversation and why it ended. A `Report` of its [events](Self::events) has the usage by agent,
/// chat and model.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Whether the chat is closed, waits for a person, or was cancelled.
    pub status: Status,
    /// The usage and cost of the whole conversation.
    pub usage: TotalUsage,
    pub(super) events: Vec<Arc<Event>>,
}

impl RunResult {
    /// Returns the result of the chat: its last message, or a summary. Empty for an unfinished chat.
    pub fn text(&self) -> &str {
        match &self.status {
            Status::Closed { summary, .. } => summary,
            Status::Waiting(_) | Status::Cancelled => "",
        }
    }

    /// Returns why the chat ended; `None` for an unfinished one.
    pub const fn stop_reason(&self) -> Option<&StopReason> {
        match &self.status {
            Status::Closed { reason, .. } => Some(reason),
            Status::Waiting(_) | Status::Cancelled => None,
        }
    }

    /// Returns the questions to people that the chat waits for, each with the path of its chat.
    pub fn questions(&self) -> &[(Path, Question)] {
        match &self.status {
            Status::Waiting(questions) => questions,
            Status::Closed { .. } | Status::Cancelled => &[],
        }
    }

    /// Returns the messages of the chat in the order in which they were said, including the opening and those that were sent while it
    /// ran, without private turns.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.events.iter().filter(|event| event.chat.is_root()).flat_map(|event| match &event.body {
            Body::Opened(opening) => opening.messages.as_slice(),
            Body::Message(message) if message.to.is_private() => &[],
            Body::Message(message) | Body::Posted(message) | Body::Sent(message) => {
                std::slice::from_ref(message)
            }
            Body::Reopened { message, .. } => message.as_slice(),
            _ => &[],
        })
    }

    /// Returns all events of the conversation.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }
}

impl fmt::Display for RunResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in self.messages() {
            let text = message.text();
            if !text.trim().is_empty() {
                writeln!(f, "{}: {}\n", message.from, text.trim_end())?;
            }
        }
        match &self.status {
            Status::Closed { reason, summary } => {
                let last = self.messages().last().map(Message::text).unwrap_or_default();
                if !summary.trim().is_empty() && summary.trim() != last.trim() {
                    writeln!(f, "Result: {}\n", summary.trim_end())?;
                }
                write!(f, "({reason})")
            }
            Status::Cancelled => f.write_str("(cancelled)"),
            Status::Waiting(questions) => {
                let question =
                    |(_, question): &(Path, Question)| format!("{}: {}", question.who, question.text);
                write!(f, "(waits for {})", questions.iter().map(question).collect::<Vec<_>>().join("; "))
            }
        }
    }
}

/// A run as a stream of updates. An error of the run is the last item. Dropping it stops the run.
///
/// It is a [`Stream`]; [`next`](Self::next) needs no trait in running. After the last update
/// [`result`](Self::result) returns the result.
#[derive(derive_more::Debug)]
#[debug("RunStream {{ .. }}")]
pub struct RunStream<'a> {
    items: BoxStream<'a, Item>,
    result: Option<RunResult>,
}

enum Item {
    Update(Update),
    Done(Result<RunResult>),
}

impl<'a> RunStream<'a> {
    pub(super) fn new(
        updates: Subscription,
        run: impl Future<Output = Result<RunResult>> + Send + 'a,
    ) -> Self {
        let run: BoxFuture<'a, _> = Box::pin(run);
        let items = unfold((updates, Some(run), None), |(mut updates, run, mut done)| async move {
            let run: Option<BoxFuture<'a, _>> = run;
            if let Some(mut running) = run {
                let first = match select(pin!(updates.next()), &mut running).await {
                    Either::Left((update, _)) => Either::Left(update),
                    Either::Right((result, _)) => Either::Right(result),
                };
                match first {
                    Either::Left(Some(update)) => {
                        return Some((Item::Update(update), (updates, Some(running), done)));
                    }
                    Either::Left(None) => done = Some(running.await),
                    Either::Right(result) => done = Some(result),
                }
            }
            // The log is dropped with the run, which ends the subscription after its last update.
            match updates.next().await {
                Some(update) => Some((Item::Update(update), (updates, None, done))),
                None => Some((Item::Done(done.take()?), (updates, None, None))),
            }
        });
        Self { items: items.boxed(), result: None }
    }

    /// Waits for the next update; `None` when the run has ended.
    pub async fn next(&mut self) -> Option<Result<Update>> {
        futures_util::StreamExt::next(self).await
    }

    /// Runs on to the end and returns the result.
    ///
    /// # Errors
    /// As [`Chat::run_in`](crate::Chat::run_in).
    pub async fn result(mut self) -> Result<RunResult> {
        while let Some(update) = self.next().await {
            update?;
        }
        self.result.ok_or_else(|| crate::Error::Bug("a run ended without a result".into()))
    }
}

impl Stream for RunStream<'_> {
    type Item = Result<Update>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Update>>> {
        self.items.poll_next_unpin(cx).map(|item| match item? {
            Item::Update(update) => Some(Ok(update)),
            Item::Done(Err(error)) => Some(Err(error)),
            Item::Done(Ok(result)) => {
                self.result = Some(result);
                None
            }
        })
    }
}
