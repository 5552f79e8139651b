//! Signature Version 4: a request is signed with a secret key that is never sent.
//!
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html>, tested with the vectors that Amazon
//! publishes.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::SystemTime;

use aws_lc_rs::digest;

use super::credentials::Credentials;
use super::signing_key::SigningKey;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Where a signature is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope<'a> {
    /// Such as `us-east-1`.
    pub(crate) region: &'a str,
    /// Such as `bedrock`.
    pub(crate) service: &'a str,
}

/// What is signed of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signable<'a> {
    pub(crate) method: &'a str,
    /// As in the request, percent-encoded.
    pub(crate) path: &'a str,
    /// Names and values, percent-encoded.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// `host` among them.
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: &'a [u8],
}

/// The headers that sign `request` at the time `now`: `x-amz-date`, `x-amz-security-token` if the credentials have a
/// session token, and `authorization`. The derived `key` is kept for the next request.
pub(crate) fn sign(
    request: &Signable<'_>,
    credentials: &Credentials,
    scope: Scope<'_>,
    now: SystemTime,
    key: &SigningKey,
) -> Vec<(&'static str, String)> {
    let time = timestamp(now);
    let day = time.get(..8).unwrap_or_default();
    let mut added = vec![("x-amz-date", time.clone())];
    if let Some(token) = &credentials.session_token {
        added.push(("x-amz-security-token", token.reveal().to_owned()));
    }
    let headers = Headers::of(request.headers.iter().copied().chain(borrowed(&added)));
    let canonical = canonical(request, &headers);
    let Scope { region, service } = scope;
    let range = format!("{day}/{region}/{service}/aws4_request");
    let to_sign = format!("{ALGORITHM}\n{time}\n{range}\n{}", hash(canonical.as_bytes()));
    let signature = key.sign(&credentials.secret_access_key, &range, &to_sign);
    let (id, names, signature) = (&credentials.access_key_id, &headers.names, hex(signature.as_ref()));
    added.push((
        "authorization",
        format!("{ALGORITHM} Credential={id}/{range}, SignedHeaders={names}, Signature={signature}"),
    ));
    added
}

fn borrowed<'a>(added: &'a [(&'static str, String)]) -> impl Iterator<Item = (&'a str, &'a str)> {
    added.iter().map(|(name, value)| (*name, value.as_str()))
}

/// The form of a request that both sides hash.
fn canonical(request: &Signable<'_>, headers: &Headers) -> String {
    let mut query: Vec<_> = request.query.to_vec();
    query.sort_unstable();
    let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!(
        "{}\n{}\n{}\n{}\n{}\n{}",
        request.method,
        encoded(request.path),
        query.join("&"),
        headers.lines,
        headers.names,
        hash(request.body)
    )
}

/// `path` with each segment percent-encoded once more, as all services but S3 require.
fn encoded(path: &str) -> Cow<'_, str> {
    let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    if path.bytes().all(is_kept) {
        return path.into();
    }
    let mut out = String::with_capacity(path.len() + 8);
    for byte in path.bytes() {
        match is_kept(byte) {
            true => out.push(char::from(byte)),
            false => _ = write!(out, "%{byte:02X}"),
        }
    }
    out.into()
}

/// Signed headers, in the form that is hashed.
struct Headers {
    /// `name:value` lines, sorted; values of one name joined by commas.
    lines: String,
    /// The names, joined by `;`.
    names: String,
}

impl Headers {
    fn of<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut sorted: Vec<(String, String)> =
            headers.map(|(name, value)| (name.to_ascii_lowercase(), single_spaced(value))).collect();
        // Stable: values of one name keep their order.
        sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut joined: Vec<(String, String)> = Vec::with_capacity(sorted.len());
        for (name, value) in sorted {
            match joined.last_mut() {
                Some((last, values)) if *last == name => _ = write!(values, ",{value}"),
                _ => joined.push((name, value)),
            }
        }
        let names: Vec<&str> = joined.iter().map(|(name, _)| name.as_str()).collect();
        let lines = joined.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
        Self { lines, names: names.join(";") }
    }
}

fn single_spaced(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// `now` as `20150830T123600Z`.
fn timestamp(now: SystemTime) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    // `Sun, 30 Aug 2015 12:36:00 GMT`
    let date = httpdate::fmt_http_date(now);
    let mut words = date.split(' ').skip(1);
    let mut word = || words.next().unwrap_or_default();
    let (day, month, year, time) = (word(), word(), word(), word());
    let month = MONTHS.find(month).unwrap_or_default() / 3 + 1;
    format!("{year}{month:02}{day}T{}Z", time.replace(':', ""))
}

fn hash(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
