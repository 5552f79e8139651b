//! What goes over the wire, as far as all protocols have it in common; what differs between them is a [`Protocol`](protocol::Protocol).

pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod draft;
pub(crate) mod encode;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod lenient;
pub(crate) mod pictures;
pub(crate) mod protocol;
pub(crate) mod sent;
pub(crate) mod sse;
pub(crate) mod think;
pub(crate) mod words;
