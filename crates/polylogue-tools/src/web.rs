//! Web search and fetching pages.
//!
//! [`web_search`] and [`web_fetch`] are tools. They search anything that implements [`Search`]: an [`Engine`] over the network, or local
//! [`Pages`]. A [`Fetcher`] fetches pages from allowed addresses only: every address from a model, a page or a redirect is checked after
//! its name is resolved. Results are marked as untrusted text.
//!
//! ```
//! use std::sync::Arc;
//!
//! use polylogue_http::NetworkAccess;
//! use polylogue_tools::web::{AnySearch, Fetcher, Pages, web_fetch, web_search};
//!
//! let pages = Arc::new(Pages::of([("bees.md", "# Bees\nThey dance.")]));
//! let search = web_search(AnySearch::new(Pages::clone(&pages)));
//! let fetch = web_fetch(Some(Arc::new(Fetcher::new(NetworkAccess::public()))), Some(pages));
//! # let _ = (search, fetch);
//! ```

mod charset;
mod fetch;
mod html;
mod kind;
mod pages;
mod robots;
mod search;
mod tools;

pub use polylogue_http::{Destination, NetworkAccess};

pub use self::fetch::{Fetched, Fetcher};
pub use self::html::{Page, read_html};
pub use self::pages::Pages;
pub use self::search::{AnySearch, Engine, EngineKind, Hit, Search};
pub use self::tools::{web_fetch, web_search};
