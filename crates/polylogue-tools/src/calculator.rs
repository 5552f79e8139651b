//! The tool `calculator`.

mod expression;

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// The tool `calculator`: evaluates an expression of numbers, `+`, `-`, `*`, `/`, `%`, `^` and parentheses.
///
/// Numbers are 64-bit floating point; whole numbers are exact up to 2⁵³. A larger result is rounded, and written with all digits.
#[derive(Debug, Clone)]
pub struct Calculator(ToolSpec);

impl Default for Calculator {
    fn default() -> Self {
        let expression = json!({"type": "string", "description": "Such as `(3 + 4) * 2 ^ 8 / 1.5`"});
        let parameters = json!({
            "type": "object", "properties": {"expression": expression}, "required": ["expression"],
            "additionalProperties": false,
        });
        let description = "Works out an arithmetic expression: numbers, + - * / % ^ and brackets.";
        Self(ToolSpec::new("calculator", description, parameters).repeatable().max_bytes(400))
    }
}

impl Tool for Calculator {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let text = args.get("expression").and_then(Value::as_str).ok_or("`expression` must be a text")?;
        let result = expression::evaluate(text)?;
        // Minus zero is nothing that anyone asked for.
        Ok(ToolResult::done(format!("{}", if result == 0.0 { 0.0 } else { result })))
    }
}
