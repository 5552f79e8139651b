//! Format instructions for plain text.

use polylogue_core::{Error, UnknownName};
use serde_json::Value;

use super::Parser;

/// Prompts the model with a format, and takes its text unchanged. Fields are filled in verbatim: braces in a value are
/// plain text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Creates a template: the text with each `{field}` filled in. Braces around anything but a name stay unchanged.
    ///
    /// # Errors
    /// When a field is not among `fields`.
    pub fn new(text: &str, fields: &[(&str, &str)]) -> Result<Self, Error> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            match after.split_once('}').filter(|(name, _)| is_name(name)) {
                Some((name, behind)) => {
                    let field = fields.iter().find(|(field, _)| *field == name);
                    filled.push_str(field.ok_or_else(|| unknown(name, fields))?.1);
                    rest = behind;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        Ok(Self(filled))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn unknown(field: &str, fields: &[(&str, &str)]) -> Error {
    let known = fields.iter().map(|(field, _)| field);
    UnknownName::new("field", field).within("in the template").known(known).into()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

impl Parser for Template {
    fn instruction(&self) -> String {
        self.0.clone()
    }

    fn parse(&self, _: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }
}
