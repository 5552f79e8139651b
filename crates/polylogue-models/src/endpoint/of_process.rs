//! The endpoints that the conversations of a process share.

use std::sync::{Arc, Mutex, PoisonError};

use polylogue_core::ModelError;

use super::Endpoint;
use crate::config::Config;

/// How many endpoints are kept that nothing uses: the next conversation is not to call a key that has just been refused.
const KEPT: usize = 16;

/// Those of the process, the latest ones last.
static ENDPOINTS: Mutex<Vec<Endpoint>> = Mutex::new(Vec::new());

impl Endpoint {
    /// Prepares an endpoint like [`new`](Self::new), unless the process has one with the same configuration: then both share
    /// its connections, its limits, and what is known of its keys and of its failures, as clones do.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn of_process(config: Config) -> Result<Self, ModelError> {
        let mut endpoints = ENDPOINTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = endpoints.iter().position(|endpoint| endpoint.0.config == config);
        let endpoint = match known {
            Some(at) => endpoints.remove(at),
            None => Self::new(config)?,
        };
        endpoints.push(endpoint.clone());
        while endpoints.iter().filter(|endpoint| endpoint.is_unused()).count() > KEPT
            && let Some(oldest) = endpoints.iter().position(Self::is_unused)
        {
            endpoints.remove(oldest);
        }
        Ok(endpoint)
    }

    /// Whether only the list of the process has it.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}
