//! Where a response shows what participants say, besides the result.

use polylogue_core::{Body, CallPurpose, Delta, Event, Name, Path, text_of};
use polylogue_runtime::question_text::without_last_message;

use super::line::{Draft, Line};
use super::speech::Speech;
use crate::chat_options::ChatShow;

/// Where a piece of text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Content,
    Reasoning,
}

/// A piece of text, and where it belongs.
pub(super) type Piece = (Channel, String);

/// What is shown of a conversation.
#[derive(Debug)]
pub(super) enum Voice {
    /// Of all participants.
    Many(Channel, Speech),
    /// Of the only one, whose only message is the result.
    One(OnlyVoice),
    Silent,
}

impl Voice {
    /// `is_single` is whether the result is the only message of the only participant.
    pub(super) fn new(show: ChatShow, is_single: bool) -> Self {
        match show {
            ChatShow::Transcript => Self::Many(Channel::Content, Speech::default()),
            _ if is_single => Self::One(OnlyVoice::default()),
            ChatShow::Result => Self::Many(Channel::Reasoning, Speech::default()),
            ChatShow::None => Self::Silent,
        }
    }

    /// A stored event. Returns the next pieces of text.
    pub(super) fn entry(&mut self, event: &Event) -> Vec<Piece> {
        match self {
            Self::Many(channel, speech) => on(*channel, speech.entry(event)),
            Self::One(only) => on(Channel::Content, only.entry(event)),
            Self::Silent => Vec::new(),
        }
    }

    /// A piece of a reply. Returns the next pieces of text.
    pub(super) fn delta(&mut self, at: &Path, who: &Name, delta: &Delta) -> Vec<Piece> {
        match self {
            Self::Many(channel, speech) => on(*channel, speech.delta(at, who, delta)),
            Self::One(only) => on(Channel::Content, only.delta(delta)),
            Self::Silent => Vec::new(),
        }
    }

    /// Pieces of replies were not received: of the turn `of`, or of all.
    pub(super) fn lose_pieces(&mut self, of: Option<(&Path, &Name)>) {
        match self {
            Self::Many(_, speech) => speech.lose_pieces(of),
            Self::One(only) => only.draft.lose_pieces(),
            Self::Silent => {}
        }
    }

    /// The last pieces of text, of a conversation that failed.
    pub(super) fn fail(&mut self) -> Vec<Piece> {
        match self {
            Self::Many(channel, speech) => on(*channel, speech.rest()),
            Self::One(_) | Self::Silent => Vec::new(),
        }
    }

    /// The last pieces of text, of a conversation that ended with `content`.
    pub(super) fn finish(&mut self, content: &str) -> Vec<Piece> {
        let mut pieces = self.fail();
        let rest = match self {
            Self::Many(Channel::Content, speech) if speech.last().contains(content) => None,
            Self::Many(Channel::Content, speech) => {
                Some(without_last_message(content, speech.last()).to_owned())
            }
            Self::One(only) => Some(std::mem::take(&mut only.line).finish(content)),
            _ => Some(content.to_owned()),
        };
        pieces.extend(on(Channel::Content, rest));
        pieces
    }
}

fn on(channel: Channel, texts: impl IntoIterator<Item = String>) -> Vec<Piece> {
    texts.into_iter().map(|text| (channel, text)).collect()
}

/// The content of a response that shows `events`, which ended with `result`.
pub(super) fn content_of<'e>(
    show: ChatShow,
    events: impl IntoIterator<Item = &'e Event>,
    result: &str,
) -> String {
    if show != ChatShow::Transcript {
        return result.to_owned();
    }
    let mut voice = Voice::new(show, false);
    let mut pieces: Vec<Piece> = events.into_iter().flat_map(|event| voice.entry(event)).collect();
    pieces.extend(voice.finish(result));
    let text: String = pieces.into_iter().map(|(_, text)| text).collect();
    text.trim_end().to_owned()
}

/// Replies whose text is the content.
#[derive(Debug, Default)]
pub(super) struct OnlyVoice {
    draft: Draft,
    line: Line,
}

impl OnlyVoice {
    fn entry(&mut self, event: &Event) -> Option<String> {
        match &event.body {
            Body::TurnStarted { .. } => self.draft = Draft::default(),
            Body::ModelReplied(reply) if reply.purpose == CallPurpose::Turn => match reply.is_unparsed() {
                true => self.draft.restart(),
                false => self.draft.complete(&text_of(&reply.parts)),
            },
            Body::Failed { .. } => self.draft.restart(),
            _ => return None,
        }
        self.line.extend(self.draft.text())
    }

    fn delta(&mut self, delta: &Delta) -> Option<String> {
        self.draft.delta(delta);
        self.line.extend(self.draft.text())
    }
}
