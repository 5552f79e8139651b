//! What an endpoint is told: addresses, variables of the environment, headers, times.

use polylogue_models::{Config, Endpoint};

use super::{Label, Reader};
use crate::duration::{NoTime, Time};
use crate::secret;
use crate::source::Span;

/// What to do with a secret.
const KEEP_SECRET: &str = "put it into an environment variable or into `.env`, and the variable's name here";

impl Reader<'_, '_> {
    pub(super) fn check_url(&mut self, text: &str, at: &Span) {
        let rest = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
        if let Some(what) = secret::secret_in_address(rest) {
            let hint =
                "leave it out of the address; `key` and `headers` take secrets from environment variables";
            self.report.error_with_hint(at, format!("the address holds {what}"), hint);
        } else if let Err(error) = Endpoint::new(Config::new(text)) {
            let hint = error.hint.unwrap_or_default();
            self.report.error_with_hint(at, error.message, hint);
        }
    }

    /// The text itself is in no message: it may be a key.
    pub(super) fn check_variable(&mut self, text: &str, at: &Span) {
        if secret::looks_like_key(text) || !is_variable(text) {
            let message = "this is no name of an environment variable";
            let hint = format!("a key never stands in a team file: {KEEP_SECRET}, such as `HOUSE_API_KEY`");
            self.report.error_with_hint(at, message, hint);
        }
    }

    /// Neither is the text here. `label` is the header's name.
    pub(super) fn check_header(&mut self, text: &str, at: &Span, label: Label<'_>) {
        let is_named_so = matches!(label, Label::Key(name) if secret::is_secret_header(name));
        if is_named_so || secret::looks_like_key(text) {
            let message = format!("a key never stands in a team file, and {label} looks like one");
            self.report.error_with_hint(at, message, format!("{KEEP_SECRET}: `{{env: NAME}}`"));
        }
    }

    pub(super) fn check_host(&mut self, text: &str, at: &Span) {
        let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
        let name = host.strip_prefix("*.").unwrap_or(host);
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
        if name.is_empty() || !name.chars().all(legal) || !is_port {
            let hint = "name a host, such as `example.org`, `*.example.org` or `example.org:8080`";
            self.report.error_with_hint(at, format!("`{text}` is no host"), hint);
        }
    }

    pub(super) fn check_time(&mut self, text: &str, at: &Span) {
        match text.parse::<Time>() {
            Ok(_) => {}
            Err(NoTime::Unreadable) => {
                self.report.error_with_hint(at, format!("`{text}` is no time"), Time::HINT);
            }
            Err(error @ NoTime::OutOfBounds) => {
                self.report.error(at, format!("`{text}` is no usable limit: {error}"));
            }
        }
    }
}

/// As the schema has it.
pub(crate) fn is_variable(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| legal(c) && !c.is_ascii_digit()) && text.chars().all(legal)
}
