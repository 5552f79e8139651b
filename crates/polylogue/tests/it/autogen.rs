//! What AutoGen 0.2 does and ought to do, item by item of a conformance list of 100, through the public API (`docs/conformance/autogen.md`). Where Polylogue
//! differs on purpose, `docs/compatibility.md` says why.

#[cfg(target_os = "linux")]
mod code;
mod groups;
mod nested;
mod people;
mod replies;
mod results;
mod sequences;
mod tools;
mod traps;
mod two_agents;
