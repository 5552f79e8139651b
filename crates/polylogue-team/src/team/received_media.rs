//! The media that agents of a team receive from it.

use std::path::{Path, PathBuf};

use polylogue_config::At;
use polylogue_core::{Media as Content, Name};

use super::Team;
use crate::pattern::Media;
use crate::source::Span;

/// Media of an opening or a task, and an agent that receives it.
#[derive(Debug, Clone)]
pub struct ReceivedMedia<'t> {
    /// The agent.
    pub who: &'t Name,
    /// The model, or several with commas between them.
    pub models: &'t str,
    /// The media that it receives.
    pub media: Content,
    /// The team file that says so, and where.
    pub(crate) place: (PathBuf, Span),
}

impl ReceivedMedia<'_> {
    /// Returns the team file and the offset in it: the same for all agents that receive it.
    pub fn place(&self) -> (&Path, usize) {
        (&self.place.0, self.place.1.start)
    }
}

impl Team {
    /// Returns the media of openings and tasks of the team and the teams within it, once for each agent that receives it and
    /// whose model the files name.
    pub fn received_media(&self) -> Vec<ReceivedMedia<'_>> {
        self.received_media_within(None, Path::new(&self.sources.file))
    }

    /// The same for the team of `file`, in a team whose model is `around`.
    fn received_media_within<'t>(&'t self, around: Option<&'t str>, file: &Path) -> Vec<ReceivedMedia<'t>> {
        let usual = self.model.as_deref().map(String::as_str).or(around);
        let model_of = |who: &Name| {
            let keys = self.agents.iter().find(|agent| agent.name == *who)?.model()?;
            keys.model.as_ref().map(|model| model.as_str()).or(usual)
        };
        let received = |(who, media): (&'t Name, &'t At<Media>)| {
            let (models, content) = (model_of(who)?, media.part()?);
            let span = media.value.span().unwrap_or(&media.span).clone();
            Some(ReceivedMedia { who, models, media: content, place: (file.to_owned(), span) })
        };
        let own = self.chats_as(&self.name).flat_map(|(_, chat)| chat.received_media()).filter_map(received);
        let folder = file.parent().unwrap_or(Path::new(""));
        let within = self
            .teams
            .iter()
            .flat_map(|sub| sub.team.received_media_within(usual, &folder.join(sub.file.as_str())));
        own.chain(within).collect()
    }
}
