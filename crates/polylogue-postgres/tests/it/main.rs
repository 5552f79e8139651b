//! Tests of the store on real servers, started and ended by each test.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod archive;
#[cfg(test)]
mod asked;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod cuts;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod full;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod pooled;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod rivals;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod shared_commits;
#[cfg(test)]
mod support;
#[cfg(test)]
mod unsuitable;
#[cfg(test)]
mod writers;
