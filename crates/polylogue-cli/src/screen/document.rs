//! A whole conversation, for `show`.

use std::sync::Arc;

use polylogue::layers::code::fence;
use polylogue_core::text::one_line;
use polylogue_core::{
    Audience, Body, Entry, Event, Media, Name, Opening, Part, Path, ToolCall, ToolResult, text_of,
};

use super::autogen::AutoGenRenderer;
use super::call;
use super::chat_name;
use super::markdown::Markdown;
use super::notice;
use super::picture::Pictures;
use super::renderer::{Format, Renderer};
use super::sanitized::Sanitized;
use super::style::Style;
use super::text::{Line, neutral};
use polylogue_runtime::presentation::{
    Detail, Item, Kind, Presentation, ShownMessage, ShownToolResult, SummarySource, ValueText, result_text,
    value_text,
};
use polylogue_runtime::question_text::{asks, with_answers};

/// Everything that happened, in this format.
pub(crate) fn shown(events: &[Event], format: Format, pictures: Pictures) -> Sanitized {
    let mut renderer = Renderer::new(format);
    renderer.pictures = pictures;
    let items = Presentation::of(Detail::Whole, events);
    let mut lines = Vec::new();
    for item in &items {
        lines.extend(renderer.item(item));
        lines.extend(renderer.ended(item));
    }
    Sanitized::lines(&lines, format.width.is_some())
}

/// What was said in the chat `title` and the chats within it, in the layout of AutoGen.
pub(crate) fn autogen(title: &str, events: &[Event], color: bool) -> Sanitized {
    Sanitized::lines(&AutoGenRenderer::whole(title, events), color)
}

/// What a model was given: the system text and the entries, as they are, Markdown not rendered.
pub(crate) fn received(system: Option<&str>, entries: &[Entry], color: bool) -> Sanitized {
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
    Sanitized::lines(&lines, color)
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
        Part::ToolCall(wanted) => format!("call {}: {} {}", wanted.id, wanted.tool, wanted.args),
        Part::Media(media) => format!("[{media}]"),
        Part::Data(value) => value.to_string(),
        _ => return Vec::new(),
    };
    vec![Line::new(&line, Style::PLAIN)]
}

/// Everything that was said and done as a Markdown file with `title`.
pub(crate) fn markdown(title: &str, events: &[Event], pictures: Pictures) -> Sanitized {
    let mut file = File { text: format!("# {}\n", one_line(title)), pictures };
    Presentation::of(Detail::Whole, events).iter().for_each(|item| file.item(item));
    Sanitized::plain(&file.text)
}

struct File {
    text: String,
    pictures: Pictures,
}

impl File {
    fn item(&mut self, Item { chat: at, kind }: &Item) {
        match kind {
            Kind::ChatOpened { opening, task } => self.opened(at, opening, task.as_deref()),
            Kind::TurnStarted { is_announced: true, .. } => {}
            Kind::TurnStarted { request, .. } => {
                notice::selection(request, false).iter().for_each(|text| self.note(text));
            }
            Kind::ModelReplied { who, cached: true } => {
                self.note(&format!("{who}'s next reply is from the cache"));
            }
            Kind::Narration { who, text, .. } => {
                self.block(&format!("#### {who}{} before it calls tools", place(at)));
                self.body(text);
            }
            Kind::ToolReturned(returned) => self.returned(returned),
            Kind::Message(said) if said.result_of.is_some() || said.is_shown() => {}
            Kind::Message(said) => self.message(at, said),
            Kind::InputRequired(question) => {
                self.block(&format!("### {}{}", question.who, asks(question).trim_end_matches(':')));
                self.body(&with_answers(question, ""));
            }
            Kind::InputProvided { is_repeated: true, .. } => {}
            Kind::InputProvided { to, text, .. } if text.trim().is_empty() => {
                self.note(&format!("No answer for {to}"));
            }
            Kind::InputProvided { to, text, .. } => {
                self.block(&format!("### Answer for {to}"));
                self.body(text);
            }
            Kind::Failed { who, error } => {
                self.note(&format!("{who} {}", error.in_words()));
            }
            Kind::Notice(body) => {
                notice::of(body).iter().for_each(|(who, does)| self.note(&format!("{who} {does}")));
                notice::of_run(body).iter().for_each(|done| self.note(&sentence(done)));
                if let Body::Compacted(compacted) = body {
                    self.body(&notice::summary(compacted));
                }
            }
            Kind::ChatClosed { reason, summary, source } => {
                let is_shown = *source == SummarySource::LastMessage;
                self.closed(at, &reason.to_string(), (!is_shown).then_some(summary));
            }
            Kind::Reopened => self.note("The conversation continues"),
            Kind::CallPending { who, call } => {
                self.note(&format!("{who}{}: {} has no result yet", place(at), written(call)));
            }
            // How a message came about is not a part of the document.
            Kind::TurnEnded { .. }
            | Kind::ModelReplied { .. }
            | Kind::FellBack { .. }
            | Kind::PromptCacheMissed { .. }
            | Kind::SealsDropped { .. }
            | Kind::CallWritten { .. }
            | Kind::Reasoning { .. }
            | Kind::Draft { .. }
            | Kind::Prompted { .. }
            | Kind::ToolCalled { .. }
            | Kind::PrivateReply { .. }
            | Kind::Decision { .. }
            | Kind::Remembered { .. } => {}
        }
    }

    fn opened(&mut self, at: &Path, opening: &Opening, task: Option<&str>) {
        let names: Vec<&str> = opening.participants.iter().map(Name::as_str).collect();
        let begins =
            if at.is_root() { "Participants".into() } else { format!("chat {} begins", chat_name::of(at)) };
        self.note(&format!("{begins}: {}", names.join(", ")));
        if let Some(introduction) = &opening.introduction {
            self.block("#### Introduction");
            self.body(introduction);
        }
        task.iter().for_each(|task| self.body(task));
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

    fn message(&mut self, at: &Path, said: &ShownMessage) {
        let message = &said.message;
        let to = match &message.to {
            Audience::All => String::new(),
            Audience::Only(names) if names.is_empty() => " (private)".into(),
            Audience::Only(names) => {
                let others = names.iter().filter(|name| **name != message.from);
                let others: Vec<_> = others.map(Name::as_str).collect();
                format!(" → {}", if others.is_empty() { "itself".into() } else { others.join(", ") })
            }
        };
        self.block(&format!("### {}{to}{}", message.from, place(at)));
        let text = text_of(&said.parts);
        if !text.trim().is_empty() {
            self.body(&text);
        }
        if !message.outside.is_empty() {
            self.note(&call::read_before(&message.outside));
        }
        for part in &said.parts {
            match part {
                Part::Media(media) => self.media(media),
                Part::Data(value) => match value_text(value, &said.parts) {
                    ValueText::Nothing => {}
                    ValueText::Words(words) => self.note(&words),
                    ValueText::Json(json) => self.fenced("json", &json),
                },
                Part::ToolCall(call) => {
                    self.block("asks for");
                    self.call(call);
                }
                Part::ToolResult(came) => {
                    self.block(&format!("for {}", came.to));
                    self.call(&said.call_of(came));
                    self.result(&came.result);
                }
                Part::Cut(finish) => self.note(&format!("{finish}")),
                _ => {}
            }
        }
    }

    /// A picture, by its file if there is one, or anything else that came along.
    fn media(&mut self, media: &Media) {
        let mark = if media.media_type.starts_with("image/") { "!" } else { "" };
        let file = self.pictures.file(media).map(|path| path.display().to_string());
        let link = file.as_deref().unwrap_or(&media.url);
        self.block(&format!("{mark}[{}](<{link}>)", media.media_type));
    }

    fn result(&mut self, outcome: &ToolResult) {
        self.block("with the result");
        self.fenced("", &result_text(outcome));
        for part in &outcome.parts {
            if let Part::Media(media) = part {
                self.media(media);
            }
        }
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

    /// A call, with its code in blocks of its own.
    fn call(&mut self, call: &ToolCall) {
        let (rest, code) = call::with_code_apart(call);
        self.fenced("", &written(&rest));
        for (name, text) in code {
            self.block(&format!("with `{}`", one_line(&name)));
            self.fenced("", &text);
        }
    }

    fn returned(&mut self, returned: &ShownToolResult) {
        self.block(&format!("{} calls", returned.who));
        self.call(&returned.call);
        if !returned.note.as_ref().is_some_and(|note| note.in_arguments) {
            self.result(&returned.result);
        }
    }

    /// A block of code whose fence is longer than any in it.
    fn fenced(&mut self, language: &str, text: &str) {
        let fence = fence(text);
        self.block(&format!("{fence}{language}\n{}\n{fence}", text.trim_end()));
    }

    fn closed(&mut self, at: &Path, reason: &str, summary: Option<&Arc<str>>) {
        if !at.is_root() {
            return self.note(&format!("chat {} ends: {reason}", chat_name::of(at)));
        }
        if let Some(summary) = summary.filter(|summary| !summary.trim().is_empty()) {
            self.block("## Summary");
            self.body(summary);
        }
        self.note(&format!("Ended: {reason}"));
    }
}

fn written(call: &ToolCall) -> String {
    format!("{}({})", call.tool, call::arguments(&call.args))
}

/// In which chat, if it is not the outermost.
fn place(at: &Path) -> String {
    if at.is_root() { String::new() } else { format!(" · {}", chat_name::of(at)) }
}

/// `text` with a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
