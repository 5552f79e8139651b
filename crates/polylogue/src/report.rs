//! What came of a run, read from its events.

mod ledger;

use std::sync::Arc;

use polylogue_core::{Body, Event, Failure, Message, Name, Path, Question, Reason, Spent};
use serde::Serialize;

use self::ledger::Ledger;
pub use self::ledger::{Figures, Purpose, Row};

/// What came of a run: why it ended, its summary, what was said, what people answered, what it cost and for what.
///
/// It is read from the events alone, is never changed by what happens later, and is as good for a run that failed or
/// waits as for one that ended: what went wrong, and whose turn it was, is in it.
///
/// # What a conversation cost, and for what
/// ```
/// # async fn example(log: polylogue::Log) {
/// use polylogue::report::{Purpose, Report};
/// let report = Report::of(&log.events().await);
/// for row in report.rows.iter().filter(|row| row.purpose == Purpose::Aside) {
///     println!("{} asked {} aside for {}", row.who, row.model, row.spent.cost);
/// }
/// println!("{:?}: {}", report.reason, report.summary);
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Why the outermost chat ended; `None` when it has not.
    pub reason: Option<Reason>,
    /// What came of it; empty when it has not ended.
    pub summary: Arc<str>,
    /// The messages of the outermost room in order, those of its opening included, and those said aside not.
    pub messages: Vec<Message>,
    /// What people answered, in order, in chats within the outermost too.
    pub answers: Vec<Answer>,
    /// What people are asked and have not answered yet, with the chats they are asked in.
    pub questions: Vec<(Path, Question)>,
    /// What failed, in order. A turn that failed last and is not mended stands last.
    pub failures: Vec<Failed>,
    /// What was spent in total. What a cache of replies saved is in [`Spent::saved`] and in no other figure.
    pub spent: Spent,
    /// What was spent by chat, agent, model and purpose.
    pub rows: Vec<Row>,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The chat it was asked in.
    pub at: Path,
    /// The participant that asked in the person's name.
    pub who: Name,
    /// What was asked.
    pub question: Arc<str>,
    /// What was answered, as it was typed; an empty answer is one.
    pub text: Arc<str>,
}

/// What failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The chat.
    pub at: Path,
    /// Whose turn it was.
    pub who: Name,
    /// What went wrong.
    pub error: Failure,
}

impl Report {
    /// The report of the last run: of a conversation that was gone on with about something more, from there on. Events are
    /// those of a log, in order.
    #[must_use]
    pub fn of(events: &[Arc<Event>]) -> Self {
        let more = |event: &Arc<Event>| {
            event.at.is_root() && matches!(event.body, Body::Reopened { message: Some(_) })
        };
        let (earlier, last) = events.split_at(events.iter().rposition(more).unwrap_or(0));
        let mut reader = Reader::default();
        // Turns that are open when the run begins are turns of the run.
        earlier.iter().for_each(|event| reader.ledger.follow(event));
        last.iter().for_each(|event| reader.read(event));
        reader.report()
    }

    /// The report of all runs of a conversation together.
    #[must_use]
    pub fn of_all(events: &[Arc<Event>]) -> Self {
        let mut reader = Reader::default();
        events.iter().for_each(|event| reader.read(event));
        reader.report()
    }

    /// What was spent for what `is` holds of: an agent, a model, a purpose, a chat and all within it.
    ///
    /// ```
    /// # fn example(report: &polylogue::report::Report, critic: &polylogue::Name) -> polylogue::Spent {
    /// report.spent_on(|row| row.who == *critic)
    /// # }
    /// ```
    #[must_use]
    pub fn spent_on(&self, is: impl Fn(&Row) -> bool) -> Spent {
        ledger::total(self.rows.iter().filter(|row| is(row)))
    }
}

/// Reads events, one after the other.
#[derive(Default)]
struct Reader {
    closed: Option<(Reason, Arc<str>)>,
    messages: Vec<Message>,
    answers: Vec<Answer>,
    questions: Vec<(Path, Question)>,
    failures: Vec<Failed>,
    ledger: Ledger,
}

impl Reader {
    fn read(&mut self, event: &Event) {
        self.ledger.read(event);
        let Event { at, body, .. } = event;
        match body {
            Body::Asked(question) => self.questions.push((at.clone(), question.clone())),
            Body::Answered { to, text } => self.answered(at, to, text),
            Body::Failed { who, error } => {
                self.failures.push(Failed { at: at.clone(), who: who.clone(), error: error.clone() });
            }
            _ if at.is_root() => self.read_outermost(body),
            _ => {}
        }
    }

    fn read_outermost(&mut self, body: &Body) {
        match body {
            Body::Opened(opening) => self.messages.extend(opening.messages.iter().cloned()),
            Body::Said(message) if message.to.is_aside() => {}
            Body::Said(message) | Body::Posted(message) => self.messages.push(message.clone()),
            Body::Closed { reason, summary } => self.closed = Some((reason.clone(), Arc::clone(summary))),
            Body::Reopened { message } => {
                self.closed = None;
                self.messages.extend(message.clone());
            }
            _ => {}
        }
    }

    fn answered(&mut self, at: &Path, to: &Name, text: &Arc<str>) {
        let asked = self.questions.iter().position(|(path, question)| path == at && question.who == *to);
        if let Some(asked) = asked {
            let (at, Question { who, text: question }) = self.questions.remove(asked);
            self.answers.push(Answer { at, who, question, text: Arc::clone(text) });
        }
    }

    fn report(self) -> Report {
        let (reason, summary) = self.closed.map_or((None, "".into()), |(why, what)| (Some(why), what));
        let rows = self.ledger.into_rows();
        Report {
            reason,
            summary,
            messages: self.messages,
            answers: self.answers,
            questions: self.questions,
            failures: self.failures,
            spent: ledger::total(&rows),
            rows,
        }
    }
}
