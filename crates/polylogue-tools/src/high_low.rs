//! The tool `high_low`, for models that cannot compare numbers.

use std::cmp::Ordering;

use polylogue_core::{Tool, ToolCx, ToolError, ToolResult, ToolSpec};
use serde_json::{Value, json};

/// The tool `high_low`: returns whether a secret number is higher than a guess, lower, or equal.
///
/// ```
/// use polylogue_core::Tool as _;
/// assert_eq!(polylogue_tools::HighLow::default().spec().name, "high_low");
/// ```
#[derive(Debug, Clone)]
pub struct HighLow(ToolSpec);

impl Default for HighLow {
    fn default() -> Self {
        let number = |what: &str| json!({"type": "integer", "description": what});
        let parameters = json!({
            "type": "object",
            "properties": {
                "secret_number": number("The number that is to be found"),
                "guessed_number": number("The number that was guessed"),
            },
            "required": ["secret_number", "guessed_number"],
            "additionalProperties": false,
        });
        let description = "Compares 2 numbers and returns a description of the relation between the two. Higher, lower or \
            equal.";
        Self(ToolSpec::new("high_low", description, parameters).repeatable().max_bytes(200))
    }
}

impl Tool for HighLow {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let (secret, guessed) = (number(&args, "secret_number")?, number(&args, "guessed_number")?);
        Ok(ToolResult::done(match secret.cmp(&guessed) {
            Ordering::Greater => "The secret number is higher than the guessed number.",
            Ordering::Less => "The secret number is lower than the guessed number.",
            Ordering::Equal => "The secret number is equal to the guessed number. You won !",
        }))
    }
}

/// A whole number as models write it: `14` or `14.0`.
fn number(args: &Value, name: &str) -> Result<i64, ToolError> {
    let given = args.get(name).unwrap_or(&Value::Null);
    let whole = || given.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < EXACT);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let number = given.as_i64().or_else(|| whole().map(|number| number as i64));
    number.ok_or_else(|| format!("`{name}` must be a whole number; got {given}").into())
}

/// Up to 2⁵³, floating point numbers represent whole numbers exactly.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_taken_however_they_are_written_and_nothing_else_is() {
        for (given, taken) in [
            (json!(14), Some(14)),
            (json!(-3), Some(-3)),
            (json!(14.0), Some(14)),
            (json!(14.5), None),
            (json!(1e300), None),
            (json!("14"), None),
            (json!(null), None),
        ] {
            assert_eq!(number(&json!({"n": given}), "n").ok(), taken, "{given}");
        }
        let error = number(&json!({"n": "seven"}), "n").unwrap_err();
        assert_eq!(error.0, "`n` must be a whole number; got \"seven\"");
        assert!(number(&json!({}), "n").is_err());
    }
}
