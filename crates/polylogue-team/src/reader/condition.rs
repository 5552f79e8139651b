//! Conditions, each mistake at its place within the expression.

use super::Reader;
use crate::condition::{CallCondition, CodeCondition, Condition, NoCondition};
use crate::source::Span;

impl Reader<'_, '_> {
    pub(super) fn check_condition(&mut self, text: &str, at: &Span) {
        if let Err(error) = Condition::new(text) {
            self.no_condition(error, text, at);
        }
    }

    pub(super) fn check_code_condition(&mut self, text: &str, at: &Span) {
        if let Err(error) = CodeCondition::new(text) {
            self.no_condition(error, text, at);
        }
    }

    pub(super) fn check_call_condition(&mut self, text: &str, at: &Span) {
        if let Err(error) = CallCondition::new(text) {
            self.no_condition(error, text, at);
        }
    }

    fn no_condition(&mut self, error: NoCondition, text: &str, at: &Span) {
        // The place is known where the text stands in the file as it is, without escapes and folded lines.
        let written = self.report.source.slice(at);
        let place = error.at.and_then(|offset| Some(at.start + written.find(text)? + offset));
        let place = place.map_or_else(|| at.clone(), |place| place..place + 1);
        let what =
            if text.trim_end().contains('\n') { "this".to_owned() } else { format!("`{}`", text.trim_end()) };
        let message = format!("{what} is no condition: {}", error.why);
        match error.hint {
            Some(hint) => self.report.error_with_hint(&place, message, hint),
            None => self.report.error(&place, message),
        }
    }
}
