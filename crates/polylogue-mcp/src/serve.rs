//! An MCP server: offers tools to other programs, over pipes and over HTTP.

mod answer;
mod caller;
mod form;
mod handler;
mod host;
mod http;
mod lines;
mod task;

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{ConfigError, Error, Result};
use rmcp::serve_server;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

pub use answer::{Answer, progress_line};
pub use caller::{Caller, UserAnswer};
pub use form::{FormAnswer, FormQuestion};
pub use host::{InvalidParams, Reply, ServedTool, ToolHost};
pub use http::{HttpBody, HttpOptions, HttpServer};
pub use task::{TaskProgress, TaskReport};

use handler::Handler;
use lines::Lines;

/// How long calls may take to end after their client has disconnected.
const LAST: Duration = Duration::from_secs(10);

/// Serves a client over standard input and output, `input` and `output`, until the client closes the input. Calls in flight are
/// then cancelled and awaited.
///
/// # Errors
/// When the client does not begin with an MCP handshake.
pub async fn serve(
    host: impl ToolHost,
    about: &str,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let in_flight = Arc::new(watch::Sender::new(0));
    let handler = Handler::of_pipes(Arc::new(host), about, Arc::clone(&in_flight));
    let (lines, ends) = Lines::between(input, output);
    let served = match serve_server(handler, ends).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| Error::Bug(error.to_string())),
        Err(error) => Err(ConfigError::invalid("the MCP handshake of the client", error.to_string()).into()),
    };
    lines.end().await;
    served?;
    // Calls that do not end in time are aborted; their logs remain valid.
    let _ = tokio::time::timeout(LAST, in_flight.subscribe().wait_for(|count| *count == 0)).await;
    Ok(())
}
