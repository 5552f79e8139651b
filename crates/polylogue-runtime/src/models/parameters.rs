//! Parameters of a team that its models are known not to take.

use std::cell::RefCell;
use std::collections::BTreeMap;

use polylogue_team::{Diagnostics, Team};

use super::endpoints::defined;
use super::local::local_model;
use super::options::ModelChoice;
use crate::{Access, ModelOptions};

/// Returns what is found of the parameters of all that call a model in `team`, by what is known of their models where a run asks them.
/// Nothing is sent. Of models in the process the headers of their files are read. Endpoints and files of the team that were not allowed are
/// left out. Empty if no model is asked.
pub fn check_parameters(team: &Team, access: &Access, options: &ModelOptions) -> Diagnostics {
    if options.is_offline() {
        return Diagnostics::default();
    }
    let choosing = ModelChoice { options, budget: false, resumed: false, access, cluster: None };
    let (models, _) = defined(team, &choosing);
    let opened = RefCell::new(BTreeMap::new());
    let in_process = |name: &str| {
        let mut opened = opened.borrow_mut();
        opened.entry(name.to_owned()).or_insert_with(|| local_model(team, name, access)).clone()
    };
    team.check_parameters(options.model.as_deref(), &models, &in_process)
}
