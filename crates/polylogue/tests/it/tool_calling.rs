//! Tools and answers of a form for models that know neither: items 55 to 68 of the conformance list of Yacana, every way of
//! calling tools, and a server that refuses all but text. Where Polylogue differs on purpose, `docs/compatibility.md` says why.

mod answers;
mod cut;
mod endpoint;
mod one;
mod plain;
mod several;
mod things;
mod thoughts;
mod ways;
