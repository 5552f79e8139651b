//! The `polylogue` program as its users meet it: a process with arguments, a terminal or none, signals, files and a
//! server that may misbehave.

mod doctor;
mod home;
mod http;
mod models;
mod offline;
mod quirks;
mod received;
mod recordings;
mod runs;
mod stops;
