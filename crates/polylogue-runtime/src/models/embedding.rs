//! The embedding model of a team.

use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_models::{Embedder, Models, Provider, local_file};
use polylogue_team::{Diagnostics, Team};

use super::endpoints::defined;
use super::options::ModelChoice;
use crate::{Access, ModelOptions};

/// An address for providers whose own is only in the environment. Nothing is sent there.
const ANYWHERE: &str = "http://127.0.0.1";

/// The embedding model called `name`.
pub(super) fn embedder(models: &Models, name: &str) -> Result<Embedder, ModelError> {
    if local_file(name).is_some() {
        let what = "models in the process make no embeddings";
        let error = ModelError::new(ModelErrorKind::Config, name, what);
        return Err(error.hint("take a model of a server, such as `ollama:nomic-embed-text`"));
    }
    models.embedder(name)
}

/// Returns what is wrong with the embedding model of `team`: its provider, or the server of the team's endpoint, makes no embeddings, or
/// it is unknown how the model does. Nothing is sent. Endpoints of the team that were not allowed, and what is missing in the environment, are left
/// out.
pub(crate) fn check_embedding(team: &Team, access: &Access, options: &ModelOptions) -> Diagnostics {
    let unusable = |name| Some((name, why_unusable(team, name, access, options)?));
    let Some((name, error)) = team.embedding_model().and_then(unusable) else {
        return Diagnostics::default();
    };
    let message = format!("`{name}`, the embedding model of the memory: {}", error.message);
    team.unusable_model(name, &message, error.hint.as_deref().unwrap_or_default())
}

fn why_unusable(team: &Team, name: &str, access: &Access, options: &ModelOptions) -> Option<ModelError> {
    let choosing = ModelChoice { options, budget: false, resumed: false, access, cluster: None };
    let (models, own) = defined(team, &choosing);
    let error = embedder(&models, name).err()?;
    if team.model_file(name).is_some() {
        return Some(error);
    }
    if let Some((endpoint, _)) = team.endpoint_of(name) {
        return own.get(endpoint).is_some_and(Result::is_ok).then_some(error);
    }
    let provider = Provider::find(name.split([':', '/']).next()?.trim())?;
    models.define(provider.config_at(ANYWHERE)).ok()?;
    embedder(&models, name).err()
}
