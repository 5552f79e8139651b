//! A connection to one server, from handshake to end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use polylogue_core::ToolResult;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    JsonObject, PaginatedRequestParams, PingRequest, ProgressNotificationParam, ProtocolVersion,
    ServerResult, Tool,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RunningService, ServiceError,
};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient, serve_client};
use tokio::sync::{Mutex, Notify};
use tokio::time::{sleep, timeout};

use crate::address::RemoteClient;
use crate::declaration::ServerLocation;
use crate::expand::Secrets;
use crate::outcome::{finished, outcome};
use crate::output::{ExceededLimit, Output};
use crate::process::Process;
use crate::progress::ActiveCalls;
use crate::resources;
use crate::settings::Limits;
use crate::settings::Settings;

/// Timeout of a ping after a call timed out.
const PING: Duration = Duration::from_secs(5);

/// How long to wait for the exit status of a server.
const EXIT_STATUS: Duration = Duration::from_secs(2);

/// A connection to a running server. Dropping it terminates the server.
pub(crate) struct Connection {
    service: RunningService<RoleClient, Client>,
    /// `None` for a remote server.
    process: Option<Mutex<Process>>,
    tools: RwLock<Listed>,
    /// How many of the reported changes `tools` has. Locked while the tools are listed again.
    listed_changes: Mutex<u64>,
    exceeded: Arc<ExceededLimit>,
    secrets: Secrets,
    limits: Limits,
}

/// The tools of a server.
#[derive(Clone, Default)]
struct Listed {
    tools: Arc<[Tool]>,
    /// How many of them, at the end, are the client's own tools for resources.
    ours: usize,
}

/// Why a call has no result, and whether the server can be called again without a restart.
pub(crate) struct Broken {
    pub(crate) why: String,
    pub(crate) lives: bool,
}

/// Capabilities of the client, and the notifications it accepts.
///
/// It accepts progress and changes of tools, and ignores logs. It offers nothing else: no sampling, no roots, no elicitation.
struct Client {
    /// How often the server reported that its tools have changed.
    changes: AtomicU64,
    active: ActiveCalls,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let who = Implementation::new("polylogue", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), who)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.active.report(said);
    }
}

impl Connection {
    /// Starts the server or connects to it, and lists its tools.
    ///
    /// # Errors
    /// When that fails; the text follows the name of the server.
    pub(crate) async fn open(
        location: &ServerLocation,
        settings: &Settings,
        active: ActiveCalls,
    ) -> Result<Self, String> {
        let limits = settings.limits;
        let exceeded: Arc<ExceededLimit> = Arc::default();
        let client = Client { changes: AtomicU64::new(0), active };
        let (mut process, served) = match location {
            ServerLocation::Launch(launch) => {
                let (process, output, input) = Process::start(launch)?;
                let output = Output::new(output, limits.message_bytes, Arc::clone(&exceeded));
                // The protocol's own limit is above ours.
                let pipes = AsyncRwTransport::new_client(output, input)
                    .with_max_line_length(limits.message_bytes + 1);
                (Some(process), serve_client(client, pipes).boxed())
            }
            ServerLocation::Address(address) => {
                let there = RemoteClient::new(address, settings, &exceeded)?;
                (None, serve_client(client, there.transport()).boxed())
            }
        };
        let opening = async {
            let service = served.await.map_err(|error| unopened(&error))?;
            let tools = list(&service, limits.tools).await.map_err(|error| said(&error))?;
            Ok::<_, String>((service, tools))
        };
        let why = match timeout(limits.start, opening).await {
            Ok(Ok((service, tools))) => {
                let (process, tools) = (process.map(Mutex::new), RwLock::new(tools));
                let (secrets, listed_changes) = (location.secrets().clone(), Mutex::new(0));
                return Ok(Self { service, process, tools, listed_changes, exceeded, secrets, limits });
            }
            Ok(Err(why)) => match (exceeded.in_words(limits.message_bytes), &process) {
                (Some(limit), _) => limit,
                (None, None) => format!("cannot be reached as an MCP server: {why}"),
                (None, Some(_)) => format!("did not start as an MCP server: {why}"),
            },
            Err(_) => format!("was not ready within {} s", limits.start.as_secs_f32()),
        };
        let ended = match &mut process {
            Some(process) => exit_text(process).await,
            None => String::new(),
        };
        Err(location.secrets().without_all(&format!("{why}{ended}")))
    }

    /// Whether it can be called.
    pub(crate) fn lives(&self) -> bool {
        !self.service.is_closed() && !self.service.is_transport_closed()
    }

    /// Its known tools.
    pub(crate) fn tools(&self) -> Arc<[Tool]> {
        self.listed().tools
    }

    fn listed(&self) -> Listed {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lists its tools again, if it reported a change. Calls that come meanwhile wait for the list: with the old one they would
    /// call a tool that has changed. A call that is cancelled meanwhile leaves the change to the next.
    ///
    /// # Errors
    /// When it does not respond.
    pub(crate) async fn refresh_tools(&self) -> Result<(), Broken> {
        let mut listed = self.listed_changes.lock().await;
        let reported = self.service.service().changes.load(Ordering::Acquire);
        if *listed == reported {
            return Ok(());
        }
        let tools = match timeout(self.limits.start, list(&self.service, self.limits.tools)).await {
            Ok(Ok(tools)) => tools,
            Ok(Err(error)) => return Err(self.broken(error).await),
            Err(_) => return Err(self.too_slow("list its tools", self.limits.start).await),
        };
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = tools;
        *listed = reported;
        Ok(())
    }

    /// Calls `tool`. Dropping the future cancels the call on the server.
    ///
    /// # Errors
    /// When there is no result.
    pub(crate) async fn call(&self, tool: String, args: JsonObject) -> Result<ToolResult, Broken> {
        let answered = self.answer_in_time(tool, args).await;
        match answered {
            Ok(Ok(Some(outcome))) => Ok(finished(outcome, &self.secrets)),
            Ok(Ok(None)) => {
                let why = "asks for more than arguments before it answers, which is not supported".into();
                Err(Broken { why, lives: true })
            }
            Ok(Err(error)) => Err(self.broken(error).await),
            Err(limit) => Err(self.too_slow("answer", limit).await),
        }
    }

    /// The result of a call. When a limit is reached first, the call is cancelled and the limit is the error.
    async fn answer_in_time(
        &self,
        tool: String,
        args: JsonObject,
    ) -> Result<Result<Option<ToolResult>, ServiceError>, Duration> {
        let Limits { call: patience, call_in_all: in_all, .. } = self.limits;
        let notify = Arc::default();
        let mut answer = std::pin::pin!(timeout(in_all, self.answer(tool, args, &notify)));
        loop {
            tokio::select! {
                biased;
                answered = &mut answer => return answered.map_err(|_| in_all),
                // A server that reports progress does not hang.
                () = notify.notified() => {}
                () = sleep(patience) => return Err(patience),
            }
        }
    }

    /// The result of a call; `None` if the server requests input first.
    async fn answer(
        &self,
        tool: String,
        args: JsonObject,
        notify: &Arc<Notify>,
    ) -> Result<Option<ToolResult>, ServiceError> {
        let Listed { tools, ours } = self.listed();
        if tools.iter().rev().take(ours).any(|own| own.name == tool) {
            return resources::call(&self.service, &tool, &args, self.limits).await.map(Some);
        }
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle = self.service.send_request_with_option(request, PeerRequestOptions::no_options()).await?;
        let mut flight = self.service.service().active.follow(&handle, &tool, notify);
        let answered = handle.await_response().await;
        flight.is_answered = true;
        match answered? {
            ServerResult::CallToolResult(result) => Ok(Some(outcome(result, self.limits.media_bytes))),
            ServerResult::InputRequiredResult(_) | ServerResult::CreateTaskResult(_) => Ok(None),
            _ => Err(ServiceError::UnexpectedResponse),
        }
    }

    /// Whether the server hangs: it can be slow with one call and still handle others, unless it does not even respond to a ping.
    async fn too_slow(&self, what: &str, limit: Duration) -> Broken {
        let lives = self.answers_ping().await;
        let then = if lives { "the call was cancelled" } else { "it no longer responds" };
        let why = format!("did not {what} within {} s, and {then}", limit.as_secs_f32());
        Broken { why, lives }
    }

    async fn answers_ping(&self) -> bool {
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let ping = async {
            let options = PeerRequestOptions::with_timeout(PING);
            self.service.send_request_with_option(ping, options).await?.await_response().await
        };
        // An error response is a response, too.
        matches!(timeout(PING, ping).await, Ok(Ok(_) | Err(ServiceError::McpError(_))))
    }

    async fn broken(&self, error: ServiceError) -> Broken {
        let limit = self.exceeded.in_words(self.limits.message_bytes);
        let why = match (&error, limit) {
            (ServiceError::McpError(refused), _) => format!("refused: {}", refused.message),
            (_, Some(limit)) => limit,
            (ServiceError::TransportClosed | ServiceError::TransportSend(_), None) => match &self.process {
                Some(process) => {
                    format!("ended before it answered{}", exit_text(&mut *process.lock().await).await)
                }
                None => match &error {
                    ServiceError::TransportSend(sent) => format!("did not answer: {}", causes(sent)),
                    _ => "broke off the connection before it answered".to_owned(),
                },
            },
            (error, None) => said(error),
        };
        Broken { why: self.secrets.without_all(&why), lives: matches!(error, ServiceError::McpError(_)) }
    }
}

/// The first `most` tools of a server, of as many pages at most, and those that read its resources: a server may name a next page
/// without an end.
async fn list(peer: &Peer<RoleClient>, most: usize) -> Result<Listed, ServiceError> {
    let (mut tools, mut cursor) = (Vec::new(), None);
    let has_tools = peer.peer_info().is_none_or(|info| info.capabilities.tools.is_some());
    let pages = if has_tools { most } else { 0 };
    for _ in 0..pages {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || tools.len() >= most {
            break;
        }
    }
    tools.truncate(most);
    let ours = resources::tools(peer, &tools);
    let count = ours.len();
    tools.extend(ours);
    Ok(Listed { tools: tools.into(), ours: count })
}

/// Why there is no connection.
fn unopened(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => causes(error),
        error => error.to_string(),
    }
}

/// The innermost cause of an error.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    let text = innermost.to_string();
    // What follows this text describes the transport, which is not a cause.
    text.strip_prefix("Client error: ").map_or(text.clone(), str::to_owned)
}

fn said(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(refused) => format!("it refused: {}", refused.message),
        ServiceError::UnexpectedResponse => "answered with something else than was asked for".into(),
        error => error.to_string(),
    }
}

/// How the server ended, if it did, and the end of its error output.
async fn exit_text(process: &mut Process) -> String {
    let ended = timeout(EXIT_STATUS, process.ended()).await.ok().flatten();
    let mut text = ended.map(|status| format!(" ({status})")).unwrap_or_default();
    let words = process.last_words();
    if !words.is_empty() {
        text.push_str(&format!("; it last wrote to its error output: {words}"));
    }
    text
}
