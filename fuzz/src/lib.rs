//! What the fuzz targets check that are about no model. Tests of the workspace compile and run it, too.

mod event;
#[cfg(feature = "team")]
mod team;

pub use event::event;
#[cfg(feature = "team")]
pub use team::team;
