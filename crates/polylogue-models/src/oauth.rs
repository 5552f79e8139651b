//! Access tokens of OAuth, and what is kept of them.

mod cache;
mod token;

pub(crate) use cache::TokenCache;
pub(crate) use token::{AccessToken, TokenError, token_address};
