//! A conversation that a server runs, while it is followed here: the screen, Ctrl-C, and people who are asked at the terminal.

mod keys;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, LocalBoxFuture};
use polylogue::runs::Report;
use polylogue_client::wire::conversation::{Continuation, Conversation, ConversationState, When};
use polylogue_client::wire::stream::Status;
use polylogue_client::{Client, ClientError, Tail, TailItem};
use polylogue_core::{
    Body, Cancellation, Event, LogId, Name, OpenQuestion, Path, Question, RunOutcome, StopReason, Summary,
    TotalUsage, Update,
};
use polylogue_runtime::Continuation as Way;

use super::named_server::Remote;
use crate::args::piped::Input;
use crate::error::{CliError, Exit};
use crate::prompt::question::{meant, typed};
use crate::prompt::{self, print_verbatim};
use crate::runner::{
    first_shown, is_failure_shown, is_seen, overlong, read_answer, show_end, waiting, words_only,
};
use crate::screen::text::neutral;
use crate::screen::{Output, RunEnd, RunState, Screen, Settings, Size, at_terminal};
use crate::signals::Signals;
use crate::stderr::{print_note, print_note_wrapped};
use crate::steering::{self, SteeringKey};
use crate::view::View;
use crate::{limit, work_dir};

/// How often a screen is redrawn while nothing happens.
const TICK: Duration = Duration::from_millis(100);

/// How often, and how many times, it is looked whether a conversation that has just halted stays so.
const SETTLING: (Duration, u32) = (Duration::from_millis(200), 5);

/// What is said when the server was asked to stop.
const FINISHING: &str = "the server finishes this step; Ctrl-C again stops now";
const STOPPING: &str = "the server stops now; Ctrl-C again leaves it alone";

/// A conversation that is followed.
pub(super) struct Watch<'r> {
    pub(super) remote: &'r Remote,
    pub(super) conversation: Conversation,
    pub(super) settings: Settings,
    /// Answers the first question instead of asking at the terminal.
    pub(super) answer: Option<String>,
    pub(super) input: Input,
    /// Those so far.
    pub(super) events: Vec<Arc<Event>>,
    /// Whether the next events are those with which it continues, which the person has caused and is not shown; programs are.
    pub(super) is_resumed: bool,
}

/// Where a conversation has come to rest.
#[derive(Clone)]
pub(super) enum Rest {
    Closed,
    Waiting(Vec<OpenQuestion>),
    Stopped,
    Failed(String),
    /// The person has left, and the server continues.
    Left,
}

/// What the server is asked to do, and what it was asked.
#[derive(Default)]
struct Stop<'r> {
    /// Set by signals, and when the output is closed.
    wanted: Cancellation,
    is_now: bool,
    asked: Option<When>,
    request: Option<LocalBoxFuture<'r, Result<Conversation, ClientError>>>,
}

/// The tail, and what it had while something else was waited for.
struct Feed<'r> {
    tail: Tail<'r>,
    pending: VecDeque<TailItem>,
    /// Questions that were answered here.
    answered: BTreeSet<u64>,
    /// Questions that no one here answers.
    declined: BTreeSet<u64>,
    /// Whether other turns are in progress while people are asked.
    in_progress: bool,
}

impl<'r> Watch<'r> {
    /// Follows it until it ends, needs input that no one here can give, or is stopped; shows it, and says how it ended.
    pub(super) async fn run(mut self) -> Result<Exit, CliError> {
        let begun = Instant::now();
        let mut view = self.view(begun, false)?;
        self.recall(&mut view);
        let rest = self.until_rest(&mut view, &mut Signals::new()?).await?;
        self.finish(view, rest, begun.elapsed()).await
    }

    /// A view of it that has begun. `hides_user`: what the person writes is on the screen already.
    pub(super) fn view(&self, begun: Instant, hides_user: bool) -> Result<View, CliError> {
        let name = |error| CliError::failed(format!("the server names a team that no team has: {error}"));
        let team = Name::new(&self.conversation.team_name).map_err(name)?;
        let mut view = View::new(self.screen(&team, begun), None);
        if hides_user && self.settings.output != Output::Json {
            view.hide_user();
        }
        // Where it continues, the bound may not apply any more.
        let bound = self.conversation.bound.as_ref().filter(|_| self.events.is_empty());
        view.begin(&self.conversation.id, &team, bound);
        Ok(view)
    }

    /// Shows events until the run ends or waits, and asks the person the questions that come up.
    pub(super) async fn until_rest(
        &mut self,
        view: &mut View,
        signals: &mut Signals,
    ) -> Result<Rest, CliError> {
        let tail = self.remote.client.tail(&self.conversation.id, self.events.len() as u64);
        let (answered, declined) = (BTreeSet::new(), BTreeSet::new());
        let mut feed = Feed { tail, pending: VecDeque::new(), answered, declined, in_progress: false };
        let mut stop = Stop::default();
        let mut key = SteeringKey::at_terminal(self.settings.looks.live && prompt::is_possible());
        loop {
            let rest = self.follow(view, &mut feed, signals, (&mut stop, &mut key)).await?;
            let Rest::Waiting(asked) = &rest else { return Ok(rest) };
            let open = asked.iter().find(|open| !feed.declined.contains(&open.seq));
            let Some(open) = open.filter(|_| !signals.stopped()) else { return Ok(rest) };
            view.rest();
            if !self.answered(view, &mut feed, open, (&mut *signals, &mut key)).await? {
                if prompt::is_possible() || !feed.in_progress {
                    return Ok(rest);
                }
                // What others say in their turns is still to come.
                feed.declined.insert(open.seq);
            }
        }
    }

    fn screen(&self, team: &Name, begun: Instant) -> Screen<io::Stdout> {
        let screen = Screen::new(
            io::stdout(),
            team.as_str(),
            self.settings,
            Box::new(Size::of_terminal),
            Box::new(move || begun.elapsed()),
        );
        let screen = screen.with(work_dir::pictures_of_server(self.settings.looks));
        if prompt::is_possible() { screen.with_keys(steering::KEYS) } else { screen }
    }

    /// Reads earlier events without showing them, and shows messages that were sent since and open questions.
    fn recall(&self, view: &mut View) {
        let output = self.settings.output;
        let first = first_shown(output, &self.events, self.events.len() as u64);
        let (before, since) = self.events.split_at(first);
        before.iter().for_each(|event| view.recall(event));
        for asked in self.conversation.questions.iter().cloned() {
            let OpenQuestion { chat: at, question, .. } = asked.into();
            view.remind(before, &at, &question, &Cancellation::default());
        }
        let mut is_shown = output == Output::Json;
        for event in since {
            is_shown |= matches!(event.body, Body::Sent(_) | Body::Reopened { message: Some(_), .. });
            if is_shown { view.show_again(event) } else { view.recall(event) }
        }
    }

    /// Shows what happens until it is at rest.
    async fn follow(
        &mut self,
        view: &mut View,
        feed: &mut Feed<'r>,
        signals: &mut Signals,
        (stop, key): (&mut Stop<'r>, &mut SteeringKey),
    ) -> Result<Rest, CliError> {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            stop.ask(&self.remote.client, &self.conversation.id);
            if let Some(item) = feed.pending.pop_front() {
                if let Some(rest) = self.take(view, feed, item, stop).await {
                    return Ok(rest);
                }
                continue;
            }
            tokio::select! {
                biased;
                () = signals.next() => {
                    if stop.asked == Some(When::Now) {
                        return Ok(Rest::Left);
                    }
                    stop.is_now = !signals.pass_on(&stop.wanted);
                    notice(view, if stop.is_now { STOPPING } else { FINISHING });
                }
                () = key.pressed() => {
                    view.make_room();
                    self.steer(feed, signals).await?;
                }
                Err(error) = stop.answered() => notice(view, &format!("the server did not stop it: {error}")),
                item = feed.tail.next() => match item? {
                    Some(item) => feed.pending.push_back(item),
                    None => return Ok(Rest::Closed),
                },
                _ = ticks.tick() => { view.apply(Screen::tick, &stop.wanted); }
            }
        }
    }

    async fn take(
        &mut self,
        view: &mut View,
        feed: &mut Feed<'_>,
        item: TailItem,
        stop: &Stop<'_>,
    ) -> Option<Rest> {
        match item {
            TailItem::Event(event) => {
                let event: Arc<Event> = Arc::from(event);
                self.events.push(Arc::clone(&event));
                self.is_resumed &= self.settings.output != Output::Json && is_resumption(&event.body);
                match self.is_resumed {
                    true => view.recall(&event),
                    false => view.show(&Update::Event(event), &stop.wanted).await,
                }
            }
            TailItem::Delta { chat: at, who, delta } => {
                view.show(&Update::Delta { chat: at, who, delta }, &stop.wanted).await;
            }
            TailItem::Missed => {
                view.show(&Update::Missed { updates: 1, seq: feed.tail.next_seq() }, &stop.wanted).await;
            }
            TailItem::Status(status) => {
                feed.in_progress = status.in_progress;
                return self.rest(status, feed, stop).await;
            }
            TailItem::End(_) => return Some(Rest::Closed),
            TailItem::Lost(why) => {
                notice(view, &format!("the connection to the server was lost ({why}); trying again"));
            }
            TailItem::Connected => notice(view, "connected again"),
        }
        None
    }

    /// Whether a conversation in this state is at rest.
    async fn rest(&self, status: Status, feed: &Feed<'_>, stop: &Stop<'_>) -> Option<Rest> {
        match (status.state, status.ended) {
            // The end follows, unless it was reopened meanwhile.
            (ConversationState::Running | ConversationState::Closed, _) => None,
            (ConversationState::Waiting, _) => {
                let mut asked: Vec<OpenQuestion> = status.questions.into_iter().map(Into::into).collect();
                asked.retain(|open| !feed.answered.contains(&open.seq));
                let is_declined = |open: &OpenQuestion| feed.declined.contains(&open.seq);
                let is_rest = !feed.in_progress || !asked.iter().all(is_declined);
                (!asked.is_empty() && is_rest).then_some(Rest::Waiting(asked))
            }
            (ConversationState::Halted, Some(ended)) => Some(Rest::Failed(ended.detail)),
            // It is paused, and continues here when it is resumed.
            (ConversationState::Halted, None) if status.in_progress => None,
            (ConversationState::Halted, None)
                if stop.asked.is_some() || stays_halted(&self.remote.client, &self.conversation.id).await =>
            {
                Some(Rest::Stopped)
            }
            (ConversationState::Halted, None) => None,
        }
    }

    /// Asks the person, if there is one. Returns whether the question is answered.
    async fn answered(
        &mut self,
        view: &mut View,
        feed: &mut Feed<'_>,
        open: &OpenQuestion,
        (signals, key): (&mut Signals, &mut SteeringKey),
    ) -> Result<bool, CliError> {
        let (OpenQuestion { seq, chat: at, question, .. }, id) = (open, self.conversation.id.clone());
        let is_typed = self.answer.is_none() && prompt::is_possible() && is_seen(self.settings.output);
        let text = match self.answer.take() {
            Some(text) => Some(text),
            None if prompt::is_possible() => {
                if !is_seen(self.settings.output) {
                    print_verbatim(&at_terminal(question));
                }
                match self.asked(feed, open, (signals, key)).await? {
                    Either::Left(answer) => answer.map(|answer| typed(question, answer)),
                    Either::Right(()) => return Ok(true),
                }
            }
            None => {
                let again = self.remote.place.command(&format!("resume {id}"));
                read_answer(question, self.input, &again, signals).await?
            }
        };
        let Some(text) = text else { return Ok(false) };
        let text = meant(question, text);
        if is_typed {
            view.typed(at, question, &text);
        }
        feed.answered.insert(*seq);
        match self.remote.client.answer(&id, *seq, &text).await {
            Err(error) if error.problem().is_some_and(|problem| problem.word() == "answered") => {
                print_note("it was answered before, by someone else");
                Ok(true)
            }
            answered => Ok(answered.map(|_| true)?),
        }
    }

    pub(super) async fn finish(
        self,
        mut view: View,
        rest: Rest,
        elapsed: Duration,
    ) -> Result<Exit, CliError> {
        let id = self.conversation.id.clone();
        let (state, status, exit) = match &rest {
            Rest::Left => {
                let resume = self.remote.place.command(&format!("resume {id}"));
                print_note_wrapped(&format!("the server continues: `{resume}` follows it"));
                return Ok(Exit::Stopped);
            }
            Rest::Closed => {
                let (reason, _) = ended(&self.events)?;
                let cut = Report::of_last_run(&self.events).cut;
                let exit = Exit::from(reason).or_cut(cut.is_some());
                (RunState::of(reason), RunEnd::why_cut(reason, cut), exit)
            }
            Rest::Waiting(asked) => (RunState::Waiting, waiting(&questions(asked)), Exit::Waiting),
            Rest::Stopped => (RunState::Stopped, "stopped: it can be resumed".into(), Exit::Stopped),
            Rest::Failed(_) => (RunState::Failed, "failed: it can be resumed".into(), Exit::Failed),
        };
        let (usage, turns, bound_ended) = self.totals().await;
        // What was so when this command began, another one has said.
        if let Some(why) = bound_ended.filter(|_| self.conversation.bound_ended.is_none()) {
            view.bound_ended(&id, &why, false);
        }
        let (resumable, option) = self.continuation(&rest).await?;
        let (files, place) = (None, self.remote.place.clone());
        let end = RunEnd {
            state,
            status,
            usage,
            turns,
            elapsed,
            id,
            resumable,
            option,
            files,
            place,
            overlong: overlong(&self.events),
            words_only: words_only(&self.events),
        };
        let asked = match &rest {
            Rest::Waiting(asked) => questions(asked),
            _ => Vec::new(),
        };
        show_end(&mut view, self.settings.output, &asked, &end);
        match rest {
            Rest::Failed(why) if !is_failure_shown(self.settings.output, &self.events) => {
                Err(CliError::failed(why))
            }
            _ => view.finished().map(|()| exit),
        }
    }

    /// What the conversation took, its number of turns, and why its bound does not apply any more, as the server says. If the server cannot
    /// say it now, the first two are those of the events: a result that is here already is shown.
    async fn totals(&self) -> (TotalUsage, u64, Option<String>) {
        match self.remote.client.conversation(&self.conversation.id).await {
            Ok(Conversation { usage, turns, bound_ended, .. }) => (usage, turns, bound_ended),
            Err(_) => {
                let Summary { usage, turns, .. } = Summary::of(self.events.iter().map(AsRef::as_ref), true);
                (usage, turns, None)
            }
        }
    }

    /// Whether there is anything to continue, and the option that continues it.
    async fn continuation(&self, rest: &Rest) -> Result<(bool, Option<String>), CliError> {
        match rest {
            Rest::Closed => {}
            Rest::Waiting(asked) => {
                return Ok((true, (asked.len() == 1).then(|| "--answer TEXT".to_owned())));
            }
            Rest::Stopped | Rest::Failed(_) | Rest::Left => return Ok((true, None)),
        }
        // A token that may only look does not learn it.
        let known = self.remote.client.continuation(&self.conversation.id).await;
        let Continuation { resumes, limits, message } = known.unwrap_or_default();
        let way = limits.map(Way::More).or(message.map(|_| Way::Message));
        let outcome = ended(&self.events)?.0.outcome();
        let is_limit = matches!(outcome, RunOutcome::Limit | RunOutcome::Budget);
        let option = way.filter(|way| is_limit || *way != Way::Message).map(limit::words);
        let resumable = option.is_some() || (outcome == RunOutcome::Stopped && resumes);
        Ok((resumable, option))
    }
}

impl<'r> Stop<'r> {
    /// Asks the server to stop as the person wants, unless it was asked already.
    fn ask(&mut self, client: &'r Client, id: &LogId) {
        let when = if self.is_now { When::Now } else { When::AfterStep };
        if self.wanted.is_requested() && self.asked != Some(when) {
            self.asked = Some(when);
            let id = id.clone();
            self.request = Some(Box::pin(async move { Ok(client.stop(&id, when).await?.conversation) }));
        }
    }

    /// The answer of the server.
    async fn answered(&mut self) -> Result<Conversation, ClientError> {
        let Some(request) = &mut self.request else { return std::future::pending().await };
        let answered = request.await;
        self.request = None;
        answered
    }
}

impl Feed<'_> {
    /// Waits until the question `seq` is not asked any more.
    async fn answered_elsewhere(&mut self, seq: u64) -> Result<(), ClientError> {
        while let Some(item) = self.tail.next().await? {
            let is_open = match &item {
                TailItem::Status(status) => status.questions.iter().any(|asked| asked.question == seq),
                _ => true,
            };
            self.pending.push_back(item);
            if !is_open {
                break;
            }
        }
        Ok(())
    }
}

/// Whether a conversation that was halted stays so: between two steps, and after a restart of the server, it is for a moment.
pub(super) async fn stays_halted(client: &Client, id: &LogId) -> bool {
    let (pause, times) = SETTLING;
    for _ in 0..times {
        tokio::time::sleep(pause).await;
        if !client.conversation(id).await.is_ok_and(|now| now.state == ConversationState::Halted) {
            return false;
        }
    }
    true
}

/// Whether an event says that a conversation continues, and nothing else.
fn is_resumption(body: &Body) -> bool {
    matches!(
        body,
        Body::Reopened { message: None, .. } | Body::LimitsChanged { .. } | Body::Charged(_) | Body::Resumed
    )
}

fn questions(asked: &[OpenQuestion]) -> Vec<(Path, Question)> {
    asked.iter().map(|open| (open.chat.clone(), open.question.clone())).collect()
}

fn notice(view: &mut View, text: &str) {
    let text = neutral(text);
    if !view.notice(&text) {
        print_note(&text);
    }
}

/// Why a conversation has ended, and its result.
pub(super) fn ended(events: &[Arc<Event>]) -> Result<(&StopReason, &str), CliError> {
    let end = |event: &'_ Arc<Event>| matches!(event.body, Body::Closed { .. }) && event.chat.is_root();
    match events.iter().rfind(|event| end(event)).map(|event| &event.body) {
        Some(Body::Closed { reason, summary, .. }) => Ok((reason, summary)),
        _ => Err(CliError::failed("the server says that the conversation has ended, and its events do not")),
    }
}
