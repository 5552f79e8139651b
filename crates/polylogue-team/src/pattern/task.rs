//! Tasks of agents.

use polylogue_config::{At, Config};
use polylogue_core::Name;

use crate::diagnostic::Report;
use crate::outline::Outline;
use crate::source::Span;
use crate::text::{MediaText, ParticipantRef, PathText, Schema, Template};
use crate::tooling::{ToolEntry, check_examples};

/// A task of an agent.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Task {
    /// Agent that solves the task.
    #[key(as = ParticipantRef)]
    pub who: At<Name>,
    /// Prompt of the task.
    pub prompt: At<Template>,
    /// Tools for this task, in addition to those of the agent.
    #[key(unique)]
    pub tools: At<Vec<At<ToolEntry>>>,
    /// JSON Schema that the agent's replies to this task must satisfy.
    #[key(none = "none", nonempty)]
    pub output_schema: Option<At<Schema>>,
    /// Images, audio and documents that are attached to the prompt.
    pub media: Vec<At<Media>>,
    /// Asks the agent after each of its turns whether its task is complete.
    #[key(default = false)]
    pub self_terminating: At<bool>,
    /// Keeps the agent's answers about what remains to be done in its history.
    #[key(default = false)]
    pub keeps_reflections: At<bool>,
    /// Removes the prompt and the answer of a task that is solved alone from the agent's history.
    #[key(default = false)]
    pub forget: At<bool>,
}

/// An image, audio or document, by its address or as a file.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(nonempty)]
pub struct Media {
    /// Media type, such as `image/png`. With `url`, it must be given.
    #[key(name = "type", none = "the type of `file`, by its first bytes", nonempty)]
    pub kind: Option<At<String>>,
    /// Address, beginning with `https:` or `data:`. The provider of the model loads it: its host must also be allowed on the command
    /// line.
    #[key(as = Option<At<MediaText>>, none = "`file` is attached", nonempty, requires = "type", excludes = "file")]
    pub url: Option<At<String>>,
    /// Path of a file: PNG, JPEG, GIF, WebP, PDF, WAV or MP3. It is relative to the folder of the team file and must lie below it.
    /// All files that a team attaches have 20 MiB at most.
    #[key(as = Option<At<PathText>>, none = "`url` is attached", nonempty)]
    pub file: Option<At<String>>,
    /// The content of `file`.
    #[key(skip)]
    pub content: Option<polylogue_core::Media>,
}

impl Media {
    /// Returns the part of a message. `None` if its file was not read.
    pub fn part(&self) -> Option<polylogue_core::Media> {
        let at_address = || {
            let (kind, url) = (self.kind.as_ref()?, self.url.as_ref()?);
            Some(polylogue_core::Media { media_type: kind.value.clone(), url: url.as_str().into() })
        };
        self.content.clone().or_else(at_address)
    }

    /// Where the team file says what is attached.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.file.as_ref().or(self.url.as_ref()).map(|given| &given.span)
    }
}

/// Where a switch is given, if it is on.
pub(super) fn on(switch: &At<bool>) -> Option<&Span> {
    switch.given().filter(|_| **switch)
}

impl Task {
    pub(super) fn check(&self, outline: &Outline<'_>, report: &mut Report<'_>) {
        if self.prompt.ok && !self.prompt.quotes_task() && self.prompt.fill("").trim().is_empty() {
            report.error(&self.prompt.span, "`prompt` is empty");
        }
        check_examples(&self.tools, report);
        let Some(owner) = outline.participant(&self.who).filter(|_| self.who.ok) else { return };
        let Some(why) = owner.why_not_plain() else { return };
        let of_models = [
            ("self_terminating", on(&self.self_terminating)),
            ("forget", on(&self.forget)),
            ("tools", self.tools.given()),
            ("output_schema", self.output_schema.as_ref().map(At::key)),
        ];
        for (key, at) in of_models {
            if let Some(at) = at {
                let message = format!("a task of `{}` has no `{key}`: {why}", self.who);
                let hint = "give the task to an agent that replies only by a model";
                report.error_with_hint(at, message, hint);
            }
        }
    }

    /// Reports completion settings of a task that is solved alone.
    pub(super) fn check_alone(&self, report: &mut Report<'_>) {
        let of_talks =
            [("self_terminating", &self.self_terminating), ("keeps_reflections", &self.keeps_reflections)];
        for (key, switch) in of_talks {
            if let Some(at) = on(switch) {
                let hint = "it applies only to tasks that are discussed";
                let message =
                    format!("a task that is solved alone has no `{key}`: it is complete after one reply");
                report.error_with_hint(at, message, hint);
            }
        }
    }

    pub(super) fn check_discussed(&self, report: &mut Report<'_>) {
        if let Some(at) = on(&self.forget) {
            let hint = "`forget` is for tasks that are solved alone: those of `before` and `after`";
            report.error_with_hint(at, "a discussed task cannot be forgotten", hint);
        }
        if let Some(at) = on(&self.keeps_reflections).filter(|_| !*self.self_terminating) {
            let message = "this task has no reflections to keep";
            report.error_with_hint(at, message, "add `self_terminating: true`");
        }
    }
}
