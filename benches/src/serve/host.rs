//! The process with the server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue::kernel::data::LogId;
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Prepared, Runtime, StoreLocation};
use polylogue_server::{Server, ServerLimits, ServerOptions, SourceError, TeamSource};
use polylogue_team::{Diagnostics, Loaded, Overrides};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::child::{Process, answer_lines};
use crate::job::{Cost, Result};
use crate::meter::Meter;
use crate::scripted::{TEAMS, asking, of_team, prepared, team};

/// What the host prints when it serves.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    pub(super) url: String,
    pub(super) token: String,
}

struct Texts(BTreeMap<String, String>);

impl TeamSource for Texts {
    fn ids(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    fn rescan(&self, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn file(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn check(
        &self,
        _: Option<&str>,
        text: &str,
        _: &[std::path::PathBuf],
    ) -> std::result::Result<Loaded, Diagnostics> {
        polylogue_team::parse(text, "team.yaml", &Overrides::default())
    }

    fn prepare<'a>(
        &'a self,
        team: &'a str,
        place: &'a StoreLocation,
    ) -> BoxFuture<'a, std::result::Result<Prepared, SourceError>> {
        Box::pin(async move {
            let text = self.0.get(team).ok_or_else(|| failed("there is no such team"))?;
            prepared(text, place).await.map_err(failed)
        })
    }

    fn prepare_stored<'a>(
        &'a self,
        runtime: &'a Runtime,
        _: &'a LogId,
        document: &'a StoredDocument,
    ) -> BoxFuture<'a, std::result::Result<Prepared, SourceError>> {
        Box::pin(async move {
            let stored = document.team().map_err(failed)?;
            of_team(stored.team, stored.digest, runtime.place()).await.map_err(failed)
        })
    }

    fn is_for_any_task(&self, _: &Prepared) -> bool {
        true
    }
}

fn failed(why: impl ToString) -> SourceError {
    SourceError { what: why.to_string(), hint: None, is_usage: false }
}

/// Limits that the measurement does not reach.
fn limits() -> ServerLimits {
    const MANY: usize = 100_000;
    ServerLimits {
        connections: MANY,
        connections_per_address: MANY,
        requests_per_second: 1_000_000,
        request_burst: 1_000_000,
        streams_per_token: MANY,
        running_per_token: MANY,
        running: MANY,
        queued: MANY,
        head_time: Duration::from_secs(600),
        ..ServerLimits::default()
    }
}

/// Serves with a store in `folder`. For each line of its input it prints what it has consumed since the last one; it ends with its input.
pub(crate) fn host(folder: &str) -> Result<()> {
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut texts: BTreeMap<String, String> = TEAMS
            .iter()
            .map(|(name, turns, delay)| ((*name).to_owned(), team(name, *turns, *delay)))
            .collect();
        texts.insert("asks".into(), asking());
        let place = StoreLocation::new(Path::new(folder).join("bench.db"));
        let options =
            ServerOptions { limits: limits(), ..ServerOptions::new(([127, 0, 0, 1], 0).into(), place) };
        let mut server = Server::bind(options, Arc::new(Texts(texts))).await?;
        let token = server.take_first_token().ok_or("there was a token before")?;
        let ready = Ready { url: server.url(), token: token.reveal().to_owned() };
        println!("{}", serde_json::to_string(&ready)?);
        let mut meter = Meter::start();
        let stopped = answer_lines(move || std::mem::replace(&mut meter, Meter::start()).stop());
        server.run(async { drop(stopped.await) }).await;
        Ok(())
    })
}

/// The process with the server, as its clients see it.
pub(super) struct Host {
    process: Process,
    pub(super) ready: Ready,
    _folder: TempDir,
}

impl Host {
    pub(super) fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut process = Process::start(&[crate::job::HOST.as_ref(), folder.path().as_ref()])?;
        Ok(Self { ready: process.next()?, process, _folder: folder })
    }

    /// What it has consumed since the last time.
    pub(super) fn cost(&mut self) -> Result<Cost> {
        self.process.ask()
    }
}

/// Raises the limit of open files of this process as far as it may. `None`: there is no limit.
pub(super) fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    if let Err(error) = raised {
        eprintln!("the limit of open files cannot be raised: {error}");
    }
    getrlimit(Resource::Nofile).current
}
