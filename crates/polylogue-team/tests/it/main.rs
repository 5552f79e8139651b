//! Team files as they are read, right ones, wrong ones and bad ones, and the teams that ship, as they run by their scripts.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod bound;
#[cfg(test)]
mod build;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod check_page;
#[cfg(test)]
mod compaction;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod diagnostics;
#[cfg(test)]
mod diagrams;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod files;
#[cfg(test)]
mod formatting;
#[cfg(test)]
mod fuzz_targets;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod media;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod mutations;
#[cfg(test)]
mod names;
#[cfg(test)]
mod patterns;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod reasoning;
#[cfg(test)]
mod running;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod shipped;
#[cfg(test)]
mod society;
#[cfg(test)]
mod solving;
#[cfg(test)]
mod state_keys;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod venvs;
#[cfg(test)]
mod web;
#[cfg(test)]
mod words;
#[cfg(test)]
mod working;
