//! Two tools that read the resources of a server, because models can only call tools.

use std::sync::Arc;

use polylogue_core::ToolResult;
use rmcp::RoleClient;
use rmcp::model::{JsonObject, PaginatedRequestParams, ReadResourceRequestParams, Tool, ToolAnnotations};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Value, json};

use crate::outcome::{described, of_contents};
use crate::settings::Limits;

const LIST: &str = "list_resources";
const READ: &str = "read_resource";

/// The two tools for a server with resources; `None` if the server has a tool with the same name.
pub(crate) fn tools(peer: &Peer<RoleClient>, own: &[Tool]) -> Vec<Tool> {
    let has_resources = peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some());
    if !has_resources || own.iter().any(|tool| tool.name == LIST || tool.name == READ) {
        return Vec::new();
    }
    let uri = json!({"type": "string", "description": "Its URI, as listed"});
    vec![
        tool(LIST, "Lists the resources: their names, URIs and what they are.", json!({"type": "object"})),
        tool(
            READ,
            "Reads a resource.",
            json!({"type": "object", "properties": {"uri": uri}, "required": ["uri"]}),
        ),
    ]
}

fn tool(name: &'static str, about: &'static str, schema: Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new(name, about, Arc::new(schema)).with_annotations(ToolAnnotations::new().read_only(true))
}

/// Calls `tool`, one of the two.
///
/// # Errors
/// When the server fails.
pub(crate) async fn call(
    peer: &Peer<RoleClient>,
    tool: &str,
    args: &JsonObject,
    limits: Limits,
) -> Result<ToolResult, ServiceError> {
    if tool == LIST {
        return list(peer, limits.tools).await;
    }
    let Some(uri) = args.get("uri").and_then(Value::as_str) else {
        return Ok(ToolResult::failed("`uri` must be a text: which resource to read"));
    };
    let read = peer.read_resource(ReadResourceRequestParams::new(uri)).await?;
    Ok(of_contents(read.contents, limits.media_bytes))
}

/// The first `most` resources, of as many pages at most, one per line.
async fn list(peer: &Peer<RoleClient>, most: usize) -> Result<ToolResult, ServiceError> {
    let (mut lines, mut cursor) = (Vec::new(), None);
    for _ in 0..most {
        let page = peer.list_resources(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        lines.extend(page.resources.iter().map(described));
        cursor = page.next_cursor;
        if cursor.is_none() || lines.len() >= most {
            break;
        }
    }
    if lines.len() > most || cursor.is_some() {
        lines.truncate(most);
        lines.push("(there are more, which are not listed)".into());
    }
    let text = if lines.is_empty() { "(there are no resources)".into() } else { lines.join("\n") };
    Ok(ToolResult::done(text))
}
