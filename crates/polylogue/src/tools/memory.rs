//! Memory: history of the conversation, and facts across conversations.
//!
//! [`GetHistory`] reads the current conversation. [`LongTermMemory`] is a [`Memory`] with a scope that outlives it: agents
//! write facts with the tool `remember`, find them with `recall`, and delete them with `forget`; before each turn an
//! agent can also be [reminded](LongTermMemory::reminds) of facts that match the last message. One memory serves any number
//! of conversations at once; facts of one [`Scope`] are not found in another.
//!
//! Facts that an agent received are in the log. A resumed or replayed conversation does not depend on later changes to
//! the memory, and a `remember` repeated after a crash writes nothing twice. They count as text from
//! [outside](polylogue_core::ToolResult::from_outside): an agent that wrote one may have read such text before.
//!
//! # A clerk that remembers its customers across conversations
//! ```
//! # fn example(model: polylogue_core::AnyModel, store: polylogue::tools::memory::AnyMemory) -> Result<(), Box<dyn std::error::Error>> {
//! use polylogue::Assistant;
//! use polylogue::tools::memory::{LongTermMemory, Scope};
//!
//! // `store` is `AnyMemory::new(polylogue_store::Facts::open("shop.db")?)`, say.
//! let shop = LongTermMemory::new(store, Scope::new("shop")?);
//! let clerk = Assistant::new("Clerk", model)?.system("You sell tea.").tools(shop.tools());
//! let clerk = shop.reminds(clerk, 5);
//! # let _ = clerk;
//! # Ok(())
//! # }
//! ```

mod history;
mod missed;
mod remind;
mod tools;
mod words;

pub use polylogue_memory::*;

pub use self::history::GetHistory;
pub use self::missed::words_only;
pub use self::remind::Reminded;
pub use self::tools::LongTermMemory;
