//! Saves pictures as files in the work directory.

use polylogue_core::{Media, Part, ToolResult};

use crate::blocking::blocking;
use crate::files::Folder;

/// The result with its pictures also saved in `folder`; each follows the name of its file.
///
/// The file name is a digest of the content, so that a reader of the log can find the file.
pub(super) async fn kept(outcome: ToolResult, folder: Folder) -> ToolResult {
    let mut parts = Vec::with_capacity(outcome.parts.len() * 2);
    for part in outcome.parts {
        if let Part::Media(media) = &part {
            let (media, folder) = (media.clone(), folder.clone());
            let text = blocking(move || save(&media, &folder)).await.unwrap_or_else(|error| Some(error.0));
            parts.extend(text.map(Part::text));
        }
        parts.push(part);
    }
    ToolResult { parts, ..outcome }
}

/// Saves a picture, and returns its path, or why it was not saved.
fn save(media: &Media, folder: &Folder) -> Option<String> {
    let (name, bytes) = (media.file_name()?, media.bytes()?);
    let size = media.pixels().map(|(columns, rows)| format!(" ({columns}x{rows})")).unwrap_or_default();
    Some(match folder.write(std::slice::from_ref(&name), &bytes) {
        Ok(_) => format!("Picture: {name}{size}"),
        Err(error) => format!("(A picture was not saved: {error})"),
    })
}
