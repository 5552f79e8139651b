//! `kill -9` at random moments of a real run, repeatedly: no finished model call is asked for again, nothing
//! finished is lost, and the conversation ends as if nothing had happened.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod billed;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod place;
#[cfg(test)]
mod random;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod steered;
#[cfg(test)]
mod tools;
