//! Role-play: what the role-plays of CAMEL and LazyLLM do and should do, by the items 64, 67 and 72 to 88 of a list of
//! 90, through the public API. `docs/compatibility.md` gives the reasons for deliberate differences.

mod course;
mod critic;
mod cut;
mod ends;
mod preparation;
mod random;
mod roles;
mod set;
