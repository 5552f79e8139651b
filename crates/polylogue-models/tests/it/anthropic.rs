//! Anthropic's Messages API, over real sockets.

mod errors;
mod marks;
mod parameters;
mod replies;
mod requests;

use crate::common::KEY;
use polylogue_models::{Config, Endpoint, EndpointModel, Key, Provider, Retries};
use polylogue_test::server::Server;

/// How `server` is reached: with a key and without retries.
fn config(server: &Server) -> Config {
    Config {
        key: Key::new(KEY),
        key_variables: vec!["ANTHROPIC_API_KEY".into()],
        retries: Retries::none(),
        ..Provider::find("anthropic").unwrap().config_at(&server.root_url())
    }
}

fn claude(server: &Server, model: &str) -> EndpointModel {
    Endpoint::new(config(server)).unwrap().model(model)
}
