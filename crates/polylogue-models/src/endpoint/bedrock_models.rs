//! The models of Amazon Bedrock in a region: foundation models, and inference profiles, which another host lists.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_ListFoundationModels.html>

use polylogue_core::{ModelError, ModelErrorKind};
use serde::Deserialize;
use url::form_urlencoded::byte_serialize;

use super::{Endpoint, ServedModel};
use crate::config::Config;

/// The maximum number of pages of profiles that are read, each of up to 1,000.
const MAX_PAGES: usize = 10;

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
    /// Whether it writes texts or vectors, and can be called by its id. Others are called by a profile.
    fn is_callable(&self) -> bool {
        let (out, by) = (&self.output_modalities, &self.inference_types_supported);
        let writes = out.is_empty() || out.iter().any(|out| matches!(&**out, "TEXT" | "EMBEDDING"));
        writes && (by.is_empty() || by.iter().any(|by| by == "ON_DEMAND"))
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
    /// The ids of models and of inference profiles that can be called, sorted.
    pub(super) async fn models_of_bedrock(&self) -> Result<Vec<ServedModel>, ModelError> {
        let lists = Self::new(Config { base_url: self.list_url()?, ..self.0.config.clone() })?;
        let FoundationModels { model_summaries } = lists.get("/foundation-models").await?;
        let callable = model_summaries.into_iter().filter(FoundationModel::is_callable);
        let mut names: Vec<String> = callable.map(|model| model.model_id).collect();
        let mut path = "/inference-profiles?maxResults=1000".to_owned();
        for _ in 0..MAX_PAGES {
            let page: Profiles = lists.get(&path).await?;
            names.extend(
                page.inference_profile_summaries.into_iter().map(|profile| profile.inference_profile_id),
            );
            let Some(next) = page.next_token else { break };
            let next: String = byte_serialize(next.as_bytes()).collect();
            path = format!("/inference-profiles?maxResults=1000&nextToken={next}");
        }
        names.sort_unstable();
        names.dedup();
        Ok(names.into_iter().map(|name| ServedModel { name, ..ServedModel::default() }).collect())
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
