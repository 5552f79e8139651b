//! Gemini's own API, of Google's Gemini API and of Vertex AI, over real sockets.

mod conversation;
mod errors;
mod replies;
mod requests;
mod vertex;

use polylogue_models::{Api, Config, Endpoint, EndpointModel, Key, Retries};
use polylogue_test::server::Server;

/// A model that takes a level of thinking, and signatures.
const NEW: &str = "gemini-3-pro";

/// A model that takes a number of tokens to think.
const OLD: &str = "gemini-2.5-flash";

/// How `server` is reached: with a key and without retries.
fn config(server: &Server) -> Config {
    let base_url = format!("{}/v1beta", server.root_url());
    Config {
        provider: "gemini".into(),
        key: Key::new("a-key-that-no-one-may-see"),
        retries: Retries::none(),
        ..Config::of(Api::Gemini, &base_url)
    }
}

fn model(config: Config, name: &str) -> EndpointModel {
    Endpoint::new(config).unwrap().model(name)
}
