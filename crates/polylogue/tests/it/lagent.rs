//! What Lagent, LazyLLM and CAMEL do and ought to do with agents as layers, item by item of a conformance list of 90, through
//! the public API (`docs/conformance/lagent-lazyllm-camel.md`). Where Polylogue differs on purpose, `docs/compatibility.md` says why.

mod actions;
mod calls;
mod compose;
mod cut;
mod cut_kinds;
mod ends;
mod flows;
mod layers;
mod parts;
mod random;
mod reason;
mod sessions;
mod state;
mod tools;
mod visualizer;
