//! Files that are replaced as a whole, and files and folders that only their owner can read.
//!
//! Errors are those of the system. Callers name the path in their own words.

mod draft;
mod private;

pub use draft::{Draft, replace, replace_private, sync_folder};
pub use private::{make_private_folder, private_options};
