//! Models for Polylogue.

mod cassette;
mod env;
mod failure;
mod http;
mod key;
mod limits;
mod models;
mod openai;
mod price;
mod provider;
mod retry;
mod script;
mod sse;

pub use cassette::{Cassette, CassetteError, Recorder, Recording, Replayer};
pub use env::{Env, EnvError};
pub use http::Timeouts;
pub use key::Key;
pub use limits::Limits;
pub use models::Models;
pub use openai::{Config, Endpoint, OpenAi};
pub use price::list_price;
pub use provider::Provider;
pub use retry::Retries;
pub use script::{Expectation, Script, ScriptCall, ScriptError, ScriptStep, Scripted, Unconsumed};
