//! Endpoints, prices, scripts and recordings, against servers on loopback that are as strict as the providers. One program, since
//! each program of tests is linked with the whole library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod anthropic;
mod azure;
mod bedrock;
mod bound;
mod cache;
mod cached_share;
mod cassette;
mod common;
mod deviations;
mod embeddings;
mod fallback;
mod gemini;
mod key_order;
mod keys;
mod known;
mod media;
mod media_limits;
mod model_lists;
mod network;
mod ollama;
mod page;
mod parameters;
mod pdf;
mod prompt_cache;
mod recorded;
mod refusals;
mod replies;
mod requests;
mod responses;
mod retries;
mod script;
mod script_form;
mod sharing;
mod stop_words;
mod summaries;
mod tokens;
mod tool_schemas;
mod usage;
mod vendors;
mod verbatim;
