//! `/api/v1/conversations/{id}/files`: the files that agents have written, wherever the process is that ran the conversation.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::stream::try_unfold;
use polylogue_core::{FileEntry, FileKind, FilePath, FileTree};
use polylogue_runtime::files::RunFiles;
use polylogue_wire::Scope;
use polylogue_wire::files::{File, Files, Folder, LeftOut, Link};

use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::problem::Problem;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations/{id}/files", Scope::Read, list)
            .about("The files that its agents have written until the end of its last finished call"),
        Route::get("/api/v1/conversations/{id}/files/content", Scope::Read, content)
            .about("One of these files")
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
    json_reply(StatusCode::OK, &document(found(&call).await?.tree()))
}

/// What of a tree a client can have: a path that is no text is in no document and in no query.
fn document(FileTree { entries, left_out }: &FileTree) -> Files {
    let left_out =
        left_out.iter().map(|left| LeftOut { path: left.path.to_string(), why: left.why.to_string() });
    let mut found = Files { left_out: left_out.collect(), ..Files::default() };
    for FileEntry { path, kind } in entries {
        match (path, kind) {
            (FilePath::Text(path), FileKind::File { mode, bytes, .. }) => {
                found.files.push(File { path: path.clone(), bytes: *bytes, mode: *mode });
            }
            (FilePath::Text(path), FileKind::Folder { mode }) => {
                found.folders.push(Folder { path: path.clone(), mode: *mode });
            }
            (FilePath::Text(path), FileKind::Link { to: FilePath::Text(to) }) => {
                found.links.push(Link { path: path.clone(), to: to.clone() });
            }
            (path, _) => {
                let why = "its name, or the target of the link, is not UTF-8".into();
                found.left_out.push(LeftOut { path: path.to_string(), why });
            }
        }
    }
    found
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
