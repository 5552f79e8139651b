//! What a chat begins with: the messages before its first turn, and the task of a chat within a chat.

use polylogue::Message;
use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx, OneOrMany, Ref};
use polylogue_core::{Audience, ChatBuilder, Name, Part, TaskFrom};
use serde_json::Value;

use crate::pattern::Media;
use crate::text::{MemberOrUser, MemberRef, Template};

/// The messages before the first turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening(pub Vec<OpeningLine>);

/// The task, said to everyone by the user.
impl Default for Opening {
    fn default() -> Self {
        Self(vec![OpeningLine::of(Template::new("{{task}}"))])
    }
}

impl Config for Opening {
    fn ty() -> &'static Type {
        OneOrMany::<OpeningLine>::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self(OneOrMany::read(node, cx).0)
    }

    fn hole() -> Self {
        Self(Vec::new())
    }

    fn write(&self) -> Value {
        match self.0.as_slice() {
            [] => Value::Array(Vec::new()),
            lines => OneOrMany(lines.to_vec()).write(),
        }
    }
}

/// A message of an opening: its text, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "OpeningMessage", shorthand = "text")]
pub struct OpeningLine {
    /// Sender of the message: a participant, or `user` for the person who gave the task.
    #[key(as = Ref<MemberOrUser>, default = Name::user())]
    pub from: Name,
    /// Participants who see the message.
    #[key(as = OneOrMany<MemberRef>, none = "all participants")]
    pub to: Vec<Name>,
    /// Text of the message.
    pub text: Template,
    /// Images, audio and documents that are attached to the text.
    pub media: Vec<At<Media>>,
}

impl OpeningLine {
    fn of(text: Template) -> Self {
        Self { from: Name::user(), to: Vec::new(), text, media: Vec::new() }
    }

    /// The message. A blank one of the user is left out; one of a participant is not, so that the next speaker replies to it.
    fn build(&self, task: &str) -> Option<Message> {
        let text = self.text.fill(task);
        let to = if self.to.is_empty() { Audience::All } else { Audience::Only(self.to.clone()) };
        let is_nothing = self.from == Name::user() && text.trim().is_empty() && self.media.is_empty();
        let mut message = Message::new(self.from.clone(), text).to(to);
        message.parts.extend(self.media.iter().filter_map(|media| media.part()).map(Part::Media));
        (!is_nothing).then_some(message)
    }
}

impl Opening {
    pub(super) fn build(&self, builder: ChatBuilder) -> ChatBuilder {
        let lines = self.0.clone();
        builder.opening(move |task| lines.iter().filter_map(|line| line.build(task)).collect())
    }
}

/// Part of the surrounding conversation that becomes the task of an inner chat or team.
#[derive(Config)]
#[config(name = "TaskFrom", for = TaskFrom)]
pub(crate) enum TaskFromKey {
    /// The last message that it sees.
    Last,
    /// All messages that it sees, with the names of the speakers.
    All,
    /// The task of the surrounding chat.
    Task,
}
