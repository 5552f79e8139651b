//! Ollama's own API, over real sockets.

mod errors;
mod replies;
mod requests;
mod served;

use polylogue_models::{Config, Retries};
use polylogue_test::server::Server;

/// How `server` is reached: without a key and without retries.
fn config(server: &Server) -> Config {
    Config { retries: Retries::none(), ..Config::ollama(&server.ollama_url()) }
}
