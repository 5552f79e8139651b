//! Worker processes on real servers of Postgres, and on one file, killed, frozen and drained.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod answers;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod builds;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod damaged;
#[cfg(test)]
mod database;
#[cfg(test)]
mod dev;
#[cfg(test)]
mod earlier;
#[cfg(test)]
mod files;
#[cfg(test)]
mod frozen;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod live;
#[cfg(test)]
mod moved;
#[cfg(test)]
mod needs;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod one_file;
#[cfg(test)]
mod options;
#[cfg(test)]
mod place;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod releases;
#[cfg(test)]
mod said;
#[cfg(test)]
mod scripts;
#[cfg(test)]
mod shipped;
#[cfg(test)]
mod sql;
#[cfg(test)]
mod states;
