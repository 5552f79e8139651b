//! Encoding of requests and decoding of replies for all protocols; their differences are the trait [`Protocol`](protocol::Protocol).

pub(crate) mod asked;
pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod draft;
pub(crate) mod encode;
pub(crate) mod excess;
pub(crate) mod fields;
pub(crate) mod frames;
pub(crate) mod halves;
pub(crate) mod ids;
pub(crate) mod json;
pub(crate) mod lenient;
pub(crate) mod marks;
pub(crate) mod media;
pub(crate) mod object;
pub(crate) mod parts;
pub(crate) mod pictures;
pub(crate) mod protocol;
pub(crate) mod sent;
pub(crate) mod sse;
pub(crate) mod think;
pub(crate) mod words;

#[cfg(test)]
pub(crate) mod decode_support;
#[cfg(test)]
mod streams_tests;
#[cfg(test)]
mod usage_tests;
