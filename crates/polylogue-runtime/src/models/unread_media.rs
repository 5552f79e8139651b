//! Media of a team that the models of its agents cannot read.

use std::collections::BTreeSet;

use polylogue_core::Media;
use polylogue_models::{Models, model_names};
use polylogue_team::{Diagnostics, Team};

use super::endpoints::defined;
use super::options::ModelChoice;
use crate::{Access, ModelOptions, media_in_words};

/// The media of `team` that an agent receives whose model is known not to read it, each as an error at its place. Nothing is
/// sent, and no file of a model is opened. Endpoints of the team that were not allowed, and models that nothing is known of,
/// are left out.
pub(crate) fn unread_media(team: &Team, access: &Access, options: &ModelOptions) -> Diagnostics {
    if team.received_media().is_empty() {
        return Diagnostics::default();
    }
    let choosing = ModelChoice { options, budget: false, resumed: false, access, cluster: None };
    let (models, _) = defined(team, &choosing);
    unread(team, |name, media| match team.model_file(name) {
        Some(_) => Some(false),
        None => reads(&models, name, media),
    })
}

/// Whether the model called `name` can read `media`, as far as that is known.
pub(super) fn reads(models: &Models, name: &str, media: &Media) -> Option<bool> {
    models.model(name).ok()?.reads(media)
}

/// Media of `team` that an agent receives, and that its model cannot read as far as `reads` knows.
pub(super) fn unread(team: &Team, reads: impl Fn(&str, &Media) -> Option<bool>) -> Diagnostics {
    let (mut found, mut places) = (Diagnostics::default(), BTreeSet::new());
    let all = team.received_media();
    for received in &all {
        let media = &received.media;
        let cannot_read = |name: &&str| reads(name, media) == Some(false);
        let Some(model) = model_names(received.models).find(cannot_read) else { continue };
        // It may have several receivers.
        if !places.insert(received.place()) {
            continue;
        }
        let here = Media { kind: media.kind.clone(), url: format!("data:{};base64,AAAA", media.kind).into() };
        let is_elsewhere = media.bytes().is_none() && reads(model, &here) != Some(false);
        let (what, hint) = media_in_words(&media.kind);
        let message = format!(
            "`{}` receives {what} from the team, and its model `{model}` cannot read it",
            received.who
        );
        found.append(match is_elsewhere {
            true => team.error_at(received, &format!("{message} from an address"), FROM_ADDRESS),
            false => team.error_at(received, &message, hint),
        });
    }
    found
}

const FROM_ADDRESS: &str = "its API takes the content and fetches no addresses: name a file with `file`, or give it as a `data:` address";
