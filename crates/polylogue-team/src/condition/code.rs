//! Conditions on code that is about to be run.

use std::sync::Arc;

use cel::{ExecutionError, Program, Value};
use polylogue::layers::code::CodeBlock;

use super::look::OF_CODE;
use super::{NoCondition, compiled, functions, kind, text};

/// A condition on a block of code.
#[derive(Clone)]
pub(crate) struct CodeCondition(Arc<Program>);

impl CodeCondition {
    /// Compiles and checks `text`.
    pub(crate) fn new(text: &str) -> Result<Self, NoCondition> {
        let condition = Self(Arc::new(compiled(text, OF_CODE)?));
        match condition.value("", "", "", false) {
            Ok(Value::Bool(_)) => Ok(condition),
            Ok(other) => {
                let why = format!("it gives {}, and neither `true` nor `false`", kind(&other));
                Err(NoCondition::because(why))
            }
            Err(error) => Err(NoCondition::because(error.to_string())),
        }
    }

    /// Whether it holds of `block`, whose path is resolved. What cannot be evaluated holds: rather is a person asked than not.
    pub(crate) fn holds(&self, block: &CodeBlock) -> bool {
        let of = |text: &Option<String>| text.clone().unwrap_or_default();
        let value =
            self.value(&block.code, &of(&block.language), &of(&block.file), !block.outside.is_empty());
        !matches!(value, Ok(Value::Bool(false)))
    }

    fn value(&self, code: &str, language: &str, file: &str, outside: bool) -> Result<Value, ExecutionError> {
        let mut context = functions();
        context.add_variable_from_value("outside", outside);
        for (name, value) in [("code", code), ("language", language), ("file", file)] {
            context.add_variable_from_value(name, text(value));
        }
        self.0.execute(&context)
    }
}
