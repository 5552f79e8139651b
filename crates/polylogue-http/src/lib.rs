//! HTTP requests of Polylogue to models, tools and pages.
//!
//! A [`Transport`] connects to one address, with the headers of every request there; its connections are reused. A
//! [`Response`] is read piece by piece, so that the caller limits time and size. A [`Client`] sends single requests
//! to addresses from models and pages, restricted by a [`NetworkAccess`]. [`Proxies`] and [`Env`] are the proxies and keys of
//! this machine.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use polylogue_http::{HeaderMap, Method, Proxies, Transport, read_all};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "http://localhost:11434/api/tags".parse()?;
//! let transport = Transport::new(&url, HeaderMap::new(), Duration::from_secs(10), &Proxies::none())?;
//! let mut response = transport.ask(Method::GET, None, HeaderMap::new(), Bytes::new()).await?;
//! let body = read_all(&mut response, 1024 * 1024).await?;
//! println!("{} {}", response.status(), String::from_utf8_lossy(&body));
//! # Ok(())
//! # }
//! ```

mod address;
mod client;
mod connect;
mod env;
mod key;
mod key_format;
mod multiplexed;
mod network_access;
mod pool;
mod proxies;
mod redactor;
mod response;
mod sender;
mod transport;

pub use address::{host_of, not_public};
pub use client::{Answer, Client, RequestError};
pub use env::{Env, EnvError};
pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Error as Broken, Method, StatusCode, Uri};
pub use key::{Key, is_secret_header, is_secret_name};
pub use key_format::{begins_like_key, contains_key, keys_in};
pub use network_access::{Destination, NetworkAccess, OwnAddress, Refusal};
pub use proxies::Proxies;
pub use redactor::Redactor;
pub use response::{ReadError, Response, read_all, read_up_to};
pub use transport::{SendError, Transport, is_loopback, is_private};

/// The default `User-Agent` of every request.
const USER_AGENT_TEXT: &str = concat!("polylogue/", env!("CARGO_PKG_VERSION"));
