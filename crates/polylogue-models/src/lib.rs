//! Models for Polylogue: endpoints over HTTP, scripts, and recordings.
//!
//! # A model by its name
//!
//! ```no_run
//! # async fn example() -> Result<(), polylogue_core::ModelError> {
//! let model = polylogue_models::named("ollama:llama3.2")?;
//! println!("{}", model.ask("Why is the sky blue?").await?);
//! # Ok(())
//! # }
//! ```
//!
//! [`Models`] returns several models by names such as `openai:gpt-4o-mini` or `ollama/llama3.2`, with keys and addresses from
//! an [`Env`]. It has one [`Endpoint`] for each [`Provider`], so that all agents share its connections and limits.
//!
//! ```
//! use polylogue_core::Model;
//! use polylogue_models::{Env, Models};
//!
//! let models = Models::new(Env::with_file(".env".as_ref())?);
//! let model = models.model("ollama:llama3.2")?;
//! assert_eq!(model.name(), "ollama:llama3.2");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A custom endpoint
//!
//! Any server with one of the supported [`Api`]s works. [`Config`] has its address and key,
//! limits on concurrent requests ([`Limits`]), [`Timeouts`] and [`Retries`].
//!
//! ```
//! use std::time::Duration;
//! use polylogue_models::{Config, Endpoint, Limits, Timeouts};
//!
//! let endpoint = Endpoint::new(Config {
//!     provider: "house".into(),
//!     limits: Limits { in_flight: Some(8), per_minute: Some(600) },
//!     timeouts: Timeouts { total: Duration::from_secs(120), ..Timeouts::default() },
//!     ..Config::new("http://127.0.0.1:8000/v1")
//! })?;
//! let model = endpoint.model("Qwen/Qwen3-8B");
//! # let _ = model;
//! # Ok::<(), polylogue_core::ModelError>(())
//! ```
//!
//! # Ollama
//!
//! `ollama:NAME` uses Ollama's own API, `ollama-openai:NAME` its OpenAI-compatible one; both find the server by
//! `OLLAMA_HOST`. Only its own API accepts `num_ctx`, `keep_alive` and `think`, as extra fields of a request, and
//! only there the server can be asked to refuse a conversation that does not fit instead of silently dropping the
//! rest: requests do so.
//!
//! ```
//! use polylogue_core::Params;
//! use polylogue_models::{Config, Endpoint};
//! use serde_json::json;
//!
//! let model = Endpoint::new(Config::ollama("127.0.0.1:11434"))?.model("llama3.2");
//! let extra = [("num_ctx".to_owned(), json!(16384)), ("keep_alive".to_owned(), json!("30m"))];
//! let params = Params { extra: extra.into_iter().collect(), ..Params::default() };
//! # let _ = (model, params);
//! # Ok::<(), polylogue_core::ModelError>(())
//! ```
//!
//! [`Endpoint::models`] lists the models of a server.
//!
//! # Anthropic
//!
//! `anthropic:NAME` uses Anthropic's Messages API, with the key in `ANTHROPIC_API_KEY` and, for gateways, the address in
//! `ANTHROPIC_BASE_URL`. The table of models says how a model reasons, which efforts it knows, and what it refuses, such as
//! a temperature. Fields that only this API has are extra fields of a request.
//!
//! # Capabilities
//!
//! Small models lack tools, schemas, or JSON mode. Set [`Config::capabilities`], or let them be detected: a refusal
//! is an error of the kind [`Unsupported`](polylogue_core::ModelErrorKind::Unsupported), which agents handle.
//! [`LearnedCapabilities`] stores it in a file for later processes, and [`EndpointModel::probe`] detects it with
//! three short requests.
//!
//! # Server quirks
//!
//! Replies are parsed leniently: most deviations of servers make no difference. A reply that cannot be parsed is an
//! error that says who can fix it and how, and shows no key.
//!
//! # Proxies and certificates
//!
//! [`Proxies`] sets the proxies. Default: those of the environment. Certificates are checked against those of the
//! system; on Linux `SSL_CERT_FILE` and `SSL_CERT_DIR` name others. They are read with the first encrypted
//! connection.
//!
//! # Embeddings
//!
//! [`Models::embedder`] returns embedding models, which a memory uses to search by meaning. Texts are sent with their purpose
//! where the model distinguishes documents and queries, and vectors have length 1. [`EmbeddingApi`] lists the APIs.
//!
//! # Without a provider
//!
//! [`Script`] replies by script, for tests and demonstrations. [`Recorder`] and [`Replayer`] record model calls and
//! replay them without a network. A [`Cache`] around a model stores its replies, so that the same request is not paid
//! for twice; caching is opt-in.

mod accepts;
mod account_error;
mod address;
mod anthropic;
mod api;
mod auth;
mod authorizer;
mod aws;
mod azure;
mod bedrock;
mod cache;
mod cassette;
mod catalog;
mod cluster;
mod config;
mod deviations;
mod efforts;
mod embedding;
mod endpoint;
mod error_body;
mod failure;
mod fallback;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod gemini;
mod google;
mod learned;
mod limits;
mod media_limits;
mod models;
mod oauth;
mod ollama;
mod openai;
mod pages;
mod prices;
mod protocols;
mod provider;
mod rate_headers;
mod refused_parameters;
mod responses;
mod retry;
mod schema;
mod script;
mod spec;
mod surcharge;
mod timeouts;
mod token_source;
mod tokens;
mod too_long;
mod unsupported;
mod wire;
mod written_calls;

pub use api::{Api, EmbeddingApi};
pub use auth::Auth;
pub use aws::Aws;
pub use azure::AzureCredentials;
pub use cache::{Cache, Cached};
pub use cassette::{Cassette, CassetteError, Recorder, Recording, Replayer};
pub use catalog::KnownModel;
pub use config::Config;
pub use deviations::{Deviations, MediaForm, SchemaForm, SendReasoning};
pub use endpoint::{Embedder, Endpoint, EndpointModel, Probed, ServedModel};
pub use fallback::{FailureClass, Fallback, FallbackReturn};
pub use google::GoogleCredentials;
pub use learned::{Finding, Findings, LearnedCapabilities};
pub use limits::{ClusterLimits, Limits};
pub use media_limits::{Excess, MediaLimits, MediaLimitsRow};
pub use models::{Models, named};
pub use polylogue_http::{Env, EnvError, Key, Proxies};
pub use prices::{DatedPrice, DatedPrices, Day, ModelLimits, NoDay, Prices, list_price};
pub use provider::Provider;
pub use retry::Retries;
pub use script::{Expectation, Script, ScriptCall, ScriptError, ScriptStep, Scripted, Unconsumed, scripted};
pub use spec::{check_model_name, known_provider, local_file, model_names, provider_elsewhere};
pub use timeouts::Timeouts;
pub use tokens::TokenCount;
pub use wire::sent::RequestFormat;
pub use wire::think::{Kind as TextKind, Splitter as ThoughtSplitter};
pub use written_calls::written_call_hint;
