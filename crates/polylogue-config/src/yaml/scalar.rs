//! What a scalar without quotes means: the core schema of YAML 1.2, in which `yes`, `off` and `1_000` are texts.

use serde_json::Number;

use super::node::Data;

/// The meaning of a scalar without quotes and tags.
pub(super) fn plain(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        text => number(text).map_or_else(|| Data::Text(text.to_owned()), Data::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        || !unsigned.contains(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    if unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let positive = text.strip_prefix('+').unwrap_or(text);
        if let Ok(whole) = positive.parse::<u64>() {
            return Some(whole.into());
        }
        if let Ok(whole) = positive.parse::<i64>() {
            return Some(whole.into());
        }
    }
    // A number too large for an integer is read as a float; a number that is not finite is a text.
    text.parse::<f64>().ok().and_then(Number::from_f64)
}

fn radix(digits: &str, radix: u32) -> Option<Number> {
    let legal = digits.chars().all(|c| c.is_digit(radix));
    legal.then(|| u64::from_str_radix(digits, radix).ok()).flatten().map(Number::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_yaml_1_2_says() {
        for (text, meaning) in [
            ("", "Null"),
            ("~", "Null"),
            ("TRUE", "Bool(true)"),
            ("no", "Text(\"no\")"),
            ("off", "Text(\"off\")"),
            ("12", "Number(Number(12))"),
            ("-12", "Number(Number(-12))"),
            ("+12", "Number(Number(12))"),
            ("0x1F", "Number(Number(31))"),
            ("0o17", "Number(Number(15))"),
            ("0xZZ", "Text(\"0xZZ\")"),
            ("007", "Number(Number(7))"),
            ("1e3", "Number(Number(1000.0))"),
            (".5", "Number(Number(0.5))"),
            ("1.", "Number(Number(1.0))"),
            ("18446744073709551616", "Number(Number(1.8446744073709552e+19))"),
            (".inf", "Text(\".inf\")"),
            ("inf", "Text(\"inf\")"),
            ("nan", "Text(\"nan\")"),
            (".", "Text(\".\")"),
            ("-", "Text(\"-\")"),
            ("1e999", "Text(\"1e999\")"),
            ("1_000", "Text(\"1_000\")"),
            ("1.2.3", "Text(\"1.2.3\")"),
        ] {
            assert_eq!(format!("{:?}", plain(text)), meaning, "{text}");
        }
    }
}
