//! PDF documents of a few kilobytes.

/// Three pages, in objects that are not packed.
pub const THREE_PAGES: &[u8] = include_bytes!("../data/three-pages.pdf");

/// A hundred pages, all of which are in packed streams of objects, as most programs write them.
pub const HUNDRED_PAGES: &[u8] = include_bytes!("../data/hundred-pages.pdf");

/// Returns the beginning of [`HUNDRED_PAGES`], from which no reader can tell how many there are.
#[must_use]
pub fn damaged() -> &'static [u8] {
    HUNDRED_PAGES.get(..5_000).unwrap_or_default()
}
