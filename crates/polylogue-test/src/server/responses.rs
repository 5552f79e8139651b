//! The Responses API: what OpenAI asks of requests.

mod validate;

pub(super) use validate::validate;
