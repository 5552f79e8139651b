//! Running a chat: from a task, from its log, or as a participant of another chat.

use futures_util::future::join;
use tokio::sync::oneshot;
use tracing::{Instrument as _, info, info_span};

use super::RunningChat;
use super::result::{RunResult, RunStream};
use crate::{
    Act, Agent, Body, Chat, ConfigError, Error, Interrupt, Log, Message, Name, Opening, OpeningContext, Part,
    Path, Result, Status, TaskFrom, TranscriptMessage, Turn,
};

impl Chat {
    /// Runs the chat in memory until it closes or waits for a person.
    ///
    /// To resume it later, to cancel it, or to let people answer, run it [in a log](Self::run_in).
    ///
    /// # Errors
    /// As [`run_in`](Self::run_in).
    pub async fn run(&self, task: &str) -> Result<RunResult> {
        self.run_in(&mut Log::in_memory(), task).await
    }

    /// Runs the chat in memory as a stream of updates: events, and new text as it arrives.
    pub fn stream(&self, task: &str) -> RunStream<'_> {
        self.stream_in(Log::in_memory(), task)
    }

    /// Streams a run like [`stream`](Self::stream), in an empty log.
    pub fn stream_in(&self, log: Log, task: &str) -> RunStream<'_> {
        let (updates, task) = (log.subscribe_from_start(), task.to_owned());
        let run = async move {
            let mut log = log;
            self.run_in(&mut log, &task).await
        };
        RunStream::new(updates, run)
    }

    /// Opens the chat in an empty log and runs it until it closes, waits for a person, or is cancelled.
    ///
    /// # Errors
    /// When its conversation has begun already, and as [`resume`](Self::resume).
    pub async fn run_in(&self, log: &mut Log, task: &str) -> Result<RunResult> {
        self.run_with(log, task, Vec::new()).await
    }

    /// Runs like [`run_in`](Self::run_in), with `attached` parts, such as pictures, in the message of the opening that has the task.
    ///
    /// # Errors
    /// As [`run_in`](Self::run_in).
    pub async fn run_with(&self, log: &mut Log, task: &str, attached: Vec<Part>) -> Result<RunResult> {
        if log.has_begun().await? {
            return Err(ConfigError::BegunAlready { log: log.id().clone() }.into());
        }
        self.drive(log, Some((task, attached))).await
    }

    /// Opens the chat in an empty log without running it, with `attached` parts, such as pictures, in the message of the opening that has
    /// the task. [`resume`](Self::resume) runs it, in this process or in another one.
    ///
    /// # Errors
    /// When its conversation has begun already, or the log cannot be written.
    pub async fn open_in(&self, log: &mut Log, task: &str, attached: Vec<Part>) -> Result<()> {
        if log.has_begun().await? {
            return Err(ConfigError::BegunAlready { log: log.id().clone() }.into());
        }
        let opening = self.outermost_opening(task, attached);
        log.append(&Path::root(), [Body::Opened(opening)]).await.map(drop)
    }

    /// Continues the conversation in the log.
    ///
    /// # Errors
    /// When a turn fails, the log cannot be written, or the agents do not match the log. Everything before is in the
    /// log, and resuming tries again.
    pub async fn resume(&self, log: &mut Log) -> Result<RunResult> {
        self.drive(log, None).await
    }

    /// Continues a closed conversation with a new `message`. Turns and messages are counted from 0 again, and every
    /// participant still sees what was said before. To continue without that, begin another log.
    ///
    /// # Errors
    /// When the conversation is not closed, and as [`resume`](Self::resume).
    pub async fn continue_with(&self, log: &mut Log, message: impl Into<Message>) -> Result<RunResult> {
        log.continue_with(message.into()).await?;
        self.drive(log, None).await
    }

    pub(super) async fn drive(&self, log: &Log, begin: Option<(&str, Vec<Part>)>) -> Result<RunResult> {
        let span = info_span!("conversation", id = %log.id(), chat = %self.name);
        self.drive_to_end(log, begin).instrument(span).await
    }

    async fn drive_to_end(&self, log: &Log, mut begin: Option<(&str, Vec<Part>)>) -> Result<RunResult> {
        log.begin().await?;
        log.resume_paused().await?;
        log.answer_expired().await?;
        let status = loop {
            // In boxes, as all that happens once a run: each future around it, and its frame in a debug build, stays small.
            let mut running = Box::pin(RunningChat::open(log)).await?;
            if !running.transcript().is_open() && begin.is_none() {
                return Err(ConfigError::NotBegun { log: log.id().clone() }.into());
            }
            let at_rest = Box::pin(running.take_in_raise()).await?;
            let (task, attached) = begin.take().unwrap_or_default();
            let opening = self.outermost_opening(task, attached);
            let status = if let Some(at_rest) = at_rest {
                Ok(at_rest)
            } else {
                let (over, is_over) = oneshot::channel();
                let run = Box::pin(running.run(self, opening));
                let run = async {
                    let status = run.await;
                    // Its receiver waits for it next to this.
                    let _ = over.send(());
                    status
                };
                join(run, log.obey_until(is_over)).await.0
            };
            let reason = match status {
                Err(Error::Interrupt(Interrupt::Cancelled)) => break Status::Cancelled,
                Err(Error::Interrupt(Interrupt::Limit(reason))) => reason,
                result => {
                    let status = result?;
                    Box::pin(running.rest()).await;
                    break status;
                }
            };
            if let Some(status) = Box::pin(running.ask_or_close(self, reason)).await? {
                break status;
            }
            // It was raised after it was reached.
            log.begin().await?;
        };
        let (usage, events) = (log.usage().await, log.events().await);
        let outcome = match &status {
            Status::Closed { reason, .. } => Some(reason.outcome()),
            Status::Waiting(_) | Status::Cancelled => None,
        };
        info!(calls = usage.calls, tokens = usage.tokens(), events = events.len(), ?outcome, "run ended");
        Ok(RunResult { status, usage, events })
    }

    fn outermost_opening(&self, task: &str, attached: Vec<Part>) -> Opening {
        let start = OpeningContext { task, outer: None, who: &self.name };
        let mut opening = self.opening(&start, Vec::new());
        opening.attach(attached);
        opening
    }

    fn task_from(&self, turn: &Turn<'_>) -> String {
        let transcript = turn.transcript();
        let seen = |line: &&TranscriptMessage| line.is_seen_by(&self.name);
        if let Some(prompt) = &turn.request().prompt {
            return prompt.as_ref().to_owned();
        }
        match &self.setup.task_from {
            TaskFrom::Custom(task) => task(transcript, &self.name),
            TaskFrom::Task => transcript.task().to_owned(),
            TaskFrom::Last => transcript
                .all_messages()
                .iter()
                .rev()
                .find(seen)
                .map_or_else(String::new, |l| l.message.text().into()),
            TaskFrom::All => {
                let say =
                    |line: &TranscriptMessage| format!("{}: {}", line.message.from, line.message.text());
                transcript.all_messages().iter().filter(seen).map(say).collect::<Vec<_>>().join("\n\n")
            }
        }
    }
}

impl Agent for Chat {
    fn name(&self) -> &Name {
        &self.name
    }

    fn description(&self) -> &str {
        &self.setup.description
    }

    /// Runs the chat and says its result.
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let task = self.task_from(turn);
        match turn.run(self, &task).await? {
            Status::Closed { summary, .. } => Ok(turn.say_result(summary)),
            Status::Waiting(_) => Ok(Act::Wait),
            Status::Cancelled => Err(Interrupt::Cancelled.into()),
        }
    }
}
