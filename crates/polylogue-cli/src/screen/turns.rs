//! The open turns, and the status lines that show them.

use std::time::Duration;

use polylogue_core::{Audience, Delta, Name, Path, ToolCall};

use super::call;
use super::renderer::Renderer;
use super::style::Style;
use super::text::{Line, folded, wrap};
use polylogue_runtime::presentation::TurnKey;

/// What the model of a turn is doing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum TurnPhase {
    /// It was asked, and nothing has come in yet.
    #[default]
    Waiting,
    Thinking,
    Writing,
    /// It writes a call of this tool.
    Calling(String),
    /// An attempt failed: why and which retry follows, and when.
    Retrying(String, Duration),
}

/// An open turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) key: TurnKey,
    pub(super) to: Audience,
    /// When the model began with what it is doing.
    since: Duration,
    doing: TurnPhase,
    /// What came in of the present reply.
    pub(super) text: String,
    pub(super) thought: String,
    /// So many bytes of the text stand above what the person typed meanwhile.
    pub(super) above: usize,
    /// Calls without a result, and when they began.
    calls: Vec<(ToolCall, Duration)>,
    /// Which attempt at the reply this is, from 1.
    attempt: u32,
    /// Pieces of the present reply were missed: it is shown when it is whole.
    pub(super) torn: bool,
}

impl Turn {
    pub(super) fn new(key: TurnKey, to: Audience, now: Duration) -> Self {
        Self {
            key,
            to,
            since: now,
            doing: TurnPhase::Waiting,
            text: String::new(),
            thought: String::new(),
            above: 0,
            calls: Vec::new(),
            attempt: 1,
            torn: false,
        }
    }

    /// Takes a piece of the reply.
    pub(super) fn piece(&mut self, piece: &Delta, now: Duration) {
        match piece {
            Delta::Text(text) => {
                self.text.push_str(text);
                self.doing = TurnPhase::Writing;
            }
            Delta::Thought(text) => {
                self.thought.push_str(text);
                self.doing = TurnPhase::Thinking;
            }
            Delta::Call { tool: Some(tool), .. } => self.doing = TurnPhase::Calling(tool.clone()),
            Delta::Retry { cause, retry, retries, wait } => {
                let what = failed_attempt(cause, *retry, *retries);
                self.doing = TurnPhase::Retrying(what, now + *wait);
                self.attempt = retry.saturating_add(1);
                self.since = now + *wait;
            }
            Delta::Fallback { cause, model } => {
                self.next_reply(now);
                self.doing = TurnPhase::Retrying(format!("{}, asking {model}", folded(cause)), now);
                self.torn = false;
            }
            Delta::Restart => {
                // Before its first piece, it is not another one.
                self.attempt += u32::from(!matches!(self.doing, TurnPhase::Waiting));
                self.next_reply(now);
                self.torn = false;
            }
            _ => {}
        }
    }

    /// The present reply is over.
    pub(super) fn next_reply(&mut self, now: Duration) {
        self.void_text();
        self.thought.clear();
        self.doing = TurnPhase::Waiting;
        self.since = now;
    }

    /// What came in of the text is void.
    pub(super) fn void_text(&mut self) {
        self.text.clear();
        self.above = 0;
    }

    /// A model call was finished, or its agent wrote a narration.
    pub(super) fn replied(&mut self, now: Duration) {
        self.next_reply(now);
        self.attempt = 1;
    }

    pub(super) fn called(&mut self, call: ToolCall, now: Duration) {
        self.calls.push((call, now));
    }

    pub(super) fn returned(&mut self, id: &str, now: Duration) {
        self.calls.retain(|(call, _)| call.id != id);
        self.since = now;
    }

    /// Whether there is text to show while it comes in.
    pub(super) fn can_be_shown(&self) -> bool {
        let text = self.text.get(self.above..).unwrap_or_default();
        !self.torn && !self.to.is_private() && !text.trim().is_empty()
    }

    /// The lines that say what the model is doing, `shown` if its text is on the screen.
    fn status(&self, shown: bool, alone: bool, now: Duration, renderer: &mut Renderer) -> Vec<Line> {
        let (at, who) = &self.key;
        let gutter = renderer.gutter(at);
        let width = renderer.width(at).unwrap_or(usize::MAX);
        let mut lines: Vec<Line> = Vec::new();
        for (wanted, begun) in &self.calls {
            let caller = if alone { Line::default() } else { renderer.name(who).with(": ", Style::DIM) };
            let room = width.saturating_sub(caller.width());
            lines.push(call::running(wanted, now.saturating_sub(*begun), room).after(&caller));
        }
        let doing = match &self.doing {
            TurnPhase::Waiting | TurnPhase::Writing if shown || !self.calls.is_empty() => None,
            TurnPhase::Waiting | TurnPhase::Thinking => Some("is thinking".to_owned()),
            TurnPhase::Writing => Some("is writing".to_owned()),
            TurnPhase::Calling(tool) => Some(format!("is calling {tool}")),
            TurnPhase::Retrying(what, until) if now < *until => {
                let text = format!(": {what} in {}", call::seconds(until.saturating_sub(now)));
                lines.push(renderer.name(who).with(&text, Style::DIM).fit(width));
                None
            }
            TurnPhase::Retrying(what, _) => Some(format!("is thinking after {what}")),
        };
        if let Some(doing) = doing {
            let is_counted = matches!(self.doing, TurnPhase::Retrying(..));
            let again = if self.attempt > 1 && !is_counted {
                format!(" (attempt {})", self.attempt)
            } else {
                String::new()
            };
            let text = format!(" {doing}... {}{again}", call::seconds(now.saturating_sub(self.since)));
            lines.push(renderer.name(who).with(&text, Style::DIM).fit(width));
        }
        if self.doing == TurnPhase::Thinking && !renderer.format.thoughts {
            lines.extend(last_thoughts(&self.thought, width));
        }
        lines.iter().map(|line| line.after(&gutter)).collect()
    }
}

/// That an attempt of `who` failed and which retry follows when, in one line.
pub(super) fn retrying(who: &Name, delta: &Delta) -> Option<String> {
    let Delta::Retry { cause, retry, retries, wait } = delta else { return None };
    // A wait without a tenth of a second is none that people notice.
    let when = match wait.as_millis() {
        0..100 => "now".to_owned(),
        _ => format!("in {}", call::seconds(*wait)),
    };
    Some(format!("{who}: {} {when}", failed_attempt(cause, *retry, *retries)))
}

/// Why an attempt failed, and which retry follows.
fn failed_attempt(cause: &str, retry: u32, retries: u32) -> String {
    format!("{}, retry {retry} of {retries}", folded(cause))
}

/// The end of a train of thought, in two rows.
fn last_thoughts(thought: &str, width: usize) -> Vec<Line> {
    /// Enough for two rows of any screen.
    const CHARS: usize = 400;
    let margin = Line::new("  ", Style::PLAIN);
    let from = thought.char_indices().rev().nth(CHARS).map_or(0, |(at, _)| at);
    let words: Vec<&str> = thought.get(from..).unwrap_or_default().split_whitespace().collect();
    let line = Line::new(&words.join(" "), Style { italic: true, ..Style::DIM });
    let rows = wrap(&line, width.saturating_sub(2));
    let skip = rows.len().saturating_sub(2);
    rows.iter().skip(skip).filter(|row| !row.is_empty()).map(|row| row.after(&margin)).collect()
}

/// All open turns, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// Updates were missed: what a turn that we do not know of sends is not a beginning.
    pub(super) missed: bool,
}

impl Turns {
    /// More than these are counted, not listed.
    const MAX_STATUS: usize = 6;

    pub(super) fn begin(&mut self, turn: Turn) {
        self.end(&turn.key);
        self.turns.push(turn);
    }

    pub(super) fn end(&mut self, key: &TurnKey) {
        self.turns.retain(|turn| turn.key != *key);
    }

    /// A chat is over, and so are its turns.
    pub(super) fn end_chat(&mut self, at: &Path) {
        self.turns.retain(|turn| turn.key.0 != *at);
    }

    pub(super) fn end_all(&mut self) {
        self.turns.clear();
    }

    /// The turn of `key`; one that we did not see the beginning of is made up: a run that is resumed continues in the
    /// midst of a turn.
    pub(super) fn of(&mut self, key: &TurnKey, to: &Audience, now: Duration) -> Option<&mut Turn> {
        let index = self.turns.iter().position(|turn| turn.key == *key);
        let index = index.unwrap_or_else(|| {
            let torn = self.missed;
            self.turns.push(Turn { torn, ..Turn::new(key.clone(), to.clone(), now) });
            self.turns.len() - 1
        });
        self.turns.get_mut(index)
    }

    pub(super) fn known(&mut self, key: &TurnKey) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.key == *key)
    }

    /// Updates were missed.
    pub(super) fn interrupt(&mut self) {
        self.missed = true;
        self.turns.iter_mut().for_each(|turn| turn.torn = true);
    }

    /// The first turn whose text can be shown while it comes in.
    pub(super) fn to_show(&self) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.can_be_shown())
    }

    /// Whether `turn` is that of a chat, one of whose own participants has its turn.
    fn is_outer(&self, turn: &Turn) -> bool {
        let (at, who): &(Path, Name) = &turn.key;
        let inside = format!("{at}/{who}.");
        self.turns.iter().any(|other| other.key.0.as_str().starts_with(&inside))
    }

    /// The quiet lines below the conversation. `shown` is the turn whose text is on the screen.
    pub(super) fn status(
        &self,
        shown: Option<&TurnKey>,
        now: Duration,
        renderer: &mut Renderer,
    ) -> Vec<Line> {
        let inner: Vec<&Turn> = self.turns.iter().filter(|turn| !self.is_outer(turn)).collect();
        let alone = inner.len() == 1;
        let blocks = inner.iter().map(|turn| turn.status(shown == Some(&turn.key), alone, now, renderer));
        let blocks: Vec<Vec<Line>> = blocks.filter(|block| !block.is_empty()).collect();
        let more = blocks.len().saturating_sub(Self::MAX_STATUS);
        let mut lines: Vec<Line> = blocks.into_iter().take(Self::MAX_STATUS).flatten().collect();
        if more > 0 {
            lines.push(Line::new(&format!("and {more} more"), Style::DIM));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_retry_of_a_server_can_be_shown() {
        let key = (Path::root(), Name::new("Ann").unwrap());
        let (mut turn, now) = (Turn::new(key, Audience::All, Duration::ZERO), Duration::from_secs(1));
        let wait = Duration::from_millis(u64::MAX);
        turn.piece(&Delta::Retry { cause: "429".into(), retry: u32::MAX, retries: 1, wait }, now);
        assert_eq!((turn.attempt, turn.since), (u32::MAX, now + wait));
    }
}
