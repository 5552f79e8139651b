//! Errors that depend on models: about what agents receive from their team, and about models themselves.

use std::path::Path;

use super::secrets;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use crate::source::{Source, Span};
use crate::team::{ReceivedMedia, Team};

/// How severe a finding is, and its code.
type Kind = (Severity, &'static str);

const ERROR: Kind = (Severity::Error, codes::INVALID);

impl Team {
    /// Creates an error about `received`, with its place in the text that the team was read from.
    pub fn error_at(&self, received: &ReceivedMedia<'_>, message: &str, hint: &str) -> Diagnostics {
        let (file, span) = &received.place;
        self.finding_in(ERROR, (file.as_path(), Some(span)), message, hint)
    }

    /// Creates an error about the model called `model`, at the first place that names it.
    pub fn error_of_model(&self, model: &str, message: &str, hint: &str) -> Diagnostics {
        self.finding_of_model(ERROR, model, message, hint)
    }

    /// The same about a model that cannot be used at all: a warning if the team can run by its script, without models.
    pub fn unusable_model(&self, model: &str, message: &str, hint: &str) -> Diagnostics {
        let severity = if self.script.is_empty() { Severity::Error } else { Severity::Warning };
        self.finding_of_model((severity, codes::UNKNOWN_MODEL), model, message, hint)
    }

    /// The same for any kind of finding.
    pub(super) fn finding_of_model(&self, kind: Kind, model: &str, message: &str, hint: &str) -> Diagnostics {
        let file = Path::new(&self.sources.file);
        match self.place_of_model(model, file) {
            Some((file, span)) => self.finding_in(kind, (file.as_path(), Some(span)), message, hint),
            None => self.finding_in(kind, (file, None), message, hint),
        }
    }

    fn finding_in(
        &self,
        (severity, code): Kind,
        (file, span): (&Path, Option<&Span>),
        message: &str,
        hint: &str,
    ) -> Diagnostics {
        let shown = file.display().to_string();
        let Some((text, span)) = self.sources.files.get(file).zip(span) else {
            let mut found = Diagnostics::default();
            found.push(Diagnostic::new(severity, code, &shown, None, message, Some(hint)));
            return found;
        };
        let source = Source::new(&shown, text);
        secrets::hide_in(&source);
        let mut report = Report::new(&source);
        match severity {
            Severity::Error => report.code(code).error_with_hint(span, message, hint),
            Severity::Warning => report.warning(code, span, message, hint),
        }
        report.finish()
    }
}
