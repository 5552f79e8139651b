//! Two agents that play a worked history: the input and the messages of each.

use std::sync::Arc;

use polylogue::tasks::{GroupSolve, GroupSolveResult, History, Task};
use polylogue::{AnyModel, Assistant, Chat, Transcript};
use polylogue_core::{Body, Entry, Event, Path, text_of};

use crate::stage::{Spy, name, run, script};

/// How it ended, and what both sides know at the end.
pub(crate) struct Played {
    pub(crate) events: Vec<Arc<Event>>,
    pub(crate) chat: Transcript,
    pub(crate) solved: GroupSolveResult,
    pub(crate) spy: Spy,
}

impl Played {
    /// Plays `solve` to its end; both sides are Assistants on a model of `spy`.
    pub(crate) async fn of(spy: Spy, solve: GroupSolve) -> Self {
        Self::chat(spy, &solve.build("group").unwrap()).await
    }

    pub(crate) async fn chat(spy: Spy, chat: &Chat) -> Self {
        let (_, events) = run(chat, "").await;
        let chat = Transcript::from_events(&Path::root(), &events).unwrap();
        let solved = GroupSolveResult::from_transcript(&chat);
        Self { events, chat, solved, spy }
    }

    /// What `who` knows, one entry a line.
    pub(crate) fn knows(&self, who: &str) -> Vec<String> {
        lines(&History::from_transcript(&self.chat, &name(who)).entries)
    }

    /// Both points of view, side by side.
    pub(crate) fn table(&self) -> String {
        let (one, two) = (self.knows("one"), self.knows("two"));
        let cell = |lines: &[String], at: usize| lines.get(at).cloned().unwrap_or_else(|| "-".into());
        let rows = (0..one.len().max(two.len()))
            .map(|at| format!("{:<2} | {:24} | {}\n", at + 1, cell(&one, at), cell(&two, at)));
        rows.collect()
    }

    /// The questions to each agent, in order: the last entry of each request.
    pub(crate) fn requests(&self) -> Vec<String> {
        let last = |entries: &[Entry]| text_of(entries.last().unwrap().parts()).into_owned();
        self.spy
            .asked()
            .iter()
            .map(|asked| format!("{}: {}", asked.who, short(&last(&asked.entries))))
            .collect()
    }

    /// Why it stopped.
    pub(crate) fn reason(&self) -> String {
        self.solved.reason.as_ref().unwrap().to_string()
    }

    /// Who said something that ended a turn in which others hear it, in order.
    pub(crate) fn said(&self) -> Vec<String> {
        let said = self.events.iter().filter_map(|event| match &event.body {
            Body::Message(message) if message.to.is_all() => Some(message.text().into_owned()),
            _ => None,
        });
        said.collect()
    }
}

/// Entries as text, with the long questions in short.
pub(crate) fn lines(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let role = match entry {
            Entry::System { .. } => "system",
            Entry::User { .. } => "user",
            Entry::Assistant { .. } => "assistant",
            Entry::Tool { .. } => "tool",
        };
        format!("{role} {}", short(&text_of(entry.parts())))
    };
    entries.iter().map(line).collect()
}

fn short(text: &str) -> String {
    let text = text.replace(polylogue::tasks::group_solve::Check::REFLECTION, "REFL");
    let text = text.replace(polylogue::tasks::group_solve::Check::DECISION, "YES/NO");
    text.replace(polylogue::tasks::group_solve::Check::AGAIN, "AGAIN").replace('\n', "\\n")
}

/// A model on which both agents speak: lists of what each replies, in order.
pub(crate) fn lists(one: &[&str], two: &[&str]) -> Spy {
    let step = |who: &'static str| move |text: &&str| serde_json::json!({ who: text });
    let steps: Vec<_> = one.iter().map(step("one")).chain(two.iter().map(step("two"))).collect();
    Spy::on(script(&serde_json::to_string(&steps).unwrap()))
}

/// A script of numbered replies: `A1` to `An` of one, `B1` to `Bn` of two.
pub(crate) fn numbered(count: usize) -> Spy {
    let of = |letter: &str| (1..=count).map(|nth| format!("{letter}{nth}")).collect::<Vec<_>>();
    let (one, two) = (of("A"), of("B"));
    lists(&refs(&one), &refs(&two))
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

pub(crate) fn agent(who: &str, model: AnyModel) -> Assistant {
    Assistant::new(who, model).unwrap()
}

/// The task `P1` of agent `one`.
pub(crate) fn one(spy: &Spy) -> Task {
    Task::new(agent("one", spy.model()), "P1")
}

/// The task `P2` of agent `two`.
pub(crate) fn two(spy: &Spy) -> Task {
    Task::new(agent("two", spy.model()), "P2")
}

/// What each entry says, apart from roles.
pub(crate) fn words(lines: &[String]) -> Vec<&str> {
    lines.iter().map(|line| line.split_once(' ').unwrap().1).collect()
}
