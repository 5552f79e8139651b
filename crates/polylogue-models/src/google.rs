//! Access to Google's cloud: credentials, and the access tokens that requests carry.

mod credentials;
mod service_account;
mod token;
mod user;
mod vertex;

pub use credentials::GoogleCredentials;
pub(crate) use token::{AccessToken, TokenError};
pub(crate) use vertex::locate;
