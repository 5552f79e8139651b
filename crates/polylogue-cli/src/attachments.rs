//! Files that are attached to a task: pictures as pictures, texts as texts.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polylogue_core::{Media, Part};

use crate::error::CliError;

/// The largest file, in bytes.
const LARGEST: u64 = 20 << 20;

/// The content of `file` as a part of a message.
pub(crate) fn part(file: &Path) -> Result<Part, CliError> {
    let shown = file.display();
    let wrong = |why: String| CliError::usage(format!("`{shown}` cannot be attached: {why}"));
    let found = std::fs::metadata(file).map_err(|error| wrong(error.to_string()))?;
    if !found.is_file() {
        return Err(wrong("it is not a file".into()));
    }
    if found.len() > LARGEST {
        return Err(wrong(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    if let Some(kind) = picture(&bytes) {
        let url = format!("data:{kind};base64,{}", STANDARD.encode(&bytes)).into();
        return Ok(Part::Media(Media { kind: kind.into(), url }));
    }
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    let text = text.ok_or_else(|| {
        wrong("it is neither a text nor a picture".into())
            .hint("pictures are PNG, JPEG, GIF and WebP; texts are UTF-8")
    })?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fence = fence(&text);
    Ok(Part::text(format!("{name}:\n{fence}\n{}\n{fence}", text.trim_end_matches('\n'))))
}

/// Whether it is a picture.
pub(crate) const fn is_picture(part: &Part) -> bool {
    matches!(part, Part::Media(_))
}

/// The type of a picture, by how it begins.
fn picture(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// A fence that is longer than those in `text`.
fn fence(text: &str) -> String {
    let longest = text.lines().map(|line| line.trim_start().chars().take_while(|c| *c == '`').count()).max();
    "`".repeat(longest.unwrap_or(0).max(2) + 1)
}
