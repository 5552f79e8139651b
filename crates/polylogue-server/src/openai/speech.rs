//! What participants say, as one text: a paragraph for each message, sent in pieces while it is written.
//!
//! Turns that run at the same time are shown one after the other, in the order in which their messages are logged, and each with all that
//! is said within it. So the text depends on the events alone; pieces only show earlier what is shown next in any case.
//! What is said in a background task would delay the conversation next to it: of a task, its beginning and its result are shown.

use std::collections::VecDeque;

use polylogue_core::{
    BackgroundResult, BackgroundStatus, BackgroundTask, Body, CallPurpose, Delta, Event, Message, Name, Path,
    TurnRequest, text_of,
};

use super::line::{Draft, Line};

/// The place of a turn among all: the events that began it and the turns around it, outermost first, each with its place among those
/// that began together.
type Place = Vec<(u64, usize)>;

/// Whether a turn comes before another one. Not if one is within the other.
fn is_before(one: &Place, other: &Place) -> bool {
    let differing = one.iter().zip(other).find(|(one, other)| one != other);
    differing.is_some_and(|(one, other)| one < other)
}

/// A turn that has not ended.
#[derive(Debug)]
struct OpenTurn {
    place: Place,
    at: Path,
    who: Name,
    is_public: bool,
    draft: Draft,
    /// What its replies have said, and what was said within it.
    said: String,
}

/// Something that was said.
#[derive(Debug)]
struct Said {
    place: Place,
    who: Name,
    text: String,
}

/// Folds events and pieces of replies into the text.
#[derive(Debug, Default)]
pub(super) struct Speech {
    open: Vec<OpenTurn>,
    /// What waits for turns before it, in order.
    waiting: VecDeque<Said>,
    /// The paragraph that is being sent.
    line: Option<(Place, Line)>,
    /// What was said last.
    last: String,
}

impl Speech {
    /// A stored event. Returns the next pieces of the text.
    pub(super) fn entry(&mut self, event: &Event) -> Vec<String> {
        let at = &event.chat;
        match &event.body {
            _ if at.is_background() || at.ancestors().any(|path| path.is_background()) => {}
            Body::BackgroundStarted(task) => self.note(event, &task.who, started(task)),
            Body::BackgroundEnded(result) => self.note(event, &result.who, ended(result)),
            Body::TurnStarted { turns } => self.begin(event, turns),
            Body::ModelReplied(reply) if reply.purpose == CallPurpose::Turn => {
                // Another one is asked for, or the message follows.
                let text = if reply.is_unparsed() { "".into() } else { text_of(&reply.parts) };
                self.reply(at, &reply.who, &text);
            }
            Body::ReplyInterrupted { who, text, .. } => self.reply(at, who, text),
            Body::Failed { who, .. } => self.turn(at, who).into_iter().for_each(|turn| turn.draft.restart()),
            Body::Message(message) => self.message(event, message),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => {
                self.open.retain(|turn| turn.at != *at || turn.who != *who);
            }
            Body::Closed { .. } => self.open.retain(|turn| turn.at != *at && !turn.at.is_within(at)),
            Body::RolledBack { since } => self.open.retain(|turn| {
                let is_before = turn.place.last().is_none_or(|(begun, _)| begun < since);
                is_before || (turn.at != *at && !turn.at.is_within(at))
            }),
            _ => {}
        }
        self.settle()
    }

    /// A piece of a reply. Returns the next pieces of the text.
    pub(super) fn delta(&mut self, at: &Path, who: &Name, delta: &Delta) -> Option<String> {
        self.turn(at, who)?.draft.delta(delta);
        self.advance()
    }

    /// Pieces of replies were not received: of the turn `of`, or of all.
    pub(super) fn lose_pieces(&mut self, of: Option<(&Path, &Name)>) {
        let incomplete = self.open.iter_mut().filter(|turn| of.is_none_or(|of| of == (&turn.at, &turn.who)));
        incomplete.for_each(|turn| turn.draft.lose_pieces());
    }

    /// Everything is over: what waits is shown.
    pub(super) fn rest(&mut self) -> Vec<String> {
        self.open.clear();
        self.settle()
    }

    /// What was said last.
    pub(super) fn last(&self) -> &str {
        &self.last
    }

    fn turn(&mut self, at: &Path, who: &Name) -> Option<&mut OpenTurn> {
        self.open.iter_mut().find(|turn| turn.at == *at && turn.who == *who)
    }

    fn begin(&mut self, event: &Event, turns: &[TurnRequest]) {
        let (around, is_shown) = match self.around(&event.chat) {
            Some(turn) => (turn.place.clone(), turn.is_public),
            None => (Place::new(), true),
        };
        for (nth, TurnRequest { who, to, .. }) in turns.iter().enumerate() {
            self.open.retain(|turn| turn.at != event.chat || turn.who != *who);
            let place = around.iter().copied().chain([(event.seq, nth)]).collect();
            self.open.push(OpenTurn {
                place,
                at: event.chat.clone(),
                who: who.clone(),
                is_public: is_shown && !to.is_private(),
                draft: Draft::default(),
                said: String::new(),
            });
        }
    }

    /// The turn in which the chat `at` runs.
    fn around(&self, at: &Path) -> Option<&OpenTurn> {
        at.ancestors().find_map(|outer| {
            let inner = at.as_str().get(outer.as_str().len()..)?.trim_start_matches('/');
            let name = inner.split(['/', '.']).next();
            let mut open = self.open.iter().filter(|turn| turn.at == outer);
            let named = open.clone().find(|turn| Some(turn.who.as_str()) == name);
            named.or_else(|| open.next())
        })
    }

    fn reply(&mut self, at: &Path, who: &Name, text: &str) {
        let Some(turn) = self.turn(at, who) else { return };
        turn.draft = Draft::default();
        if turn.is_public {
            turn.said.push_str(text);
            let said = Said { place: turn.place.clone(), who: who.clone(), text: text.trim().to_owned() };
            self.say(said);
        }
    }

    /// A message, which is mostly what the reply was.
    fn message(&mut self, event: &Event, message: &Message) {
        let ended = self.open.iter().position(|turn| turn.at == event.chat && turn.who == message.from);
        let turn = ended.map(|at| self.open.remove(at));
        let text = message.to_text();
        let is_said = turn.as_ref().is_some_and(|turn| turn.said.contains(text.trim()));
        let is_public = turn.as_ref().is_none_or(|turn| turn.is_public) && !message.to.is_private();
        if is_public && !is_said {
            let place = turn.map_or_else(|| vec![(event.seq, 0)], |turn| turn.place);
            self.say(Said { place, who: message.from.clone(), text: text.trim().to_owned() });
        }
    }

    /// A line about a task of `who`: in its turn, or between two steps of the chat.
    fn note(&mut self, event: &Event, who: &Name, text: String) {
        let own = self.turn(&event.chat, who).map(|turn| (turn.place.clone(), turn.is_public));
        let between = || match self.around(&event.chat) {
            Some(turn) => (turn.place.clone(), turn.is_public),
            None => (Place::new(), true),
        };
        let (place, is_public) = own.unwrap_or_else(|| {
            let (around, is_public) = between();
            (around.into_iter().chain([(event.seq, 0)]).collect(), is_public)
        });
        if is_public {
            self.say(Said { place, who: who.clone(), text });
        }
    }

    fn say(&mut self, said: Said) {
        if said.text.is_empty() {
            return;
        }
        let is_around =
            |turn: &&mut OpenTurn| turn.place.len() < said.place.len() && said.place.starts_with(&turn.place);
        for turn in self.open.iter_mut().filter(is_around) {
            turn.said += &format!("\n{}\n", said.text);
        }
        let after =
            self.waiting.iter().rev().take_while(|other| is_before(&said.place, &other.place)).count();
        self.waiting.insert(self.waiting.len() - after, said);
    }

    /// Whether a turn that is to be shown before has not ended.
    fn is_blocked(&self, place: &Place) -> bool {
        self.open.iter().any(|turn| turn.is_public && is_before(&turn.place, place))
    }

    /// Shows what need not wait any more.
    fn settle(&mut self) -> Vec<String> {
        let mut pieces = Vec::new();
        loop {
            while let Some(said) = self.next_said() {
                let line = match self.line.take() {
                    Some((_, line)) => line,
                    None => Line::new(head(&said.who)),
                };
                pieces.push(line.finish(&said.text) + "\n\n");
                self.last = said.text;
            }
            let is_over = |(place, _): &mut (Place, Line)| !self.open.iter().any(|turn| turn.place == *place);
            match self.line.take_if(is_over) {
                Some((_, line)) => pieces.push(line.discard()),
                None => break,
            }
        }
        pieces.extend(self.advance());
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    /// What waits and can be shown now: what is said in the line, if there is one.
    fn next_said(&mut self) -> Option<Said> {
        let next = self.waiting.front()?;
        let is_next =
            !self.is_blocked(&next.place) && self.line.as_ref().is_none_or(|(place, _)| *place == next.place);
        if is_next { self.waiting.pop_front() } else { None }
    }

    /// The next piece of the reply that is to be shown next.
    fn advance(&mut self) -> Option<String> {
        if self.line.is_none() {
            let next = self.open.iter().find(|turn| {
                let waits = self.waiting.iter().any(|said| !is_before(&turn.place, &said.place));
                turn.is_public && !turn.draft.text().is_empty() && !waits && !self.is_blocked(&turn.place)
            })?;
            self.line = Some((next.place.clone(), Line::new(head(&next.who))));
        }
        let (place, line) = self.line.as_mut()?;
        let turn = self.open.iter().find(|turn| turn.place == *place)?;
        line.extend(turn.draft.text())
    }
}

fn started(BackgroundTask { id, task, .. }: &BackgroundTask) -> String {
    format!("[starts the background task `{id}`: {}]", task.trim())
}

/// How a background task ended. What a turn has as its result is said next.
fn ended(BackgroundResult { id, status, parts, turn, .. }: &BackgroundResult) -> String {
    match text_of(parts).trim() {
        _ if *turn && *status == BackgroundStatus::Completed => format!("[background task `{id}`: {status}]"),
        "" => format!("[background task `{id}`: {status}]"),
        said => format!("[background task `{id}`: {status}: {said}]"),
    }
}

fn head(who: &Name) -> String {
    format!("**{who}:** ")
}
