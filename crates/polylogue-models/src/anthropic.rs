//! Anthropic's Messages API.

mod decode;
mod event;
mod message;
pub(crate) mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Media, Params, Request};
use polylogue_http::header::HeaderName;
use polylogue_http::{HeaderMap, HeaderValue};

pub(crate) use self::decode::Messages;
use crate::api::{Api, BETA};
use crate::deviations::MediaForm;
use crate::wire::json;
use crate::wire::marks::CacheMark;
use crate::wire::protocol::{Protocol, Style, SystemWithin};

/// The older version of the API, which alone takes a temperature and its like.
const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
const OLD: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The beginning of a request at Vertex AI, which has the version in the body, and the model in the address.
const AT_VERTEX: &[u8] = br#"{"anthropic_version":"vertex-2023-10-16""#;

/// What a request uses that is not part of the API's version.
const BINDING: HeaderValue = HeaderValue::from_static("thinking-binding-controls-2026-08-01");

impl Protocol for Messages {
    const API: Api = Api::Messages;
    const REPLY: &'static str = "a message";
    const CORE: &'static str = "content";
    /// <https://docs.anthropic.com/en/api/messages>
    const MAX_TEMPERATURE: Option<u32> = Some(1);
    const NO_FIELD: &'static [&'static str] = &["seed"];
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[CacheLifetime::FiveMinutes, CacheLifetime::Hour];
    const CACHE_MARK: Option<CacheMark> = Some(CacheMark {
        bytes: message::MARK,
        long: message::LONG_MARK,
        back: "}]}".len(),
        only_known: false,
    });
    const GROUPS_RESULTS: bool = true;
    const PICTURES_IN_RESULTS: bool = true;
    const SYSTEM_WITHIN: SystemWithin = SystemWithin::AfterUser;
    const EVENTS: &'static [&'static str] = &[
        "message", "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop", "ping", "error",
    ];

    fn headers(headers: &mut HeaderMap, request: &Request<'_>, style: &Style) {
        let Params { temperature, top_p, top_k, extra, .. } = request.params;
        let sampling = ["temperature", "top_p", "top_k"].iter().any(|name| extra.contains_key(*name));
        let has_only_old = style.deviations.older_version && style.accepts.sampling;
        let is_old = has_only_old || sampling || temperature.is_some() || top_p.is_some() || top_k.is_some();
        if is_old && !style.vertex {
            headers.insert(VERSION, OLD);
        }
        if tail::is_bound(request.params, &style.accepts) {
            headers.insert(BETA, BINDING);
        }
    }

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        if style.vertex {
            out.extend_from_slice(AT_VERTEX);
        } else {
            json::quoted(out, r#"{"model":"#, model, "");
        }
        if let Some(text) = system {
            out.extend_from_slice(br#","system":["#);
            message::text_block(out, |out| json::escape(out, text));
            // This mark is after the tools, too, because the provider reads them first.
            if style.marks {
                out.truncate(out.len() - 1);
                out.extend_from_slice(message::first_mark(style));
                out.extend_from_slice(b"}");
            }
            out.extend_from_slice(b"]");
        }
        out.extend_from_slice(br#","messages":["#);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        message::takes(media)
    }
}
