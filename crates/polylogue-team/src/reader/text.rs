//! Texts: choices, names, expressions, and the variables in all of them.

use std::collections::BTreeSet;

use polylogue_core::Name;
use serde_json::Value;

use super::shape::{Shape, properties};
use super::{Label, Reader};
use crate::source::Span;
use crate::suggest;
use crate::text::Template;
use crate::vars::{self, Piece};

impl Reader<'_, '_> {
    pub(super) fn text(&mut self, text: &str, at: &Span, shape: &Shape<'_>, label: Label<'_>) -> Value {
        match shape.format() {
            Some("script") => return Value::String(self.fill_known(text, at)),
            Some("template") => return self.template(text, at),
            // Names are how the parts of a file find one another; they hold no variables.
            Some("name") => {
                self.check_name(text, at);
                return Value::String(text.to_owned());
            }
            Some("variable") => {
                self.check_variable(text, at);
                return Value::String(text.to_owned());
            }
            Some("path") if !text.is_empty() => return Value::String(text.to_owned()),
            _ => {}
        }
        let filled = self.fill(text, at);
        // What is left of a text without one of its variables is nothing that anybody wrote.
        if !self.knows_all(text) {
            return Value::String(filled);
        }
        if !shape.words.contains(&filled.as_str()) {
            match shape.text {
                Some(schema) => self.check(&filled, at, schema, label),
                None => self.no_such_word(&filled, at, shape, label),
            }
        }
        Value::String(filled)
    }

    /// `text` with its variables filled in; each that is not known is reported.
    fn fill(&mut self, text: &str, at: &Span) -> String {
        let filled = self.template_of(text, at);
        if filled.quotes_task() {
            let at = self.within(at, |name| name == vars::TASK);
            let hint = "it is in system texts, prompts and openings: the task is given when a chat begins";
            self.report.error_with_hint(&at, "`{{task}}` is not known here", hint);
        }
        filled.fill("{{task}}")
    }

    fn template(&mut self, text: &str, at: &Span) -> Value {
        serde_json::to_value(self.template_of(text, at)).unwrap_or_default()
    }

    fn template_of(&mut self, text: &str, at: &Span) -> Template {
        let mut template = Template::default();
        let mut missing = BTreeSet::new();
        for piece in vars::pieces(text) {
            match piece {
                Piece::Plain(plain) => template.push(plain),
                Piece::Var(vars::TASK, _) => template.push_task(),
                Piece::Var(name, _) => match self.variable(name, at) {
                    Some(value) => template.push(value),
                    None if missing.insert(name) => self.no_such_variable(name, at),
                    None => {}
                },
            }
        }
        template
    }

    /// `text` with the variables filled in that are known; what else stands between braces is part of the text.
    pub(super) fn fill_known(&mut self, text: &str, at: &Span) -> String {
        let mut filled = String::with_capacity(text.len());
        for piece in vars::pieces(text) {
            filled.push_str(match piece {
                Piece::Plain(plain) => plain,
                Piece::Var(name, written) => self.variable(name, at).unwrap_or(written),
            });
        }
        filled
    }

    fn knows_all(&self, text: &str) -> bool {
        vars::pieces(text).iter().all(|piece| match piece {
            Piece::Var(name, _) => *name == vars::TASK || self.vars.contains(name),
            Piece::Plain(_) => true,
        })
    }

    /// The value of a variable, as long as all that is filled into a file does not get out of hand.
    fn variable(&mut self, name: &str, at: &Span) -> Option<&str> {
        const MOST_FILLED: usize = 16 << 20;
        let value = self.vars.get(name)?;
        self.filled += value.len();
        if self.filled <= MOST_FILLED {
            return Some(value);
        }
        let hint = "16 MiB are the most that variables can come to in a file";
        self.report.error_with_hint(
            at,
            "the file becomes too large here when its variables are filled in",
            hint,
        );
        Some("")
    }

    fn no_such_variable(&mut self, name: &str, at: &Span) {
        if self.report.full() {
            return;
        }
        let at = self.within(at, |found| found == name);
        let hint = self.vars.hint(name);
        self.report.error_with_hint(&at, format!("there is no variable `{name}`"), hint);
    }

    /// Where in the text at `at` the first variable stands that is looked for; the whole text when it is written with
    /// escapes.
    fn within(&self, at: &Span, is: impl Fn(&str) -> bool) -> Span {
        let mut offset = at.start;
        for piece in vars::pieces(self.report.source.slice(at)) {
            let length = match piece {
                Piece::Var(name, written) if is(name) => return offset..offset + written.len(),
                Piece::Plain(text) | Piece::Var(_, text) => text.len(),
            };
            offset += length;
        }
        at.clone()
    }

    fn check(&mut self, text: &str, at: &Span, schema: &Value, label: Label<'_>) {
        if text.is_empty() && schema.get("minLength").is_some() {
            self.report.error(at, format!("{label} is empty"));
            return;
        }
        match schema.get("format").and_then(Value::as_str) {
            Some("model") => self.check_model(text, at),
            Some("own model") if text == "none" => {}
            Some("own model") => self.check_model(text, at),
            Some("condition") => self.check_condition(text, at),
            Some("code condition") => self.check_code_condition(text, at),
            Some("call condition") => self.check_call_condition(text, at),
            Some("host") => self.check_host(text, at),
            Some("regex") => self.check_regex(text, at),
            Some("url") => self.check_url(text, at),
            Some("header") => self.check_header(text, at, label),
            Some("duration") => self.check_time(text, at),
            Some("media") if !text.starts_with("https:") && !text.starts_with("data:") => {
                let hint = "files are not read: put it on the web, or into the address, as `data:image/png;base64,...`";
                self.report.error_with_hint(
                    at,
                    format!("{label} has to begin with `https:` or `data:`"),
                    hint,
                );
            }
            Some("tool") if !self.tools.iter().any(|tool| tool == text) => {
                let hint = suggest::hint(text, self.tools.iter().map(String::as_str));
                self.report.error_with_hint(at, format!("there is no tool `{text}`"), hint);
            }
            _ => {}
        }
    }

    fn check_name(&mut self, text: &str, at: &Span) {
        match Name::new(text) {
            // Names are compared as they are written here, and conditions compare them so, too.
            Ok(name) if name != *text => {
                let message =
                    format!("the name `{name}` is written with separate accents (not in the form NFC)");
                self.report.error_with_hint(
                    at,
                    message,
                    format!("type it anew, or copy it from here: `{name}`"),
                );
            }
            Ok(_) => {}
            Err(error) => match error.suggestion() {
                Some(name) => self.report.error_with_hint(at, error.to_string(), format!("use `{name}`")),
                None => self.report.error(at, error.to_string()),
            },
        }
    }

    fn check_model(&mut self, text: &str, at: &Span) {
        let (provider, model) = text.split_once([':', '/']).unwrap_or((text, ""));
        if provider.is_empty() || model.is_empty() || text.contains(char::is_whitespace) {
            let hint = "write `provider:model`, such as `openai:gpt-4o-mini`";
            self.report.error_with_hint(at, format!("`{text}` is no model"), hint);
        }
    }

    fn check_regex(&mut self, text: &str, at: &Span) {
        if let Err(error) = regex::Regex::new(text) {
            // The last line of the error says what is wrong; those before it show the expression.
            let error = error.to_string();
            let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            self.report.error(at, format!("`{text}` is no regular expression: {why}"));
        }
    }

    fn no_such_word(&mut self, text: &str, at: &Span, shape: &Shape<'_>, label: Label<'_>) {
        let is_key = shape.maps.iter().flat_map(|map| properties(map)).any(|(key, _)| key == text);
        let hint = match label {
            Label::Key(name) if is_key => format!("it takes more than a word: `{name}: {{{text}: ...}}`"),
            _ => suggest::hint(text, shape.words.iter().copied()),
        };
        self.report.error_with_hint(at, format!("{label} cannot be `{text}`"), hint);
    }
}
