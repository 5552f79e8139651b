//! The web: pages are searched for, fetched and read.

mod html;

pub use self::html::{Page, read_html};
