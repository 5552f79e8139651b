//! The teams that ship, as they run by their scripts: cut anywhere, and as those work whose users know them.

mod apart;
mod camel;
mod coding;
mod every;
mod lagent;
mod plain;
mod stage;
mod yacana;
