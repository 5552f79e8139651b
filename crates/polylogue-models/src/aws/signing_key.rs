//! The key that signs requests: it is derived from the secret, and is the same for a day, a region and a service.

use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::hmac;
use polylogue_http::Key;

/// Derives the keys that sign requests to one service in one region. The last one is kept.
#[derive(derive_more::Debug)]
#[debug("SigningKey({region}, {service})")]
pub(crate) struct SigningKey {
    region: String,
    service: &'static str,
    last: Mutex<Option<Arc<KeyOfDay>>>,
}

/// The key of one day.
pub(crate) struct KeyOfDay {
    secret: Key,
    day: String,
    scope: String,
    key: hmac::Key,
}

impl SigningKey {
    /// Keys for a region, such as `us-east-1`, and a service, such as `bedrock`.
    pub(crate) fn new(region: &str, service: &'static str) -> Self {
        Self { region: region.to_owned(), service, last: Mutex::default() }
    }

    /// The key of `secret` for a `day` such as `20150830`. It is derived if it is not that of the last request.
    pub(crate) fn of_day(&self, secret: &Key, day: &str) -> Arc<KeyOfDay> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.day == day && last.secret == *secret) {
            return Arc::clone(last);
        }
        let scope = format!("{day}/{}/{}/aws4_request", self.region, self.service);
        let key = derived(secret, &scope);
        let key = Arc::new(KeyOfDay { secret: secret.clone(), day: day.to_owned(), scope, key });
        *last = Some(Arc::clone(&key));
        key
    }
}

impl KeyOfDay {
    /// The credential scope: day, region, service and `aws4_request`.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    pub(crate) fn sign(&self, text: &str) -> hmac::Tag {
        hmac::sign(&self.key, text.as_bytes())
    }
}

fn derived(secret: &Key, scope: &str) -> hmac::Key {
    let first = hmac::Key::new(hmac::HMAC_SHA256, format!("AWS4{}", secret.reveal()).as_bytes());
    let next = |key: hmac::Key, part: &str| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
    };
    scope.split('/').fold(first, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_secret_day_or_region_has_another_key() {
        let key = |secret| Key::new(secret).unwrap();
        let cases = [
            ("one", "20260101"),
            ("one", "20260101"),
            ("two", "20260101"),
            ("two", "20260102"),
            ("one", "20260101"),
        ];
        let new = || SigningKey::new("us-east-1", "bedrock");
        let kept = new();
        let mut tags = Vec::new();
        for (secret, day) in cases {
            let tag = kept.of_day(&key(secret), day).sign("text").as_ref().to_vec();
            assert_eq!(tag, new().of_day(&key(secret), day).sign("text").as_ref(), "{secret} {day}");
            tags.push(tag);
        }
        let elsewhere = SigningKey::new("eu-west-1", "bedrock").of_day(&key("one"), "20260101");
        tags.push(elsewhere.sign("text").as_ref().to_vec());
        tags.sort_unstable();
        tags.dedup();
        assert_eq!(tags.len(), 4, "two secrets, two days, two regions");
        assert!(!format!("{kept:?}").contains("one"));
    }

    #[test]
    fn a_key_is_derived_once_for_a_day() {
        let (kept, secret) = (SigningKey::new("us-east-1", "bedrock"), Key::new("secret").unwrap());
        let first = kept.of_day(&secret, "20260101");
        assert!(Arc::ptr_eq(&first, &kept.of_day(&secret, "20260101")));
        assert_eq!(first.scope(), "20260101/us-east-1/bedrock/aws4_request");
        assert!(!Arc::ptr_eq(&first, &kept.of_day(&secret, "20260102")));
    }
}
