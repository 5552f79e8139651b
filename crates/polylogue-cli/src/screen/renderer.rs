//! What each event of a log says to a person, as lines. Whatever shows a run - the live screen, plain text, `show` - tells it in
//! these words; they differ in when and how the lines are written.

mod already;
mod private;
mod tools;

use std::collections::{HashMap, HashSet};

use polylogue::approval::MARGIN;
use polylogue_core::{
    Audience, Body, Call, Event, Failure, Message, ModelReply, Name, Opening, Outcome, Part, Path, Question,
    Timestamp, TurnRequest, plain,
};

use super::call::{self, calls_tools};
use super::choice;
use super::markdown::Markdown;
use super::moves;
use super::picture::Pictures;
use super::room;
use super::style::{Palette, Style};
use super::text::{Line, folded, verbatim, wrap};

/// How much is shown, and for what output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Columns of a row, for rendered Markdown; `None` for plain text, which is never wrapped.
    pub(crate) width: Option<usize>,
    /// Everything, as `show` does: private prompts, drafts, results of tools. Otherwise what one follows a run by.
    pub(crate) whole: bool,
    /// Thoughts too, dimmed.
    pub(crate) thoughts: bool,
}

/// Whose turn it is: a chat and one of its participants.
pub(crate) type Key = (Path, Name);

/// What was told last, which decides what stands between it and the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Nothing,
    Note,
    /// A turn that continues: its next lines need no new head.
    Turn(Key),
    /// A whole message.
    Speech,
}

/// Turns events into lines.
#[derive(Debug, Clone)]
pub(crate) struct Renderer {
    pub(crate) format: Format,
    pub(crate) pictures: Pictures,
    palette: Palette,
    rooms: HashMap<Path, Vec<Name>>,
    /// Whom the open turns speak to.
    audiences: HashMap<Key, Audience>,
    calls: HashMap<(Key, String), (Call, Timestamp)>,
    /// The calls that messages ask others to make: in which chat, who asks, and the call's id.
    asked: HashMap<(Path, Name, String), Call>,
    /// Results of calls in the open turns, which the message that answers them need not repeat.
    returned: Vec<(Key, Outcome)>,
    /// Calls in the open turns whose results were not told, because the message that follows has them.
    held: Vec<(Key, Call, Outcome)>,
    /// The words of a handoff that were told with its call, and who hands over.
    handed: Option<(Key, String)>,
    /// What an agent said with a reply that has calls: it is not told again as its message.
    narrated: HashMap<Key, String>,
    /// Text of an open turn's last reply, which is either said or was a draft.
    drafts: HashMap<Key, String>,
    /// Thoughts of the open turns that were told.
    thoughts: HashSet<(Key, String)>,
    last: Last,
    depth: usize,
    last_said: String,
    /// A private text that the next event may make superfluous: its chat, its label and itself.
    waiting: Option<(Path, String, String)>,
    /// Prompts of open private turns.
    prompts: HashMap<Key, Vec<String>>,
    /// What agents are going to remember of their open turns to have said.
    memories: HashMap<Key, String>,
    out: Vec<Line>,
}

impl Renderer {
    /// Deeper chats are not indented further.
    const MAX_DEPTH: usize = 4;

    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            pictures: Pictures::default(),
            palette: Palette::default(),
            rooms: HashMap::new(),
            audiences: HashMap::new(),
            calls: HashMap::new(),
            asked: HashMap::new(),
            returned: Vec::new(),
            held: Vec::new(),
            handed: None,
            narrated: HashMap::new(),
            drafts: HashMap::new(),
            thoughts: HashSet::new(),
            last: Last::Nothing,
            depth: 0,
            last_said: String::new(),
            waiting: None,
            prompts: HashMap::new(),
            memories: HashMap::new(),
            out: Vec::new(),
        }
    }

    /// The lines that tell of `event`.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Line> {
        let at = &event.at;
        self.release(Some(&event.body));
        match &event.body {
            Body::Opened(opening) => self.opened(at, opening),
            Body::TurnStarted { turns: cues } => cues.iter().for_each(|cue| self.cued(at, cue)),
            Body::ModelReplied(sample) => self.sampled(at, sample),
            Body::Prompted { who, text } => self.prompted(at, who, text),
            Body::ToolCalled { who, call } => {
                let key = ((at.clone(), who.clone()), call.id.clone());
                self.calls.insert(key, (call.clone(), event.time));
            }
            Body::ToolReturned { .. } => self.returned(event),
            Body::Message(message) => self.said(at, message),
            Body::Posted(message) if self.was_handed(at, message) => {}
            Body::Posted(message) => self.speech(at, message),
            Body::InputRequired(question) => self.asked(at, question),
            Body::InputProvided { to, text } => self.answered(at, to, text),
            Body::Failed { who, error } => self.failed(at, who, error),
            Body::Closed { reason, summary } => self.closed(at, &reason.to_string(), summary),
            Body::Reopened { message } => {
                self.note(at, "the conversation continues", Style::DIM);
                message.iter().for_each(|message| self.speech(at, message));
            }
            Body::Remembered { who, entries: words } => self.remembered(at, who, words),
            Body::Passed { who } if self.learnt(at, who) => {}
            other => self.moved(at, other),
        }
        std::mem::take(&mut self.out)
    }

    /// What is left to tell when the run is over: the calls that have no result, too.
    pub(crate) fn unfinished(&mut self) -> Vec<Line> {
        self.release(None);
        let held: Vec<Key> = self.held.iter().map(|(key, ..)| key.clone()).collect();
        held.iter().for_each(|key| self.tell_held(key));
        let mut calls: Vec<_> = self.calls.drain().collect();
        calls.sort_by_key(|(_, (_, time))| *time);
        for (((at, who), _), (wanted, _)) in calls {
            let text = format!("{who}: {} has no result yet", call::call(&wanted).text());
            self.note(&at, &text, Style::DIM);
        }
        std::mem::take(&mut self.out)
    }

    fn cued(&mut self, at: &Path, cue: &TurnRequest) {
        self.audiences.insert((at.clone(), cue.who.clone()), cue.to.clone());
        if let Some(text) = choice::told(cue, self.format.whole) {
            self.interrupted();
            self.note(at, &text, Style::DIM);
        }
        if let Some(prompt) = cue.prompt.as_ref().filter(|_| self.format.whole) {
            self.private(at, &format!("{} is prompted in private: ", cue.who), prompt);
        }
    }

    fn opened(&mut self, at: &Path, opening: &Opening) {
        self.prompts_around(at);
        let names: Vec<_> = opening.participants.iter().map(Name::as_str).collect();
        // In this order, whichever speaks first.
        opening.participants.iter().for_each(|name| {
            self.palette.of(name);
        });
        self.rooms.insert(at.clone(), opening.participants.clone());
        let begins =
            if at.is_root() { "with".to_owned() } else { format!("{} begins, with", room::called(at)) };
        self.note(at, &format!("{begins} {}", names.join(", ")), Style::DIM);
        if let Some(introduction) = &opening.introduction {
            self.private(at, "introduction: ", introduction);
        }
        let quoted = opening.messages.iter().any(|message| message.plain().contains(&*opening.task));
        // What was said last is not told again as the task that it gives.
        let known = !self.format.whole && opening.task.trim() == self.last_said.trim();
        if !opening.task.trim().is_empty() && !quoted && !known {
            self.private(at, "task: ", &opening.task);
        }
        opening.messages.iter().for_each(|message| self.speech(at, message));
    }

    /// Whom `who` speaks to in its open turn.
    pub(crate) fn audience(&self, key: &Key) -> Audience {
        self.audiences.get(key).cloned().unwrap_or_default()
    }

    /// What stands above what `key` says, unless its turn continues right here: a blank line, and who speaks to whom.
    pub(crate) fn head(&mut self, key: &Key, to: &Audience) -> Vec<Line> {
        if self.last == Last::Turn(key.clone()) {
            return Vec::new();
        }
        let (at, who) = key;
        let mut line = self.name(who);
        let alone = self.rooms.get(at).is_some_and(|room| room.len() == 1 && room.contains(who));
        if !(alone && to.is_all()) {
            line.push(if self.format.width.is_some() { " → " } else { " -> " }, Style::DIM);
            self.address(&mut line, at, who, to);
        }
        if !at.is_root() {
            line.push(&format!(" · {}", room::called(at)), Style::DIM);
        }
        if self.format.width.is_none() {
            line.push(":", Style::PLAIN);
        }
        let mut lines = self.separation(at);
        lines.push(line.after(&self.gutter(at)));
        lines
    }

    fn address(&mut self, line: &mut Line, at: &Path, who: &Name, to: &Audience) {
        let room = self.rooms.get(at).map(Vec::as_slice).unwrap_or_default();
        let others: Vec<Name> = room.iter().filter(|name| *name != who).cloned().collect();
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

    /// Whether anything was told.
    pub(crate) fn has_begun(&self) -> bool {
        self.last != Last::Nothing
    }

    /// A name in its colour.
    pub(crate) fn name(&mut self, name: &Name) -> Line {
        Line::new(name.as_str(), self.palette.of(name))
    }

    /// What was told so far is not on this screen.
    pub(crate) fn begin_anew(&mut self) {
        self.last = Last::Nothing;
    }

    /// From here on, the lines of `key` need no head: they follow its own.
    pub(crate) fn in_turn(&mut self, key: &Key) {
        self.depth = key.0.depth();
        self.last = Last::Turn(key.clone());
    }

    /// The next lines need a head, of whichever agent.
    pub(crate) fn interrupted(&mut self) {
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

    /// `text` as the chat's participants wrote it.
    fn prose(&self, at: &Path, text: &str, base: Style) -> Vec<Line> {
        match self.width(at) {
            Some(width) => Markdown::lines(text, width, base),
            None => text.lines().map(|line| Line::new(line, base)).collect(),
        }
    }

    fn put(&mut self, at: &Path, lines: &[Line]) {
        let gutter = self.gutter(at);
        self.out.extend(lines.iter().map(|line| line.after(&gutter).trimmed()));
    }

    /// The blank line before a message.
    fn separation(&self, at: &Path) -> Vec<Line> {
        let depth = at.depth().min(self.depth);
        let inner = at.ancestors().find(|around| around.depth() == depth);
        let gutter = self.gutter(inner.as_ref().unwrap_or(at)).trimmed();
        if self.last == Last::Nothing { Vec::new() } else { vec![gutter] }
    }

    fn begin(&mut self, key: &Key, to: &Audience) {
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
        let line = Line::new(text, style);
        let rows = self.width(at).map_or_else(|| vec![line.clone()], |width| wrap(&line, width));
        self.put(at, &rows);
        self.last = Last::Note;
        self.depth = at.depth();
    }

    fn moved(&mut self, at: &Path, body: &Body) {
        let Some((who, does)) = moves::told(body) else { return };
        if !matches!(body, Body::CapabilityMissing { .. } | Body::ContinuationFailed { .. }) {
            self.end_turn(&(at.clone(), who.clone()));
        }
        self.note(at, &format!("{who} {}", folded(&does)), Style::DIM);
    }

    fn sampled(&mut self, at: &Path, sample: &ModelReply) {
        let key = (at.clone(), sample.who.clone());
        self.draft(&key);
        self.thoughts(&key, &sample.parts);
        if sample.cached && self.format.whole {
            self.note(at, &format!("{}'s next reply is from the cache", sample.who), Style::DIM);
        }
        let text = plain(&sample.parts);
        if calls_tools(&sample.parts) {
            self.narrated(&key, &text);
        } else {
            self.drafts.insert(key, text.into_owned());
        }
    }

    /// What an agent says to itself before it uses tools.
    fn narrated(&mut self, key: &Key, text: &str) {
        if !text.trim().is_empty() {
            let to = self.audience(key);
            self.begin(key, &to);
            let lines = self.prose(&key.0, text, Style::PLAIN);
            self.put(&key.0, &lines);
            self.narrated.insert(key.clone(), text.to_owned());
        }
    }

    fn thoughts(&mut self, key: &Key, parts: &[Part]) {
        for part in parts {
            let Part::Thought(text) = part else { continue };
            if self.format.thoughts
                && !part.is_blank()
                && self.thoughts.insert((key.clone(), text.to_string()))
            {
                let to = self.audience(key);
                self.begin(key, &to);
                if self.format.width.is_none() {
                    // Where nothing is dimmed, thoughts must not pass for words.
                    self.put(&key.0, &[Line::new("(thinks:)", Style::PLAIN)]);
                }
                let lines = self.prose(&key.0, text, Style { italic: true, ..Style::DIM });
                self.put(&key.0, &lines);
            }
        }
    }

    /// A reply that was not said.
    fn draft(&mut self, key: &Key) {
        let draft = self.drafts.remove(key).filter(|draft| self.format.whole && !draft.trim().is_empty());
        if let Some(draft) = draft {
            self.private(&key.0, &format!("{} wrote, but did not say: ", key.1), &draft);
        }
    }

    fn end_turn(&mut self, key: &Key) {
        self.prompts(key);
        self.memories.remove(key);
        self.tell_held(key);
        self.draft(key);
        self.audiences.remove(key);
        self.narrated.remove(key);
        self.returned.retain(|(turn, _)| turn != key);
        self.thoughts.retain(|(turn, _)| turn != key);
        self.interrupted();
    }

    fn said(&mut self, at: &Path, message: &Message) {
        let key = (at.clone(), message.from.clone());
        if self.drafts.get(&key).is_some_and(|draft| *draft == message.plain()) {
            self.drafts.remove(&key);
        }
        self.draft(&key);
        self.prompts_of(at, message);
        match self.besides_results(&key, message) {
            Some(parts) if parts.is_empty() => self.known(at, message),
            Some(parts) => self.speech(at, &Message { parts, ..message.clone() }),
            None => self.speech(at, message),
        }
        self.end_turn(&key);
    }

    fn speech(&mut self, at: &Path, message: &Message) {
        let key = (at.clone(), message.from.clone());
        let text = message.plain();
        if message.to.is_private() && !self.format.whole {
            return self.aside(at, message);
        }
        // What was said before calls may be what is said in the end.
        let is_known = self.narrated.get(&key).is_some_and(|told| *told == text);
        self.thoughts(&key, &message.parts);
        self.begin(&key, &message.to);
        let before = self.out.len();
        if !is_known {
            let lines = self.prose(at, &text, Style::PLAIN);
            self.put(at, &lines);
        }
        self.extras(at, &message.from, &message.parts);
        let is_shown = is_known || message.parts.iter().any(|part| matches!(part, Part::Outcome(_)));
        if self.out.len() == before && !is_shown {
            self.put(at, &[Line::new("(says nothing)", Style::DIM)]);
        }
        self.origin(at, &message.outside);
        self.last_said = text.into_owned();
        self.interrupted();
    }

    fn asked(&mut self, at: &Path, question: &Question) {
        self.tell_held(&(at.clone(), question.who.clone()));
        self.interrupted();
        let separation = self.separation(at);
        self.out.extend(separation);
        let head = self.name(&question.who).with(" is asked:", Style::BOLD);
        self.put(at, &[head]);
        // What is to run is shown verbatim, never rendered.
        let is_exact = question.is_approval() || question.text.contains(MARGIN);
        let lines = match is_exact {
            true => verbatim(&question.text, self.width(at), Style::PLAIN),
            false => self.prose(at, &question.text, Style::PLAIN),
        };
        self.put(at, &lines);
        self.depth = at.depth();
        self.last = Last::Speech;
    }

    /// An answer is shown with its result. A person at the terminal has seen that there was none.
    fn answered(&mut self, at: &Path, to: &Name, text: &str) {
        let label = match text.trim() {
            "" if !self.format.whole => return,
            "" => format!("no answer for {to}"),
            _ => format!("answer for {to}: "),
        };
        self.waiting = Some((at.clone(), label, text.trim().to_owned()));
    }

    fn failed(&mut self, at: &Path, who: &Name, error: &Failure) {
        self.interrupted();
        self.prompts(&(at.clone(), who.clone()));
        self.note(at, &format!("✗ {who} failed ({}): {}", error.fault, error.message), Style::ERROR);
        if let Some(hint) = &error.hint {
            self.note(at, &format!("  hint: {hint}"), Style::DIM);
        }
    }

    fn closed(&mut self, at: &Path, reason: &str, summary: &str) {
        if !at.is_root() {
            self.note(at, &format!("{} ends: {}", room::called(at), folded(reason)), Style::DIM);
            return;
        }
        if !summary.trim().is_empty() && summary.trim() != self.last_said.trim() {
            self.note(at, "summary", Style::BOLD);
            let lines = self.prose(at, summary, Style::PLAIN);
            self.put(at, &lines);
            self.last = Last::Speech;
        }
        if self.format.whole {
            self.note(at, &format!("ended: {}", folded(reason)), Style::DIM);
        }
    }
}
