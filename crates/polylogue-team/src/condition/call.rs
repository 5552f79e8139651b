//! Conditions on a call of a tool that is about to be made.

use std::sync::Arc;

use cel::{ExecutionError, Program, Value};
use polylogue::Name;
use polylogue::tools::approval::ApprovalRequest;
use polylogue_core::ToolCall;
use serde_json::Value as Json;

use super::look::OF_CALLS;
use super::{NoCondition, compiled, functions, kind, text, value};

/// A condition on a call of a tool.
#[derive(Clone)]
pub(crate) struct CallCondition(Arc<Program>);

impl CallCondition {
    /// Compiles and checks `text`.
    pub(crate) fn new(text: &str) -> Result<Self, NoCondition> {
        let program = compiled(text, OF_CALLS)?;
        // The arguments are unknown until the call.
        let of_args = program.references().has_variable("args");
        let condition = Self(Arc::new(program));
        match condition.value(&ApprovalRequest { who: Name::user(), call: nothing(), outside: Vec::new() }) {
            Ok(Value::Bool(_)) => Ok(condition),
            Ok(other) => {
                let why = format!("it gives {}, and neither `true` nor `false`", kind(&other));
                Err(NoCondition::because(why))
            }
            Err(_) if of_args => Ok(condition),
            Err(error) => Err(NoCondition::because(error.to_string())),
        }
    }

    /// Whether it holds of what is wanted, whose paths are resolved. What cannot be evaluated holds: rather is a person asked
    /// than not.
    pub(crate) fn holds(&self, wanted: &ApprovalRequest) -> bool {
        !matches!(self.value(wanted), Ok(Value::Bool(false)))
    }

    fn value(
        &self,
        ApprovalRequest { who, call, outside, .. }: &ApprovalRequest,
    ) -> Result<Value, ExecutionError> {
        let mut context = functions();
        context.add_variable_from_value("tool", text(&call.tool));
        context.add_variable_from_value("args", value(&call.args));
        context.add_variable_from_value("who", text(who.as_str()));
        context.add_variable_from_value("outside", !outside.is_empty());
        self.0.execute(&context)
    }
}

/// A call of no tool, without arguments.
fn nothing() -> ToolCall {
    ToolCall { id: String::new(), tool: String::new(), args: Json::Object(serde_json::Map::new()) }
}
