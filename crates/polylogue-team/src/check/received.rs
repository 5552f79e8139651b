//! Errors about what agents receive from their team, which depend on their models.

use super::secrets;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use crate::source::Source;
use crate::team::{ReceivedMedia, Team};
use crate::yaml;

impl Team {
    /// An error about `received`, with its place in the text that the team was read from.
    #[must_use]
    pub fn error_at(&self, received: &ReceivedMedia<'_>, message: &str, hint: &str) -> Diagnostics {
        let (file, span) = &received.place;
        let shown = file.display().to_string();
        let Some(text) = self.sources.files.get(file) else {
            let mut found = Diagnostics::default();
            found.push(Diagnostic::new(Severity::Error, codes::INVALID, &shown, None, message, Some(hint)));
            return found;
        };
        let source = Source::new(&shown, text);
        // Mistakes of the text were reported when it was read; what is secret in the line is still hidden.
        if let Some(root) = yaml::parse(&mut Report::new(&source)) {
            secrets::hide(&root, &mut Report::new(&source));
        }
        let mut report = Report::new(&source);
        report.error_with_hint(span, message, hint);
        report.finish()
    }
}
