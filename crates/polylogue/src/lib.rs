//! Conversations among language-model agents, tools and people.
//!
//! Programs depend on this crate: it re-exports the [`kernel`], and adds agents, policies, and termination conditions.
//!
//! # Two agents
//!
//! An [`Assistant`] is an agent backed by a model. A [`Chat`] has participants and an order of speakers; a termination
//! condition ends it.
//!
//! ```
//! use polylogue::{Assistant, Chat, models, round_robin, stop};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! // A script replaces the model: `models::named("openai:gpt-4o-mini")?` is a real one.
//! let model = models::scripted(r#"[{"Ann": "One."}, {"Bob": "Two. DONE"}]"#)?;
//! let chat = Chat::builder("counting")
//!     .participant(Assistant::new("Ann", &model)?.system("Count on."))
//!     .participant(Assistant::new("Bob", &model)?.system("Count on. Say DONE at two."))
//!     .policy(round_robin())
//!     .stop(stop::says("DONE") | stop::max_turns(10))
//!     .build()?;
//! let result = chat.run("Count to two.").await?;
//! println!("{result}");
//! # assert_eq!(result.to_string(), "user: Count to two.\n\nAnn: One.\n\nBob: Two. DONE\n\n(Bob said `DONE`)");
//! # assert_eq!((result.text(), result.usage.calls), ("Two. DONE", 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`RunResult`] has the text, the messages, the stop reason, and usage and cost.
//!
//! # Run, stream, resume
//!
//! | you want | call |
//! |---|---|
//! | a run in memory | [`Chat::run`] |
//! | its updates as they happen | [`Chat::stream`] |
//! | a run that can be resumed in another process | [`Chat::run_in`], in a log of a store: [`Log::create`] |
//! | to continue it after a crash, a limit or an answer | [`Log::open`], [`Chat::resume`] |
//! | to say something more in a closed chat | [`Chat::continue_with`] |
//!
//! # One model alone
//!
//! ```no_run
//! # async fn example() -> Result<(), polylogue::kernel::data::ModelError> {
//! let model = polylogue::models::named("ollama:llama3.2")?;
//! println!("{}", model.ask("Why is the sky blue?").await?);
//! # Ok(())
//! # }
//! ```
//!
//! # Overview
//!
//! | you want | look at |
//! |---|---|
//! | a model as participant | [`Assistant`]: system message, tools, parameters, view |
//! | a person as participant | [`Human`]: the run ends with a question, and continues after the answer |
//! | a function as participant | [`Function`], or a custom [`Agent`] |
//! | an agent without a chat | [`Session`]: message in, message out; access to its memory |
//! | an agent composed of agents: sequences, branches, loops and graphs in ordinary Rust | [`Function::calling`], [`Turn::ask`]; [`session`] |
//! | several ways to reply | [`Stack`]: layers, the first reply counts; [`reply`] |
//! | human input | [`HumanInput`]: always, at termination, or never |
//! | suggested tools, executed by another agent | [`Assistant::suggest_tool`] and [`Executor`] |
//! | tools from functions and methods | [`#[tool]`](macro@tool), [`#[toolkit]`](macro@toolkit); from closures: [`FunctionTool`] |
//! | to run code in messages | [`Coder`]: with tools, with optional approval; [`code`] |
//! | agents and chats as tools | [`AgentTool`] |
//! | reasoning agents: ReAct, plan and solve, ReWOO, refinement | [`reason`] |
//! | hooks on what is read or said | [`hook`]; few-shot examples, a window, merged messages: [`aggregate`] |
//! | to parse model output | [`parse`] |
//! | to run parsed calls | [`parse::ActionExecutor`], [`parse::CallRecord`] |
//! | to finish with a tool call | [`tools::tool::Finish`] |
//! | tools and JSON for models that support neither | [`tooling`], [`PromptedTool`], [`Assistant::output_schema`] |
//! | a simple order | [`round_robin`], [`sequential`], [`parallel`], or a closure: it is a [`Policy`] |
//! | a group chat | [`Group`]: round robin, random, a model ([`Selector`]), a person ([`HumanSelector`]) or a custom rule selects the speaker |
//! | a graph | [`Graph`]: parallel nodes, joins, conditions, loops |
//! | handoffs | [`Handoff`], a tool, and [`handoffs`] |
//! | a debate and a vote | [`Debate`] |
//! | role-play: one role instructs, the other solves | [`RolePlay`] |
//! | an orchestrator with a ledger | [`Orchestrator`] |
//! | tasks that agents solve alone, or by talking until they are complete | [`Task`], [`GroupSolve`] and [`EndMode`]; the result: [`GroupSolveResult`] |
//! | shared state | [`state`] |
//! | memory across conversations | [`memory`] |
//! | late joiners | [`with_late_joiner`] |
//! | a termination condition | [`stop`], [`LoopDetector`]; they compose by `\|` and `&` |
//! | a summary | [`with_summary_by`], [`with_summarizer`](order::with_summarizer), [`with_summary`]; default: the last message |
//! | chats in a sequence | [`sequential`], [`Carryover`]: results are carried over to the next chat |
//! | chats with dependencies | [`Dag`]: independent chats run in parallel |
//! | a chat within a chat | add it as a participant: a [`Chat`] is an [`Agent`] |
//! | a nested chat for some replies | [`Nested`]: a layer with a trigger |
//! | the result, usage and cost of a run | [`Report`] |
//! | many runs | [`Batch`], and a [`Budget`] for all of them |
//! | to cancel | [`Log::cancellation`] |
//! | to implement a model, a tool, a store or a policy | [`kernel`], layer by layer |
//!
//! # Cargo features
//!
//! | feature | adds | default |
//! |---|---|---|
//! | `models` | `polylogue::models`: endpoints of providers, scripts, caches, fallbacks | yes |
//! | `sqlite` | `polylogue::stores`: logs in a database file, in a folder, or in memory | no |
//! | `local` | `polylogue::local`: models in this process, from GGUF files | no |
//!
//! # Async runtime
//!
//! A run is a future that any runtime can poll; this crate spawns no tasks. The models of `polylogue::models` use the
//! network and timers of Tokio. Drop the future to abort the run, or [cancel](Log::cancellation) it to end it in order; in
//! both cases the log can be resumed.

/// In an implementation of [`Agent`](polylogue_core::Agent) for a wrapper: forwards these methods to the agent in the field.
macro_rules! forward_agent {
    ($agent:ident: $($method:ident),+) => { $(forward_agent!(@$method $agent);)+ };
    (@name $agent:ident) => {
        fn name(&self) -> &polylogue_core::Name {
            polylogue_core::Agent::name(&self.$agent)
        }
    };
    (@description $agent:ident) => {
        fn description(&self) -> &str {
            polylogue_core::Agent::description(&self.$agent)
        }
    };
    (@sub_agents $agent:ident) => {
        fn sub_agents(&self) -> Vec<polylogue_core::SubAgent> {
            polylogue_core::Agent::sub_agents(&self.$agent)
        }
    };
    (@background_agent $agent:ident) => {
        fn background_agent(&self, target: &str) -> Option<polylogue_core::AnyAgent> {
            polylogue_core::Agent::background_agent(&self.$agent, target)
        }
    };
}

pub mod agents;
mod code_block;
mod json_schema;
pub mod kernel;
pub mod layers;
mod placeholders;
pub mod policies;
pub mod runs;
pub mod tasks;
mod termination;
pub mod tools;

pub use agents::{Assistant, Function, Human, Session};
pub use policies::{Graph, Group, parallel, round_robin, sequential};
pub use polylogue_core::{
    Act, Agent, AnyModel, Chat, Error, Limits, Log, Message, Name, Policy, Result, RunResult, Status, Step,
    Tool, Transcript, Turn, Update,
};
pub use termination::stop;

#[cfg(doc)]
use {
    agents::{PromptedTool, reason, session, tooling},
    kernel::{data::ToolSpec, limits::Budget},
    layers::{Coder, Executor, HumanInput, Nested, Stack, aggregate, code, hook, parse, reply},
    policies::{
        Carryover, Dag, Debate, Handoff, HumanSelector, Orchestrator, Selector, handoffs, order,
        with_late_joiner, with_summary, with_summary_by,
    },
    runs::{Batch, Report},
    stop::LoopDetector,
    tasks::{EndMode, GroupSolve, GroupSolveResult, RolePlay, Task},
    tools::{AgentTool, FunctionTool, memory, state},
};

/// Makes a tool from a function: a value with the function's name, for [`Assistant::tool`] and wherever a [`Tool`] is
/// accepted.
///
/// Models read what programmers read: the name of the function, its doc comment, and the names, types and doc comments
/// of its parameters. A function without a doc comment does not compile, since models choose tools by their
/// descriptions.
///
/// - A parameter is any type that implements `serde::Deserialize` and `schemars::JsonSchema`; your structs and enums
///   derive both. An `Option`, or a parameter with `#[default(...)]`, is optional.
/// - A parameter `&ToolCx<'_>` is not an argument: it is the context of the call.
/// - The return value is the result: a text unchanged, `()` as no text, anything else as JSON. The model receives the
///   error of a `Result`, and the conversation continues.
/// - The function can be `async`. Run blocking code on its own thread.
/// - `#[tool(name = "...", description = "...", repeatable, ends_turn)]` overrides name and description and sets flags. A name is
///   1 to 64 ASCII letters, digits, `_` and `-`; for the flags see [`ToolSpec::repeatable`] and [`ToolSpec::ends_turn`].
///
/// The function itself stays callable as `run`.
///
/// # A tool with a default
/// ```
/// use polylogue::{Tool, tool};
///
/// /// Converts euros into another currency.
/// #[tool(repeatable)]
/// async fn exchange(
///     /// The amount in euros
///     amount: f64,
///     /// The other currency
///     #[default("USD")]
///     to: String,
/// ) -> Result<f64, String> {
///     if to == "USD" { Ok(amount * 1.1) } else { Err(format!("There is no rate for {to}.")) }
/// }
///
/// assert_eq!(exchange.spec().description, "Converts euros into another currency.");
/// assert_eq!(exchange.spec().parameters["required"], serde_json::json!(["amount"]));
/// # fn example(model: polylogue::AnyModel) -> Result<(), polylogue::kernel::data::NameError> {
/// let agent = polylogue::Assistant::new("Clerk", model)?.tool(exchange);
/// # Ok(())
/// # }
/// ```
///
/// # What does not compile
/// A tool without a description:
/// ```compile_fail
/// #[polylogue::tool]
/// fn clock() -> String {
///     "noon".into()
/// }
/// ```
/// A name that providers refuse:
/// ```compile_fail
/// /// Tells the size.
/// #[polylogue::tool]
/// fn größe() -> String {
///     "5".into()
/// }
/// ```
/// An argument without a schema:
/// ```compile_fail
/// struct Mine;
/// /// Takes it.
/// #[polylogue::tool]
/// fn take(mine: Mine) {}
/// ```
pub use polylogue_macros::tool;
/// Makes tools from the methods of a type with the attribute `#[tool]`; they share a value of it.
///
/// The type gets a method `tools` that returns them all, for [`Assistant::tools`]. The rules of [`tool`](macro@tool)
/// apply to the methods; they take `&self`. `#[toolkit(prefix = "shop_")]` adds a prefix to all names.
///
/// The fields of a toolkit are configuration, such as a connection. Conversations run at the same time, and resume in
/// other processes: state of a conversation belongs in its log.
///
/// ```
/// use polylogue::toolkit;
///
/// struct Shop {
///     currency: String,
/// }
///
/// #[toolkit(prefix = "shop_")]
/// impl Shop {
///     /// Tells the price of an article.
///     #[tool(repeatable)]
///     async fn price(&self, article: String) -> String {
///         format!("{article}: 5 {}", self.currency)
///     }
/// }
///
/// let names: Vec<String> = Shop { currency: "EUR".into() }.tools().iter().map(|tool| tool.spec().name.clone()).collect();
/// assert_eq!(names, ["shop_price"]);
/// # use polylogue::Tool;
/// ```
pub use polylogue_macros::toolkit;

#[cfg(feature = "local")]
pub use polylogue_local as local;
#[cfg(feature = "models")]
pub use polylogue_models as models;
#[cfg(feature = "sqlite")]
pub use polylogue_store as stores;

/// Compiles the examples of the README and of the pages on the library and on memory, and runs the programs among them.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/library.md")]
#[doc = include_str!("../../../docs/memory.md")]
struct Library;

/// Compiles the examples of the migration pages for Lagent and LazyLLM.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-lagent.md")]
#[doc = include_str!("../../../docs/from-lazyllm.md")]
struct Pages;
