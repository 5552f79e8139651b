//! Agents made of agents: one after the other, at the same time, one or the other, again and again, as a graph.
//!
//! Each of these is an agent: it can be called in a [`Session`](crate::Session), take its turns in a chat, and be a piece of
//! another. Its pieces are called in rooms of their own, in which they remember what they were told and said; two pieces of
//! one name are the same agent, unless they are given labels. When a piece fails, the error names it:
//! `desk.translator: ...`. A run that is cut anywhere goes on where it was.
//!
//! What these cannot say is said in ordinary Rust: an [`Agent`] of your own [asks](Turn::ask) others in its turn.
//!
//! # A draft, two readers at the same time, an editor
//! ```
//! use polylogue::compose::{Parallel, Pipeline};
//! use polylogue::{AnyModel, Assistant};
//! # fn example(model: AnyModel) -> polylogue::Result<()> {
//! let agent = |who: &str| Assistant::new(who, model.clone());
//! let readers = Parallel::new("readers")?.with(agent("grammar")?).with(agent("style")?);
//! let desk = Pipeline::new("desk")?.then(agent("writer")?).then(readers).then(agent("editor")?);
//! # let _ = desk;
//! # Ok(())
//! # }
//! ```
//!
//! # As often as it takes
//! ```
//! use polylogue::compose::{Repeat, Switch};
//! use polylogue::{AnyModel, Assistant};
//! # fn example(model: AnyModel) -> polylogue::Result<()> {
//! let agent = |who: &str| Assistant::new(who, model.clone());
//! let polish = Repeat::new("polish", agent("polisher")?, 5)?.until(|message| message.plain().ends_with("DONE"));
//! let clerk = Switch::new("clerk", |message| if message.plain().contains('?') { "answers" } else { "notes" })?
//!     .case("answers", agent("expert")?)
//!     .case("notes", polish);
//! # let _ = clerk;
//! # Ok(())
//! # }
//! ```

mod branch;
mod graph;
mod many;
mod parallel;
mod pipeline;

pub use self::branch::{Repeat, Switch};
pub use self::graph::{Graph, GraphBuilder};
pub use self::many::Many;
pub use self::parallel::{Parallel, Warp};
pub use self::pipeline::Pipeline;

use polylogue_core::{Agent, AnyAgent, Layer, Message, Name, Part, Result, Turn};

fn named(agent: impl Agent) -> Layer {
    Layer::of(&AnyAgent::new(agent))
}

fn labelled(label: &str, agent: impl Agent) -> Layer {
    Layer::labelled(label, &AnyAgent::new(agent))
}

async fn ask(turn: &mut Turn<'_>, layer: &Layer, message: Message) -> Result<Message> {
    turn.ask_as(&layer.label, &layer.agent, message).await
}

/// One message of what several said, in order.
fn joined(from: &Name, messages: Vec<Message>) -> Message {
    let parts: Vec<Part> = messages.into_iter().flat_map(|message| message.parts).collect();
    Message { parts, ..Message::text(from.clone(), "") }
}
