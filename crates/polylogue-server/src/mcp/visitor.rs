//! Who sends a request of MCP, and to which teams.

use std::sync::Arc;

use axum::http::HeaderMap;
use polylogue_mcp::serve::InvalidParams;
use polylogue_runtime::Prepared;

use crate::app::App;
use crate::call::Call;
use crate::problem::Problem;
use crate::tenants::Tenant;
use crate::token::Token;
use polylogue_wire::Scope;

/// Who sends a request.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(super) app: Arc<App>,
    pub(super) tenant: Arc<Tenant>,
    pub(super) token: Arc<Token>,
    /// The only team of the path. Default: all that the token may see.
    pub(super) team: Option<Arc<str>>,
    pub(super) headers: HeaderMap,
}

impl Visitor {
    pub(super) fn of(call: &Call) -> Result<Self, Problem> {
        let (app, token) = (Arc::clone(&call.app), Arc::clone(call.token()?));
        let team = Some(call.param("team")).filter(|team| !team.is_empty());
        if let Some(team) = team
            && !(token.sees(team) && app.source.ids().iter().any(|id| id == team))
        {
            return Err(Problem::unknown_team(team));
        }
        let (tenant, team) = (app.tenant(&token)?, team.map(Into::into));
        Ok(Self { tenant, app, token, team, headers: call.headers.clone() })
    }

    /// The teams, in the order in which they are listed.
    pub(super) async fn teams(&self) -> Vec<(String, Arc<Prepared>)> {
        let mut teams = Vec::new();
        for id in self.app.source.ids().into_iter().filter(|id| self.sees(id)) {
            match self.tenant.team(&*self.app.source, &id).await {
                Some(Ok(team)) => teams.push((id, team)),
                Some(Err(error)) => tracing::warn!(team = id, %error, "a team is no tool"),
                None => {}
            }
        }
        teams
    }

    /// The team that is the tool `name`.
    pub(super) async fn team(&self, name: &str) -> Result<Result<Arc<Prepared>, Problem>, InvalidParams> {
        let unknown = || InvalidParams(format!("there is no tool `{}`", plain(name)));
        if !self.sees(name) {
            return Err(unknown());
        }
        let team = self.tenant.team(&*self.app.source, name).await.ok_or_else(unknown)?;
        Ok(team.map_err(Problem::from))
    }

    fn sees(&self, id: &str) -> bool {
        self.token.sees(id) && self.team.as_deref().is_none_or(|team| team == id)
    }

    /// Whether it may answer questions.
    pub(super) fn answers(&self) -> bool {
        self.token.has(Scope::Answer)
    }
}

/// What a client wrote, short enough for an error.
pub(super) fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
