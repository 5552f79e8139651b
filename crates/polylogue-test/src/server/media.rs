//! Pictures, sounds and documents in requests, as strictly as providers judge them.

use serde_json::Value;

use super::rules::{Checked, Object, ensure, text};

/// The pictures that OpenAI and Anthropic read.
pub(super) const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Refuses what is no base64 with its padding.
pub(super) fn base64(data: &str) -> Checked {
    let digits = data.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_padded = data.len().is_multiple_of(4) && data.len() - digits.len() <= 2;
    match !digits.is_empty() && is_padded && digits.bytes().all(is_digit) {
        true => Ok(()),
        false => Err("has data that is not base64".into()),
    }
}

/// Refuses an address that is neither one of the web nor has data of one of the types `known`.
pub(super) fn address(url: &str, known: &[&str]) -> Checked {
    let Some(rest) = url.strip_prefix("data:") else { return web(url) };
    let (kind, data) = rest.split_once(";base64,").ok_or("has an address whose data is not base64")?;
    ensure!(known.contains(&kind), "has data of the type `{kind}`, which is none of {}", known.join(", "));
    base64(data)
}

/// Refuses an address that no provider fetches.
pub(super) fn web(url: &str) -> Checked {
    match url.starts_with("https://") || url.starts_with("http://") {
        true => Ok(()),
        false => Err(format!("has the address `{url}`, which cannot be fetched")),
    }
}

/// Checks a sound in OpenAI's form.
pub(super) fn sound(sound: &Object) -> Checked {
    let format = text(sound, "format")?;
    if !["wav", "mp3"].contains(&format) {
        return Err(format!("has a sound of the format `{format}`, which is neither wav nor mp3"));
    }
    base64(text(sound, "data")?)
}

/// Checks a document in OpenAI's form: its data with its name, or what `or` names.
pub(super) fn document(file: &Object, or: &[&str]) -> Checked {
    if let Some(place) = or.iter().find(|name| file.contains_key(**name)) {
        return if *place == "file_url" { web(text(file, place)?) } else { text(file, place).map(|_| ()) };
    }
    text(file, "filename")?;
    let data = text(file, "file_data")?;
    match data.strip_prefix("data:application/pdf;base64,") {
        Some(data) => base64(data),
        None => Err("has a document whose data is not that of a PDF".into()),
    }
}

/// The text in the field `name` of the object in the field `of`.
pub(super) fn within<'a>(part: &'a Object, of: &str, name: &str) -> Option<&'a str> {
    part.get(of)?.get(name).and_then(Value::as_str)
}
