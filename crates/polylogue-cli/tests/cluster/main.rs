//! Worker processes on real servers of Postgres, killed, frozen and drained.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod answers;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod database;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod place;
#[cfg(test)]
mod shipped;
