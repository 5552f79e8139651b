//! What a team asks for.

use polylogue_team::{Grant, Team, Usage};
use serde::{Deserialize, Serialize};

/// A permission that a team requests for one thing: a host, a path, a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestedPermission {
    /// The permission, by its [word](Grant::word).
    pub permission: String,
    /// The thing that it is for.
    pub what: String,
}

impl RequestedPermission {
    /// Creates a request of the permission `grant` for a thing.
    pub fn new(grant: Grant, what: impl Into<String>) -> Self {
        Self { permission: grant.word().to_owned(), what: what.into() }
    }

    /// Returns the permission; `None` if this version does not know it.
    pub fn grant(&self) -> Option<Grant> {
        Grant::of_word(&self.permission)
    }

    /// Returns whether the team runs without it when it is not allowed.
    pub fn is_optional(&self) -> bool {
        self.grant().is_some_and(Grant::is_optional)
    }

    /// Returns what `team` asks for when it is used as `usage` says.
    pub fn of_team(team: &Team, usage: &Usage) -> Vec<Self> {
        of_grants(team.wants_of(usage))
    }

    /// Returns what the endpoint that `team` calls `name` asks for.
    pub fn of_endpoint(team: &Team, name: &str) -> Vec<Self> {
        of_grants(team.wants_of_endpoint(name))
    }
}

fn of_grants(wants: impl IntoIterator<Item = (Grant, Vec<String>)>) -> Vec<RequestedPermission> {
    let wants = wants.into_iter();
    wants
        .flat_map(|(grant, what)| what.into_iter().map(move |what| RequestedPermission::new(grant, what)))
        .collect()
}
