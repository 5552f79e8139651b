//! Media of a team that the models of its agents cannot read.

use std::collections::BTreeSet;

use polylogue_core::Media;
use polylogue_models::{Excess, Models, model_names};
use polylogue_team::{Diagnostics, Team};

use super::endpoints::defined;
use super::options::ModelChoice;
use crate::{Access, ModelOptions};

/// A model that cannot read a picture, a sound or a document, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedMedia {
    /// The model, as `provider:model`.
    pub model: String,
    excess: Option<Excess>,
}

impl UnsupportedMedia {
    /// The model called `name`, whatever the media are.
    pub(super) fn any(name: &str) -> Self {
        Self { model: name.to_owned(), excess: None }
    }

    /// Returns `cannot read it`, with the limit of the provider that is the reason, if one is.
    pub fn why(&self) -> String {
        match &self.excess {
            Some(Excess { why, .. }) => format!("cannot read it: {why}"),
            None => "cannot read it".to_owned(),
        }
    }

    /// Returns what can be done about `media` that it cannot read.
    pub fn hint(&self, media: &Media) -> &'static str {
        self.excess.as_ref().map_or_else(|| media_in_words(&media.media_type).1, |excess| excess.hint)
    }
}

/// Returns the media of `team` that an agent receives whose model is known not to read it, each as an error at its place.
/// Nothing is sent, and no file of a model is opened. Endpoints of the team that were not allowed, and models that nothing is
/// known of, are left out.
pub(crate) fn unsupported_media(team: &Team, access: &Access, options: &ModelOptions) -> Diagnostics {
    if team.received_media().is_empty() {
        return Diagnostics::default();
    }
    let choosing = ModelChoice { options, budget: false, resumed: false, access, cluster: None };
    let (models, _) = defined(team, &choosing);
    find_unsupported(team, |name, media| match team.model_file(name) {
        Some(_) => Some(UnsupportedMedia::any(name)),
        None => unsupported_by(&models, name, media),
    })
}

/// The model called `name`, if it is known not to read `media`.
pub(super) fn unsupported_by(models: &Models, name: &str, media: &Media) -> Option<UnsupportedMedia> {
    let model = models.model(name).ok()?;
    let by = || UnsupportedMedia { excess: model.exceeds(media), ..UnsupportedMedia::any(name) };
    (model.reads(media) == Some(false)).then(by)
}

/// Media of `team` that an agent receives, and that its model cannot read as far as `unsupported_by` knows.
pub(super) fn find_unsupported(
    team: &Team,
    unsupported_by: impl Fn(&str, &Media) -> Option<UnsupportedMedia>,
) -> Diagnostics {
    let (mut found, mut places) = (Diagnostics::default(), BTreeSet::new());
    let all = team.received_media();
    for received in &all {
        let media = &received.media;
        let mut models = model_names(received.models);
        let Some(by) = models.find_map(|name| unsupported_by(name, media)) else { continue };
        // It may have several receivers.
        if !places.insert(received.place()) {
            continue;
        }
        let here = Media {
            media_type: media.media_type.clone(),
            url: format!("data:{};base64,AAAA", media.media_type).into(),
        };
        let is_elsewhere = media.bytes().is_none() && unsupported_by(&by.model, &here).is_none();
        let (what, _) = media_in_words(&media.media_type);
        let (who, model, why) = (received.who, &by.model, by.why());
        let message = format!("`{who}` receives {what} from the team, and its model `{model}` {why}");
        found.append(match is_elsewhere {
            true => team.error_at(received, &format!("{message} from an address"), FROM_ADDRESS),
            false => team.error_at(received, &message, by.hint(media)),
        });
    }
    found
}

const FROM_ADDRESS: &str = "its API takes the content and fetches no addresses: name a file with `file`, or give it as a `data:` address";

/// Returns what media of this type is called, and which models can read it.
pub fn media_in_words(media_type: &str) -> (&'static str, &'static str) {
    match media_type.split_once('/') {
        Some(("image", _)) => (
            "a picture",
            "a model with vision, such as `openai:gpt-4o-mini`, can; if this one does, add `vision` to its capabilities",
        ),
        Some(("audio", _)) => ("a sound", "a model with audio input, such as `openai:gpt-audio`, can"),
        _ => (
            "a PDF document",
            "`openai:gpt-4o-mini` can, and most models of OpenAI, Anthropic and Google; or attach the document as a text file",
        ),
    }
}
