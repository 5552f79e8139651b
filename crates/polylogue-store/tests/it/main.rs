//! Tests of the stores from outside.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod archive;
#[cfg(test)]
mod broken;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod integrity;
#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod jsonl;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod lists;
#[cfg(test)]
mod privacy;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod replaced;
#[cfg(test)]
mod shared_file;
#[cfg(test)]
mod sqlite;
#[cfg(test)]
mod support;
#[cfg(test)]
mod takeover;
