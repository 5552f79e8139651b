//! Access to Google's cloud: credentials, and the access tokens that requests carry.

mod credentials;
mod service_account;
mod user;
mod vertex;
mod workload;

pub use credentials::GoogleCredentials;
pub(crate) use service_account::SCOPE;
pub(crate) use vertex::{API_KEY, NoAddress, address, claude_url, express, is_claude, locate, names_place};
