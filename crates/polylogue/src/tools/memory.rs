//! What agents know of this conversation, and what they remember of earlier ones.
//!
//! [`GetHistory`] reads the running conversation. [`LongTerm`] is a [`Memory`] that outlives it, and whose it is: agents
//! write facts down by the tool `remember`, find them by `recall`, and drop them by `forget`; and before an agent speaks it
//! can be [reminded](LongTerm::reminds) of what fits the last message. One memory serves any number of conversations at
//! once; what is in one [`Scope`] is not found in another.
//!
//! What an agent was told of a memory is in the log. A conversation that is resumed or replayed does not depend on what
//! became of the memory since, and a `remember` that is made again after a crash writes nothing twice.
//!
//! # A clerk that knows its customers from one day to the next
//! ```
//! # fn example(model: polylogue_core::AnyModel, store: polylogue_core::memory::AnyMemory) -> Result<(), Box<dyn std::error::Error>> {
//! use polylogue::Assistant;
//! use polylogue::memory::{LongTerm, Scope};
//!
//! // `store` is `AnyMemory::new(polylogue_store::Facts::open("shop.db")?)`, say.
//! let shop = LongTerm::new(store, Scope::new("shop")?);
//! let clerk = Assistant::new("Clerk", model)?.system("You sell tea.").tools(shop.tools());
//! let clerk = shop.reminds(clerk, 5);
//! # let _ = clerk;
//! # Ok(())
//! # }
//! ```

mod history;
mod long_term;
mod remind;
mod tools;
mod words;

pub use polylogue_core::memory::*;

pub use self::history::GetHistory;
pub use self::long_term::LongTerm;
pub use self::remind::Reminded;
