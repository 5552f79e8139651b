//! Signature Version 4: a request is signed with a secret key that is never sent.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html>, tested with the vectors that Amazon
//! publishes.

use std::time::SystemTime;

use aws_lc_rs::digest;
use chrono::{DateTime, Datelike as _, Timelike as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use super::credentials::Credentials;
use super::signing_key::SigningKey;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// About how long the form of a request is that is hashed, in bytes.
const CANONICAL: usize = 512;

/// What is signed of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signable<'a> {
    pub(crate) method: &'a str,
    /// As in the request, percent-encoded.
    pub(crate) path: &'a str,
    /// Names and values, percent-encoded.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Names in lower case and values, `host` among them.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// The headers that sign `request` at the time `now`: `x-amz-date`, `x-amz-security-token` if the credentials have a
/// session token, and `authorization`.
///
/// Every attempt is signed: each text is written once, from front to back, and only the body is long.
pub(crate) fn sign(
    request: &Signable<'_>,
    credentials: &Credentials,
    now: SystemTime,
    key: &SigningKey,
) -> Vec<(&'static str, String)> {
    let time = timestamp(now);
    let key = key.of_day(&credentials.secret_access_key, time.get(..8).unwrap_or_default());
    let token = credentials.session_token.as_ref().map(|token| ("x-amz-security-token", token.reveal()));
    let mut headers = request.headers.to_vec();
    headers.push(("x-amz-date", &time));
    headers.extend(token);
    // Stable: values of one name keep their order.
    headers.sort_by_key(|(name, _)| *name);
    let mut names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    names.dedup();
    let names = names.join(";");
    let hashed = hash(canonical(request, &headers, &names).as_bytes());
    let to_sign = [ALGORITHM, "\n", &time, "\n", key.scope(), "\n", &hashed].concat();
    let signature = hex(key.sign(&to_sign).as_ref());
    let (id, scope) = (&*credentials.access_key_id, key.scope());
    let authorization =
        [ALGORITHM, " Credential=", id, "/", scope, ", SignedHeaders=", &names, ", Signature=", &signature];
    let authorization = authorization.concat();
    let token = token.map(|(name, value)| (name, value.to_owned()));
    let date = std::iter::once(("x-amz-date", time));
    date.chain(token).chain([("authorization", authorization)]).collect()
}

/// The form of a request that both sides hash. `headers` are sorted by their `names`.
fn canonical(request: &Signable<'_>, headers: &[(&str, &str)], names: &str) -> String {
    let mut out = String::with_capacity(CANONICAL);
    out.extend([request.method, "\n"]);
    out.extend(encoded(request.path));
    out.push('\n');
    let mut query = request.query.to_vec();
    query.sort_unstable();
    for (nth, (name, value)) in query.into_iter().enumerate() {
        out.extend([if nth == 0 { "" } else { "&" }, name, "=", value]);
    }
    out.push('\n');
    for of_name in headers.chunk_by(|(one, _), (other, _)| one == other) {
        for (nth, (name, value)) in of_name.iter().enumerate() {
            out.extend(if nth == 0 { [*name, ":"] } else { ["", ","] });
            push_single_spaced(&mut out, value);
        }
        out.push('\n');
    }
    out.extend(["\n", names, "\n", &hash(request.body)]);
    out
}

/// What is kept in the path of a request.
const PATH: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// `path` with each segment percent-encoded once more, as all services but S3 require.
fn encoded(path: &str) -> PercentEncode<'_> {
    utf8_percent_encode(path, &PATH)
}

fn push_single_spaced(out: &mut String, value: &str) {
    for (nth, word) in value.split_ascii_whitespace().enumerate() {
        out.extend([if nth == 0 { "" } else { " " }, word]);
    }
}

/// `now` as `20150830T123600Z`.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let time = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    let (year, month, day) = (time.year(), time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        out.push(digit(byte >> 4));
        out.push(digit(byte & 15));
    }
    out
}

/// The digit of a value below 16.
const fn digit(value: u8) -> char {
    (if value < 10 { b'0' + value } else { b'a' - 10 + value }) as char
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
