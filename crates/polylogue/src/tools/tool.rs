//! Tools made of functions.
//!
//! [`#[tool]`](macro@crate::tool) makes a tool of a function, [`#[toolkit]`](macro@crate::toolkit) makes tools of the methods
//! of a type, and [`executor::Declared`](crate::executor::Declared) makes one of a closure. What models are told of a tool is
//! what programmers are told: its name, its doc comment, and the types and doc comments of its arguments.

mod finish;
#[doc(hidden)]
pub mod private;

pub use self::finish::Finish;
