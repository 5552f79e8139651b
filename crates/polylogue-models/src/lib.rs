//! Models for Polylogue: endpoints over HTTP, scripts, and recordings.
//!
//! # A model by its name
//!
//! [`Models`] gives models by names such as `openai:gpt-4o-mini` or `ollama/llama3.2`, with keys and addresses out
//! of an [`Env`]. It keeps one [`Endpoint`] for each [`Provider`], so that all agents share its connections and its
//! limits.
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
//! # An endpoint of one's own
//!
//! Any server that speaks OpenAI's chat completions or Ollama's own [`Api`] will do; [`Config`] says how to reach it, how much to ask of it
//! at once ([`Limits`]), how long to wait ([`Timeouts`]) and when to try again ([`Retries`]).
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
//! `ollama:NAME` asks an Ollama server in its own way, `ollama-openai:NAME` the same server as an OpenAI-compatible one;
//! both look for it where `OLLAMA_HOST` says. Only its own API takes `num_ctx`, `keep_alive` and `think`, as extra fields
//! of a request, and only there it can be told to refuse a conversation that does not fit, in place of dropping the rest
//! of it without a word: that is what it is told.
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
//! [`Endpoint::models`] lists what a server has.
//!
//! # What a model can do
//!
//! Small models know no tools, no schemas, or no JSON mode. What they can do is said by [`Config::capabilities`]; what is not said
//! turns out: a refusal is an error of the kind [`Unsupported`](polylogue_core::ModelErrorKind::Unsupported), which agents get
//! round. [`LearnedCapabilities`] keeps it in a file for later processes, and [`EndpointModel::probe`] finds it out with three short
//! questions.
//!
//! # What servers get wrong
//!
//! Replies are read with lenience: most of what servers get wrong changes nothing. What cannot be read is an error that
//! says whose fault it is and what to do, and shows no key.
//!
//! # Proxies and certificates
//!
//! [`Proxies`] says which proxies stand between; as a rule those of the environment. Servers are trusted whose certificates
//! the system trusts; on Linux `SSL_CERT_FILE` and `SSL_CERT_DIR` name others. They are read with the first encrypted
//! connection.
//!
//! # Vectors
//!
//! [`Models::embedder`] gives models that make vectors of texts, by which a memory finds what means the same.
//!
//! # Without a provider
//!
//! [`Script`] replies by script, for tests and demonstrations; [`Recorder`] and [`Replayer`] keep what a model
//! said and say it again with the network off. A [`Cache`] around a model keeps its replies, so that the same request is not
//! paid for twice; there is none unless one is made.

mod cache;
mod cassette;
mod catalog;
mod endpoint;
mod failure;
mod learned;
mod limits;
mod models;
mod ollama;
mod openai;

mod provider;
mod retry;
mod script;
mod timeouts;
mod unsupported;
mod wire;

pub use cache::{Cache, CacheError, Cached};
pub use cassette::{Cassette, CassetteError, Recorder, Recording, Replayer};
pub use catalog::{KnownModel, list_price, list_price_at};
pub use endpoint::{Api, Config, Embedder, Endpoint, EndpointModel, Probed, ServedModel};
pub use learned::{Finding, Findings, LearnedCapabilities};
pub use limits::Limits;
pub use models::Models;
pub use polylogue_http::{Env, EnvError, Key, Proxies};
pub use provider::Provider;
pub use retry::Retries;
pub use script::{Expectation, Script, ScriptCall, ScriptError, ScriptStep, Scripted, Unconsumed};
pub use timeouts::Timeouts;
pub use wire::sent::Forms;
