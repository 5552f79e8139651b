//! Errors that depend on models: about what agents receive from their team, and about models themselves.

use std::collections::BTreeSet;
use std::path::Path;

use polylogue_core::ModelError;
use polylogue_models::model_names;

use super::secrets;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics, Report, Severity};
use crate::source::{Source, Span};
use crate::team::{ReceivedMedia, Team};

/// How severe a finding is, and its code.
type Kind = (Severity, &'static str);

/// At which of the places that name a model a finding about it is shown.
#[derive(Clone, Copy)]
enum Named {
    First,
    Everywhere,
}

const ERROR: Kind = (Severity::Error, codes::INVALID);

impl Team {
    /// Creates an error about `received`, with its place in the text that the team was read from.
    pub fn error_at(&self, received: &ReceivedMedia<'_>, message: &str, hint: &str) -> Diagnostics {
        let (file, span) = &received.place;
        self.finding_in(ERROR, (file.as_path(), Some(span)), message, hint)
    }

    /// Creates errors about models, each at the first place that names its model.
    pub fn errors_of_models(&self, errors: &[ModelError]) -> Diagnostics {
        let models = errors.iter().map(|error| error.model.as_str()).collect();
        self.findings_of_models((ERROR, Named::First), models, |model| {
            let errors = errors.iter().filter(|error| error.model == model);
            let said = |error: &ModelError| {
                (format!("`{model}`: {}", error.message), error.hint.clone().unwrap_or_default())
            };
            errors.map(said).collect()
        })
    }

    /// Creates findings about a model that cannot be used at all, wherever it is named: warnings if the team can run by its script,
    /// without models.
    pub fn unusable_model(&self, model: &str, message: &str, hint: &str) -> Diagnostics {
        self.unusable_models(BTreeSet::from([model]), |_| Some((message.to_owned(), hint.to_owned())))
    }

    /// The same about those of `models` of which `say` has a message and a hint.
    pub(super) fn unusable_models(
        &self,
        models: BTreeSet<&str>,
        say: impl Fn(&str) -> Option<(String, String)>,
    ) -> Diagnostics {
        let severity = if self.script.is_empty() { Severity::Error } else { Severity::Warning };
        let kind = (severity, codes::UNKNOWN_MODEL);
        self.findings_of_models((kind, Named::Everywhere), models, |model| say(model).into_iter().collect())
    }

    /// What `say` has to say of `models`, messages and hints: where the files name them, or else about the outermost file.
    fn findings_of_models<'m>(
        &'m self,
        (kind, named): (Kind, Named),
        mut models: BTreeSet<&'m str>,
        say: impl Fn(&str) -> Vec<(String, String)>,
    ) -> Diagnostics {
        let (mut found, mut placed) = (Diagnostics::default(), BTreeSet::new());
        let outermost = Path::new(&self.sources.file);
        for (file, lists) in self.places_of_models(outermost) {
            let Some(text) = self.sources.files.get(&file) else { continue };
            let each = lists.into_iter().flat_map(|(list, at)| model_names(list).map(move |name| (name, at)));
            let meant = each.filter(|(name, _)| {
                models.contains(name) && (placed.insert(*name) || matches!(named, Named::Everywhere))
            });
            let here: Vec<_> = meant.collect();
            found.merge(findings_at(kind, (file.as_path(), text.as_str()), here, &say));
        }
        models.retain(|name| !placed.contains(name));
        for (message, hint) in models.into_iter().flat_map(say) {
            found.merge(self.finding_in(kind, (outermost, None), &message, &hint));
        }
        found
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
        add(&mut report, (severity, code), span, (message, hint));
        report.finish()
    }
}

/// What `say` has to say of the models at the places `named` of one file.
fn findings_at(
    kind: Kind,
    (file, text): (&Path, &str),
    named: Vec<(&str, &Span)>,
    say: impl Fn(&str) -> Vec<(String, String)>,
) -> Diagnostics {
    let each = named.into_iter().flat_map(|(name, span)| say(name).into_iter().map(move |said| (span, said)));
    let mut each = each.peekable();
    // Reading the file again, for what must not be shown, takes longer than all else.
    if each.peek().is_none() {
        return Diagnostics::default();
    }
    let shown = file.display().to_string();
    let source = Source::new(&shown, text);
    secrets::hide_in(&source);
    let mut report = Report::new(&source);
    for (span, (message, hint)) in each {
        if report.full_of_warnings() {
            break;
        }
        add(&mut report, kind, span, (&message, &hint));
    }
    report.finish()
}

fn add(report: &mut Report<'_>, (severity, code): Kind, span: &Span, (message, hint): (&str, &str)) {
    match severity {
        Severity::Error => report.code(code).error_with_hint(span, message, hint),
        Severity::Warning => report.warning(code, span, message, hint),
    }
}
