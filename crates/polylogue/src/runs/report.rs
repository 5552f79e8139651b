//! Reports: the result of a run, read from its events.

mod ledger;

use std::collections::BTreeMap;
use std::sync::Arc;

use polylogue_core::{
    Body, Event, Failure, FinishReason, Message, Name, Path, PrefixChange, PrefixChanges, Question,
    RunOutcome, StopReason, TotalUsage,
};
use serde::Serialize;

use self::ledger::UsageTable;
pub use self::ledger::{Purpose, Row};

/// The result of a run: stop reason, summary, messages, answers of people, usage and cost.
///
/// It covers the outermost chat, or one of the chats within it ([`chats`](Self::chats)) and nothing outside of that. It
/// is read from the events alone and does not change later. It works for finished, failed and waiting runs, and
/// includes errors and the pending turn. Of what was [rolled back](Body::RolledBack) it has
/// usage, errors, and messages that were sent from outside.
///
/// # Cost by participant and purpose
/// ```
/// # async fn example(log: polylogue::Log) {
/// use polylogue::runs::report::{Purpose, Report};
/// let report = Report::of_last_run(&log.events().await);
/// for row in report.rows.iter().filter(|row| row.purpose == Purpose::Private) {
///     println!("{} called {} in private turns for {}", row.who, row.model, row.usage.cost);
/// }
/// println!("{:?}: {}", report.reason, report.summary);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The chat.
    pub chat: Path,
    /// The stop reason; `None` for an unfinished chat.
    pub reason: Option<StopReason>,
    /// The summary; empty for an unfinished chat.
    pub summary: Arc<str>,
    /// Why the result is truncated, if it is: the token limit, or a filter of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<FinishReason>,
    /// The messages of the chat in order, including the opening, without private turns.
    pub messages: Vec<Message>,
    /// The answers of people, in order, including nested chats.
    pub answers: Vec<Answer>,
    /// The open questions, with their chats.
    pub questions: Vec<(Path, Question)>,
    /// The errors, in order. One that is still unresolved is last.
    pub failures: Vec<Failed>,
    /// Total usage. Savings by a cache of replies are only in [`TotalUsage::saved`].
    pub usage: TotalUsage,
    /// Usage by chat, agent, model and purpose.
    pub rows: Vec<Row>,
    /// The changes that kept prompt caches from being read, by agent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefix_changes: Vec<(Name, PrefixChange)>,
}

/// An answer of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The chat with the question.
    pub chat: Path,
    /// The participant with the question.
    pub who: Name,
    /// The question.
    pub question: Arc<str>,
    /// The answer, as typed; can be empty.
    pub text: Arc<str>,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The chat.
    pub chat: Path,
    /// The participant whose turn failed.
    pub who: Name,
    /// The error.
    pub error: Failure,
}

impl Report {
    /// Returns the report of the last run: from the message on that reopened the chat last. That can be one that was sent before the chat
    /// closed, and that no turn had followed. `events` are those of a log, in order.
    pub fn of_last_run(events: &[Arc<Event>]) -> Self {
        let (earlier, run) = last_run(events);
        let mut reader = Reader::new(Path::root());
        // Turns that a limit left open are finished in this run.
        earlier.iter().for_each(|event| reader.ledger.follow(event));
        if run.first().is_some_and(|event| is_for_sent(event)) {
            reader.begin_with_sent(earlier);
        }
        reader.read_all(run);
        reader.report(run)
    }

    /// Returns the report of all runs of a conversation together.
    pub fn of_all_runs(events: &[Arc<Event>]) -> Self {
        Self::read(Path::root(), events)
    }

    /// Returns the reports of the nested chats in the last run of the outermost chat, in the order in which they started: the
    /// result of each chat of a sequence.
    pub fn chats(events: &[Arc<Event>]) -> Vec<Self> {
        let (_, run) = last_run(events);
        let events = run.iter().zip(rolled_back(run));
        let nested = events.filter(|(event, is_rolled_back)| !is_rolled_back && is_nested(event));
        nested.map(|(event, _)| Self::read(event.chat.clone(), run)).collect()
    }

    fn read(at: Path, events: &[Arc<Event>]) -> Self {
        let mut reader = Reader::new(at);
        reader.read_all(events);
        reader.report(events)
    }

    /// Returns the usage of the rows for which `is` holds: of an agent, a model, a purpose, a chat and all within it.
    ///
    /// ```
    /// # fn example(report: &polylogue::runs::report::Report, critic: &polylogue::Name) -> polylogue::kernel::data::TotalUsage {
    /// report.usage_of(|row| row.who == *critic)
    /// # }
    /// ```
    pub fn usage_of(&self, is: impl Fn(&Row) -> bool) -> TotalUsage {
        ledger::total(self.rows.iter().filter(|row| is(row)))
    }
}

/// The events before the last message that reopened the chat, and those since then.
fn last_run(events: &[Arc<Event>]) -> (&[Arc<Event>], &[Arc<Event>]) {
    let more = |event: &Arc<Event>| {
        let has_message = matches!(event.body, Body::Reopened { message: Some(_), .. });
        event.chat.is_root() && has_message || is_for_sent(event)
    };
    events.split_at(events.iter().rposition(more).unwrap_or(0))
}

/// Whether the outermost chat is reopened for a message that was sent before it closed: the event is without it.
fn is_for_sent(event: &Event) -> bool {
    event.chat.is_root() && matches!(event.body, Body::Reopened { message: None, sent: true, .. })
}

/// Whether a nested chat begins.
fn is_nested(event: &Event) -> bool {
    matches!(event.body, Body::Opened(_)) && event.chat.depth() == 1 && !event.chat.is_background()
}

/// Which of `events` were rolled back.
fn rolled_back(events: &[Arc<Event>]) -> Vec<bool> {
    let mut first: BTreeMap<&Path, u64> = BTreeMap::new();
    let mut all = vec![false; events.len()];
    for (event, is_rolled_back) in events.iter().zip(&mut all).rev() {
        *is_rolled_back = first.get(&event.chat).is_some_and(|first| event.seq >= *first);
        if let Body::RolledBack { since } = event.body {
            let first = first.entry(&event.chat).or_insert(since);
            *first = since.min(*first);
        }
    }
    all
}

/// Reads events, one after the other.
struct Reader {
    at: Path,
    closed: Option<(StopReason, Arc<str>)>,
    /// The last private message: it may be the summary.
    private: Option<Message>,
    /// The message of the result before: it stays the result until a participant says something.
    before: Option<Message>,
    /// Why the last model call ended.
    finish: Option<FinishReason>,
    messages: Vec<Message>,
    answers: Vec<Answer>,
    /// The questions whose answers have not been read.
    asked: Vec<(Path, Question)>,
    failures: Vec<Failed>,
    ledger: UsageTable,
    prefixes: PrefixChanges,
}

impl Reader {
    fn new(at: Path) -> Self {
        let ledger = UsageTable::of(at.clone());
        let (messages, answers, asked, failures) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (closed, private, before, finish) = (None, None, None, None);
        let prefixes = PrefixChanges::default();
        Self { at, closed, private, before, finish, messages, answers, asked, failures, ledger, prefixes }
    }

    /// Begins with the last message that was sent in the events `earlier`, and with their result.
    fn begin_with_sent(&mut self, earlier: &[Arc<Event>]) {
        let bodies = || earlier.iter().rev().filter(|event| event.chat.is_root()).map(|event| &event.body);
        let sent = bodies().find_map(|body| match body {
            Body::Sent(message) => Some(message.clone()),
            _ => None,
        });
        let result = bodies().find_map(|body| match body {
            Body::Closed { summary, .. } => Some(summary),
            _ => None,
        });
        let is_result = |message: &Message| result.is_some_and(|result| *message.to_text() == **result);
        let before = bodies().find_map(|body| match body {
            Body::Message(message) if is_result(message) => Some(message.clone()),
            _ => None,
        });
        self.messages.extend(sent);
        self.before = before;
    }

    fn read_all(&mut self, events: &[Arc<Event>]) {
        for (event, is_rolled_back) in events.iter().zip(rolled_back(events)) {
            if event.chat == self.at || event.chat.is_within(&self.at) {
                self.read(event, is_rolled_back);
            }
        }
    }

    fn read(&mut self, event: &Event, is_rolled_back: bool) {
        let Event { chat: at, body, .. } = event;
        self.ledger.read(event);
        match body {
            Body::ModelReplied(reply) => {
                if !is_rolled_back {
                    self.finish = Some(reply.finish.clone());
                }
                self.prefixes.read(at, reply);
            }
            Body::Failed { who, error } => {
                self.failures.push(Failed { chat: at.clone(), who: who.clone(), error: error.clone() });
            }
            // What was sent from outside stays.
            _ if is_rolled_back && !matches!(body, Body::Sent(_)) => {}
            Body::InputRequired(question) => self.asked.push((at.clone(), question.clone())),
            Body::InputProvided { to, text, .. } => self.answered(at, to, text),
            _ if *at == self.at => self.read_chat(body),
            _ => {}
        }
    }

    fn read_chat(&mut self, body: &Body) {
        match body {
            Body::Opened(opening) => self.messages.extend(opening.messages.iter().cloned()),
            Body::Message(message) if message.to.is_private() => self.private = Some(message.clone()),
            Body::Message(message) | Body::Posted(message) | Body::Sent(message) => {
                self.messages.push(message.clone());
            }
            Body::Closed { reason, summary } => self.closed = Some((reason.clone(), Arc::clone(summary))),
            Body::Reopened { message, .. } => {
                self.closed = None;
                self.messages.extend(message.clone());
            }
            _ => {}
        }
    }

    fn answered(&mut self, at: &Path, to: &Name, text: &Arc<str>) {
        let asked = self.asked.iter().position(|(path, question)| path == at && question.who == *to);
        if let Some(asked) = asked {
            let (at, Question { who, text: question, .. }) = self.asked.remove(asked);
            self.answers.push(Answer { chat: at, who, question, text: Arc::clone(text) });
        }
    }

    /// Why the result is truncated, if it is: for the message of the summary, or else for the last reply.
    fn cut(&self) -> Option<FinishReason> {
        let (reason, summary) = self.closed.as_ref()?;
        if reason.outcome() == RunOutcome::NoOutput {
            return self.finish.clone().filter(FinishReason::is_cut);
        }
        let is_it = |message: &&Message| *message.to_text() == **summary;
        let mut said = self.private.iter().chain(self.messages.iter().rev()).chain(&self.before);
        let message = said.find(is_it).or_else(|| self.messages.last())?;
        message.cut().filter(|_| !summary.trim().is_empty())
    }

    /// The report of `events`, which were read.
    fn report(self, events: &[Arc<Event>]) -> Report {
        let cut = self.cut();
        let mut questions = Question::open_in(events);
        questions.retain(|(at, _)| *at == self.at || at.is_within(&self.at));
        let (reason, summary) = self.closed.map_or((None, "".into()), |(why, what)| (Some(why), what));
        let rows = self.ledger.into_rows();
        Report {
            chat: self.at,
            reason,
            summary,
            cut,
            messages: self.messages,
            answers: self.answers,
            questions,
            failures: self.failures,
            usage: ledger::total(&rows),
            rows,
            prefix_changes: self.prefixes.found().map(|(who, change)| (who.clone(), change)).collect(),
        }
    }
}
