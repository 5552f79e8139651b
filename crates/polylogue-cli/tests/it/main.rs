//! The `polylogue` program as its users meet it: a process with arguments, a terminal or none, signals, files and a
//! server that may misbehave.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod approvals;
mod attached;
mod attacks;
mod bad;
mod batch;
mod breakdowns;
mod budgets;
mod chat;
mod checks;
mod compaction;
mod containers;
mod doctor;
mod endpoints;
mod fallback;
mod first_hour;
mod first_run;
mod folders;
mod forks;
mod home;
mod http;
mod humans;
mod imitations;
mod import;
mod key_order;
mod large_results;
mod limits;
mod mcp;
mod mcp_serving;
mod memories;
mod model_lists;
mod models;
mod modes;
mod more;
mod names;
mod new_teams;
mod offline;
mod parallel;
mod pictures;
mod pins;
mod piped;
mod postgres;
mod prices;
mod quirks;
mod reasoning;
mod received;
mod recipes;
mod recordings;
mod remote;
mod remote_files;
mod remote_stops;
mod repeats;
mod runs;
mod sarif;
mod screen;
mod serving;
mod settings;
mod sides;
mod silence;
mod small;
mod societies;
mod steering;
mod stops;
mod terminal;
mod text_only;
mod thoughts;
mod trust;
mod trust_attacks;
mod verified;
mod versions;
mod web;
mod working;
mod wrong_keys;
