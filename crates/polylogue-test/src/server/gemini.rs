//! The Gemini API: what Google asks of requests.

mod reply;
mod validate;

pub(super) use validate::validate;
