//! The Responses API: what OpenAI asks of requests.

mod reply;
mod validate;

pub(super) use validate::validate;
