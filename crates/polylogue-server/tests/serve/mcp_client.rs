//! A client of MCP that sends exactly what a test says: of both kinds of the protocol.

use serde_json::{Value, json};

use crate::client::{Frame, Request, Response, Stream};
use crate::world::World;

pub(crate) const STATELESS: &str = "2026-07-28";
pub(crate) const SESSIONS: &str = "2025-11-25";

/// Capabilities of clients.
pub(crate) fn elicitation() -> Value {
    json!({"elicitation": {"form": {}}})
}

pub(crate) fn tasks() -> Value {
    json!({"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn posted(world: &World, path: &str, body: &Value) -> Request {
    world.request("POST", path).header("Accept", "application/json, text/event-stream").json(body)
}

/// A request of the protocol without sessions, by a client with `capabilities`.
pub(crate) fn request(world: &World, method: &str, mut params: Value, capabilities: &Value) -> Request {
    request_at(world, "/mcp", method, &mut params, capabilities)
}

pub(crate) fn request_at(
    world: &World,
    path: &str,
    method: &str,
    params: &mut Value,
    capabilities: &Value,
) -> Request {
    let version = params["_meta"]["version"].as_str().unwrap_or(STATELESS).to_owned();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request =
        posted(world, path, &body).header("MCP-Protocol-Version", &version).header("Mcp-Method", method);
    let name = if method.starts_with("tasks/") { &params["taskId"] } else { &params["name"] };
    match name.as_str() {
        Some(name) => request.header("Mcp-Name", name),
        None => request,
    }
}

/// A call of a tool without a session.
pub(crate) fn call(world: &World, tool: &str, arguments: Value, capabilities: &Value) -> Request {
    request(world, "tools/call", json!({"name": tool, "arguments": arguments}), capabilities)
}

/// The messages of a response: of an event stream, or the only one.
pub(crate) fn messages(response: &Response) -> Vec<Value> {
    if response.body.starts_with('{') {
        return vec![response.json()];
    }
    let data = response.body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The result of a response, which must have one.
pub(crate) fn result(response: &Response) -> Value {
    let last = messages(response).pop().unwrap_or_else(|| panic!("no message: `{}`", response.body));
    assert!(last["result"].is_object(), "{last}");
    last["result"].clone()
}

/// The status and the code of an error.
pub(crate) fn failure(response: &Response) -> (u16, i64) {
    let last = messages(response).pop().unwrap_or_else(|| panic!("no message: `{}`", response.body));
    (response.status, last["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {last}")))
}

/// Calls a tool without a session, and returns its result.
pub(crate) async fn called(world: &World, tool: &str, arguments: Value, capabilities: &Value) -> Value {
    result(&world.send(call(world, tool, arguments, capabilities)).await)
}

/// A client with a session.
pub(crate) struct Session<'w> {
    pub(crate) world: &'w World,
    pub(crate) id: String,
    pub(crate) version: String,
}

impl<'w> Session<'w> {
    pub(crate) async fn open(world: &'w World, version: &str, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let response = world.send(posted(world, "/mcp", &body)).await;
        assert_eq!(result(&response)["protocolVersion"], version);
        let id = response.header("mcp-session-id").unwrap().to_owned();
        let session = Self { world, id, version: version.into() };
        assert_eq!(session.notify("notifications/initialized", json!({})).await.status, 202);
        session
    }

    pub(crate) fn headed(&self, request: Request) -> Request {
        request.header("Mcp-Session-Id", &self.id).header("MCP-Protocol-Version", &self.version)
    }

    pub(crate) fn request(&self, id: u64, method: &str, params: &Value) -> Request {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.headed(posted(self.world, "/mcp", &body))
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) -> Response {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.world.send(self.headed(posted(self.world, "/mcp", &body))).await
    }

    /// Responds to a request of the server.
    pub(crate) async fn respond(&self, id: &Value, result: Value) {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result});
        assert_eq!(self.world.send(self.headed(posted(self.world, "/mcp", &body))).await.status, 202);
    }

    pub(crate) fn call(&self, id: u64, tool: &str, arguments: Value) -> Request {
        self.request(
            id,
            "tools/call",
            &json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": id}}),
        )
    }
}

/// The next frame with a message.
pub(crate) async fn message(stream: &mut Stream) -> Option<(Frame, Value)> {
    loop {
        let frame = stream.frame().await?;
        if !frame.data.is_empty() {
            let message = frame.json();
            return Some((frame, message));
        }
    }
}
