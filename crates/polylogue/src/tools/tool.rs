//! Tools from functions.
//!
//! [`#[tool]`](macro@crate::tool) makes a tool from a function, [`#[toolkit]`](macro@crate::toolkit) makes tools from
//! the methods of a type, and [`FunctionTool`] makes one from a closure. Models read what
//! programmers read: the name, the doc comment, and the types and doc comments of the arguments.

mod finish;
mod function_tool;
#[doc(hidden)]
pub mod private;

pub use self::finish::Finish;
pub use self::function_tool::FunctionTool;
