//! The `polylogue` program as its users meet it: a process with arguments, a terminal or none, signals, files and a
//! server that may misbehave.

// Marked as tests, so that what the lints allow in tests is allowed in their helpers too.
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod attached;
#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bad;
#[cfg(test)]
mod batch;
#[cfg(test)]
mod breakdowns;
mod budgets;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod compaction;
#[cfg(test)]
mod containers;
#[cfg(test)]
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod endpoints;
#[cfg(test)]
mod fallback;
#[cfg(test)]
mod first_hour;
#[cfg(test)]
mod first_run;
#[cfg(test)]
mod folders;
#[cfg(test)]
mod forks;
#[cfg(test)]
mod home;
#[cfg(test)]
mod http;
#[cfg(test)]
mod humans;
#[cfg(test)]
mod imitations;
#[cfg(test)]
mod import;
#[cfg(test)]
mod key_order;
#[cfg(test)]
mod large_results;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_serving;
#[cfg(test)]
mod memories;
#[cfg(test)]
mod model_lists;
#[cfg(test)]
mod models;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod more;
#[cfg(test)]
mod names;
#[cfg(test)]
mod new_teams;
#[cfg(test)]
mod offline;
mod parallel;
#[cfg(test)]
mod pictures;
#[cfg(test)]
mod pins;
#[cfg(test)]
mod piped;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod prices;
#[cfg(test)]
mod quirks;
#[cfg(test)]
mod reasoning;
#[cfg(test)]
mod received;
#[cfg(test)]
mod recipes;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod remote_files;
#[cfg(test)]
mod remote_stops;
#[cfg(test)]
mod repeats;
#[cfg(test)]
mod runs;
#[cfg(test)]
mod sarif;
#[cfg(test)]
mod screen;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod sides;
#[cfg(test)]
mod silence;
#[cfg(test)]
mod small;
#[cfg(test)]
mod societies;
#[cfg(test)]
mod steering;
mod stops;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod text_only;
#[cfg(test)]
mod thoughts;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod trust_attacks;
#[cfg(test)]
mod verified;
#[cfg(test)]
mod versions;
#[cfg(test)]
mod web;
#[cfg(test)]
mod working;
#[cfg(test)]
mod wrong_keys;
