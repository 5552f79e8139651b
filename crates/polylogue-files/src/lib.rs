//! Files that are replaced as a whole, files and folders that only their owner can read, and links to them.
//!
//! Errors are those of the system. Callers name the path in their own words.

mod draft;
mod links;
mod private;

pub use draft::{Draft, replace, replace_private, sync_folder};
pub use links::behind_links;
pub use private::{make_private_folder, private_options};
