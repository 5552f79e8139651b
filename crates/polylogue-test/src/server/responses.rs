//! The Responses API: what OpenAI asks of requests, and how it replies.

mod reply;
mod validate;

pub(super) use reply::{body, chunks, one_more};
pub(super) use validate::{no_parameter_of_others, validate};
