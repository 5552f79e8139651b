//! A whole conversation, for `show`.

use std::collections::HashMap;

use polylogue_core::{
    Audience, Body, Call, CallOutcome, Entry, Event, Media, Message, Name, Outcome, Part, Path, plain,
};

use super::again;
use super::autogen::AutoGenRenderer;
use super::call::{self, calls_tools, short};
use super::choice;
use super::markdown::Markdown;
use super::moves;
use super::picture::Pictures;
use super::renderer::{Format, Key, Renderer};
use super::room;
use super::sanitized::Sanitized;
use super::style::Style;
use super::text::{Line, neutral};
use super::value::{self, Told};

/// Everything that happened, for a terminal of `width` columns with colours, or as plain text.
pub(crate) fn shown(events: &[Event], width: Option<usize>, pictures: Pictures) -> Sanitized {
    let mut teller = Renderer::new(Format { width, whole: true, thoughts: true });
    teller.pictures = pictures;
    let mut lines: Vec<Line> = events.iter().flat_map(|event| teller.event(event)).collect();
    lines.extend(teller.unfinished());
    Sanitized::lines(&lines, width.is_some())
}

/// What was said in the chat `title` and the chats within it, in the layout of AutoGen.
pub(crate) fn familiar(title: &str, events: &[Event], colour: bool) -> Sanitized {
    Sanitized::lines(&AutoGenRenderer::whole(title, events), colour)
}

/// What a model was given: the system text and the entries, as they are, Markdown not rendered.
pub(crate) fn received(system: Option<&str>, entries: &[Entry], colour: bool) -> Sanitized {
    let mut lines = Vec::new();
    if let Some(system) = system {
        head(&mut lines, "system");
        lines.extend(raw(system));
    }
    for entry in entries {
        match entry {
            Entry::System { .. } => head(&mut lines, "system"),
            Entry::User { .. } => head(&mut lines, "user"),
            Entry::Assistant { .. } => head(&mut lines, "assistant"),
            Entry::Tool { id, tool, .. } => head(&mut lines, &format!("tool {tool} ({id})")),
        }
        for (nth, part) in entry.parts().iter().enumerate() {
            // What several said in one message is sent with blank lines between.
            if nth > 0 && matches!(entry, Entry::User { .. }) {
                lines.push(Line::default());
            }
            lines.extend(raw_part(part));
        }
    }
    Sanitized::lines(&lines, colour)
}

fn head(lines: &mut Vec<Line>, title: &str) {
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    lines.push(Line::new(&format!("[{title}]:"), Style::BOLD));
}

fn raw(text: &str) -> impl Iterator<Item = Line> {
    text.lines().map(|line| Line::new(line, Style::PLAIN))
}

fn raw_part(part: &Part) -> Vec<Line> {
    let line = match part {
        Part::Text(text) => return raw(text).collect(),
        Part::Thought(text) => return text.lines().map(|line| Line::new(line, Style::DIM)).collect(),
        Part::Call(wanted) => format!("call {}: {} {}", wanted.id, wanted.tool, wanted.args),
        Part::Media(media) => format!("[{}: {}]", media.kind, short(&media.url)),
        Part::Data(value) => value.to_string(),
        _ => return Vec::new(),
    };
    vec![Line::new(&line, Style::PLAIN)]
}

/// Everything that was said and done as a Markdown file with `title`.
pub(crate) fn markdown(title: &str, events: &[Event], pictures: Pictures) -> Sanitized {
    let mut file = File { text: format!("# {}\n", one_line(title)), pictures, ..File::default() };
    events.iter().for_each(|event| file.event(event));
    for (at, who, call) in std::mem::take(&mut file.calls) {
        file.note(&format!("{who}{}: {} has no result yet", place(&at), written(&call)));
    }
    Sanitized::plain(&file.text)
}

#[derive(Default)]
struct File {
    text: String,
    pictures: Pictures,
    /// What an agent said with a reply that has calls: before it makes them, or with its message.
    narrations: Vec<(Path, Name, String)>,
    /// What was written before calls in the turns that are open: it is not written again as the message.
    told: Vec<(Path, Name, String)>,
    /// Results of calls in the turns that are open: they are not written again as a part of the message that answers them.
    returned: Vec<(Path, Name, Outcome)>,
    /// The words of a handoff that were written with its call, and who hands over.
    handed: Option<(Key, String)>,
    /// Calls without a result: in which chat, and by whom.
    calls: Vec<(Path, Name, Call)>,
    /// The calls that messages ask others to make: in which chat, who asks, the call's id, and how it is written.
    asked: HashMap<(Path, Name, String), String>,
}

impl File {
    fn event(&mut self, event: &Event) {
        let at = &event.at;
        self.narrate(at, &event.body);
        match &event.body {
            Body::Opened(opening) => {
                let names: Vec<&str> = opening.participants.iter().map(Name::as_str).collect();
                let begins =
                    if at.is_root() { "With".into() } else { format!("{} begins, with", room::called(at)) };
                self.note(&format!("{begins} {}", names.join(", ")));
                if let Some(introduction) = &opening.introduction {
                    self.block("#### Introduction");
                    self.body(introduction);
                }
                if opening.messages.is_empty() && !opening.task.trim().is_empty() {
                    self.body(&opening.task);
                }
                opening.messages.iter().for_each(|message| self.message(at, message));
            }
            Body::Message(message) => self.said(at, message),
            Body::Posted(message) => {
                if !again::is_of_handoff(self.handed.take(), at, message) {
                    self.message(at, message);
                }
            }
            Body::TurnStarted { turns: cues } => {
                cues.iter().filter_map(|cue| choice::told(cue, false)).for_each(|text| self.note(&text));
            }
            // What an agent says before it uses tools; other replies are said, or were drafts.
            Body::ModelReplied(sample) => {
                if sample.cached {
                    self.note(&format!("{}'s next reply is from the cache", sample.who));
                }
                let text = plain(&sample.parts);
                if calls_tools(&sample.parts) && !text.trim().is_empty() {
                    self.narrations.push((at.clone(), sample.who.clone(), text.into_owned()));
                }
            }
            Body::ToolCalled { who, call } => {
                self.calls.push((at.clone(), who.clone(), call.clone()));
            }
            Body::ToolReturned { who, id, outcome } => self.returned(at, who, id, outcome),
            Body::InputRequired(question) => {
                self.block(&format!("### {} asks", question.who));
                self.body(&question.text);
            }
            Body::InputProvided { to, text } if text.trim().is_empty() => {
                self.note(&format!("No answer for {to}"))
            }
            Body::InputProvided { to, text } => {
                self.block(&format!("### Answer for {to}"));
                self.body(text);
            }
            Body::Failed { who, error } => {
                self.note(&format!("{who} failed ({}): {}", error.fault, error.message))
            }
            Body::Closed { reason, summary } => self.closed(at, &reason.to_string(), summary),
            Body::Reopened { message } => {
                self.note("The conversation continues");
                message.iter().for_each(|message| self.message(at, message));
            }
            // How else a message came about is no part of the document.
            other => {
                if let Some((who, does)) = moves::told(other) {
                    self.note(&format!("{who} {does}"));
                }
            }
        }
    }

    /// Writes what was said before calls, once it is clear that the message does not say it.
    fn narrate(&mut self, at: &Path, next: &Body) {
        let who = match next {
            Body::Message(message) => &message.from,
            Body::ToolCalled { who, .. } | Body::Failed { who, .. } | Body::Passed { who } => who,
            Body::ModelReplied(sample) => &sample.who,
            _ => return,
        };
        let Some(index) = self.narrations.iter().position(|n| n.0 == *at && n.1 == *who) else { return };
        let (_, who, text) = self.narrations.remove(index);
        let is_said = matches!(next, Body::Message(message) if message.plain() == text);
        if !is_said {
            self.block(&format!("#### {who}{} before it calls tools", place(at)));
            self.body(&text);
            self.told.push((at.clone(), who, text));
        }
    }

    fn block(&mut self, line: &str) {
        self.text.push('\n');
        self.text.push_str(&neutral(line));
        self.text.push('\n');
    }

    /// A line of our own, in italics; nothing in it is markup.
    fn note(&mut self, text: &str) {
        let mut escaped = String::new();
        for c in one_line(text).chars() {
            if matches!(c, '\\' | '`' | '*' | '_' | '<' | '[' | ']') {
                escaped.push('\\');
            }
            escaped.push(c);
        }
        self.block(&format!("*{escaped}*"));
    }

    /// The message that ends a turn, save what was written in the turn already.
    fn said(&mut self, at: &Path, message: &Message) {
        let is_turn = |of: &Path, who: &Name| *of == *at && *who == message.from;
        let text = message.plain();
        let is_shown = self.told.iter().any(|(of, who, told)| is_turn(of, who) && **told == *text);
        let is_text = |part: &Part| matches!(part, Part::Text(_) | Part::Thought(_) | Part::Note(_));
        let is_returned = |part: &Part| match part {
            Part::Outcome(came) => {
                self.returned.iter().any(|(of, who, outcome)| is_turn(of, who) && *outcome == came.outcome)
            }
            part => part.is_blank(),
        };
        let has_parts = !message.parts.is_empty();
        let is_known = (is_shown && message.parts.iter().all(is_text))
            || (has_parts && message.parts.iter().all(is_returned));
        let returned = self.returned.iter().filter(|(of, who, _)| is_turn(of, who));
        let returned: Vec<Outcome> = returned.map(|(_, _, outcome)| outcome.clone()).collect();
        let rest = again::besides_results(message, &returned);
        self.told.retain(|(of, who, _)| !is_turn(of, who));
        self.returned.retain(|(of, who, _)| !is_turn(of, who));
        match rest {
            _ if is_known => {}
            Some(parts) if parts.is_empty() => {}
            Some(parts) => self.message(at, &Message { parts, ..message.clone() }),
            None => self.message(at, message),
        }
    }

    fn message(&mut self, at: &Path, message: &Message) {
        let to = match &message.to {
            Audience::All => String::new(),
            Audience::Only(names) if names.is_empty() => " (aside)".into(),
            Audience::Only(names) => {
                let others = names.iter().filter(|name| **name != message.from);
                let others: Vec<_> = others.map(Name::as_str).collect();
                format!(" → {}", if others.is_empty() { "itself".into() } else { others.join(", ") })
            }
        };
        self.block(&format!("### {}{to}{}", message.from, place(at)));
        let text = message.plain();
        if !text.trim().is_empty() {
            self.body(&text);
        }
        if !message.outside.is_empty() {
            self.note(&call::read_before(&message.outside));
        }
        for part in &message.parts {
            match part {
                Part::Media(media) => self.media(media),
                Part::Data(value) => match value::told(value, &message.parts) {
                    Told::Nothing => {}
                    Told::Words(words) => self.note(&words),
                    Told::Json(json) => self.fenced("json", &json),
                },
                Part::Call(call) => {
                    let text = written(call);
                    self.block("asks for");
                    self.fenced("", &text);
                    self.asked.insert((at.clone(), message.from.clone(), call.id.clone()), text);
                }
                Part::Outcome(outcome) => self.outcome(at, outcome),
                Part::Cut(finish) => self.note(&format!("{finish}")),
                _ => {}
            }
        }
    }

    /// A picture, by its file if there is one, or anything else that came along.
    fn media(&mut self, media: &Media) {
        let mark = if media.kind.starts_with("image/") { "!" } else { "" };
        let file = self.pictures.file(media).map(|path| path.display().to_string());
        let link = file.as_deref().unwrap_or(&media.url);
        self.block(&format!("{mark}[{}](<{link}>)", media.kind));
    }

    fn result(&mut self, outcome: &Outcome) {
        self.block("with the result");
        self.fenced("", &call::result_text(outcome));
        for part in &outcome.parts {
            if let Part::Media(media) = part {
                self.media(media);
            }
        }
    }

    /// The result of a call that another participant requested.
    fn outcome(&mut self, at: &Path, came: &CallOutcome) {
        let asked = self.asked.remove(&(at.clone(), came.to.clone(), came.id.clone()));
        self.block(&format!("for {}", came.to));
        self.fenced("", &asked.unwrap_or_else(|| came.tool.clone()));
        self.result(&came.outcome);
    }

    /// What a participant wrote, unchanged. A code block that it left open must not swallow the rest.
    fn body(&mut self, text: &str) {
        let mut markdown = Markdown::new(80, Style::PLAIN);
        markdown.push(text);
        markdown.push("\n");
        self.block(text.trim_end());
        if let Some(fence) = markdown.open_fence() {
            self.text.push_str(&fence);
            self.text.push('\n');
        }
    }

    fn returned(&mut self, at: &Path, who: &Name, id: &str, outcome: &Outcome) {
        let index = self.calls.iter().position(|call| call.0 == *at && call.1 == *who && call.2.id == id);
        let call = index.map(|index| self.calls.remove(index).2);
        self.block(&format!("{who} calls"));
        self.fenced("", &call.as_ref().map_or_else(|| id.to_owned(), written));
        let handed = call.as_ref().and_then(|call| Some((call, again::note_of_transfer(call, outcome)?)));
        if !handed.as_ref().is_some_and(|(call, words)| again::is_argument(call, words)) {
            self.result(outcome);
        }
        self.handed = handed.map(|(_, words)| ((at.clone(), who.clone()), words));
        self.returned.push((at.clone(), who.clone(), outcome.clone()));
    }

    /// A block of code whose fence is longer than any in it.
    fn fenced(&mut self, language: &str, text: &str) {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.block(&format!("{fence}{language}\n{}\n{fence}", text.trim_end()));
    }

    fn closed(&mut self, at: &Path, reason: &str, summary: &str) {
        if !at.is_root() {
            return self.note(&format!("{} ends: {reason}", room::called(at)));
        }
        if !summary.trim().is_empty() {
            self.block("## Summary");
            self.body(summary);
        }
        self.note(&format!("Ended: {reason}"));
    }
}

fn written(call: &Call) -> String {
    format!("{}({})", call.tool, call::arguments(&call.args))
}

/// In which chat, if it is not the outermost.
fn place(at: &Path) -> String {
    if at.is_root() { String::new() } else { format!(" · {}", room::called(at)) }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
