//! The Converse API: what Amazon asks of requests.

mod reply;
mod validate;

pub(super) use validate::validate;
