//! The result of a code block.

use std::borrow::Cow;

use polylogue_core::{Media, Part, ToolResult, ToolStatus};
use serde::Deserialize;

/// Maximum size of a picture, in characters of base64, and maximum number of pictures in a reply.
const MAX_PICTURE: usize = 4 << 20;
const MAX_PICTURES: usize = 8;

/// A message of the driver: one of these, and the key of its call. Other fields are skipped without being stored, so that a message
/// takes no more memory than its line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) key: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) result: Option<String>,
    pub(super) picture: Option<String>,
    pub(super) error: Option<String>,
    pub(super) done: Option<bool>,
    pub(super) ready: bool,
}

/// The result of a code block.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// Its output, within the limit.
    text: String,
    /// The number of bytes beyond the limit.
    left_out: usize,
    result: Option<String>,
    pictures: Vec<String>,
    pictures_left_out: usize,
    error: Option<String>,
    /// A note about the session itself.
    notes: Vec<String>,
    failed: bool,
    /// Whether the session ended with it.
    pub(super) is_over: bool,
}

impl Reply {
    /// The same with its output only.
    pub(super) fn text_only(self) -> Self {
        Self { text: self.text, left_out: self.left_out, ..Self::default() }
    }

    /// Adds a message.
    pub(super) fn take(&mut self, message: Message<'_>) {
        match message.picture {
            Some(picture) if self.is_shown(&picture) => self.pictures.push(picture),
            Some(_) => self.pictures_left_out += 1,
            None => {}
        }
        self.result = message.result.or(self.result.take());
        self.error = message.error.or(self.error.take());
        self.failed |= message.done == Some(false);
    }

    pub(super) fn write(&mut self, text: &str, limit: usize) {
        let room = text.floor_char_boundary(limit.saturating_sub(self.text.len()));
        self.text.push_str(text.get(..room).unwrap_or_default());
        self.left_out += text.len() - room;
    }

    /// Whether a picture is valid and within the limits.
    fn is_shown(&self, picture: &str) -> bool {
        let is_base64 = picture.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        // The first bytes of every PNG.
        let is_png = picture.starts_with("iVBORw0KGgo");
        is_base64 && is_png && picture.len() <= MAX_PICTURE && self.pictures.len() < MAX_PICTURES
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.failed = true;
        self.notes.push(note.into());
    }

    /// The text for the model; `is_surprising` if it may expect variables that are lost.
    pub(super) fn into_outcome(self, is_surprising: bool) -> ToolResult {
        let new = "(This is a new session: the variables of earlier calls are lost)";
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
                media_type: "image/png".into(),
                url: format!("data:image/png;base64,{picture}").into(),
            })
        });
        let status = if self.failed { ToolStatus::Failed } else { ToolStatus::Done };
        ToolResult::new(status, [Part::text(text)].into_iter().chain(pictures).collect())
    }
}
