//! The page: files that are part of the program, so that it works offline and nothing is to be installed.

use std::io::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::call::{Call, Reply};
use crate::problem::Problem;
use crate::route::{Access, Route};

/// Nothing from elsewhere, no script but its own, and no text that becomes one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

macro_rules! files {
    ($($path:literal: $file:literal,)*) => {
        /// The path of each file, and its bytes.
        const FILES: &[(&str, &str, &[u8])] =
            &[$(($path, $file, include_bytes!(concat!("../page/", $file)))),*];
    };
}

files! {
    "/": "index.html",
    "/page/api.js": "api.js",
    "/page/app.js": "app.js",
    "/page/attention.js": "attention.js",
    "/page/base.css": "base.css",
    "/page/boxes.js": "boxes.js",
    "/page/calls.js": "calls.js",
    "/page/chats.js": "chats.js",
    "/page/cluster.js": "cluster.js",
    "/page/compare.js": "compare.js",
    "/page/completion.js": "completion.js",
    "/page/conversation.js": "conversation.js",
    "/page/drafts.js": "drafts.js",
    "/page/editor.js": "editor.js",
    "/page/files.js": "files.js",
    "/page/focus.js": "focus.js",
    "/page/fold.js": "fold.js",
    "/page/follows.js": "follows.js",
    "/page/format.js": "format.js",
    "/page/graph.js": "graph.js",
    "/page/icon.svg": "icon.svg",
    "/page/items.js": "items.js",
    "/page/keyboard.js": "keyboard.js",
    "/page/lib.js": "lib.js",
    "/page/load.js": "load.js",
    "/page/markdown.js": "markdown.js",
    "/page/names.js": "names.js",
    "/page/new_run.js": "new_run.js",
    "/page/parts.js": "parts.js",
    "/page/pieces.js": "pieces.js",
    "/page/place.js": "place.js",
    "/page/question.js": "question.js",
    "/page/router.js": "router.js",
    "/page/run.css": "run.css",
    "/page/run.js": "run.js",
    "/page/runs.js": "runs.js",
    "/page/steps.js": "steps.js",
    "/page/stream.js": "stream.js",
    "/page/ticks.js": "ticks.js",
    "/page/timeline.js": "timeline.js",
    "/page/verbatim.js": "verbatim.js",
    "/page/viewpoint.js": "viewpoint.js",
    "/page/views.css": "views.css",
    "/page/window.js": "window.js",
    "/page/vendor/htm-3.1.1.js": "vendor/htm-3.1.1.js",
    "/page/vendor/preact-11.2.0.js": "vendor/preact-11.2.0.js",
    "/page/vendor/preact-hooks-11.2.0.js": "vendor/preact-hooks-11.2.0.js",
    "/page/vendor/signals-2.11.4.js": "vendor/signals-2.11.4.js",
    "/page/vendor/signals-core-1.14.5.js": "vendor/signals-core-1.14.5.js",
}

/// A file, ready to be sent.
struct Sent {
    path: &'static str,
    media: &'static str,
    /// Whether the name has its version, so that it never changes.
    is_fixed: bool,
    etag: String,
    plain: Bytes,
    /// `None`: it would not be smaller.
    gzip: Option<Bytes>,
}

/// Compressed once, when the first file is asked for.
static SENT: LazyLock<Vec<Sent>> = LazyLock::new(|| {
    let sent = |&(path, file, plain): &(&'static str, &'static str, &'static [u8])| {
        let digest = blake3::hash(plain).to_hex();
        // Weak: the same for both encodings, whose bytes differ.
        let etag = format!("W/\"{}\"", digest.get(..16).unwrap_or_default());
        let plain = Bytes::from_static(plain);
        let gzip = gzip(&plain).filter(|gzip| gzip.len() < plain.len());
        Sent { path, media: media(file), is_fixed: file.starts_with("vendor/"), etag, plain, gzip }
    };
    FILES.iter().map(sent).collect()
});

fn gzip(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn media(file: &str) -> &'static str {
    match file.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

pub(crate) fn routes() -> Vec<Route> {
    let route = |(path, ..): &(&'static str, &str, &[u8])| {
        let about = "A file of the page";
        Route::new(Method::GET, path, Access::Open, about, |call| Box::pin(async move { send(&call) }))
            .undocumented()
    };
    FILES.iter().map(route).collect()
}

fn send(call: &Call) -> Reply {
    let file = SENT.iter().find(|file| file.path == call.path);
    let file = file.ok_or_else(|| Problem::internal("a file of the page is missing"))?;
    let cache = if file.is_fixed { "public, max-age=31536000, immutable" } else { "no-cache" };
    let response = Response::builder()
        .header(CONTENT_SECURITY_POLICY, POLICY)
        .header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin")
        .header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin")
        .header(CACHE_CONTROL, cache)
        .header(VARY, "accept-encoding")
        .header(ETAG, &file.etag);
    let has = |name, wanted: &str| has_word(&call.headers, name, wanted);
    let response = match &file.gzip {
        _ if has(IF_NONE_MATCH, &file.etag) => response.status(StatusCode::NOT_MODIFIED).body(Body::empty()),
        Some(gzip) if has(ACCEPT_ENCODING, "gzip") => response
            .header(CONTENT_TYPE, file.media)
            .header(CONTENT_ENCODING, "gzip")
            .body(gzip.clone().into()),
        _ => response.header(CONTENT_TYPE, file.media).body(file.plain.clone().into()),
    };
    response.map_err(|error| Problem::internal(error.to_string()))
}

/// Whether the list in a header has the word, and does not refuse it.
fn has_word(headers: &HeaderMap, name: HeaderName, wanted: &str) -> bool {
    let values = headers.get_all(name);
    let mut words = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    words.any(|word| {
        let (word, parameters) = word.split_once(';').unwrap_or((word, ""));
        word.trim() == wanted && !parameters.split(';').any(is_refusal)
    })
}

/// Whether the parameter of a word says that it must not be used: a weight of 0.
fn is_refusal(parameter: &str) -> bool {
    parameter.split_once('=').is_some_and(|(name, weight)| {
        name.trim().eq_ignore_ascii_case("q")
            && weight.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
    })
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
