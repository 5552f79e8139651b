//! Models in the process itself: GGUF files, without a server and without a network.
//!
//! The crate is empty unless the feature `engine` is on, so that a build of the whole workspace compiles no tensor
//! library.
//!
//! ```no_run
//! # #[cfg(feature = "engine")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use polylogue_core::AnyModel;
//! use polylogue_local::{LocalModel, LocalOptions};
//!
//! let model = LocalModel::open("models/qwen3-4b-q4_k_m.gguf", LocalOptions::default())?;
//! println!("needs {} bytes", model.memory().total());
//! println!("{}", AnyModel::new(model).ask("Why is the sky blue?").await?);
//! # Ok(())
//! # }
//! ```
//!
//! What a file must have, and what is supported, is described in `docs/local.md`.
#![cfg(feature = "engine")]

mod cache;
mod call_format;
mod decoder;
mod error;
mod event;
mod gguf;
mod grammar;
mod hyperparameters;
mod machine;
mod memory;
mod merge;
mod messages;
mod model;
mod options;
mod pre_tokenizer;
mod reply_writer;
mod rope;
mod sampler;
mod sequence;
mod shared;
mod template;
#[cfg(test)]
#[path = "../tests/common/tiny.rs"]
#[allow(dead_code, unreachable_pub, reason = "other test programs use the rest")]
mod tiny;
mod tokenizer;
mod vocabulary;
mod weights;
mod worker;

pub use error::LoadError;
pub use machine::Machine;
pub use memory::Memory;
pub use model::LocalModel;
pub use options::LocalOptions;
