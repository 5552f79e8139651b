//! A run on a terminal, while it happens.
//!
//! The rows at the bottom change in place: the reply that is being written, and a quiet line for everyone who has a
//! turn. What is said moves above them and stays. One reply is shown while it comes in; if several agents write at
//! once, the others are shown whole when they are done.

mod continued;
mod keys;

use std::time::Duration;

use polylogue_core::{Body, Delta, Event, Message, ModelReply, Name, Path, Question};

use super::call::calls_tools;
use super::draft::Draft;
use super::end::RunEnd;
use super::picture::Pictures;
use super::region::{Region, Size};
use super::renderer::{Format, Renderer};
use super::style::Style;
use super::text::Line;
use super::turns::{Turn, Turns};
pub(crate) use keys::Keys;
use polylogue_runtime::presentation::{Detail, Presentation, TurnKey};

/// The size of the terminal, asked before each frame.
pub(crate) type SizeOf = Box<dyn Fn() -> Size + Send>;

/// The time since any fixed moment.
pub(crate) type Clock = Box<dyn Fn() -> Duration + Send>;

/// Pieces that come faster than this are shown together.
const FRAME: Duration = Duration::from_millis(33);

/// The line for a reply that became no message.
const NOT_SAID: &str = "this was not said";

/// A run on a terminal.
pub(crate) struct Live {
    fold: Presentation,
    renderer: Renderer,
    /// Whether replies are shown while they are written.
    stream: bool,
    size: SizeOf,
    clock: Clock,
    region: Region,
    turns: Turns,
    draft: Option<Draft>,
    /// What follows of the replies whose beginnings stand above what the person typed.
    continued: Vec<Draft>,
    /// Whose replies are on the screen as broken off, because the person was asked something meanwhile.
    broken_off: Vec<TurnKey>,
    /// The open question about a limit.
    limit_question: Option<TurnKey>,
    /// Lines for the next frame to write permanently.
    above: Vec<Line>,
    /// Lines that have to wait, because a reply that began above them is not finished.
    held: Vec<Line>,
    /// Told below everything else, until the run ends.
    notice: Option<Line>,
    /// The keys that there are.
    pub(super) keys: Option<Keys>,
    is_paused: bool,
    columns: usize,
    drawn: Duration,
}

impl Live {
    pub(crate) fn new(thoughts: bool, stream: bool, size: SizeOf, clock: Clock) -> Self {
        let now = size();
        let format = Format { width: Some(now.text_columns()), terminal: None, whole: false, thoughts };
        Self {
            fold: Presentation::new(Detail::Brief),
            renderer: Renderer::new(format),
            stream,
            size,
            clock,
            region: Region::default(),
            turns: Turns::default(),
            draft: None,
            continued: Vec::new(),
            broken_off: Vec::new(),
            limit_question: None,
            above: Vec::new(),
            held: Vec::new(),
            notice: None,
            keys: None,
            is_paused: false,
            columns: now.columns,
            drawn: Duration::ZERO,
        }
    }

    /// Shows pictures so.
    pub(crate) fn show(&mut self, pictures: Pictures) {
        self.renderer.pictures = pictures;
    }

    /// The person has typed this answer on the screen.
    pub(crate) fn typed(&mut self, at: &Path, question: &Question, text: &str) {
        self.renderer.typed(at, question, text);
    }

    /// A piece of a reply arrived. Returns what to write, if it is time for a frame.
    pub(crate) fn delta(&mut self, at: &Path, who: &Name, piece: &Delta) -> String {
        let now = (self.clock)();
        let key = (at.clone(), who.clone());
        let to = self.fold.audience(&key);
        let mut drafts = self.draft.iter().chain(&self.continued);
        if matches!(piece, Delta::Restart) || drafts.any(|draft| draft.key == key && draft.complete) {
            self.drop_draft(&key, NOT_SAID);
        }
        if let Some(turn) = self.turns.of(&key, &to, now) {
            turn.piece(piece, now);
        }
        match self.draft.as_mut().filter(|draft| draft.key == key) {
            Some(draft) => feed(draft, piece, self.renderer.format.thoughts),
            None => self.next_draft(),
        }
        if now.saturating_sub(self.drawn) >= FRAME { self.frame() } else { String::new() }
    }

    /// Updates were missed: replies that are being written are shown when they are whole.
    pub(crate) fn missed(&mut self) {
        self.turns.interrupt();
        for key in self.drafts(|draft| !draft.complete) {
            self.drop_draft(&key, "pieces were lost here: the whole message follows");
        }
    }

    /// An event came in order with the pieces, so that the pieces of its turn that follow begin a reply. Called
    /// before [`Live::event`], and also for events that are known already.
    pub(crate) fn in_order(&mut self, event: &Event) {
        let now = (self.clock)();
        for who in actors(&event.body) {
            let turn = self.turns.known(&(event.chat.clone(), who.clone()));
            if let Some(turn) = turn.filter(|turn| turn.torn) {
                turn.torn = false;
                turn.next_reply(now);
            }
        }
    }

    /// Reads an event without printing it: an earlier process printed it.
    pub(crate) fn recall(&mut self, event: &Event) {
        self.take(event, true);
        self.is_paused = false;
        self.above.clear();
        self.renderer.begin_again();
    }

    /// Prints an event again that an earlier process printed.
    pub(crate) fn remind(&mut self, event: &Event) -> String {
        self.print_event(event, false);
        self.frame()
    }

    /// Prints an event, which comes in order with the pieces, or was read again. Returns what to write.
    pub(crate) fn event(&mut self, event: &Event, in_order: bool) -> String {
        self.take(event, in_order);
        self.next_draft();
        self.frame()
    }

    fn take(&mut self, event: &Event, in_order: bool) {
        let now = (self.clock)();
        let key = |who: &Name| (event.chat.clone(), who.clone());
        match &event.body {
            Body::Message(message) => return self.said(event, message),
            Body::ModelReplied(reply) => return self.model_replied(event, reply),
            Body::TurnStarted { turns: requests } => {
                for request in requests {
                    let mut turn = Turn::new(key(&request.who), request.to.clone(), now);
                    // If it is read again, it is unknown which of the following pieces are missing.
                    turn.torn = !in_order;
                    self.turns.begin(turn);
                }
            }
            Body::ToolCalled { who, call } => {
                let to = self.fold.audience(&key(who));
                self.turns
                    .of(&key(who), &to, now)
                    .into_iter()
                    .for_each(|turn| turn.called(call.clone(), now));
            }
            Body::ToolReturned { who, id, .. } => {
                self.turns.known(&key(who)).into_iter().for_each(|turn| turn.returned(id, now));
            }
            Body::Prompted { who, .. } => {
                self.drop_draft(&key(who), NOT_SAID);
                self.turns.known(&key(who)).into_iter().for_each(|turn| turn.replied(now));
            }
            Body::Passed { who }
            | Body::Left { who, .. }
            | Body::Stopped { who, .. }
            | Body::Failed { who, .. } => self.end_turn(&key(who)),
            Body::ReplyInterrupted { who, .. } => return self.broken_off(event, &key(who)),
            Body::InputRequired(question) if question.is_about_limit() => {
                self.limit_question = Some(key(&question.who));
            }
            // No turn continues: the question is the run's.
            Body::InputProvided { to, .. }
                if self.limit_question.take_if(|asked| *asked == key(to)).is_some() => {}
            Body::InputRequired(question) => self.end_turn(&key(&question.who)),
            // What a person typed becomes the message at once: no model thinks about it.
            Body::InputProvided { to, text, .. } if self.renderer.is_typed_message(&event.chat, to, text) => {
            }
            Body::InputProvided { to, .. } => {
                let audience = self.fold.audience(&key(to));
                self.turns.of(&key(to), &audience, now);
            }
            Body::Closed { .. } => {
                for key in self.drafts(|draft| draft.key.0 == event.chat) {
                    self.drop_draft(&key, NOT_SAID);
                }
                self.turns.end_chat(&event.chat);
            }
            Body::Paused => self.is_paused = true,
            Body::Resumed => self.is_paused = false,
            _ => {}
        }
        self.print_event(event, false);
    }

    fn end_turn(&mut self, key: &TurnKey) {
        self.drop_draft(key, NOT_SAID);
        self.turns.end(key);
    }

    /// Writes the lines of an event permanently, without its text if that is on the screen, because it `is_streamed`.
    fn print_event(&mut self, event: &Event, is_streamed: bool) {
        for item in self.fold.event(event) {
            let lines = if is_streamed { self.renderer.streamed(&item) } else { self.renderer.item(&item) };
            self.print(lines);
        }
    }

    /// Writes lines permanently, above the reply that is being written; below it, if some of it is written permanently.
    fn print(&mut self, lines: Vec<Line>) {
        let waits = self.draft.as_ref().is_some_and(Draft::is_frozen);
        if waits { self.held.extend(lines) } else { self.above.extend(lines) }
    }

    fn model_replied(&mut self, event: &Event, reply: &ModelReply) {
        let now = (self.clock)();
        let key = (event.chat.clone(), reply.who.clone());
        let thoughts = self.renderer.format.thoughts;
        self.continue_draft(&key);
        match self.draft.take_if(|draft| draft.key == key && draft.shows(&reply.parts, thoughts)) {
            Some(mut draft) => {
                draft.finish();
                self.draft = Some(draft);
                if calls_tools(&reply.parts) {
                    self.seal();
                }
                self.print_event(event, true);
            }
            None if self.replied_below(&key, &reply.parts) => self.print_event(event, true),
            None => {
                self.drop_draft(&key, NOT_SAID);
                self.print_event(event, false);
            }
        }
        self.turns.known(&key).into_iter().for_each(|turn| turn.replied(now));
    }

    fn said(&mut self, event: &Event, message: &Message) {
        let key = (event.chat.clone(), message.from.clone());
        let thoughts = self.renderer.format.thoughts;
        self.continue_draft(&key);
        let is_said = |draft: &Draft| {
            draft.key == key && draft.is_to(&message.to) && draft.shows(&message.parts, thoughts)
        };
        let on_screen = self.draft.as_ref().is_some_and(is_said);
        let shown = on_screen || self.said_below(&key, is_said);
        if on_screen {
            self.seal();
        } else if !shown {
            self.drop_draft(&key, NOT_SAID);
        }
        self.print_event(event, shown);
        self.turns.end(&key);
    }

    /// The reply on the screen stays.
    fn seal(&mut self) {
        if let Some(draft) = self.draft.take() {
            let lines = draft.seal(&mut self.renderer);
            self.above.extend(lines);
            self.release();
        }
    }

    /// The reply of `key` on the screen is void; `why` is shown if some of it cannot be erased.
    fn drop_draft(&mut self, key: &TurnKey, why: &str) {
        let continued = self.remove_continued(key);
        let Some(draft) = self.draft.take_if(|draft| draft.key == *key).or(continued) else { return };
        if draft.is_frozen() || draft.is_continued() {
            let note = Line::new(&format!("({why})"), Style::DIM);
            self.print(vec![note.after(&self.renderer.gutter(&key.0))]);
            self.renderer.interrupted();
        }
        self.turns.known(key).into_iter().for_each(Turn::void_text);
        self.release();
    }

    /// What had to wait for the reply on the screen follows, if that has ended.
    fn release(&mut self) {
        if self.draft.is_none() && !self.held.is_empty() {
            self.above.append(&mut self.held);
            self.renderer.interrupted();
        }
    }

    /// If no reply is on the screen, shows the first that is being written.
    fn next_draft(&mut self) {
        if !self.stream || self.draft.is_some() {
            return;
        }
        let Some(turn) = self.turns.to_show() else { return };
        self.broken_off.clear();
        if turn.above > 0 && self.continued.iter().any(|draft| draft.key == turn.key) {
            let key = turn.key.clone();
            return self.continue_draft(&key);
        }
        let width = self.renderer.width(&turn.key.0).unwrap_or(usize::MAX);
        let mut draft = Draft::new(turn.key.clone(), turn.to.clone(), width);
        if self.renderer.format.thoughts {
            draft.think(&turn.thought);
        }
        draft.write(&turn.text);
        self.draft = Some(draft);
    }

    /// The turns whose replies are on the screen, not said yet, and such.
    fn drafts(&self, is_such: impl Fn(&Draft) -> bool) -> Vec<TurnKey> {
        let drafts = self.draft.iter().chain(&self.continued).filter(|draft| is_such(draft));
        drafts.map(|draft| draft.key.clone()).collect()
    }

    /// Time has passed: running times change, and pieces that wait for a frame are shown. Call it about ten times a
    /// second.
    pub(crate) fn tick(&mut self) -> String {
        self.frame()
    }

    fn frame(&mut self) -> String {
        let size = self.resize();
        let now = (self.clock)();
        let shown = self.draft.as_ref().map(|draft| draft.key.clone());
        let mut status = self.turns.status(shown.as_ref(), now, &mut self.renderer);
        // One row is left, so that the region never scrolls by itself.
        let most = size.rows.saturating_sub(1).max(2);
        status.truncate(most / 2);
        let keys = self.keys.and_then(|keys| keys.line(self.is_paused, status.is_empty(), size, now));
        let is_any = !status.is_empty() || keys.is_some();
        if is_any && size.rows > 6 && (self.renderer.has_begun() || shown.is_some()) {
            status.insert(0, Line::default());
        }
        status.extend(self.notice.clone().or(keys));
        let room = most - status.len().min(most - 1);
        let mut lines = match &mut self.draft {
            Some(draft) => draft.lines(room, size.columns, &mut self.renderer, &mut self.above),
            None => Vec::new(),
        };
        lines.append(&mut status);
        let mut out = String::new();
        let above = std::mem::take(&mut self.above);
        self.region.draw(&above, lines, size.columns, &mut out);
        self.drawn = now;
        out
    }

    /// Shows the result of what the person typed. The terminal has echoed that into one of the rows, so all are drawn again.
    pub(crate) fn notice(&mut self, text: &str) -> String {
        let width = (self.size)().text_columns();
        self.notice = Some(Line::new(text, Style::DIM).fit(width));
        self.region.mark_outdated();
        self.frame()
    }

    /// Tells the person something of the run that stays on the screen.
    pub(crate) fn remark(&mut self, text: &str) -> String {
        let lines = self.renderer.remark(text);
        self.print(lines);
        self.frame()
    }

    fn resize(&mut self) -> Size {
        let size = (self.size)();
        if size.columns != self.columns {
            self.columns = size.columns;
            self.renderer.format.width = Some(size.text_columns());
            if let Some(draft) = &mut self.draft {
                draft.rewrap(self.renderer.width(&draft.key.0).unwrap_or(usize::MAX));
            }
        }
        size
    }

    /// Nothing happens until the run is continued: all that changes in place vanishes.
    pub(crate) fn rest(&mut self) -> String {
        self.settle();
        self.frame()
    }

    /// The run is over, or stopped.
    pub(crate) fn end(&mut self, ending: &RunEnd) -> String {
        self.settle();
        for item in self.fold.finish() {
            let lines = self.renderer.item(&item);
            self.above.extend(lines);
        }
        if self.renderer.has_begun() {
            self.above.push(Line::default());
        }
        self.above.extend(ending.lines(self.renderer.format.width));
        self.frame()
    }

    /// A reply was interrupted. If it is on the screen, it stays there and is marked; otherwise a note has its beginning.
    fn broken_off(&mut self, event: &Event, key: &TurnKey) {
        match self.draft.take_if(|draft| draft.key == *key).or_else(|| self.take_continued(key)) {
            Some(draft) => {
                self.keep(draft, "broken off here");
                self.fold.event(event);
            }
            None if self.broken_off.contains(key) => drop(self.fold.event(event)),
            None => self.print_event(event, false),
        }
        let now = (self.clock)();
        self.turns.known(key).into_iter().for_each(|turn| turn.next_reply(now));
    }

    /// What is on the screen stays, with a note below it.
    fn seal_with(&mut self, note: &str) {
        if let Some(draft) = self.draft.take() {
            self.keep(draft, note);
        }
    }

    /// What there is of a reply stays, with a note below it.
    fn keep(&mut self, draft: Draft, note: &str) {
        let note = Line::new(&format!("({note})"), Style::DIM).after(&self.renderer.gutter(&draft.key.0));
        let lines = draft.seal(&mut self.renderer);
        self.print(lines);
        self.print(vec![note]);
        self.renderer.interrupted();
        self.release();
    }

    /// What is on the screen stays, and no turn is open.
    fn settle(&mut self) {
        let shown = self.draft.take();
        let below: Vec<TurnKey> = self.continued.iter().map(|draft| draft.key.clone()).collect();
        let below: Vec<Draft> = below.iter().filter_map(|key| self.take_continued(key)).collect();
        for draft in shown.into_iter().chain(below) {
            // A reply that is complete is in the log, though its turn is not over.
            let what = if draft.complete { "not said yet" } else { "broken off here" };
            self.broken_off.push(draft.key.clone());
            self.keep(draft, &format!("{what}; the turn continues when the run is resumed"));
        }
        self.turns.end_all();
        self.notice = None;
        self.is_paused = false;
    }
}

fn feed(draft: &mut Draft, piece: &Delta, thoughts: bool) {
    match piece {
        Delta::Text(text) => draft.write(text),
        Delta::Thought(text) if thoughts => draft.think(text),
        _ => {}
    }
}

/// Whose turns an event belongs to.
fn actors(body: &Body) -> Vec<&Name> {
    match body {
        Body::TurnStarted { turns: requests } => requests.iter().map(|request| &request.who).collect(),
        Body::ModelReplied(reply) => vec![&reply.who],
        Body::Prompted { who, .. } | Body::ToolCalled { who, .. } | Body::ToolReturned { who, .. } => {
            vec![who]
        }
        _ => Vec::new(),
    }
}
