//! The ways to an endpoint: over encrypted connections, and through proxies.

mod child;
mod proxied;
mod proxy;
mod secure;
mod tls;
