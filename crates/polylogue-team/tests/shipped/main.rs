//! The teams that ship, as they run by their scripts: cut anywhere, and as those work whose users know them.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod apart;
#[cfg(test)]
mod camel;
#[cfg(test)]
mod coding;
#[cfg(test)]
mod lagent;
#[cfg(test)]
mod plain;
#[cfg(test)]
mod shipped;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod yacana;
