//! An MCP server: offers tools to other programs.

mod caller;
mod lines;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polylogue_core::{ConfigError, Error, Result, ToolSpec};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelledNotificationParam, ContentBlock,
    ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    RequestId, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler, serve_server};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};

pub use caller::{Caller, UserAnswer};
use lines::Lines;

/// How long calls may take to end after their client has disconnected.
const LAST: Duration = Duration::from_secs(10);

/// Handles the calls of clients.
pub trait ToolHost: Send + Sync + 'static {
    /// Its tools.
    fn tools(&self) -> &[ToolSpec];

    /// Handles a call of `tool`, one of [its tools](Self::tools). When the caller [cancels](Caller::cancelled) the call, it should
    /// return soon; its result is then dropped.
    fn call(
        &self,
        tool: &str,
        args: serde_json::Map<String, Value>,
        caller: &mut Caller,
    ) -> impl Future<Output = Answer> + Send;
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Texts, each a content block.
    pub texts: Vec<String>,
    /// Structured content, an object.
    pub value: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

impl Answer {
    /// A call that failed, and why.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { texts: vec![why.into()], value: None, is_error: true }
    }
}

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
    let tools = host.tools().iter().map(listed).collect();
    let in_flight = Arc::new(watch::Sender::new(0));
    let tool_server = ToolServer {
        host,
        tools,
        about: about.to_owned(),
        waiting: Arc::default(),
        in_flight: Arc::clone(&in_flight),
    };
    let (lines, ends) = Lines::between(input, output);
    let served = match serve_server(tool_server, ends).await {
        Ok(service) => service.waiting().await.map(drop).map_err(|error| Error::Bug(error.to_string())),
        Err(error) => Err(ConfigError::invalid("the MCP handshake of the client", error.to_string()).into()),
    };
    lines.end().await;
    served?;
    // Calls that do not end in time are aborted; their logs remain valid.
    let _ = tokio::time::timeout(LAST, in_flight.subscribe().wait_for(|count| *count == 0)).await;
    Ok(())
}

fn listed(spec: &ToolSpec) -> Tool {
    let schema = spec.parameters.as_object().cloned().unwrap_or_default();
    let tool = Tool::new(spec.name.clone(), spec.description.clone(), Arc::new(schema));
    let hints = ToolAnnotations::new().read_only(spec.repeatable);
    tool.with_annotations(hints)
}

/// The calls in flight that wait for a cancellation and its reason.
type Waiting = Arc<Mutex<HashMap<RequestId, oneshot::Sender<Option<String>>>>>;

struct ToolServer<H> {
    host: H,
    tools: Vec<Tool>,
    about: String,
    waiting: Waiting,
    in_flight: Arc<watch::Sender<usize>>,
}

impl<H: ToolHost> ServerHandler for ToolServer<H> {
    fn get_info(&self) -> ServerConfig {
        let who = Implementation::new("polylogue", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(who)
            .with_instructions(self.about.clone())
    }

    /// The protocol versions in which a server can ask the user during a call.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> std::result::Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> std::result::Result<CallToolResponse, ErrorData> {
        if !self.tools.iter().any(|tool| tool.name == request.name) {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        }
        let (sender, cancelled) = oneshot::channel();
        let id = context.id.clone();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), sender);
        let _place = InFlightGuard { tool_server: (&self.waiting, &self.in_flight), id };
        self.in_flight.send_modify(|count| *count += 1);
        let mut caller = Caller::new(context, cancelled);
        let args: JsonObject = request.arguments.unwrap_or_default();
        let answer = self.host.call(&request.name, args, &mut caller).await;
        Ok(CallToolResponse::Complete(result(answer)))
    }

    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _: NotificationContext<RoleServer>) {
        let Some(id) = cancelled.request_id else { return };
        let sender = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        // A receiver that is dropped no longer waits.
        sender.into_iter().for_each(|sender| drop(sender.send(cancelled.reason.clone())));
    }
}

fn result(answer: Answer) -> CallToolResult {
    let texts = answer.texts.into_iter().map(ContentBlock::text).collect();
    let mut result =
        if answer.is_error { CallToolResult::error(texts) } else { CallToolResult::success(texts) };
    result.structured_content = answer.value;
    result
}

/// The entry of a call in flight.
struct InFlightGuard<'a> {
    tool_server: (&'a Waiting, &'a watch::Sender<usize>),
    id: RequestId,
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        let (waiting, in_flight) = self.tool_server;
        waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        in_flight.send_modify(|count| *count -= 1);
    }
}
