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

/// The least and the most that a number can be. The schema says it of every whole number, so that all fit their types.
fn bounds(schema: &Value) -> (f64, f64) {
    let said = |key: &str| schema.get(key).and_then(Value::as_f64);
    (said("minimum").unwrap_or(f64::MIN), said("maximum").unwrap_or(f64::MAX))
}
