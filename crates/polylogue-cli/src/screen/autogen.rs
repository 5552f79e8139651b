//! A conversation in the layout that users of AutoGen know: `show --style autogen`.
//!
//! ```text
//! Ann (to Bob):
//!
//! What is 2 + 2?
//!
//! --------------------------------------------------------------------------------
//! ```
//!
//! It prints whole messages, from the log alone. What has no counterpart there - private turns, speaker
//! selections, why a chat ended - is left out; [`renderer`](super::renderer) prints it.

mod chat;

use std::collections::{HashMap, HashSet};

use chat::{ChatState, Turn};
use polylogue::stop::LibraryStopReason;
use polylogue_core::text::of_json;
use polylogue_core::{
    Body, Event, ExecutedCall, Message, Name, Opening, Part, Path, Question, ToolCall, ToolResult,
};
use serde_json::Value;

use super::asked::at_terminal;
use super::exact::{self, SetApart};
use super::notice;
use super::style::{Color, Style};
use super::text::{Line, folded};
use polylogue_runtime::presentation::{
    Detail, Item, Kind, Presentation, ResultShown, ShownMessage, ShownToolResult, Source, TurnKey, ValueText,
    result_text, value_text,
};

/// How wide the line below a message is, and the stars around the beginning of a chat.
const RULE: usize = 80;

const NAME: Style = Style::PLAIN.color(Color::Yellow);
const TOOL: Style = Style::PLAIN.color(Color::Green);
const NOTICE: Style = Style::PLAIN.color(Color::Red);
const BANNER: Style = Style::PLAIN.color(Color::Blue);
const RUNNING: Style = Style::PLAIN.color(Color::Magenta);

/// Turns events into lines of that layout.
pub(crate) struct AutoGenRenderer {
    fold: Presentation,
    /// The name of the outermost chat, which stands for its participants as the recipient of a message.
    title: String,
    /// Columns of the terminal.
    columns: Option<usize>,
    /// Whether the events come while they happen: a question is then shown before its answer is there.
    live: bool,
    /// Chats that are known to be more than sequences of chats.
    spoken: HashSet<Path>,
    chats: HashMap<Path, ChatState>,
    turns: HashMap<TurnKey, Turn>,
    out: Vec<Line>,
}

impl AutoGenRenderer {
    pub(crate) fn new(title: &str, columns: Option<usize>, live: bool) -> Self {
        let (spoken, chats, turns) = (HashSet::new(), HashMap::new(), HashMap::new());
        let fold = Presentation::new(Detail::Brief);
        Self { fold, title: title.into(), columns, live, spoken, chats, turns, out: Vec::new() }
    }

    /// The lines for `events`, which are all events of the log.
    pub(crate) fn whole(title: &str, events: &[Event]) -> Vec<Line> {
        let mut first = Self::new(title, None, false);
        events.iter().for_each(|event| drop(first.event(event)));
        let spoken = first.chats.into_iter().filter(|(_, chat)| chat.has_speakers).map(|(at, _)| at);
        let mut second = Self { spoken: spoken.collect(), ..Self::new(title, None, false) };
        let mut lines: Vec<Line> = events.iter().flat_map(|event| second.event(event)).collect();
        lines.extend(second.unfinished());
        lines
    }

    /// The lines for `event`.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Line> {
        for item in self.fold.event(event) {
            self.item(&item);
        }
        std::mem::take(&mut self.out)
    }

    fn item(&mut self, Item { chat: at, kind }: &Item) {
        let key = |who: &Name| (at.clone(), who.clone());
        match kind {
            Kind::ChatOpened { opening, .. } => self.opened(at, opening),
            Kind::TurnStarted { request, .. } => {
                let is_group = self.chat(at).with.len() > 2;
                self.turns.insert(key(&request.who), Turn::of(request, is_group));
            }
            Kind::ModelReplied { who, .. } => self.acts(&key(who)),
            Kind::Narration { who, text, .. } => self.turn(&key(who)).text = Some(text.clone()),
            Kind::ToolCalled { who, call, is_code: true, .. } => {
                self.acts(&key(who));
                self.code_block(call);
            }
            Kind::ToolCalled { who, call, is_requested, .. } => self.called(&key(who), call, *is_requested),
            Kind::ToolReturned(returned) => self.returned(&key(&returned.who), returned),
            Kind::Message(said) => self.shown(at, said),
            Kind::InputRequired(question) => self.asked(at, question),
            Kind::InputProvided { to, text, .. } => self.answered(&key(to), text),
            Kind::Failed { who, error } => {
                self.acts(&key(who));
                self.notice(&format!("{who} {}", error.in_words()), NOTICE);
            }
            Kind::ChatClosed { summary, .. } => self.closed(at, summary),
            Kind::Notice(body) => self.moved(at, body),
            _ => {}
        }
    }

    /// The lines that are left when there are no more events.
    pub(crate) fn unfinished(&mut self) -> Vec<Line> {
        let left = self.fold.finish();
        let mut chats: Vec<Path> = self.chats.keys().cloned().collect();
        chats.sort_by_key(|at| (at.depth(), at.as_str().to_owned()));
        for at in &chats {
            if !self.is_sequence(at) {
                self.release(at);
            }
        }
        left.iter().for_each(|item| self.item(item));
        let mut asked: Vec<(TurnKey, String)> =
            self.turns.iter_mut().filter_map(|(key, turn)| Some((key.clone(), turn.asked.take()?))).collect();
        asked.sort_by_key(|(key, _)| (key.0.as_str().to_owned(), key.1.clone()));
        asked.iter().for_each(|(_, question)| self.text(question, Style::PLAIN));
        std::mem::take(&mut self.out)
    }

    fn chat(&mut self, at: &Path) -> &mut ChatState {
        self.chats.entry(at.clone()).or_default()
    }

    fn turn(&mut self, key: &TurnKey) -> &mut Turn {
        self.turns.entry(key.clone()).or_default()
    }

    fn is_sequence(&self, at: &Path) -> bool {
        self.chats.get(at).is_some_and(|chat| chat.has_chats && !chat.has_speakers)
    }

    fn opened(&mut self, at: &Path, opening: &Opening) {
        if let Some(outer) = chat::outer(at) {
            self.begins_within(&outer);
        }
        let mut chat = ChatState::of(opening);
        chat.continue_from(self.chats.values());
        // A participant that speaks to others: this is more than a sequence of chats.
        chat.has_speakers = self.spoken.contains(at) || chat.begins_by_member();
        let is_spoken = chat.has_speakers;
        self.chats.insert(at.clone(), chat);
        if is_spoken {
            self.release(at);
        }
    }

    /// A chat begins in the turn `outer`.
    fn begins_within(&mut self, outer: &TurnKey) {
        let chat = self.chat(&outer.0);
        chat.has_chats = true;
        let has_speakers = chat.has_speakers;
        let turn = self.turn(outer);
        turn.within = None;
        // In a sequence of chats, the chats themselves show whose turn it is.
        let next = std::mem::take(&mut turn.next);
        let is_announced = next && (turn.chosen || has_speakers);
        if is_announced {
            self.release(&outer.0);
            self.next_speaker(&outer.1);
        }
        self.banner();
    }

    fn banner(&mut self) {
        let stars = "*".repeat(RULE);
        for line in ["", &stars, "Starting a new chat....", "", &stars] {
            self.out.push(Line::new(line, BANNER));
        }
    }

    fn next_speaker(&mut self, who: &Name) {
        self.out.push(Line::default());
        self.out.push(Line::new(&format!("Next speaker: {who}"), TOOL));
        self.out.push(Line::default());
    }

    /// The agent of the turn `key` acts, other than by running a nested chat.
    fn acts(&mut self, key: &TurnKey) {
        let turn = self.turn(key);
        if turn.is_private {
            return;
        }
        let (next, skipped) = (std::mem::take(&mut turn.next), std::mem::take(&mut turn.skipped));
        self.chat(&key.0).has_speakers = true;
        self.release(&key.0);
        if next {
            self.next_speaker(&key.1);
        }
        if skipped {
            self.notice("USING AUTO REPLY...", NOTICE);
        }
    }

    /// Prints what was held back because the chat might be a mere sequence of chats, whose own messages no agent receives.
    fn release(&mut self, at: &Path) {
        for message in std::mem::take(&mut self.chat(at).held) {
            self.message(at, &message);
        }
    }

    /// The call of an agent's own tool is printed as if the agent spoke to itself; one that another requested was printed with the message
    /// that asks for it.
    fn called(&mut self, key: &TurnKey, call: &ToolCall, is_requested: bool) {
        self.acts(key);
        if !is_requested {
            let text = self.turn(key).text.take();
            self.head(&key.1, key.1.as_str());
            text.iter().for_each(|text| self.text(text, Style::PLAIN));
            self.suggested(call);
            self.rule();
        }
        self.notice(&format!("EXECUTING FUNCTION {}...", call.tool), RUNNING);
    }

    fn returned(&mut self, key: &TurnKey, returned: &ShownToolResult) {
        let is_shown = returned.note.as_ref().is_some_and(|note| note.in_arguments);
        match returned.shown {
            ResultShown::Here => self.acts(key),
            ResultShown::InMessage => return self.acts(key),
            ResultShown::Late => {}
        }
        if !returned.is_requested && !is_shown {
            self.own_response(key, &returned.call.id, &returned.result);
        }
    }

    fn own_response(&mut self, key: &TurnKey, id: &str, outcome: &ToolResult) {
        self.head(&key.1, key.1.as_str());
        self.response(id, outcome);
        self.rule();
    }

    fn code_block(&mut self, call: &ToolCall) {
        let by_tool = if call.tool == "shell" { "sh" } else { &call.tool };
        let language = call.args.get("language").and_then(Value::as_str).unwrap_or(by_tool);
        self.notice(&format!("EXECUTING CODE BLOCK (inferred language is {language})..."), NOTICE);
    }

    fn shown(&mut self, at: &Path, said: &ShownMessage) {
        match said.source {
            // It came with the opening, and is printed when the chat has speakers.
            Source::Opening => {}
            Source::Reopening => self.message(at, &said.message),
            Source::Turn => self.said(at, &said.message, said.is_partly_shown() || said.result_of.is_some()),
            Source::Posted => {
                self.chat(at).all.push(said.message.clone());
                self.release(at);
                if said.result_of.is_none() {
                    self.message(at, &said.message);
                }
            }
        }
    }

    fn said(&mut self, at: &Path, message: &Message, is_shown: bool) {
        self.chat(at).all.push(message.clone());
        let key = (at.clone(), message.from.clone());
        let of_chat = self.turn(&key).within.as_deref() == Some(&*message.text());
        if of_chat && !self.chat(at).has_speakers {
            return self.chat(at).held.push(message.clone());
        }
        self.acts(&key);
        // What was said with calls of its own is not said again.
        let is_text = message.parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Thought(_)));
        if !(is_text && is_shown) {
            self.message(at, message);
        }
        self.turns.remove(&key);
    }

    fn asked(&mut self, at: &Path, question: &Question) {
        let key = (at.clone(), question.who.clone());
        self.acts(&key);
        if self.live {
            let apart = self.columns.map_or(SetApart::Fences, SetApart::Rules);
            self.out.extend(exact::rows(&at_terminal(question), apart, Style::PLAIN));
        } else {
            self.turn(&key).asked = Some(at_terminal(question));
        }
    }

    fn answered(&mut self, key: &TurnKey, answer: &str) {
        if let Some(question) = self.turn(key).asked.take() {
            self.text(format!("{} {answer}", question.trim_end()).trim_end(), Style::PLAIN);
        }
        if answer.trim().is_empty() {
            self.notice("NO HUMAN INPUT RECEIVED.", NOTICE);
            self.turn(key).skipped = true;
        }
    }

    fn closed(&mut self, at: &Path, summary: &str) {
        if self.is_sequence(at) {
            self.chat(at).held.clear();
        }
        self.release(at);
        if let Some(outer) = chat::outer(at) {
            self.turn(&outer).within = Some(summary.into());
        }
    }

    fn moved(&mut self, at: &Path, body: &Body) {
        match body {
            Body::Cleared { of, keep, .. } => {
                let whose = of.as_ref().map_or("all agents", Name::as_str);
                let kept = if *keep == 0 { String::new() } else { format!(" except last {keep} messages") };
                self.text(&format!("Clearing history for {whose}{kept}."), Style::PLAIN);
            }
            Body::Joined { who, .. } => {
                self.chat(at).with.push(who.clone());
                self.body_notice(body);
            }
            Body::Passed { who } | Body::Stopped { who, .. } | Body::Left { who, .. } => {
                let key = (at.clone(), who.clone());
                // A person who typed nothing ended or left the chat by that, unless no reply was found.
                let in_vain = matches!(body, Body::Stopped { reason, .. } if matches!(LibraryStopReason::of(reason), Some(LibraryStopReason::NoReply { .. })));
                self.turn(&key).skipped &= in_vain;
                self.acts(&key);
                self.turns.remove(&key);
                // There, turns without a message, and members that end the chat, make no line.
                if matches!(body, Body::Left { .. }) {
                    self.body_notice(body);
                }
            }
            body => {
                if notice::is_of_model(body) {
                    self.body_notice(body);
                }
                // AutoGen has nothing like steering from outside: it is a notice here.
                notice::of_run(body).iter().for_each(|done| self.notice(&folded(done), NOTICE));
            }
        }
    }

    fn body_notice(&mut self, body: &Body) {
        if let Some((who, does)) = notice::of(body) {
            self.notice(&format!("{who} {does}"), NOTICE);
        }
    }

    fn message(&mut self, at: &Path, message: &Message) {
        let to = chat::addressee(self.chats.get(at), at, &self.title, message);
        self.head(&message.from, &to);
        let outcomes: Vec<&ExecutedCall> = outcomes(&message.parts).collect();
        for outcome in &outcomes {
            self.head(&message.from, &to);
            self.response(&outcome.id, &outcome.result);
            self.rule();
        }
        let content = content(&message.parts);
        if content.is_none() && !outcomes.is_empty() {
            return;
        }
        content.iter().for_each(|text| self.text(text, Style::PLAIN));
        calls(&message.parts).for_each(|call| self.suggested(call));
        self.rule();
    }

    fn head(&mut self, from: &Name, to: &str) {
        self.out.push(Line::new(from.as_str(), NAME).with(&format!(" (to {to}):"), Style::PLAIN));
        self.out.push(Line::default());
    }

    fn rule(&mut self) {
        self.out.push(Line::default());
        self.out.push(Line::new(&"-".repeat(RULE), Style::PLAIN));
    }

    fn suggested(&mut self, call: &ToolCall) {
        let title = format!("***** Suggested tool call ({}): {} *****", call.id, call.tool);
        let args = of_json(&call.args);
        self.boxed(&title, &format!("Arguments: \n{args}"));
    }

    fn response(&mut self, id: &str, outcome: &ToolResult) {
        self.boxed(&format!("***** Response from calling tool ({id}) *****"), &result_text(outcome));
    }

    fn boxed(&mut self, title: &str, text: &str) {
        self.out.push(Line::new(title, TOOL));
        self.text(text, Style::PLAIN);
        self.out.push(Line::new(&"*".repeat(title.chars().count()), TOOL));
    }

    fn notice(&mut self, text: &str, style: Style) {
        self.out.push(Line::default());
        self.text(&format!(">>>>>>>> {text}"), style);
    }

    fn text(&mut self, text: &str, style: Style) {
        let lines = text.split('\n').map(|line| Line::new(line.trim_end_matches('\r'), style));
        self.out.extend(lines);
    }
}

fn calls(parts: &[Part]) -> impl Iterator<Item = &ToolCall> {
    parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call),
        _ => None,
    })
}

fn outcomes(parts: &[Part]) -> impl Iterator<Item = &ExecutedCall> {
    parts.iter().filter_map(|part| match part {
        Part::ToolResult(outcome) => Some(outcome),
        _ => None,
    })
}

/// What is said, flattened: texts one after the other, `<image>` for a picture. Nothing if there are only calls or outcomes.
fn content(parts: &[Part]) -> Option<String> {
    let is_silent = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_) | Part::Thought(_));
    if !parts.is_empty() && parts.iter().all(is_silent) {
        return None;
    }
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.to_string()),
        Part::Media(media) => Some(format!("<{}>", media.media_type.split('/').next().unwrap_or_default())),
        Part::Data(value) => match value_text(value, parts) {
            ValueText::Nothing => None,
            ValueText::Words(words) => Some(format!("\n({words})")),
            ValueText::Json(json) => Some(json),
        },
        _ => None,
    });
    Some(texts.collect())
}
