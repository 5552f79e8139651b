//! What a team may use: environment variables, and what the user allowed it.

use std::collections::BTreeSet;

use polylogue_models::{Env, Prices};
use polylogue_team::{Grant, Rules, Team, Usage};

use crate::stored::Sealer;
use crate::{Error, RequestedPermission, Result};

/// What a run may use: the decisions of the user, as data.
#[derive(Clone)]
pub struct Access {
    /// The variables of the environment: keys of providers, addresses, proxies.
    pub env: Env,
    /// The permissions that are granted as a whole.
    pub grants: BTreeSet<Grant>,
    /// The things that are allowed one by one.
    pub items: BTreeSet<RequestedPermission>,
    /// The user's rules for approvals.
    pub rules: Rules,
    /// Identifies the content that is trusted: rules can be about it.
    pub digest: String,
    /// Seals what is stored with conversations. Default: nothing is sealed, and a resumed team must be allowed again.
    pub sealer: Option<Sealer>,
}

impl Access {
    /// Creates access to nothing but the variables of `env`, for the content `digest`.
    pub fn new(env: Env, digest: impl Into<String>) -> Self {
        Self {
            env,
            grants: BTreeSet::new(),
            items: BTreeSet::new(),
            rules: Rules::default(),
            digest: digest.into(),
            sealer: None,
        }
    }

    /// Returns whether `want` is allowed.
    pub fn has(&self, want: &RequestedPermission) -> bool {
        want.grant().is_some_and(|grant| self.grants.contains(&grant)) || self.items.contains(want)
    }

    /// Returns whether all of `wants` is allowed.
    pub fn covers<'w>(&self, wants: impl IntoIterator<Item = &'w RequestedPermission>) -> bool {
        wants.into_iter().all(|want| self.has(want))
    }

    /// Returns the kinds of permissions of which at least one item is allowed.
    pub fn all_grants(&self) -> BTreeSet<Grant> {
        self.grants.iter().copied().chain(self.items.iter().filter_map(RequestedPermission::grant)).collect()
    }

    /// The models of `team` for which its own prices count although they are below the user's `prices` or the list prices.
    pub(crate) fn lower_prices(&self, team: &Team, prices: &Prices) -> BTreeSet<String> {
        let usage = Usage { prices: prices.clone(), ..Usage::default() };
        let wants = RequestedPermission::of_team(team, &usage).into_iter();
        wants.filter(|want| want.is_optional() && self.has(want)).map(|want| want.what).collect()
    }

    /// What of `team` is stored with its conversation, so that it can be resumed. The user's `prices` decide what is asked
    /// for.
    pub(crate) fn stored(&self, team: &Team, prices: &Prices) -> Vec<RequestedPermission> {
        let usage = Usage { prices: prices.clone(), ..Usage::default() };
        let memory = self.items.iter().filter(|want| want.grant() == Some(Grant::Memory));
        RequestedPermission::of_team(team, &usage)
            .into_iter()
            .filter(|want| self.has(want))
            .chain(memory.cloned())
            .collect()
    }

    /// Refuses a team that asks for more than was allowed, such as one whose variables were given other values, or
    /// that would share memory with other teams.
    pub(crate) fn check(&self, team: &Team, usage: &Usage, of_others: &BTreeSet<String>) -> Result<()> {
        self.refuse(
            team,
            RequestedPermission::of_team(team, usage).into_iter().filter(|want| !want.is_optional()),
        )?;
        let shared = team.memory_scopes().into_iter().filter(|scope| of_others.contains(scope.as_str()));
        self.refuse(team, shared.map(|scope| RequestedPermission::new(Grant::Memory, scope.as_str())))
    }

    fn refuse(&self, team: &Team, wants: impl Iterator<Item = RequestedPermission>) -> Result<()> {
        let missing: Vec<RequestedPermission> = wants.filter(|want| !self.has(want)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::NotAllowed { team: team.name.clone(), missing }) }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Variables may be secrets.
        let Self { grants, items, digest, .. } = self;
        f.debug_struct("Access")
            .field("grants", grants)
            .field("items", items)
            .field("digest", digest)
            .finish_non_exhaustive()
    }
}
