//! Chats, policies, agents, layers and limits, through the public interface of the library. One program, since each program of
//! tests is linked with the whole library.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "these are tests"
)]

mod allowances;
mod allowances_server;
mod autogen;
mod batch;
mod beyond;
mod budgets;
mod chats;
mod clock;
mod common;
mod cut;
mod deaths;
mod given_up;
mod groups;
mod lagent;
mod layers;
mod left_out;
mod limit_questions;
mod limits;
mod lost_calls;
mod memory;
mod more_turns;
mod output_limits;
mod own_limit_questions;
mod paid_tools;
mod pairing;
mod parallel_questions;
mod partial;
mod raised;
mod raised_by_answers;
mod reopened;
mod role_play;
mod rounds;
mod run;
mod seals;
mod sent;
mod sequences;
mod shared;
mod silence;
mod stage;
mod start;
mod stops;
mod time_limits;
mod tool;
mod tool_calling;
mod unanswered;
mod worker;
mod writes;
mod yacana;
