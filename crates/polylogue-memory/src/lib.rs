//! Long-term memory: facts that agents keep beyond one conversation, their authors, and how they are found again, by
//! words or by meaning.
//!
//! A conversation's log is what happened in it. A [`Memory`] is what agents store for later conversations. It changes
//! from run to run, so whatever an agent receives from it is logged, and a replay does not query it again. A search by
//! meaning needs an embedding model: [`Embed`].
//!
//! Here are the traits and their data; `polylogue-store` keeps facts in SQLite, `polylogue-models` has embedding models,
//! and `polylogue` the tools by which agents use a memory.

mod embed;
mod facts;
mod memory;

pub use embed::{AnyEmbed, Embed, EmbedPurpose, Embedded};
pub use facts::{Fact, MemoryError, Note, Query, Recalled, Scope, Source};
pub use memory::{AnyMemory, Memory, Nothing};
