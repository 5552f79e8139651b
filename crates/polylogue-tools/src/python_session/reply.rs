//! What came of a piece of code.

use polylogue_core::{Media, Outcome, OutcomeStatus, Part};
use serde::Deserialize;

/// How large a picture may be, in characters of base 64, and how many there are at most in one reply.
const MAX_PICTURE: usize = 4 << 20;
const MAX_PICTURES: usize = 8;

/// What the driver tells.
#[derive(Debug, Deserialize)]
pub(super) struct Event {
    /// Of which piece of code.
    pub(super) run: u64,
    #[serde(flatten)]
    pub(super) what: What,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum What {
    Stream {
        text: String,
    },
    Result {
        result: String,
    },
    Picture {
        picture: String,
    },
    Error {
        error: String,
    },
    Done {
        done: bool,
    },
    Ready {
        #[serde(rename = "ready")]
        _ready: bool,
    },
}

/// What came of a piece of code.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// What it wrote, within the limit.
    text: String,
    /// How many bytes more it wrote.
    left_out: usize,
    result: Option<String>,
    pictures: Vec<String>,
    pictures_left_out: usize,
    error: Option<String>,
    /// What has to be said of the session itself.
    notes: Vec<String>,
    failed: bool,
    /// Whether the session goes on.
    pub(super) lives: bool,
}

impl Reply {
    /// Of a session that lives, as far as anybody knows.
    pub(super) fn new() -> Self {
        Self { lives: true, ..Self::default() }
    }

    /// Takes in what was told. Whether that was all.
    pub(super) fn take(&mut self, what: What, limit: usize) -> bool {
        match what {
            What::Stream { text } => self.write(&text, limit),
            What::Result { result } => self.result = Some(result),
            What::Picture { picture } if self.is_shown(&picture) => self.pictures.push(picture),
            What::Picture { .. } => self.pictures_left_out += 1,
            What::Error { error } => self.error = Some(error),
            What::Ready { .. } => {}
            What::Done { done } => {
                self.failed |= !done;
                return true;
            }
        }
        false
    }

    fn write(&mut self, text: &str, limit: usize) {
        let room = text.floor_char_boundary(limit.saturating_sub(self.text.len()));
        self.text.push_str(text.get(..room).unwrap_or_default());
        self.left_out += text.len() - room;
    }

    /// That is what it says it is, and not too much.
    fn is_shown(&self, picture: &str) -> bool {
        let is_base64 = picture.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        // The first bytes of every PNG.
        let is_png = picture.starts_with("iVBORw0KGgo");
        is_base64 && is_png && picture.len() <= MAX_PICTURE && self.pictures.len() < MAX_PICTURES
    }

    pub(super) fn add_left_out(&mut self, bytes: usize) {
        self.left_out += bytes;
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.failed = true;
        self.notes.push(note.into());
    }

    /// As a model is told. `is_surprising` if it may count on variables that are not there.
    pub(super) fn told(self, is_surprising: bool) -> Outcome {
        let new = "(This is a new session: what earlier calls set is gone)";
        let left_out =
            |count: usize, what: &str| (count > 0).then(|| format!("({count} more {what} are left out)"));
        let pieces = [
            is_surprising.then(|| new.to_owned()),
            Some(self.text).filter(|text| !text.trim().is_empty()),
            left_out(self.left_out, "bytes"),
            self.result,
            self.error,
            left_out(self.pictures_left_out, "pictures"),
        ];
        let pieces: Vec<String> =
            pieces.into_iter().flatten().chain(self.notes).map(|piece| piece.trim_end().to_owned()).collect();
        let mut text = pieces.join("\n");
        if text.is_empty() {
            text = if self.pictures.is_empty() { "(no output)" } else { "(a picture)" }.to_owned();
        }
        let pictures = self.pictures.into_iter().map(|picture| {
            Part::Media(Media {
                kind: "image/png".into(),
                url: format!("data:image/png;base64,{picture}").into(),
            })
        });
        let status = if self.failed { OutcomeStatus::Failed } else { OutcomeStatus::Done };
        Outcome::new(status, [Part::text(text)].into_iter().chain(pictures).collect())
    }
}
