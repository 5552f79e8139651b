//! The Converse API: what Amazon asks of requests.

mod validate;

pub(super) use validate::validate;
