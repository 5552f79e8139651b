//! Files that are attached to a message: pictures, sounds and PDF documents as such, texts as texts.

use std::path::{Path, PathBuf};

use clap::Args;
use polylogue::layers::code::fence;
use polylogue::{Message, Name};
use polylogue_core::{Media, Part};
use polylogue_runtime::Prepared;
use polylogue_runtime::models::media_in_words;

use crate::error::CliError;
use crate::text_arg::{read_file, unreadable};

/// The option of the commands that send a message.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Attach {
    /// Attach a file to the task or message: a picture (PNG, JPEG, GIF, WebP), a PDF document, a sound (WAV, MP3) or a text; can be repeated
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
}

impl Attach {
    /// Whether no file is named.
    pub(crate) const fn is_empty(&self) -> bool {
        self.attach.is_empty()
    }

    /// The contents of the files.
    pub(crate) fn parts(&self) -> Result<Vec<Part>, CliError> {
        self.attach.iter().map(|file| part(file)).collect()
    }
}

/// A message of `from` with attachments.
pub(crate) fn message(from: Name, text: String, attached: Vec<Part>) -> Message {
    let mut message = Message::new(from, text);
    message.parts.extend(attached);
    message
}

/// Refuses what models of the team are known not to take, before any is called.
pub(crate) fn check(prepared: &Prepared, attached: &[Part]) -> Result<(), CliError> {
    for part in attached {
        let Part::Media(media) = part else { continue };
        let Some(by) = prepared.unsupported_media(media) else { continue };
        let (what, _) = media_in_words(&media.media_type);
        let why = format!("{what} is attached, and `{}` {}", by.model, by.why());
        return Err(CliError::usage(why).hint(by.hint(media)));
    }
    Ok(())
}

/// With which programs on Windows begin texts.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The content of `file` as a part of a message.
pub(crate) fn part(file: &Path) -> Result<Part, CliError> {
    let shown = file.display();
    let wrong = |why: String| CliError::usage(format!("`{shown}` cannot be attached: {why}"));
    let found = std::fs::metadata(file).map_err(|error| wrong(unreadable(&error)))?;
    if !found.is_file() {
        return Err(wrong("it is not a file".into()));
    }
    let mut bytes = read_file(file, Media::MAX_BYTES).map_err(wrong)?;
    // It belongs to the file, and not to the text.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    if bytes.is_empty() {
        return Err(wrong("it is empty".into()));
    }
    if Media::is_damaged(&bytes) {
        return Err(wrong("it is a damaged picture".into()));
    }
    if let Some(media) = Media::of_bytes(&bytes) {
        return Ok(Part::Media(media));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| {
        wrong("its type is not supported".into()).hint(format!("{}; texts are UTF-8", Media::TYPES))
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fence = fence(&text);
    Ok(Part::text(format!("{name}:\n{fence}\n{}\n{fence}", text.trim_end_matches('\n'))))
}
