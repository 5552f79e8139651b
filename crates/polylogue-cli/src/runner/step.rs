//! A run until it is at rest: what happens is shown, and the person can steer it and is asked while others have turns.
//!
//! The run is polled next to every prompt, and so is all that waits for the lock of its log: a run that is not polled may hold that.

use std::collections::BTreeSet;
use std::io;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use polylogue::{Message, Status};
use polylogue_core::{Body, Cancellation, Instruction, OpenQuestion, Path, Update};
use polylogue_mcp::Progress;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::{Runner, answers, is_seen};
use crate::error::CliError;
use crate::prompt::question::{prompt as prompt_for, typed};
use crate::prompt::{self, Asked};
use crate::screen::text::neutral;
use crate::screen::{Flow, Screen};
use crate::signals::{FINISHING, Signals};
use crate::stderr::{print_error, print_note};
use crate::steering::{self, SteeringKey};
use crate::view::View;

/// How often a screen is redrawn while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// How long a run may take to come to rest after a question. One that has not by then has other turns in progress.
const REST: Duration = Duration::from_millis(300);

/// What the person has given while a run was in progress.
#[derive(Default)]
struct Given {
    /// For when the run has ended.
    texts: Vec<Message>,
    /// Whether something was given that the run takes in, also if it has just ended.
    is_steered: bool,
    /// Since when there may be a question that was not asked here.
    asks_since: Option<Instant>,
    /// The questions that were asked here, by the events that ask.
    asked: BTreeSet<u64>,
}

impl Given {
    /// Takes note that people may be asked.
    fn note(&mut self, update: &Update) {
        let is_question = match update {
            Update::Event(event) => matches!(event.body, Body::InputRequired(_)),
            Update::Missed { .. } => true,
            _ => false,
        };
        if is_question {
            self.asks_since = Some(Instant::now());
        }
    }
}

impl Runner {
    /// Runs the chat as far as it goes, and shows what happens.
    pub(super) async fn step(
        &mut self,
        view: &mut View,
        signals: &mut Signals,
    ) -> polylogue_runtime::Result<Status> {
        let mut progress = self.progress.take();
        let status = self.run_to_rest(view, signals, &mut progress).await;
        self.progress = progress;
        // What was appended last is shown before the outcome.
        let cancellation = self.conversation.cancellation();
        while let Some(Some(update)) = view.next_update().now_or_never() {
            view.show(&update, &cancellation).await;
        }
        view.tell_of_bound(&self.conversation);
        status
    }

    async fn run_to_rest(
        &self,
        view: &mut View,
        signals: &mut Signals,
        progress: &mut Option<UnboundedReceiver<Progress>>,
    ) -> polylogue_runtime::Result<Status> {
        let cancellation = self.conversation.cancellation();
        let is_asked = !self.conversation.questions().await.is_empty();
        let mut given = Given { asks_since: is_asked.then(Instant::now), ..Given::default() };
        let mut run = pin!(self.conversation.run());
        let mut ticks = tokio::time::interval(TICK);
        let mut key = SteeringKey::at_terminal(self.settings.looks.live && prompt::is_possible());
        loop {
            given.is_steered = false;
            let ended = tokio::select! {
                biased;
                () = signals.next() => {
                    obey(signals, &cancellation, view);
                    None
                }
                Some(update) = view.next_update() => {
                    given.note(&update);
                    view.show(&update, &cancellation).await;
                    if matches!(update, Update::Event(_)) {
                        view.tell_of_bound(&self.conversation);
                    }
                    None
                }
                // Once an order was given, what it does stands there.
                Some(said) = next_notice(progress), if !cancellation.is_requested() => {
                    view.apply(|screen| noticed(screen, &said), &cancellation);
                    None
                }
                () = key.pressed() => self.steered(view, signals, run.as_mut(), &mut given).await,
                status = &mut run => Some(status),
                _ = ticks.tick() => match self.may_ask(&given) {
                    true => self.asked_next_to(view, signals, run.as_mut(), (&mut key, &mut given)).await,
                    false => {
                        view.apply(Screen::tick, &cancellation);
                        None
                    }
                },
            };
            let Some(status) = ended else { continue };
            let has_texts = !given.texts.is_empty();
            match (steering::send_all(&self.conversation, &mut given.texts).await, status) {
                // It continues with what was said before it ended, or when it had just ended.
                (Ok(()), Ok(status))
                    if given.is_steered || has_texts && matches!(status, Status::Closed { .. }) =>
                {
                    run.set(self.conversation.run());
                }
                (Err(error), Ok(_)) => return Err(error),
                (_, status) => return status,
            }
        }
    }

    /// Asks the person what to do, while the run continues. Returns the result of the run, if it has ended meanwhile.
    async fn steered<S>(
        &self,
        view: &mut View,
        signals: &mut Signals,
        run: Pin<&mut impl Future<Output = S>>,
        given: &mut Given,
    ) -> Option<S> {
        view.make_room();
        let (instruction, ended) = steering::ask(run, signals).await;
        match instruction {
            Some(Instruction::Send(text)) if self.keeps_texts => given.texts.push(text),
            Some(instruction) => {
                drop(self.conversation.instruct(instruction));
                given.is_steered = true;
            }
            None => {}
        }
        ended
    }

    /// Whether the person can be asked something while the run continues.
    fn may_ask(&self, given: &Given) -> bool {
        given.asks_since.is_some_and(|since| since.elapsed() >= REST)
            && self.answer.is_none()
            && self.settings.looks.live
            && prompt::is_possible()
            && !self.conversation.cancellation().is_requested()
    }

    /// Asks the person a question of a turn that waits while others are in progress, and the run continues. Returns the result of the run,
    /// if it has ended meanwhile.
    async fn asked_next_to<S>(
        &self,
        view: &mut View,
        signals: &mut Signals,
        mut run: Pin<&mut impl Future<Output = S>>,
        (key, given): (&mut SteeringKey, &mut Given),
    ) -> Option<S> {
        let (over, is_over) = oneshot::channel();
        let (outcome, ended) = {
            let running = pin!(async {
                let status = run.as_mut().await;
                // No one waits for that when the person has begun to type.
                let _ = over.send(());
                status
            });
            let dialog = pin!(self.dialog(view, signals, key, (&given.asked, is_over)));
            match select(dialog, running).await {
                Either::Left((outcome, _)) => (outcome, None),
                Either::Right((ended, dialog)) => (dialog.await, Some(ended)),
            }
        };
        given.asks_since = Some(Instant::now());
        match outcome {
            Ok(None) => given.asks_since = None,
            Ok(Some((open, Asked::Answer(Some(answer))))) => self.give(view, &open, answer, given),
            Ok(Some((open, Asked::Answer(None)))) => {
                given.asked.insert(open.seq);
                if signals.stopped() {
                    obey(signals, &self.conversation.cancellation(), view);
                }
            }
            Ok(Some((_, Asked::Steer))) if ended.is_none() => {
                return self.steered(view, signals, run, given).await;
            }
            Ok(Some((_, Asked::Steer | Asked::Withdrawn(())))) => {}
            Err(error) => {
                print_error(&error);
                given.asks_since = None;
            }
        }
        ended
    }

    /// Asks the person the first open question that is not among those `asked`, if there is one. It is withdrawn when something else is
    /// said, which is shown first, or when the run `is_over`.
    async fn dialog(
        &self,
        view: &mut View,
        signals: &mut Signals,
        key: &mut SteeringKey,
        (asked, is_over): (&BTreeSet<u64>, oneshot::Receiver<()>),
    ) -> Result<Option<(OpenQuestion, Asked<()>)>, CliError> {
        // Before reading, so that nothing is missed.
        let mut news = self.conversation.subscribe().await;
        let events = self.conversation.events().await;
        let is_new = |open: &OpenQuestion| !asked.contains(&open.seq) && !is_of_task(&open.chat);
        let Some(open) = OpenQuestion::of(&events).into_iter().find(is_new) else { return Ok(None) };
        view.make_room();
        self.pose(&events, &open.chat, &open.question);
        let spoken = async {
            loop {
                match news.next().await {
                    Some(Update::Delta { .. }) => {}
                    Some(Update::Event(event)) if !is_news(&event.body) => {}
                    Some(_) => return,
                    None => std::future::pending().await,
                }
            }
        };
        let withdrawn = async { drop(select(pin!(spoken), is_over).await) };
        let prompt = prompt_for(&open.question);
        let outcome =
            prompt::ask_unless(&prompt, answers(&events), signals, key.pressed(), withdrawn).await?;
        Ok(Some((open, outcome)))
    }

    /// Passes on what the person has typed as the answer to a question.
    fn give(&self, view: &mut View, open: &OpenQuestion, answer: String, given: &mut Given) {
        let OpenQuestion { chat: at, seq, question, .. } = open;
        given.asked.insert(*seq);
        match self.always.answer(question, typed(question, answer)) {
            Ok(text) => {
                if is_seen(self.settings.output) {
                    view.typed(at, question, &text);
                }
                let answer =
                    Instruction::Answer { question: *seq, text: text.into(), by: prompt::user_name() };
                drop(self.conversation.instruct(answer));
                given.is_steered = true;
            }
            Err(error) => print_error(&error),
        }
    }
}

/// Whether the chat is a background task, or in one. What it asks can wait until the conversation rests, which shows meanwhile what is said.
fn is_of_task(at: &Path) -> bool {
    at.is_background() || at.ancestors().any(|at| at.is_background())
}

/// Whether the event answers a question, or has something to read that is more than a step on the way.
const fn is_news(body: &Body) -> bool {
    matches!(
        body,
        Body::InputProvided { .. }
            | Body::ModelReplied(_)
            | Body::Message(_)
            | Body::Failed { .. }
            | Body::RolledBack { .. }
            | Body::Closed { .. }
    )
}

/// What the next MCP server says; nothing, ever, when there are none.
async fn next_notice(progress: &mut Option<UnboundedReceiver<Progress>>) -> Option<Progress> {
    match progress {
        Some(progress) => progress.recv().await,
        None => None,
    }
}

/// Shows at a terminal how far a call has come.
fn noticed(screen: &mut Screen<io::Stdout>, said: &Progress) -> io::Result<Flow> {
    screen.notice(&neutral(&said.to_string())).map(|_| Flow::Go)
}

/// Passes an order to stop on, and says what it does.
fn obey(signals: &Signals, cancellation: &Cancellation, view: &mut View) {
    if signals.pass_on(cancellation) && !view.notice(FINISHING) {
        print_note(FINISHING);
    }
}
