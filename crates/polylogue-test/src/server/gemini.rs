//! The Gemini API: what Google asks of requests.

mod validate;

pub(super) use validate::validate;
