//! Embeddings of all APIs: the form of their requests, what models expect before a text, and replies.

mod form;
mod prefix;
mod reply;

pub(crate) use form::{Form, Inputs};
pub(crate) use prefix::Prefixes;
pub(crate) use reply::decode;
