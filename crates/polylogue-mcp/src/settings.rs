//! Settings of all servers of a document.

use polylogue_http::{Env, Proxies};

use crate::limits::Limits;
use crate::progress::ProgressCallback;

/// Settings of all servers of a document.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) callback: ProgressCallback,
    pub(crate) proxies: Proxies,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            callback: ProgressCallback::NONE,
            proxies: Proxies::of(&Env::process()),
        }
    }
}
