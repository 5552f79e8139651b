//! Whether an object of a JSON text has a key twice, which `serde_json::Value` does not show.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Checks that `bytes` are JSON and that no object in it has a key twice.
///
/// # Errors
/// Says where it is not JSON, or which key comes twice.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<Unique>(bytes).map(|_| ()).map_err(|error| error.to_string())
}

struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        while items.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Unique, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            fields.next_value::<Unique>()?;
            if !keys.insert(key.clone()) {
                return Err(A::Error::custom(format!("the key `{key}` comes twice")));
            }
        }
        Ok(Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn keys_that_come_twice_are_found_at_any_depth() {
        assert_eq!(check(br#"{"a":{"b":[1,-2,0.5,null,true,"x"]},"b":{}}"#), Ok(()));
        for bad in [r#"{"a":1,"a":1}"#, r#"{"b":[{"a":1,"c":2,"a":{}}]}"#] {
            assert!(check(bad.as_bytes()).unwrap_err().contains("the key `a` comes twice"), "{bad}");
        }
        assert!(check(b"{").is_err());
    }
}
