//! Operations of `OpenAPI` documents as tools.
//!
//! A [`Document`] of version 3.0 or 3.1, in JSON or YAML, has operations. Each becomes an [`Operation`]: data that says how it is
//! called, which can be kept, and a [`tool`] of its own. Its name is the `operationId`; its arguments are the parameters of path, query and
//! header, and `body` for what is sent as JSON. Schemas are written out and made simple, so that providers accept them.
//!
//! What a document reaches is the host of its first server, or that of a base address put in its place, and nothing else.
//!
//! ```
//! use polylogue_tools::openapi::Document;
//! let document = "
//! openapi: 3.1.0
//! servers: [{url: https://pets.example/v1}]
//! paths:
//!   /pets/{id}:
//!     get:
//!       operationId: showPet
//!       summary: Shows a pet
//!       parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
//! ";
//! let operations = Document::read(document)?.operations(&["showPet"], None)?;
//! assert_eq!(operations[0].parameters["required"], serde_json::json!(["id"]));
//! # Ok::<(), String>(())
//! ```

mod auth;
mod choice;
mod document;
mod operation;
mod schema;

pub use self::auth::{Credential, Keys};
pub use self::document::Document;
pub use self::operation::{Operation, ParameterPlace, Where, tool};
