//! What a person, or a program, sees of a run.
//!
//! A [`Screen`] receives a run's [`Update`]s and writes what they mean: live on a terminal, as plain text, as
//! events in JSON, or nothing but the result. It writes to one handle, in one piece for each update.
//!
//! - [`live`]: the terminal; with [`draft`] (a reply while it is written), [`turns`] (what each agent is doing) and [`region`]
//!   (the rows that change in place)
//! - [`plain`], [`autogen`], [`json`], [`document`] and [`side_by_side`] (`show`), [`end`] (the closing lines)
//! - [`renderer`]: the lines of each item of the [presentation](polylogue_runtime::presentation); [`call`]: a tool
//!   call on one line; [`chat_name`]: the name of a chat
//! - [`asked`]: the words of questions
//! - [`markdown`], [`text`], [`style`]: what lines are made of; [`picture`]: pictures, named and drawn
//!
//! Nothing that a model, a tool or a file says reaches the terminal but through [`text::Line`], which holds no
//! control characters, and [`sanitized::Sanitized`], which commands write. What another program can read is unchanged where no
//! terminal reads it: the result alone (`--quiet`), and what commands write by `write_data`. JSON is escaped.

use std::io::{self, Write};

use polylogue_core::{Body, BoundSummary, Event, LogId, Name, Path, Question, Update};

mod asked;
mod autogen;
mod call;
mod chat_name;
pub(crate) mod document;
mod draft;
mod end;
pub(crate) mod exact;
pub(crate) mod json;
mod live;
mod markdown;
mod notice;
pub(crate) mod picture;
mod plain;
mod region;
mod renderer;
mod sanitized;
pub(crate) mod side_by_side;
mod style;
pub(crate) mod text;
mod turns;

pub(crate) use asked::at_terminal;
pub(crate) use end::{
    RunEnd, RunState, cached_share, cost, grouped, most_cost, prompt_cache, prompt_savings, saved, time,
    tokens, uncertain,
};
pub(crate) use live::{Clock, Keys, SizeOf};
pub(crate) use notice::addresses;
pub(crate) use region::Size;
pub(crate) use renderer::Format;
pub(crate) use sanitized::Sanitized;
pub(crate) use style::{ColorChoice, OutputStyle, Style};

use autogen::AutoGenRenderer;
use json::RunLine;
use live::Live;
use picture::Pictures;
use plain::Plain;
use text::{Line, neutral};

/// What is written of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// The conversation, for people.
    #[default]
    Talk,
    /// Every event as a line of JSON, between a line that names the conversation and one with its totals (`--json`).
    Json,
    /// The result alone (`--quiet`).
    Result,
    /// The conversation, in the layout of AutoGen (`--style autogen`).
    AutoGen,
}

impl Output {
    /// Whether it is the conversation, for people.
    pub(crate) const fn is_conversation(self) -> bool {
        matches!(self, Self::Talk | Self::AutoGen)
    }
}

/// How a run is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// What is written.
    pub(crate) output: Output,
    /// What the output can show.
    pub(crate) looks: OutputStyle,
    /// Whether replies are shown while they are written (not with `--no-stream`).
    pub(crate) stream: bool,
    /// Whether a script speaks at its pace, for those who watch.
    pub(crate) paced: bool,
    /// Whether thoughts are shown permanently; otherwise the last of them, while they are thought.
    pub(crate) thoughts: bool,
    /// Whether everything is shown in full, private prompts and replies too; not where lines change in place.
    pub(crate) verbose: bool,
}

/// How the caller continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// All is well.
    Go,
    /// Events are missing: read them from the store, from this one on, and give them to [`Screen::reread`].
    Reread(u64),
    /// The output is closed.
    Gone,
}

/// Shows a run.
pub(crate) struct Screen<W> {
    out: W,
    kind: Kind,
    /// The next event to show: whatever order updates and events that were read again come in, each is shown once.
    next: Option<u64>,
    /// Whether events were read again that are yet to come as updates: the pieces between these are of replies that are shown.
    is_behind: bool,
    gone: bool,
}

enum Kind {
    Live(Box<Live>),
    Plain(Box<Plain>),
    Json,
    Result { looks: OutputStyle, width: usize, last: String },
    AutoGen { looks: OutputStyle, autogen: Box<AutoGenRenderer> },
}

impl<W: Write> Screen<W> {
    /// Shows a run of the chat `title` on `out`, of the size `size`, by the time of `clock`.
    pub(crate) fn new(out: W, title: &str, settings: Settings, size: SizeOf, clock: Clock) -> Self {
        let Settings { looks, thoughts, verbose, .. } = settings;
        let width = size().text_columns();
        let kind = match settings.output {
            Output::Json => Kind::Json,
            Output::AutoGen => Kind::AutoGen {
                looks,
                autogen: Box::new(AutoGenRenderer::new(title, looks.terminal.then_some(width), true)),
            },
            Output::Result => Kind::Result { looks, width, last: String::new() },
            Output::Talk if looks.live => {
                Kind::Live(Box::new(Live::new(thoughts, settings.stream, size, clock)))
            }
            Output::Talk => Kind::Plain(Box::new(Plain::new(Format {
                width: looks.color.then_some(width),
                terminal: looks.terminal.then_some(width),
                whole: verbose,
                thoughts,
            }))),
        };
        Self { out, kind, next: None, is_behind: false, gone: false }
    }

    /// The same, which says below the status lines which keys there are, once a run has lasted a while, and while it is paused.
    pub(crate) fn with_keys(mut self, keys: Keys) -> Self {
        if let Kind::Live(live) = &mut self.kind {
            live.keys = Some(keys);
        }
        self
    }

    /// The same, which shows pictures so.
    pub(crate) fn with(mut self, pictures: Pictures) -> Self {
        match &mut self.kind {
            Kind::Live(live) => live.show(pictures),
            Kind::Plain(plain) => plain.show(pictures),
            Kind::Json | Kind::Result { .. } | Kind::AutoGen { .. } => {}
        }
        self
    }

    /// Begins the view of the conversation `id` of the team `team`.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn begin(
        &mut self,
        id: &LogId,
        team: &Name,
        bound: Option<&BoundSummary>,
    ) -> io::Result<Flow> {
        let mut text = String::new();
        if matches!(self.kind, Kind::Json) {
            text += &json::line(&RunLine::RunStarted { id, team })?;
            if let Some(bound) = bound {
                text += &json::line(&RunLine::Bound { id, bound })?;
            }
        }
        self.write(&text)
    }

    /// Takes note of an event of an earlier process, without showing it: who is in the room, whose turn it is.
    pub(crate) fn recall(&mut self, event: &Event) {
        self.next = Some(event.seq + 1);
        match &mut self.kind {
            Kind::Live(live) => live.recall(event),
            Kind::Plain(plain) => plain.recall(event),
            Kind::Json => {}
            Kind::Result { last, .. } => note_result(last, event),
            Kind::AutoGen { autogen, .. } => {
                autogen.event(event);
            }
        }
    }

    /// Shows an event of an earlier process after all, such as a question that is still open.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn remind(&mut self, event: &Event) -> io::Result<Flow> {
        let text = match &mut self.kind {
            Kind::Live(live) => live.remind(event),
            Kind::Plain(plain) => plain.event(event),
            Kind::AutoGen { looks, autogen } => plain::written(&autogen.event(event), looks.color),
            Kind::Json | Kind::Result { .. } => String::new(),
        };
        self.write(&text)
    }

    /// Shows an update.
    ///
    /// # Errors
    /// When the output cannot be written. A closed output is not an error, but [`Flow::Gone`].
    pub(crate) fn update(&mut self, update: &Update) -> io::Result<Flow> {
        match update {
            Update::Event(event) => {
                self.is_behind = self.next.is_some_and(|next| event.seq + 1 < next);
                if let Kind::Live(live) = &mut self.kind
                    && !self.is_behind
                {
                    live.in_order(event);
                }
                match self.next {
                    Some(next) if event.seq > next => Ok(Flow::Reread(next)),
                    _ => self.event(event, true),
                }
            }
            Update::Delta { .. } if self.is_behind => Ok(self.flow()),
            Update::Delta { chat: at, who, delta: piece } => match &mut self.kind {
                Kind::Live(live) => {
                    let text = live.delta(at, who, piece);
                    self.write(&text)
                }
                _ => Ok(self.flow()),
            },
            Update::Missed { seq, .. } => {
                if let Kind::Live(live) = &mut self.kind {
                    live.missed();
                }
                Ok(if self.gone { Flow::Gone } else { Flow::Reread(self.next.unwrap_or(*seq)) })
            }
            _ => Ok(self.flow()),
        }
    }

    /// Shows an event that was read from the store, after [`Flow::Reread`].
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn reread(&mut self, event: &Event) -> io::Result<Flow> {
        self.event(event, false)
    }

    fn event(&mut self, event: &Event, in_order: bool) -> io::Result<Flow> {
        if self.next.is_some_and(|next| event.seq < next) {
            return Ok(self.flow());
        }
        self.next = Some(event.seq + 1);
        let text = match &mut self.kind {
            Kind::Live(live) => live.event(event, in_order),
            Kind::Plain(plain) => plain.event(event),
            Kind::AutoGen { looks, autogen } => plain::written(&autogen.event(event), looks.color),
            Kind::Json => json::line(event)?,
            Kind::Result { last, .. } => {
                note_result(last, event);
                String::new()
            }
        };
        self.write(&text)
    }

    /// What the person should know of `update` besides what is shown here: that a model is asked again, where nothing changes in
    /// place. Nothing with `--quiet`.
    pub(crate) fn unshown(&self, update: &Update) -> Option<String> {
        match (&self.kind, update) {
            (Kind::Live(_) | Kind::Result { .. }, _) => None,
            (_, Update::Delta { who, delta, .. }) => turns::retrying(who, delta),
            _ => None,
        }
    }

    /// Shows the person a note until the run ends. `false` if nothing here changes in place: then the caller must
    /// print it.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn notice(&mut self, text: &str) -> io::Result<bool> {
        let Kind::Live(live) = &mut self.kind else { return Ok(false) };
        let text = live.notice(text);
        self.write(&text)?;
        Ok(true)
    }

    /// Shows that the bound of the conversation `id` does not apply any more, and `why`: to the person as `note`, if there is one, which
    /// stays on the screen. `false` if the caller must print that: nothing changes in place.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn bound_ended(&mut self, id: &LogId, why: &str, note: Option<&str>) -> io::Result<bool> {
        let text = match (&mut self.kind, note) {
            (Kind::Live(live), Some(note)) => live.remark(note),
            (Kind::Json, _) => json::line(&RunLine::BoundEnded { id, why })?,
            _ => return Ok(false),
        };
        self.write(&text)?;
        Ok(true)
    }

    /// Shows that time passes. To be called about ten times a second.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn tick(&mut self) -> io::Result<Flow> {
        let text = match &mut self.kind {
            Kind::Live(live) => live.tick(),
            _ => String::new(),
        };
        self.write(&text)
    }

    /// Takes note that the person has typed `text` on this screen, as the answer to `question` of the chat `at`: it is not
    /// shown again, except in the layout of AutoGen, which shows it.
    pub(crate) fn typed(&mut self, at: &Path, question: &Question, text: &str) {
        match &mut self.kind {
            Kind::Live(live) => live.typed(at, question, text),
            Kind::Plain(plain) => plain.typed(at, question, text),
            Kind::Json | Kind::Result { .. } | Kind::AutoGen { .. } => {}
        }
    }

    /// The run waits, for a person's answer for instance: nothing changes in place, and the cursor stands at the
    /// beginning of a row, so that the caller can use the terminal.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn rest(&mut self) -> io::Result<Flow> {
        let text = match &mut self.kind {
            Kind::Live(live) => live.rest(),
            _ => String::new(),
        };
        self.write(&text)
    }

    /// The person types below while the run continues: the cursor stands at the beginning of a row until something is shown again.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn make_room(&mut self) -> io::Result<Flow> {
        let text = match &mut self.kind {
            Kind::Live(live) => live.make_room(),
            _ => String::new(),
        };
        self.write(&text)
    }

    /// Ends the view: with the closing lines, or the result. Nothing is shown after it.
    ///
    /// # Errors
    /// As [`Screen::update`].
    pub(crate) fn end(&mut self, ending: &RunEnd) -> io::Result<Flow> {
        let text = match &mut self.kind {
            Kind::Live(live) => live.end(ending),
            Kind::Plain(plain) => plain.end(ending),
            Kind::AutoGen { looks, autogen } => {
                let mut lines = autogen.unfinished();
                lines.push(Line::default());
                lines.extend(ending.lines(None));
                plain::written(&lines, looks.color)
            }
            Kind::Json => json::line(&RunLine::of(ending))?,
            Kind::Result { looks, width, last } => result(last, *looks, *width),
        };
        self.write(&text)
    }

    const fn flow(&self) -> Flow {
        if self.gone { Flow::Gone } else { Flow::Go }
    }

    /// All at once: a reader never sees half a frame, or half a message.
    fn write(&mut self, text: &str) -> io::Result<Flow> {
        if self.gone || text.is_empty() {
            return Ok(self.flow());
        }
        match self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.gone = true,
            written => written?,
        }
        Ok(self.flow())
    }
}

/// The result of a run is its summary, or what was said last.
fn note_result(last: &mut String, event: &Event) {
    let text = match &event.body {
        Body::Message(message) | Body::Posted(message)
            if event.chat.is_root() && !message.to.is_private() =>
        {
            message.text()
        }
        Body::Closed { summary, .. } if event.chat.is_root() => (&**summary).into(),
        _ => return,
    };
    if !text.trim().is_empty() {
        *last = text.into_owned();
    }
}

fn result(text: &str, looks: OutputStyle, width: usize) -> String {
    match text.trim_end() {
        "" => String::new(),
        text if looks.color => {
            plain::written(&markdown::Markdown::lines(text, width, style::Style::PLAIN), true)
        }
        text if looks.terminal => format!("{}\n", neutral(text)),
        // It is for another program.
        text => format!("{text}\n"),
    }
}

#[cfg(test)]
mod tests;
