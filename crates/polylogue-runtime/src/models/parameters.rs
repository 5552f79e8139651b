//! Parameters of a team that its models are known not to take.

use polylogue_team::{Diagnostics, Team};

use super::endpoints::defined;
use super::options::ModelChoice;
use crate::{Access, ModelOptions};

/// Returns what is found of the parameters of agents of `team`, by what is known of their models where a run asks them. Nothing is sent.
/// Endpoints of the team that were not allowed are left out. Empty if no model is asked.
pub fn check_parameters(team: &Team, access: &Access, options: &ModelOptions) -> Diagnostics {
    if options.is_offline() {
        return Diagnostics::default();
    }
    let choosing = ModelChoice { options, budget: false, resumed: false, access, cluster: None };
    let (models, _) = defined(team, &choosing);
    team.check_parameters(options.model.as_deref(), &models)
}
