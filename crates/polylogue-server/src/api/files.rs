//! `/api/v1/conversations/{id}/files`: the files that agents have written, wherever the process is that ran the conversation.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{Method, Response, StatusCode};
use bytes::Bytes;
use futures_util::stream::try_unfold;
use polylogue_core::{FileKind, FilePath, FileTree};
use polylogue_runtime::RunFiles;
use polylogue_wire::Scope;
use polylogue_wire::files::{File, Files, LeftOut};

use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::problem::Problem;
use crate::route::{Access, Route};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/api/v1/conversations/{id}/files",
            Access::Scope(Scope::Read),
            "The files that its agents have written until the end of its last finished call",
            |call| Box::pin(list(call)),
        ),
        Route::new(
            Method::GET,
            "/api/v1/conversations/{id}/files/content",
            Access::Scope(Scope::Read),
            "One of these files",
            |call| Box::pin(content(call)),
        )
        .query(&["path"]),
    ]
}

async fn found(call: &Call) -> Result<RunFiles, Problem> {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let id = find(&tenant, token, call.param("id")).await?.id;
    Ok(tenant.runtime.files(&id).await?)
}

async fn list(call: Call) -> Reply {
    let found = found(&call).await?;
    let FileTree { entries, left_out } = found.tree();
    let files = entries.iter().filter_map(|entry| match entry.kind {
        FileKind::File { bytes, .. } => Some(File { path: entry.path.to_string(), bytes }),
        FileKind::Folder { .. } | FileKind::Link { .. } => None,
    });
    let left_out =
        left_out.iter().map(|left| LeftOut { path: left.path.to_string(), why: left.why.to_string() });
    json_reply(StatusCode::OK, &Files { files: files.collect(), left_out: left_out.collect() })
}

/// Sends a file in pieces, so that no file is in memory as a whole. It is for a disk, whatever it is: models wrote it.
async fn content(call: Call) -> Reply {
    let files = found(&call).await?;
    let path = call.query("path").ok_or_else(|| {
        Problem::bad_request("`path` says which file")
            .hint("`GET /api/v1/conversations/{id}/files` lists them")
    })?;
    let entry = files.file(&FilePath::of(path.as_bytes())).cloned();
    let entry = entry.ok_or_else(|| Problem::not_found("the conversation has no such file"))?;
    let name = path.rsplit('/').next().unwrap_or_default();
    let response = Response::builder()
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_DISPOSITION, format!("attachment; filename*=UTF-8''{}", encoded(name)));
    let pieces = try_unfold((files, entry, 0), |(files, entry, number)| async move {
        let piece = files.piece(&entry, number).await?;
        Ok::<_, polylogue_runtime::Error>(piece.map(|piece| (Bytes::from(piece), (files, entry, number + 1))))
    });
    response.body(Body::from_stream(pieces)).map_err(|error| Problem::internal(error.to_string()))
}

/// A name in a header, as RFC 8187 writes it.
fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => text.push(byte.into()),
            // Writing to a string does not fail.
            byte => drop(write!(text, "%{byte:02X}")),
        }
        text
    })
}
