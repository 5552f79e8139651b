//! Amazon Bedrock's Converse API, over real sockets.

mod access;
mod conversations;
mod reasoning;
mod replies;
mod requests;

use polylogue_models::{Api, Config, Retries};
use polylogue_test::server::Server;

/// How `server` is reached: without a key and without retries.
fn config(server: &Server) -> Config {
    Config {
        provider: "bedrock".into(),
        retries: Retries::none(),
        ..Config::of(Api::Converse, &server.root_url())
    }
}
