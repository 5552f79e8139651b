//! The Responses API over real sockets, with a server that refuses what OpenAI refuses.

mod conversations;
mod errors;
mod names;
mod requests;

use crate::common::{KEY, quick};
use polylogue_models::{Api, Config, Endpoint, EndpointModel, Key};
use polylogue_test::server::Server;

/// How `server` is reached by this API.
fn config(server: &Server) -> Config {
    Config { retries: quick(1), key: Key::new(KEY), ..Config::of(Api::Responses, &server.base_url()) }
}

/// A model that the table knows to reason.
fn reasoning(config: Config) -> EndpointModel {
    Endpoint::new(Config { provider: "openai".into(), ..config }).unwrap().model("gpt-5")
}

/// A model that the table knows not to reason.
fn plain(config: Config) -> EndpointModel {
    Endpoint::new(Config { provider: "openai".into(), ..config }).unwrap().model("gpt-4o")
}
