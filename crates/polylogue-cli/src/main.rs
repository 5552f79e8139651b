//! The `polylogue` command-line program.

// The commands that use it are not here yet.
#[allow(dead_code, unused_imports)]
mod screen;

fn main() {}
