//! The work directories of conversations, and whether programs can run in them.

use polylogue_core::LogId;
use polylogue_sandbox::{remove_work_directory, what_is_enforced};
use polylogue_team::{BuildContext, SandboxBackend, Team};

use crate::{Access, Error, Place, Result};

impl Place {
    /// What the agents of `team` are built with in the conversation `id`: its work directory, and what they may use.
    pub(crate) fn context(&self, team: &Team, id: &LogId, access: &Access) -> Result<BuildContext> {
        let context = match team.needs_workplace() {
            true => BuildContext::at(self.work_dir(id)?),
            false => BuildContext::none(),
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
        let path = self.work_dir(id)?;
        let made = team.prepare(&path);
        made.map_err(|error| Error::Io { path, what: "made", why: error.to_string() })
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

/// Why programs of `team` would be refused on this machine, one text for each sandbox backend that it uses.
#[must_use]
pub fn refused_programs(team: &Team) -> Vec<String> {
    team.runs_programs_at().into_iter().filter_map(refusal).collect()
}

fn refusal(backend: SandboxBackend) -> Option<String> {
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
    Some(why.strip_prefix("programs cannot be enclosed here: ").unwrap_or(why).to_owned())
}

#[cfg(not(unix))]
fn unanswered(_: &str) -> Option<String> {
    None
}
