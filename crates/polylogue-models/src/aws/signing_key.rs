//! The key that signs requests: it is derived from the secret, and is the same for a day, a region and a service.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::hmac;
use polylogue_http::Key;

/// The signing key that was derived last.
#[derive(Default, derive_more::Debug)]
#[debug("SigningKey {{ .. }}")]
pub(crate) struct SigningKey(Mutex<Option<Derived>>);

struct Derived {
    secret: Key,
    /// Day, region, service and `aws4_request`, as in the credential scope.
    range: String,
    key: hmac::Key,
}

impl SigningKey {
    /// Signs `text` with the key that `secret` has for `range`. It is derived if it is not that of the last signature.
    pub(crate) fn sign(&self, secret: &Key, range: &str, text: &str) -> hmac::Tag {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.range == range && last.secret == *secret) {
            return hmac::sign(&last.key, text.as_bytes());
        }
        let key = derived(secret, range);
        let tag = hmac::sign(&key, text.as_bytes());
        *last = Some(Derived { secret: secret.clone(), range: range.to_owned(), key });
        tag
    }
}

fn derived(secret: &Key, range: &str) -> hmac::Key {
    let first = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{}", secret.reveal()).as_bytes());
    let next = |key: hmac::Key, part: &str| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
    };
    range.split('/').fold(first, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_secret_day_or_region_has_another_key() {
        let key = |secret| Key::new(secret).unwrap();
        let cases = [
            ("one", "20260101/us-east-1/bedrock/aws4_request"),
            ("one", "20260101/us-east-1/bedrock/aws4_request"),
            ("two", "20260101/us-east-1/bedrock/aws4_request"),
            ("two", "20260102/us-east-1/bedrock/aws4_request"),
            ("two", "20260102/eu-west-1/bedrock/aws4_request"),
            ("one", "20260101/us-east-1/bedrock/aws4_request"),
        ];
        let kept = SigningKey::default();
        for (secret, range) in cases {
            let fresh = SigningKey::default().sign(&key(secret), range, "text");
            assert_eq!(kept.sign(&key(secret), range, "text").as_ref(), fresh.as_ref(), "{secret} {range}");
        }
        assert!(!format!("{kept:?}").contains("one"));
    }
}
