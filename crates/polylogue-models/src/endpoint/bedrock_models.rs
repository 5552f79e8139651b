//! The models of Amazon Bedrock in a region: foundation models, and inference profiles, which another host lists.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html>

use polylogue_core::{ModelError, ModelErrorKind};
use serde::Deserialize;

use super::served::{MAX_PAGES, Purpose, with_parameter};
use super::{Endpoint, ServedModel};
use crate::config::Config;

/// The list of profiles, up to 1,000 a page.
const PROFILES: &str = "/inference-profiles?maxResults=1000";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundationModels {
    model_summaries: Vec<FoundationModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundationModel {
    model_id: String,
    #[serde(default)]
    output_modalities: Vec<String>,
    #[serde(default)]
    inference_types_supported: Vec<String>,
}

impl FoundationModel {
    fn purpose(&self) -> Purpose {
        let makes = |what: &str| self.output_modalities.iter().any(|made| made == what);
        match () {
            () if self.output_modalities.is_empty() || makes("TEXT") => Purpose::Replies,
            () if makes("EMBEDDING") => Purpose::Vectors,
            () => Purpose::Others,
        }
    }

    /// Whether it can be called by its id. Others are called by a profile.
    fn is_callable(&self) -> bool {
        let by = &self.inference_types_supported;
        by.is_empty() || by.iter().any(|by| by == "ON_DEMAND")
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profiles {
    inference_profile_summaries: Vec<Profile>,
    next_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    inference_profile_id: String,
}

impl Endpoint {
    /// The models and the inference profiles that can be called, sorted.
    pub(super) async fn models_of_bedrock(&self) -> Result<Vec<ServedModel>, ModelError> {
        let lists = Self::new(Config { base_url: self.list_url()?, ..self.0.config.clone() })?;
        let FoundationModels { model_summaries } = lists.get("/foundation-models").await?;
        let of_model = |id: &str| model_summaries.iter().find(|model| model.model_id == id);
        let callable = model_summaries.iter().filter(|model| model.is_callable());
        let mut all: Vec<ServedModel> =
            callable.filter_map(|model| model.purpose().served(&model.model_id)).collect();
        let mut next = Some(PROFILES.to_owned());
        for _ in 0..MAX_PAGES {
            let Some(path) = next.take() else { break };
            let page: Profiles = lists.get(&path).await?;
            all.extend(page.inference_profile_summaries.iter().filter_map(|profile| {
                let id = &profile.inference_profile_id;
                // The name of its model follows the one of the region.
                let model = id.split_once('.').and_then(|(_, model)| of_model(model));
                model.map_or(Purpose::Replies, FoundationModel::purpose).served(id)
            }));
            next = page.next_token.map(|token| with_parameter(PROFILES, "nextToken", &token));
        }
        if next.is_some() {
            return Err(lists.endless_list());
        }
        all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|one, other| one.name == other.name);
        Ok(all)
    }

    /// The address of the lists: the one that is set, or that of the region.
    fn list_url(&self) -> Result<String, ModelError> {
        let Config { list_url, base_url, provider, .. } = &self.0.config;
        let of_region = || {
            base_url
                .contains("://bedrock-runtime.")
                .then(|| base_url.replacen("bedrock-runtime.", "bedrock.", 1))
        };
        list_url.clone().or_else(of_region).ok_or_else(|| {
            let why = "the address that lists the models is unknown";
            ModelError::new(ModelErrorKind::Config, &**provider, why)
                .hint("set `AWS_ENDPOINT_URL_BEDROCK`, next to `AWS_ENDPOINT_URL_BEDROCK_RUNTIME`")
        })
    }
}
