//! Numbers within their bounds.

use serde_json::{Number, Value};

use super::shape::is_whole;
use super::{Label, Reader};
use crate::source::Span;

impl Reader<'_, '_> {
    pub(super) fn number(&mut self, number: &Number, at: &Span, schema: &Value, label: Label<'_>) -> Value {
        let (least, most) = bounds(schema);
        let value = number.as_f64().unwrap_or(f64::NAN);
        if is_whole(schema) && value.fract() != 0.0 {
            self.report.error(at, format!("{label} has to be a whole number"));
            return Value::Null;
        }
        if value < least {
            self.report.error(at, format!("{label} has to be at least {least}"));
        } else if value > most {
            self.report.error(at, format!("{label} has to be at most {most}"));
        }
        if is_whole(schema) { whole(number) } else { Value::Number(number.clone()) }
    }
}

/// A number without a fraction as one that is whole: `20.0` is 20.
fn whole(number: &Number) -> Value {
    let text = number.to_string();
    let digits = text.strip_suffix(".0").unwrap_or(&text);
    match (digits.parse::<u64>(), digits.parse::<i64>()) {
        (Ok(whole), _) => whole.into(),
        (_, Ok(whole)) => whole.into(),
        _ => number.clone().into(),
    }
}

/// The least and the most that a number can be: what the schema says, within what its type can hold.
fn bounds(schema: &Value) -> (f64, f64) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => (0.0, f64::from(u16::MAX)),
        Some("uint32") => (0.0, f64::from(u32::MAX)),
        // Below the top by what a fraction cannot tell apart from it.
        Some("uint64") => (0.0, 18_446_744_073_709_549_568.0),
        Some("int64") => (-9_223_372_036_854_774_784.0, 9_223_372_036_854_774_784.0),
        _ => (f64::MIN, f64::MAX),
    };
    let said = |key: &str| schema.get(key).and_then(Value::as_f64);
    (
        said("minimum").map_or(least, |said| said.max(least)),
        said("maximum").map_or(most, |said| said.min(most)),
    )
}
