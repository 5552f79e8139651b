//! Serves teams over HTTP: tokens, limits, conversations and their events.
//!
//! | step | by |
//! |---|---|
//! | the teams, and what they may use | [`TeamSource`], which the program implements |
//! | a server that listens | [`Server::bind`], [`Server::run`] |
//! | who may use it | [`TokenFile`], which other processes write, too |
//!
//! Every request passes two layers before a handler: one checks which name and page it was sent to and from, the other whose token
//! it has. A route exists by one row of a table, from which the router and all checks are made.

mod addresses;
mod api;
mod app;
mod asked;
mod attendance;
mod auth;
mod beginning;
mod call;
mod chat_options;
mod cluster;
mod conversation;
mod database_metrics;
mod default_answers;
mod dispatch;
mod edited_file;
mod fields;
mod forwarded;
mod idempotency;
mod in_flight;
mod issuer;
mod limits;
mod line_file;
mod listen;
mod live;
mod mcp;
mod meter;
mod metrics;
mod names;
mod openai;
mod openapi;
mod opened;
mod page;
mod perimeter;
mod problem;
mod projection;
mod promised;
mod queue_metrics;
mod rate;
mod readiness;
mod replies;
mod request;
mod restart;
mod revocation;
mod route;
mod running;
mod runs;
mod schema;
mod served_tenants;
mod server;
mod session_cookie;
mod slots;
mod source;
mod spending;
mod state_key;
mod steered;
mod store_metrics;
mod stored_teams;
mod stretch;
mod table;
mod tail;
mod tenants;
mod token;
mod token_file;
mod totals;
mod transport;
mod waiting;
mod worker_meters;

pub use asked::{ask_server, cancel_promised, promised_by_server};
pub use chat_options::{ChatOptions, ChatShow};
pub use cluster::cluster_of;
pub use forwarded::TrustedProxy;
pub use issuer::IssuerOptions;
pub use limits::ServerLimits;
pub use live::{LiveError, LiveNode, LiveOptions};
pub use polylogue_wire::Scope;
pub use polylogue_wire::token::DailyBudget;
pub use queue_metrics::WorkerMetrics;
pub use schema::asked_schema;
pub use served_tenants::ServedTenants;
pub use server::{Reload, Server, ServerError, ServerOptions, login_url, openapi, tokens_at};
pub use source::{SourceError, TeamSource};
pub use spending::remove_conversation;
pub use store_metrics::StoreMetrics;
pub use tenants::tenant_place;
pub use token::{NewToken, Token, TokenError, TokenKind, TokenText};
pub use token_file::TokenFile;
pub use worker_meters::WorkerMeters;
