//! Pictures, sounds and documents that a team attaches to messages.

use polylogue_config::At;
use polylogue_core::Media as Content;

use super::file::Unreadable;
use super::work::HIDDEN;
use super::{Loader, MediaLeft};
use crate::diagnostic::Report;
use crate::pattern::Media;
use crate::team::Team;

impl Loader<'_> {
    /// Reads the files that `team` attaches. They are below the folder of the team file, so that a team from elsewhere cannot send
    /// other files of the user to a model.
    pub(super) fn read_media(&mut self, team: &mut Team, report: &mut Report<'_>) {
        for media in team.media_mut().filter(|media| media.ok) {
            if report.full() {
                return;
            }
            let Some(file) = media.value.file.clone() else {
                check_address(media, report);
                continue;
            };
            let read = self.media_file(&file).and_then(|content| same_type(&media.value, content));
            match read {
                Ok(content) => media.value.content = Some(content),
                Err(Unreadable { why, hint }) => {
                    let message = format!("the file `{file}` cannot be attached: {why}");
                    match hint {
                        Some(hint) => report.error_with_hint(&file.span, message, hint),
                        None => report.error(&file.span, message),
                    }
                }
            }
        }
    }

    fn media_file(&mut self, named: &str) -> Result<Content, Unreadable> {
        let plain = |why: String| Unreadable { why, hint: None };
        let files = self.media_left.files.checked_sub(1);
        self.media_left.files =
            files.ok_or_else(|| plain(format!("a team attaches at most {} files", MediaLeft::MOST_FILES)))?;
        let (folder, path) = self.below(named).map_err(plain)?;
        if self.is_hidden(&folder, &path) {
            return Err(plain(HIDDEN.into()));
        }
        let bytes = self.files.read_media(&path, self.media_left.bytes)?;
        // A link may lead elsewhere.
        if !self.files.identity(&path).starts_with(self.files.identity(&folder)) {
            return Err(plain("it is not below the folder of the team file".into()));
        }
        self.media_left.bytes = self.media_left.bytes.saturating_sub(bytes.len() as u64);
        if Content::is_damaged(&bytes) {
            return Err(plain("it is a damaged picture".into()));
        }
        let unknown = || Unreadable {
            why: "its type is not supported".into(),
            hint: Some(format!("{}; `files` brings texts along", Content::TYPES)),
        };
        let content = Content::of_bytes(&bytes).ok_or_else(unknown)?;
        self.contents.note(&path, &bytes);
        self.sources.borrow_mut().media.insert(path, content.clone());
        Ok(content)
    }
}

/// Reports what has neither a file nor an address.
fn check_address(media: &At<Media>, report: &mut Report<'_>) {
    if media.url.is_none() {
        let message = "nothing is attached: there is neither `file` nor `url`";
        report.error_with_hint(&media.span, message, "name a file in the folder of this file with `file`");
    }
}

/// Refuses content of another type than the team says.
fn same_type(media: &Media, content: Content) -> Result<Content, Unreadable> {
    match &media.kind {
        Some(kind) if **kind != content.media_type => Err(Unreadable {
            why: format!("it is `{}`, and not `{kind}`", content.media_type),
            hint: Some("leave `type` out: it is in the file".into()),
        }),
        _ => Ok(content),
    }
}
