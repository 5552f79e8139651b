//! The work directories of conversations, and whether programs can run in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{AnyStore, Body, Event, LogId, StoredFiles, ToolStatus};
use polylogue_files::make_private_folder;
use polylogue_sandbox::{remove_work_directory, what_is_enforced};
use polylogue_team::{BuildContext, SandboxBackend, Team};

use crate::{Access, Error, FilesPolicy, Result, StoreLocation};

impl StoreLocation {
    /// What the agents of `team` are built with in the conversation `id`: its work directory, and what they may use.
    pub(crate) fn context(
        &self,
        team: &Team,
        id: &LogId,
        access: &Access,
        project: Option<&Path>,
    ) -> Result<BuildContext> {
        let context = match (team.needs_workplace(), project) {
            (true, Some(project)) => BuildContext::project(project),
            (true, None) if *self.files() == FilesPolicy::Kept => {
                BuildContext::at(self.work_dir(id)?).keeping_files()
            }
            (true, None) => BuildContext::at(self.work_dir(id)?),
            (false, _) => BuildContext::none(),
        };
        let context = context.grant(access.all_grants()).with_env(access.env.clone());
        Ok(context.with_rules(access.rules.clone(), access.digest.clone()))
    }

    /// Makes the work directory of the conversation `id` with the files that the team brings along, if the team runs
    /// programs and the directory does not exist.
    pub(crate) fn make_work_dir(&self, team: &Team, id: &LogId) -> Result<()> {
        if !team.needs_workplace() {
            return Ok(());
        }
        self.check_volume()?;
        let path = self.work_dir(id)?;
        let made = team.prepare(&path);
        made.map_err(|error| Error::Io { path, what: "made", why: error.to_string() })
    }

    /// Makes the work directory of the conversation `id`, of which `events` are the log, what the [`FilesPolicy`] says that a process begins with.
    pub(crate) async fn restore_work_dir(
        &self,
        team: &Team,
        id: &LogId,
        store: &AnyStore,
        events: &[Arc<Event>],
    ) -> Result<()> {
        if !team.needs_workplace() {
            return Ok(());
        }
        self.check_volume()?;
        let calls = || UnstoredCalls::of(team, events);
        match (self.files(), StoredFiles::last_of(events)) {
            (FilesPolicy::Kept, Some(files)) => {
                restored(&self.work_dir(id)?, id, (&files, calls().is_any_in_flight), store).await
            }
            // What a call that did not finish has left is no part of the conversation.
            (FilesPolicy::Kept, None) if !calls().has_results => self.make_again(team, id),
            (FilesPolicy::None, _) => self.make_again(team, id),
            (FilesPolicy::Kept | FilesPolicy::Local | FilesPolicy::Volume(_), _) => Ok(()),
        }
    }

    /// Removes the work directory of the conversation `id`, of which `events` are the log, if a process that continues it begins with the same files
    /// without it: all are stored with the conversation, or none are its own. Returns whether it was removed.
    pub(crate) async fn remove_stored_work_dir(
        &self,
        team: &Team,
        id: &LogId,
        events: &[Arc<Event>],
    ) -> Result<bool> {
        if !team.needs_workplace() || *self.files() != FilesPolicy::Kept {
            return Ok(false);
        }
        let calls = UnstoredCalls::of(team, events);
        let is_all_stored = StoredFiles::last_of(events).is_none_or(|files| files.left_out == 0);
        if !is_all_stored || calls.has_results || calls.is_any_in_flight {
            return Ok(false);
        }
        let path = self.work_dir(id)?;
        let removing = path.clone();
        let removed = tokio::task::spawn_blocking(move || remove_work_directory(&removing)).await;
        match removed.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => Ok(true),
            Err(error) => Err(Error::Io { path, what: "removed", why: error.to_string() }),
        }
    }

    fn make_again(&self, team: &Team, id: &LogId) -> Result<()> {
        self.remove_work_dir(id)?;
        self.make_work_dir(team, id)
    }

    /// Copies the work directory of the conversation `from` for the conversation `to`: files, folders and links.
    pub(crate) fn copy_work_dir(&self, from: &LogId, to: &LogId) -> Result<()> {
        let path = self.work_dir(to)?;
        let copied = copy_folder(&self.work_dir(from)?, &path).inspect_err(|_| {
            // Half a copy is none. Why it was not made is the error that counts.
            let _ = remove_work_directory(&path);
        });
        copied.map_err(|error| Error::Io { path, what: "copied", why: error.to_string() })
    }

    /// Removes the work directory of the conversation `id`, if there is one.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove_work_dir(&self, id: &LogId) -> Result<()> {
        let path = self.work_dir(id)?;
        let removed = remove_work_directory(&path);
        removed.map_err(|error| Error::Io { path, what: "removed", why: error.to_string() })
    }
}

/// Makes `dir` what the stored `files` of the conversation `id` say. A call that is `in_flight` may write into the one that is there.
#[cfg(unix)]
pub(crate) async fn restored(
    dir: &Path,
    id: &LogId,
    (files, in_flight): (&StoredFiles, bool),
    store: &AnyStore,
) -> Result<()> {
    use polylogue_tools::files::{RestoreError, restore};

    match restore(dir, files, in_flight, store, id).await {
        Ok(_) => Ok(()),
        Err(RestoreError::Store(error)) => Err(polylogue_core::Error::from(error).into()),
        Err(error) => Err(Error::Io { path: dir.to_owned(), what: "restored", why: error.to_string() }),
    }
}

#[cfg(not(unix))]
pub(crate) async fn restored(_: &Path, _: &LogId, _: (&StoredFiles, bool), _: &AnyStore) -> Result<()> {
    Ok(())
}

/// The calls that may have changed the work directory since its files were stored last.
#[derive(Default)]
struct UnstoredCalls {
    /// Whether one of them has ended well: the directory has what no store has, such as when it was not kept before.
    has_results: bool,
    /// Whether one of them has not ended, or in a way that is unknown: a process that has lost the conversation may still run it.
    is_any_in_flight: bool,
}

impl UnstoredCalls {
    fn of(team: &Team, events: &[Arc<Event>]) -> Self {
        let (mut calls, mut is_any_unknown) = (Self::default(), false);
        let (mut open, mut known) = (BTreeSet::new(), BTreeMap::new());
        for event in events {
            match &event.body {
                Body::ToolCalled { who, call } => {
                    let tool = &*call.tool;
                    if *known.entry(tool).or_insert_with(|| team.may_change_files(tool)) {
                        open.insert((&event.chat, who, &*call.id));
                    }
                }
                Body::ToolReturned { who, id, result } if open.remove(&(&event.chat, who, &**id)) => {
                    match result.status {
                        _ if result.files.is_some() => (calls.has_results, is_any_unknown) = (false, false),
                        ToolStatus::Done => calls.has_results = true,
                        ToolStatus::Unknown => is_any_unknown = true,
                        ToolStatus::Failed => {}
                    }
                }
                _ => {}
            }
        }
        calls.is_any_in_flight = is_any_unknown || !open.is_empty();
        calls
    }
}

/// Copies a folder. What is neither a file nor a folder nor a link, such as a socket, means nothing to other processes, and is
/// left out.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    make_private_folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, path) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &path)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), path)?;
        } else if kind.is_symlink() {
            copy_link(&entry.path(), &path)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns why programs of `team` would be refused on this machine, one text for each sandbox backend that it uses.
pub fn refused_programs(team: &Team) -> Vec<String> {
    team.runs_programs_at().into_iter().filter_map(refusal).collect()
}

/// Why programs are refused there; `None` if they run.
pub(crate) fn refusal(backend: SandboxBackend) -> Option<String> {
    match backend {
        SandboxBackend::Native => {
            let missing = what_is_enforced().into_iter().find(|measure| measure.required && !measure.holds);
            missing.map(|measure| measure.detail)
        }
        SandboxBackend::Docker => unanswered("docker"),
        SandboxBackend::Podman => unanswered("podman"),
        SandboxBackend::None => None,
    }
}

#[cfg(unix)]
fn unanswered(engine: &str) -> Option<String> {
    let error = polylogue_sandbox::Engine::new(engine, "").answers().err()?;
    let error = error.to_string();
    let why = error.lines().next()?;
    Some(why.strip_prefix("the sandbox does not work here: ").unwrap_or(why).to_owned())
}

#[cfg(not(unix))]
fn unanswered(_: &str) -> Option<String> {
    None
}
