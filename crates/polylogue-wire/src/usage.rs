//! Usage and cost on the wire: a figure of which nothing is known is left out, and is never 0.

use polylogue_core::TotalUsage;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
use serde_json::{Value, json};

/// Returns the figures of `usage` that are known, at least of some calls: without `input` and `output` if the tokens of no call
/// are known, and without `cost` if the price of none is.
///
/// # Errors
/// Never: the type can be written as JSON.
pub fn known(usage: &TotalUsage) -> serde_json::Result<Value> {
    let mut known = serde_json::to_value(usage)?;
    if let Some(fields) = known.as_object_mut().filter(|_| usage.calls > 0) {
        if usage.unmetered >= usage.calls && (usage.input, usage.output) == (0, 0) {
            fields.retain(|name, _| name != "input" && name != "output");
        }
        if usage.unpriced >= usage.calls && usage.cost.picodollars == 0 {
            fields.retain(|name, _| name != "cost");
        }
    }
    Ok(known)
}

/// Writes the figures that are known.
pub(crate) fn serialize<S: Serializer>(usage: &TotalUsage, serializer: S) -> Result<S::Ok, S::Error> {
    known(usage).map_err(S::Error::custom)?.serialize(serializer)
}

/// Reads what [`serialize`] has written.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TotalUsage, D::Error> {
    let mut known = Value::deserialize(deserializer)?;
    if let Some(fields) = known.as_object_mut() {
        for name in ["input", "output", "cost"] {
            fields.entry(name).or_insert_with(|| json!(0));
        }
    }
    serde_json::from_value(known).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use polylogue_core::Money;

    use super::*;

    #[test]
    fn what_is_not_known_of_any_call_is_left_out_and_read_again() {
        let none = TotalUsage::default();
        let unknown = TotalUsage { calls: 2, unmetered: 2, unpriced: 2, ..none };
        let partly = TotalUsage { input: 3, output: 1, unmetered: 1, cost: Money::dollars(0.5), ..unknown };
        let names = |usage: &TotalUsage| {
            let known = known(usage).unwrap();
            ["input", "output", "cost"].map(|name| known.get(name).is_some())
        };
        assert_eq!(names(&unknown), [false; 3]);
        for usage in [none, partly] {
            assert_eq!(names(&usage), [true; 3], "{usage:?}");
        }
        for usage in [none, unknown, partly] {
            let text = serde_json::to_string(&known(&usage).unwrap()).unwrap();
            assert_eq!(deserialize(&mut serde_json::Deserializer::from_str(&text)).unwrap(), usage);
        }
    }
}
