//! Agents composed of agents: pipeline, parallel, switch, repeat, graph.
//!
//! Each of these is an agent: it can be called in a [`Session`](crate::Session), take turns in a chat, and be a part of
//! another composition. Each part has its own inner chat and remembers what it received and said there. Two parts with
//! the same name are the same agent, unless they have labels. When a part fails, the error names it: `desk.translator:
//! ...`. An interrupted run continues at the same step.
//!
//! For everything else write ordinary Rust: in its turn a custom [`Agent`] [asks](Turn::ask) others.
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
//! # Repeat until done, switch by content
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

/// One message with the replies of several agents, in order.
fn joined(from: &Name, messages: Vec<Message>) -> Message {
    let parts: Vec<Part> = messages.into_iter().flat_map(|message| message.parts).collect();
    Message { parts, ..Message::text(from.clone(), "") }
}
