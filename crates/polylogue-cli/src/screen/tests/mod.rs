//! Plays signals to a screen and looks at what a person would see.

mod alike;
mod autogen;
mod documents;
mod groups;
mod outputs;
mod recovery;
mod steering;
mod streaming;
mod talk;
mod tasks;

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use polylogue::stop::LibraryStopReason;
use polylogue_core::{
    Audience, Body, Delta, Digest, Event, Message, ModelReply, Name, Opening, Part, Path, Timestamp,
    ToolCall, ToolResult, TotalUsage, TurnRequest, Update,
};
use serde_json::json;

use super::*;
use crate::place::PlaceOption;

pub(super) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(super) fn said(from: &str, text: &str) -> Body {
    Body::Message(Message::new(name(from), text))
}

pub(super) fn turn_started(who: &str) -> Body {
    Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] }
}

pub(super) fn opened(with: &[&str], from: &str, text: &str) -> Body {
    let with = with.iter().map(|who| name(who)).collect();
    let messages = vec![Message::new(name(from), text)];
    Body::Opened(Opening { participants: with, task: text.into(), messages, ..Opening::default() })
}

pub(super) fn called(who: &str, id: &str, tool: &str, args: serde_json::Value) -> Body {
    Body::ToolCalled { who: name(who), call: ToolCall { id: id.into(), tool: tool.into(), args } }
}

pub(super) fn returned(who: &str, id: &str, outcome: ToolResult) -> Body {
    Body::ToolReturned { who: name(who), id: id.into(), result: outcome }
}

pub(super) fn sampled(who: &str, parts: Vec<Part>) -> Body {
    let request = Digest::try_from("0".repeat(32)).unwrap();
    Body::ModelReplied(ModelReply::new(name(who), "script:test", request, parts))
}

pub(super) fn closed(summary: &str) -> Body {
    let reason = polylogue_core::StopReason::from(LibraryStopReason::Mentioned {
        text: "TERMINATE".into(),
        by: name("Coder"),
    });
    Body::Closed { reason, summary: summary.into() }
}

pub(super) fn ending() -> RunEnd {
    let usage = TotalUsage { calls: 2, input: 3000, output: 480, unpriced: 2, ..TotalUsage::default() };
    let id = polylogue_core::LogId::new("3k7v9x").unwrap();
    RunEnd {
        state: end::RunState::Done,
        status: "done: Coder said `TERMINATE`".into(),
        usage,
        turns: 2,
        elapsed: Duration::from_secs(41),
        id,
        resumable: true,
        option: None,
        files: None,
        place: PlaceOption::default(),
        overlong: 0,
        words_only: None,
    }
}

/// What was written, piece by piece.
#[derive(Clone, Default)]
pub(super) struct Written(Arc<Mutex<Vec<Vec<u8>>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().push(bytes.to_vec());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    pub(super) fn pieces(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().concat()).unwrap()
    }
}

/// A screen, and a terminal that shows what it writes.
pub(super) struct Stage {
    pub(super) screen: Screen<Written>,
    pub(super) written: Written,
    terminal: vt100::Parser,
    seen: usize,
    now_ms: Arc<AtomicU64>,
    size: Arc<Mutex<Size>>,
    seq: u64,
}

pub(super) const LIVE: Settings = Settings {
    output: Output::Talk,
    looks: OutputStyle { color: true, live: true, terminal: true },
    stream: true,
    paced: false,
    thoughts: false,
    verbose: false,
};
pub(super) const PLAIN: Settings = Settings { looks: OutputStyle::PLAIN, ..LIVE };

impl Stage {
    pub(super) fn new(settings: Settings, columns: usize, rows: usize) -> Self {
        let written = Written::default();
        let now_ms = Arc::new(AtomicU64::new(0));
        let size = Arc::new(Mutex::new(Size { columns, rows }));
        let (now, shape) = (Arc::clone(&now_ms), Arc::clone(&size));
        let screen = Screen::new(
            written.clone(),
            "team",
            settings,
            Box::new(move || *shape.lock().unwrap()),
            Box::new(move || Duration::from_millis(now.load(Ordering::SeqCst))),
        );
        let terminal = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 10_000);
        Self { screen, written, terminal, seen: 0, now_ms, size, seq: 0 }
    }

    pub(super) fn live(columns: usize, rows: usize) -> Self {
        Self::new(LIVE, columns, rows)
    }

    /// While B of a chat of A and B has its turn.
    pub(super) fn in_turn_of_b(columns: usize, rows: usize) -> Self {
        let mut stage = Self::live(columns, rows);
        stage.root(opened(&["A", "B"], "A", "Go"));
        stage.root(turn_started("B"));
        stage
    }

    pub(super) fn wait(&mut self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
        assert_eq!(self.screen.tick().unwrap(), Flow::Go);
    }

    /// The next event of the chat `at`, which is not shown yet.
    pub(super) fn event_at(&mut self, at: &Path, body: Body) -> Event {
        self.seq += 1;
        let time = Timestamp(self.now_ms.load(Ordering::SeqCst));
        Event { seq: self.seq - 1, chat: at.clone(), time, ran_ms: 0, inbox: None, body }
    }

    pub(super) fn at(&mut self, at: &Path, body: Body) {
        let event = self.event_at(at, body);
        assert_eq!(self.screen.update(&Update::Event(Arc::new(event))).unwrap(), Flow::Go);
    }

    pub(super) fn root(&mut self, body: Body) {
        self.at(&Path::root(), body);
    }

    pub(super) fn piece_at(&mut self, at: &Path, who: &str, piece: Delta) {
        let signal = Update::Delta { chat: at.clone(), who: name(who), delta: piece };
        assert_eq!(self.screen.update(&signal).unwrap(), Flow::Go);
    }

    /// Text arrives, and then enough time passes that it is shown.
    pub(super) fn text(&mut self, who: &str, text: &str) {
        self.piece_at(&Path::root(), who, Delta::Text(text.into()));
        self.wait(40);
    }

    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        self.sync();
        *self.size.lock().unwrap() = Size { columns, rows };
        self.terminal.screen_mut().set_size(rows.try_into().unwrap(), columns.try_into().unwrap());
    }

    /// Only the screen knows: the terminal of these tests cannot be smaller than a few columns.
    pub(super) fn claim_size(&mut self, columns: usize, rows: usize) {
        *self.size.lock().unwrap() = Size { columns, rows };
    }

    fn sync(&mut self) {
        let written = self.written.0.lock().unwrap();
        for piece in written.iter().skip(self.seen) {
            self.terminal.process(piece);
        }
        self.seen = written.len();
    }

    /// The rows that a person sees now.
    pub(super) fn sees(&mut self) -> String {
        self.sync();
        trimmed(self.terminal.screen().contents().lines())
    }

    /// All rows, those that have left the screen too.
    pub(super) fn scrolls(&mut self) -> String {
        self.sync();
        let columns = self.terminal.screen().size().1;
        self.terminal.screen_mut().set_scrollback(usize::MAX);
        let gone = self.terminal.screen().scrollback();
        let mut rows = Vec::new();
        for back in (1..=gone).rev() {
            self.terminal.screen_mut().set_scrollback(back);
            rows.extend(self.terminal.screen().rows(0, columns).next());
        }
        self.terminal.screen_mut().set_scrollback(0);
        rows.extend(self.terminal.screen().rows(0, columns));
        trimmed(rows.iter().map(String::as_str))
    }
}

fn trimmed<'a>(rows: impl Iterator<Item = &'a str>) -> String {
    let rows: Vec<&str> = rows.map(str::trim_end).collect();
    format!("{}\n", rows.join("\n").trim_end())
}

/// A small conversation with everything that is usual: two agents, a tool, thoughts, Markdown.
pub(super) fn conversation(stage: &mut Stage) {
    stage.root(opened(&["Trader", "Coder"], "Trader", "Instruction: plot the *price*.\nInput: `AAPL`"));
    stage.root(turn_started("Coder"));
    stage.wait(3200);
    stage.text("Coder", "I look it up");
    stage.text("Coder", " first.");
    let call =
        ToolCall { id: "c1".into(), tool: "quotes".into(), args: json!({"symbol": "AAPL", "days": 30}) };
    stage.root(sampled("Coder", vec![Part::text("I look it up first."), Part::ToolCall(call.clone())]));
    stage.root(called("Coder", "c1", "quotes", call.args));
    stage.wait(1500);
    stage.root(returned("Coder", "c1", ToolResult::done("day,price\n1,170\n2,171")));
    let answer = "Solution: here is the **plot**:\n\n```python\nimport matplotlib\nplot(x)\n```\n\n\
                  | Day | Price |\n|-|-:|\n| 1 | 170 |\n\n- done\n- Next request.";
    for piece in answer.split_inclusive(' ') {
        stage.text("Coder", piece);
    }
    stage.root(sampled("Coder", vec![Part::text(answer)]));
    stage.root(said("Coder", answer));
    stage.root(turn_started("Trader"));
    stage.wait(500);
    stage.text("Trader", "<CAMEL_TASK_DONE>");
    stage.root(sampled("Trader", vec![Part::text("<CAMEL_TASK_DONE>")]));
    stage.root(said("Trader", "<CAMEL_TASK_DONE>"));
    stage.root(closed("<CAMEL_TASK_DONE>"));
    stage.screen.end(&ending()).unwrap();
}
