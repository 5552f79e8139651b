//! Operations of `OpenAPI` documents as tools.
//!
//! Each operation of a [`Document`] (version 3.0 or 3.1, in JSON or YAML) becomes an [`Operation`], data that can be stored, and a
//! [`tool`]. The tool's name is the `operationId`; its arguments are the parameters of path, query and header, and `body` for a JSON
//! body. Schemas are simplified so that providers accept them.
//!
//! Tools reach only the host of the document's first server, or of a base address that replaces it.
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
pub use self::choice::{ChosenOperations, LeftOutOperation};
pub use self::document::Document;
pub use self::operation::{ArgumentLocation, Operation, ParameterPlace, tool};
