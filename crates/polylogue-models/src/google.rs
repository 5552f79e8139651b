//! Access to Google's cloud: credentials, and the access tokens that requests carry.

mod credentials;
mod service_account;
mod user;
mod vertex;

pub use credentials::GoogleCredentials;
pub(crate) use vertex::{claude_url, is_claude, locate};
