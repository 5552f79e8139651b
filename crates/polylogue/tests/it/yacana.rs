//! What Yacana does and ought to do with tasks and groups that solve them, item by item of a conformance list of 70,
//! through the public API (`docs/conformance/yacana.md`). Where Polylogue differs on purpose, `docs/compatibility.md` says why.

mod completion;
mod cut;
mod ends;
mod every;
mod histories;
mod larger;
mod openings;
mod protocol;
mod reflections;
mod refused;
mod solo;
mod table;
mod talk;
mod tools;
mod variants;
