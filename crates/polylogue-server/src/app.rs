//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::limits::ServerLimits;
use crate::names::Names;
use crate::problem::Problem;
use crate::rate::Rates;
use crate::request::Peer;
use crate::source::TeamSource;
use crate::tenants::{Tenant, Tenants};
use crate::token::Token;
use crate::token_file::TokenFile;

/// What all requests share.
pub(crate) struct App {
    pub(crate) source: Arc<dyn TeamSource>,
    pub(crate) tenants: Tenants,
    pub(crate) tokens: TokenFile,
    pub(crate) names: Names,
    pub(crate) limits: ServerLimits,
    /// Requests of each token.
    pub(crate) requests: Rates<String>,
    /// Wrong tokens from each address.
    pub(crate) failed_logins: Rates<Peer>,
    /// The document of `/openapi.json`.
    pub(crate) openapi: Value,
    /// Whether the server is stopping.
    pub(crate) stopping: watch::Sender<bool>,
}

impl App {
    pub(crate) fn new(
        source: Arc<dyn TeamSource>,
        tenants: Tenants,
        tokens: TokenFile,
        names: Names,
        limits: ServerLimits,
        openapi: Value,
    ) -> Self {
        let second = Duration::from_secs(1) / limits.requests_per_second.max(1);
        let minute = Duration::from_secs(60) / limits.failed_logins_per_minute.max(1);
        Self {
            source,
            tenants,
            tokens,
            names,
            requests: Rates::new(limits.request_burst, second),
            failed_logins: Rates::new(limits.failed_logins_per_minute, minute),
            limits,
            openapi,
            stopping: watch::Sender::new(false),
        }
    }

    /// The conversations of the token's tenant.
    pub(crate) fn tenant(&self, token: &Token) -> Result<Arc<Tenant>, Problem> {
        Ok(self.tenants.get(&token.tenant)?)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}
