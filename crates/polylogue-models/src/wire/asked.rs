//! The output that a request asks for.

use serde::Deserialize as _;
use serde_json::Value;

use super::lenient::Count;

/// What the body of a request asks for, whether a parameter or an extra field is sent there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedOutput {
    /// The most tokens of a reply; `None` if the body does not limit them.
    pub(crate) most: Option<u64>,
    /// How many replies, of which the provider bills all; `None` if that cannot be read.
    pub(crate) replies: Option<u64>,
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
        let replies: Option<Vec<u64>> =
            replies.into_iter().filter(|value| !value.is_null()).map(number).collect();
        let replies = replies.map(|replies| replies.into_iter().max().unwrap_or(1));
        Self { most, replies }
    }
}

/// A whole number from 1 on.
fn number(value: &Value) -> Option<u64> {
    Count::deserialize(value).ok()?.0.filter(|number| *number > 0)
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
        assert_eq!(most(json!([10, 60_000.0])), Some(60_000));
        assert_eq!(most(json!([10, "60000"])), Some(60_000));
        for unread in [json!(null), json!(-1), json!(0), json!(0.5), json!(true), json!("much"), json!({})] {
            assert_eq!(most(json!([10, unread])), None, "{unread}");
        }
        let replies = |count: Value| AskedOutput::of([], [&count]).replies;
        assert_eq!(AskedOutput::of([], []).replies, Some(1));
        assert_eq!([json!(8), json!("8"), json!(null)].map(replies), [Some(8), Some(8), Some(1)]);
        assert_eq!([json!(0), json!(-8), json!(1.5), json!("many"), json!([8])].map(replies), [None; 5]);
    }
}
