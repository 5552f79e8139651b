//! The output that a request asks for.

use serde_json::Value;

/// What the body of a request asks for, whether a parameter or an extra field is sent there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedOutput {
    /// The most tokens of a reply; `None` if the body does not limit them.
    pub(crate) most: Option<u64>,
    /// How many replies, of which the provider bills all.
    pub(crate) replies: u64,
}

impl AskedOutput {
    /// Of a body with these `limits` and numbers of `replies`. Which of several a server obeys is unknown, so the largest
    /// counts. A limit that cannot be read is none.
    pub(crate) fn of<'v>(
        limits: impl IntoIterator<Item = &'v Value>,
        replies: impl IntoIterator<Item = &'v Value>,
    ) -> Self {
        let limits: Option<Vec<u64>> = limits.into_iter().map(number).collect();
        let most = limits.and_then(|limits| limits.into_iter().max());
        let replies = replies.into_iter().filter_map(number).max().unwrap_or(1);
        Self { most, replies }
    }
}

/// A number from 1 on as servers read it: also `10.0`, and `"10"`.
fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => whole(text.trim().parse().ok()?),
        _ => None,
    };
    number.filter(|number| *number > 0)
}

fn whole(number: f64) -> Option<u64> {
    format!("{:.0}", number.ceil()).parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_limit_counts_and_what_cannot_be_read_is_none() {
        let most = |limits: Value| AskedOutput::of(limits.as_array().unwrap(), []).most;
        assert_eq!(most(json!([])), None);
        assert_eq!(most(json!([10, 60_000])), Some(60_000));
        assert_eq!(most(json!([10, 60_000.5])), Some(60_001));
        assert_eq!(most(json!([10, "60000"])), Some(60_000));
        for unread in [json!(null), json!(-1), json!(0), json!(true), json!("much"), json!({})] {
            assert_eq!(most(json!([10, unread])), None, "{unread}");
        }
        let replies = |count: Value| AskedOutput::of([], [&count]).replies;
        assert_eq!([json!(8), json!("8"), json!(null), json!(0)].map(replies), [8, 8, 1, 1]);
    }
}
