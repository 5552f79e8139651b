//! What checks of requests share: reading fields, and naming the place that breaks a rule.

use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;
pub(super) type Checked<T = ()> = Result<T, String>;

/// Refuses a request for which `$flaw` holds: returns the reason.
macro_rules! refuse_if {
    ($flaw:expr, $($why:tt)+) => {
        if $flaw {
            return Err(format_args!($($why)+).to_string());
        }
    };
}

/// Refuses a request for which `$rule` does not hold: returns the reason.
macro_rules! ensure {
    ($rule:expr, $($why:tt)+) => {
        if !$rule {
            return Err(format_args!($($why)+).to_string());
        }
    };
}

pub(super) use {ensure, refuse_if};

/// `value` as an object.
pub(super) fn object<'a>(value: &'a Value, name: &str) -> Checked<&'a Object> {
    value.as_object().ok_or_else(|| format!("`{name}` is not an object"))
}

/// The list in the field `name`, which must be there.
pub(super) fn list<'a>(of: &'a Object, name: &str) -> Checked<&'a [Value]> {
    let value = of.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("`{name}` is not a list"))
}

/// The text in the field `name`, which must be there.
pub(super) fn text<'a>(of: &'a Object, name: &str) -> Checked<&'a str> {
    let value = of.get(name).ok_or_else(|| format!("`{name}` is missing"))?;
    value.as_str().ok_or_else(|| format!("`{name}` is not a text"))
}

/// Refuses fields that are not in `known`.
pub(super) fn only(of: &Object, known: &[&str]) -> Checked {
    match of.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("has the unknown field `{name}`")),
        None => Ok(()),
    }
}

/// Refuses a number outside of a range; a field that is not there is no number.
pub(super) fn number(of: &Object, name: &str, low: f64, high: f64) -> Checked {
    let is_in = |value: &Value| value.as_f64().is_some_and(|value| (low..=high).contains(&value));
    match of.get(name) {
        Some(value) if !is_in(value) => Err(format!("`{name}` is not a number from {low} to {high}")),
        _ => Ok(()),
    }
}

/// Checks every element of `values`, and names the one that is refused.
pub(super) fn each<'a>(
    name: &str,
    values: &'a [Value],
    mut check: impl FnMut(usize, &'a Object) -> Checked,
) -> Checked {
    for (index, value) in values.iter().enumerate() {
        let read = object(value, "it").map_err(|_| "is not an object".to_owned());
        read.and_then(|fields| check(index, fields)).map_err(|flaw| format!("{name}[{index}] {flaw}"))?;
    }
    Ok(())
}

/// The one field of `of` that is in `known`.
pub(super) fn one_of<'a>(of: &Object, known: &[&'a str]) -> Checked<&'a str> {
    let mut found = known.iter().filter(|name| of.contains_key(**name));
    match (found.next(), found.next()) {
        (Some(name), None) => Ok(name),
        (None, _) => Err(format!("has none of {}", known.join(", "))),
        (Some(one), Some(other)) => Err(format!("has `{one}` and `{other}`")),
    }
}

/// Refuses a text without words.
pub(super) fn not_blank(text: &str) -> Checked {
    refuse_if!(text.trim().is_empty(), "has an empty text");
    Ok(())
}

/// Whether `name` has 1 to `most` characters, which are letters, digits and `others`.
pub(super) fn is_name(name: &str, most: usize, others: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    (1..=most).contains(&name.len()) && name.chars().all(is_legal)
}

/// The points of a request up to which its prompt is cached: at most four, and none for an hour after a shorter one.
#[derive(Default)]
pub(super) struct Marks {
    count: usize,
    has_short: bool,
}

impl Marks {
    pub(super) fn add(&mut self, is_long: bool) -> Checked {
        refuse_if!(is_long && self.has_short, "has a cache point of 1h after one of 5m");
        self.has_short |= !is_long;
        self.count += 1;
        refuse_if!(self.count > 4, "has more than 4 cache points in the request");
        Ok(())
    }
}

/// The role of a message; empty when it has none.
pub(super) fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// A copy of `body` with another value at `pointer`, which ends in the name of a field or an index; nothing removes a field.
#[cfg(test)]
pub(super) fn changed(body: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut body = body.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap_or_else(|| panic!("there is no `{parent}`"));
    match (parent, value) {
        (Value::Object(fields), Some(value)) => _ = fields.insert(name.to_owned(), value),
        (Value::Object(fields), None) => _ = fields.shift_remove(name).unwrap(),
        (Value::Array(list), Some(value)) if name == "-" => list.push(value),
        (Value::Array(list), Some(value)) => list[name.parse::<usize>().unwrap()] = value,
        (Value::Array(list), None) => _ = list.remove(name.parse().unwrap()),
        _ => panic!("`{pointer}` leads nowhere"),
    }
    body
}
