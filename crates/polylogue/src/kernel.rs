//! The kernel, layer by layer: what you need to implement a model, a tool, a store, an agent or a policy.
//!
//! Read the modules in this order; each uses only those before it.
//!
//! | module | contents |
//! |---|---|
//! | [`data`] | plain data: names, messages, tool calls and their results, requests and replies of models, usage, stop reasons, errors |
//! | [`limits`] | limits of a run, budgets shared by runs, cancellation, rates of model servers |
//! | [`log`] | events, the log, the traits of stores and queues |
//! | [`transcript`] | one chat, folded from its events |
//! | [`view`] | what one agent's model receives |
//! | [`model`] | the trait of models |
//! | [`tool`] | the trait of tools |
//! | [`turn`] | what an agent can do in its turn |
//! | [`agent`] | the trait of agents |
//! | [`policy`] | the trait of policies |
//! | [`chat`] | participants and a policy together |
//! | [`run`] | results and streams of runs |

pub use polylogue_core::{agent, chat, data, limits, log, model, policy, run, tool, transcript, turn, view};
