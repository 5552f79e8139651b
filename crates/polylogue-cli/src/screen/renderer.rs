//! What each item of a conversation looks like, as lines. The live screen, plain text and `show` use the same lines; they differ
//! in when and how the lines are written.

mod parts;
mod typed;

use std::collections::{HashMap, HashSet};

use polylogue_core::{Audience, Body, Failure, Name, Opening, Path, Question, TurnRequest};

use super::asked::at_terminal;
use super::call::{self, PLAIN_WIDTH};
use super::chat_name;
use super::end::RunEnd;
use super::exact::{self, SetApart};
use super::markdown::Markdown;
use super::notice;
use super::picture::Pictures;
use super::style::{Palette, Style};
use super::text::{Line, folded, wrap};
use polylogue_runtime::presentation::{Item, Kind, SummarySource, TurnKey};
use polylogue_runtime::question_text::asks;

/// How much is shown, and for what output.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Format {
    /// Columns of a row, for rendered Markdown; `None` for plain text.
    pub(crate) width: Option<usize>,
    /// Columns of the terminal that plain text is for, if it is for one: rows are broken between words, except in code.
    pub(crate) terminal: Option<usize>,
    /// Texts and results in full, as `show` and `--verbose` do; otherwise private ones and results are folded to a line.
    pub(crate) whole: bool,
    /// Thoughts too, dimmed.
    pub(crate) thoughts: bool,
}

impl Format {
    /// Everything, as plain text that no terminal reads.
    pub(crate) const WHOLE: Self = Self { width: None, terminal: None, whole: true, thoughts: true };

    /// Columns of a row, where rows are broken.
    pub(crate) fn columns(self) -> Option<usize> {
        self.width.or(self.terminal)
    }
}

/// What was printed last, which decides what separates it from the next item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Nothing,
    Note,
    /// A turn that continues: its next lines need no new head.
    Turn(TurnKey),
    /// A whole message.
    Speech,
}

/// An answer that a person has typed on the screen.
#[derive(Debug, Clone)]
struct TypedAnswer {
    at: Path,
    who: Name,
    text: String,
    /// Whether it allows or refuses something; otherwise it is what `who` says.
    is_approval: bool,
}

/// Turns items into lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renderer {
    pub(crate) format: Format,
    pub(crate) pictures: Pictures,
    palette: Palette,
    participants: HashMap<Path, Vec<Name>>,
    /// The ids of the calls whose results are shown in full, so that messages with them need not be.
    whole_results: HashSet<String>,
    /// The answer that the person has typed on this screen, until the conversation has it.
    typed: Option<TypedAnswer>,
    last: Last,
    depth: usize,
    out: Vec<Line>,
}

impl Renderer {
    /// Deeper chats are not indented further.
    const MAX_DEPTH: usize = 4;

    pub(crate) fn new(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// The lines of `item`.
    pub(crate) fn item(&mut self, item: &Item) -> Vec<Line> {
        let at = &item.chat;
        match &item.kind {
            Kind::ChatOpened { opening, task } => self.opened(at, opening, task.as_deref()),
            Kind::TurnStarted { request, is_announced } => self.started(at, request, *is_announced),
            Kind::TurnEnded { .. } => self.interrupted(),
            Kind::ModelReplied { who, cached } if *cached && self.format.whole => {
                self.note(at, &format!("{who}'s next reply is from the cache"), Style::DIM);
            }
            Kind::ModelReplied { .. } | Kind::ToolCalled { .. } => {}
            Kind::FellBack { who, model, asked, because } => {
                let note = match because {
                    Some(because) => format!("{model} replies for {who}: {because}"),
                    None => format!("{model} replies for {who}, instead of {asked}"),
                };
                self.note(at, &note, Style::DIM);
            }
            Kind::PromptCacheMissed { who, change } => {
                self.note(at, &format!("{who}: {change}"), Style::DIM);
            }
            Kind::SealsDropped { who, model, bytes } => {
                self.note(at, &notice::dropped_seals(who, model, *bytes), Style::DIM);
            }
            Kind::CallWritten { who, model, hint } => {
                self.note(at, &notice::written_call(who, model, hint), Style::DIM);
            }
            Kind::Reasoning { who, to, text } => self.thought(&(at.clone(), who.clone()), to, text),
            Kind::Narration { who, to, text } => {
                self.begin(&(at.clone(), who.clone()), to);
                let lines = self.prose(at, text, Style::PLAIN);
                self.put(at, &lines);
            }
            Kind::Draft { who, text } => self.private(at, &format!("{who} wrote, but did not say: "), text),
            Kind::Prompted { who, text } => self.private(at, &format!("{who} is prompted: "), text),
            Kind::ToolReturned(returned) => self.returned(at, returned),
            Kind::Message(said) if self.is_whole_result(said) => {}
            Kind::Message(said) if self.is_typed(at, &said.message) => self.end_typed(at),
            Kind::Message(said) => self.said(at, said),
            Kind::PrivateReply { who, text } => {
                // A task that was made specific is worth some rows, a ledger in JSON is not.
                let rows = if text.trim_start().starts_with('{') { 1 } else { 3 };
                self.in_rows(at, &format!("{who} (private): "), text, rows);
            }
            Kind::Decision { who, text } => {
                self.note(at, &format!("{who} (private): {}", folded(text)), Style::DIM);
            }
            Kind::InputRequired(question) => self.asked(at, question),
            Kind::InputProvided { is_repeated: true, .. } => {}
            Kind::InputProvided { to, text, .. } if self.is_typed_answer(at, to, text) => self.end_typed(at),
            Kind::InputProvided { to, text, .. } => self.answered(at, to, text.trim()),
            Kind::Failed { who, error } => self.failed(at, who, error),
            Kind::Notice(body) => self.moved(at, body),
            Kind::Remembered { who, text } => {
                self.private(at, &format!("{who} remembers to have said: "), text);
            }
            Kind::ChatClosed { reason, summary, source } => {
                self.closed(at, &reason.to_string(), summary, source);
            }
            Kind::Reopened => {
                let what = if at.is_root() { "the conversation".to_owned() } else { chat_name::of(at) };
                self.note(at, &format!("{what} continues"), Style::DIM);
            }
            Kind::CallPending { who, call } => {
                let text = format!("{who}: {} has no result yet", call::call(call).text());
                self.note(at, &text, Style::DIM);
            }
        }
        std::mem::take(&mut self.out)
    }

    /// The same, when its text is on the screen: what is left to show of it.
    pub(crate) fn streamed(&mut self, item: &Item) -> Vec<Line> {
        match &item.kind {
            Kind::Reasoning { .. } | Kind::Narration { .. } => Vec::new(),
            Kind::Message(said) => {
                self.extras(&item.chat, said);
                std::mem::take(&mut self.out)
            }
            _ => self.item(item),
        }
    }

    fn opened(&mut self, at: &Path, opening: &Opening, task: Option<&str>) {
        let names: Vec<_> = opening.participants.iter().map(Name::as_str).collect();
        // In this order, whichever speaks first.
        opening.participants.iter().for_each(|name| {
            self.palette.of(name);
        });
        self.participants.insert(at.clone(), opening.participants.clone());
        let begins = if at.is_root() {
            "participants".to_owned()
        } else {
            format!("chat {} begins", chat_name::of(at))
        };
        self.note(at, &format!("{begins}: {}", names.join(", ")), Style::DIM);
        if let Some(introduction) = &opening.introduction {
            self.private(at, "introduction: ", introduction);
        }
        if let Some(task) = task {
            self.text(at, "task: ", task);
        }
    }

    fn started(&mut self, at: &Path, request: &TurnRequest, is_announced: bool) {
        self.whole_results.clear();
        if let Some(text) = notice::selection(request, self.format.whole).filter(|_| !is_announced) {
            self.interrupted();
            // A selector may reply with a page of JSON: those who follow a run get one line of it.
            let most = if self.format.whole { usize::MAX } else { self.row_width(at).unwrap_or(PLAIN_WIDTH) };
            self.note(at, &Line::new(&text, Style::DIM).fit(most).text(), Style::DIM);
        }
        if let Some(prompt) = request.prompt.as_ref().filter(|_| self.format.whole) {
            self.private(at, &format!("{} is prompted in private: ", request.who), prompt);
        }
    }

    /// What stands above what `key` says, unless its turn continues right here: a blank line, and who speaks to whom.
    pub(crate) fn head(&mut self, key: &TurnKey, to: &Audience) -> Vec<Line> {
        if self.last == Last::Turn(key.clone()) {
            return Vec::new();
        }
        let (at, who) = key;
        let mut line = self.name(who);
        let alone = self.participants.get(at).is_some_and(|all| all.len() == 1 && all.contains(who));
        if !(alone && to.is_all()) {
            line.push(if self.format.width.is_some() { " → " } else { " -> " }, Style::DIM);
            self.address(&mut line, at, who, to);
        }
        if !at.is_root() {
            line.push(&format!(" · {}", chat_name::of(at)), Style::DIM);
        }
        if self.format.width.is_none() {
            line.push(":", Style::PLAIN);
        }
        let mut lines = self.separation(at);
        lines.push(line.after(&self.gutter(at)));
        lines
    }

    fn address(&mut self, line: &mut Line, at: &Path, who: &Name, to: &Audience) {
        let all = self.participants.get(at).map(Vec::as_slice).unwrap_or_default();
        let others: Vec<Name> = all.iter().filter(|name| *name != who).cloned().collect();
        match to {
            Audience::All if others.len() == 1 => self.names(line, &others),
            Audience::All => line.push("all", Style::DIM),
            Audience::Only(_) if to.is_private() => line.push("no one (private)", Style::DIM),
            Audience::Only(names) => {
                // That a speaker hears itself needs no telling.
                let others: Vec<Name> = names.iter().filter(|name| *name != who).cloned().collect();
                if others.is_empty() { line.push("itself", Style::DIM) } else { self.names(line, &others) }
            }
        }
    }

    fn names(&mut self, line: &mut Line, names: &[Name]) {
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                line.push(", ", Style::DIM);
            }
            line.push(name.as_str(), self.palette.of(name));
        }
    }

    /// Whether anything was printed.
    pub(crate) fn has_begun(&self) -> bool {
        self.last != Last::Nothing
    }

    /// A name in its color.
    pub(crate) fn name(&mut self, name: &Name) -> Line {
        Line::new(name.as_str(), self.palette.of(name))
    }

    /// Forgets what was printed: it is not on this screen.
    pub(crate) fn begin_again(&mut self) {
        self.last = Last::Nothing;
    }

    /// From here on, the lines of `key` need no head: they follow its own.
    pub(crate) fn in_turn(&mut self, key: &TurnKey) {
        self.depth = key.0.depth();
        self.last = Last::Turn(key.clone());
    }

    /// The next lines need a head, of whichever agent.
    pub(crate) fn interrupted(&mut self) {
        if matches!(self.last, Last::Turn(_)) {
            self.last = Last::Speech;
        }
    }

    /// A blank line stands before the next lines.
    fn set_off(&mut self) {
        if self.last != Last::Nothing {
            self.last = Last::Speech;
        }
    }

    /// What stands before every line of the chat `at`.
    pub(crate) fn gutter(&self, at: &Path) -> Line {
        let depth = if self.format.width.is_some() { at.depth().min(Self::MAX_DEPTH) } else { 0 };
        Line::new(&"┊ ".repeat(depth), Style::DIM)
    }

    /// Columns for the lines of the chat `at`; `None` for plain text.
    pub(crate) fn width(&self, at: &Path) -> Option<usize> {
        self.format.width.map(|width| width.saturating_sub(self.gutter(at).width()))
    }

    /// Columns for our own lines in the chat `at`; `None` where no terminal breaks them.
    pub(crate) fn row_width(&self, at: &Path) -> Option<usize> {
        self.width(at).or(self.format.terminal)
    }

    /// `text` as the chat's participants wrote it.
    fn prose(&self, at: &Path, text: &str, base: Style) -> Vec<Line> {
        match (self.width(at), self.format.terminal) {
            (Some(width), _) => Markdown::lines(text, width, base),
            (None, Some(columns)) => Markdown::source_rows(text, columns, base),
            (None, None) => text.lines().map(|line| Line::new(line, base)).collect(),
        }
    }

    fn put(&mut self, at: &Path, lines: &[Line]) {
        let gutter = self.gutter(at);
        self.out.extend(lines.iter().map(|line| line.after(&gutter).trimmed()));
    }

    /// A line in rows that fit the chat `at`.
    fn put_wrapped(&mut self, at: &Path, line: Line) {
        let rows = match self.row_width(at) {
            Some(width) if line.width() > width => wrap(&line, width),
            _ => vec![line],
        };
        self.put(at, &rows);
    }

    /// The blank line before a message.
    fn separation(&self, at: &Path) -> Vec<Line> {
        let depth = at.depth().min(self.depth);
        let inner = at.ancestors().find(|around| around.depth() == depth);
        let gutter = self.gutter(inner.as_ref().unwrap_or(at)).trimmed();
        if self.last == Last::Nothing { Vec::new() } else { vec![gutter] }
    }

    fn begin(&mut self, key: &TurnKey, to: &Audience) {
        let head = self.head(key, to);
        self.out.extend(head);
        self.in_turn(key);
    }

    /// A line of our own.
    fn note(&mut self, at: &Path, text: &str, style: Style) {
        if self.last != Last::Note {
            let separation = self.separation(at);
            self.out.extend(separation);
        }
        self.put_wrapped(at, Line::new(text, style));
        self.last = Last::Note;
        self.depth = at.depth();
    }

    /// A text that is not a message: folded to a line, or whole.
    fn private(&mut self, at: &Path, label: &str, text: &str) {
        self.in_rows(at, label, text, 1);
    }

    /// A text that is no message: whole, or as much of its first line as fills so many rows.
    fn in_rows(&mut self, at: &Path, label: &str, text: &str, rows: usize) {
        if self.format.whole {
            return self.text(at, label, text);
        }
        let width = self.row_width(at).unwrap_or(PLAIN_WIDTH) * rows;
        let room = width.saturating_sub(label.chars().count());
        let text = Line::new(&folded(text), Style::DIM).fit(room).text();
        self.note(at, &format!("{label}{text}"), Style::DIM);
    }

    /// A text that is not a message, in full: behind its label, or below it if it has several lines.
    fn text(&mut self, at: &Path, label: &str, text: &str) {
        let text = text.trim();
        if !text.contains('\n') {
            return self.note(at, &format!("{label}{text}"), Style::DIM);
        }
        self.note(at, label.trim_end(), Style::DIM);
        let lines = self.prose(at, text, Style::DIM);
        self.put(at, &lines);
    }

    fn thought(&mut self, key: &TurnKey, to: &Audience, text: &str) {
        if !self.format.thoughts {
            return;
        }
        self.begin(key, to);
        if self.format.width.is_none() {
            // Where nothing is dimmed, thoughts must not pass for words.
            self.put(&key.0, &[Line::new("(thinks:)", Style::PLAIN)]);
        }
        let lines = self.prose(&key.0, text, Style { italic: true, ..Style::DIM });
        self.put(&key.0, &lines);
    }

    fn moved(&mut self, at: &Path, body: &Body) {
        if let Some((who, does)) = notice::of(body) {
            self.note(at, &format!("{who} {}", folded(&does)), Style::DIM);
        }
        if let Some(done) = notice::of_run(body) {
            self.note(at, &folded(&done), Style::DIM);
        }
        if let (Body::Compacted(compacted), true) = (body, self.format.whole) {
            self.private(at, "summary: ", &notice::summary(compacted));
        }
    }

    fn asked(&mut self, at: &Path, question: &Question) {
        self.typed = None;
        self.interrupted();
        let separation = self.separation(at);
        self.out.extend(separation);
        if !notice::addresses(question) {
            let head = self.name(&question.who).with(asks(question), Style::BOLD);
            self.put(at, &[head]);
        }
        // What is to run is shown verbatim, never rendered.
        let text = at_terminal(question);
        let is_exact = question.is_approval() || text.lines().any(exact::is_fence);
        let lines = match is_exact {
            true => exact::rows(&text, self.apart(at), Style::PLAIN),
            false => self.prose(at, &text, Style::PLAIN),
        };
        self.put(at, &lines);
        self.depth = at.depth();
        self.last = Last::Speech;
    }

    /// What sets exact text apart in the chat `at`.
    fn apart(&self, at: &Path) -> SetApart {
        match (self.width(at), self.format.terminal) {
            (Some(width), _) => SetApart::Color(width),
            (None, Some(columns)) => SetApart::Rules(columns),
            (None, None) => SetApart::Fences,
        }
    }

    /// A person at the terminal has seen that there was no answer.
    fn answered(&mut self, at: &Path, to: &Name, text: &str) {
        match text {
            "" if !self.format.whole => {}
            "" => self.note(at, &format!("no answer for {to}"), Style::DIM),
            text => self.private(at, &format!("answer for {to}: "), text),
        }
    }

    fn failed(&mut self, at: &Path, who: &Name, error: &Failure) {
        self.set_off();
        if error.postponed {
            return self.note(at, &format!("{who} {}", error.in_words()), Style::DIM);
        }
        self.note(at, &format!("✗ {who} {}", error.in_words()), Style::ERROR);
        if let Some(hint) = &error.hint {
            self.note(at, &format!("  hint: {hint}"), Style::DIM);
        }
    }

    fn closed(&mut self, at: &Path, reason: &str, summary: &str, source: &SummarySource) {
        if !at.is_root() {
            self.note(at, &format!("chat {} ends: {}", chat_name::of(at), folded(reason)), Style::DIM);
            return;
        }
        match source {
            SummarySource::New if !summary.trim().is_empty() => {
                self.set_off();
                self.note(at, "summary", Style::BOLD);
                let lines = self.prose(at, summary, Style::PLAIN);
                self.put(at, &lines);
                self.last = Last::Speech;
            }
            SummarySource::EarlierMessage(who) => {
                self.private(at, &format!("summary (said by {who} above): "), &folded(summary));
            }
            SummarySource::New | SummarySource::LastMessage => {}
        }
    }

    /// A remark on the run, which is no event of it.
    pub(crate) fn remark(&mut self, text: &str) -> Vec<Line> {
        self.note(&Path::root(), text, Style::DIM);
        std::mem::take(&mut self.out)
    }

    /// Why the outermost chat ended, where no closing line says it.
    pub(crate) fn ended(&mut self, item: &Item) -> Vec<Line> {
        if let (Kind::ChatClosed { reason, .. }, true) = (&item.kind, item.chat.is_root()) {
            self.note(&item.chat, &folded(&RunEnd::why(reason)), Style::DIM);
        }
        std::mem::take(&mut self.out)
    }
}
