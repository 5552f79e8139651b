//! Conversations among language-model agents, tools and people.
//!
//! This crate is what programs depend on: it has everything of the kernel, [`polylogue_core`], and on top of it agents,
//! orders, and conditions that end a chat.
//!
//! # Two agents
//!
//! An [`Assistant`] speaks by a model. A [`Chat`] is agents and a policy; [`round_robin`] lets them speak one after the other,
//! [`until`] says when it is over. A [`Log`] keeps what happens, in a store.
//!
//! ```
//! use polylogue::stop::{max_turns, says};
//! use polylogue::{AnyModel, AnyStore, Assistant, Chat, Log, LogId, Meta, Status, in_turn, until};
//! use polylogue_models::Script;
//! use polylogue_store::Memory;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! // A script stands in for a model: `Models::new(Env::process()).model("openai:gpt-4o-mini")?` is a real one.
//! let script: Script = serde_json::from_str(r#"[{"Ann": "One."}, {"Bob": "Two. DONE"}]"#)?;
//! let model = AnyModel::new(script.model("demo"));
//! let chat = Chat::named("counting")
//!     .with(Assistant::new("Ann", model.clone())?.system("Count on."))
//!     .with(Assistant::new("Bob", model)?.system("Count on. Say DONE at two."))
//!     .policy(until(says("DONE") | max_turns(10), in_turn()))
//!     .build()?;
//!
//! let store = AnyStore::new(Memory::new());
//! let mut log = Log::create(store, LogId::new("first")?, &Meta::default()).await?;
//! let status = chat.run(&mut log, "Count to two.").await?;
//! let Status::Closed { reason, summary } = status else { panic!("it is over") };
//! assert_eq!(reason.to_string(), "Bob said `DONE`");
//! assert_eq!(&*summary, "Two. DONE");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! | you want | look at |
//! |---|---|
//! | a model in the room | [`Assistant`]: system text, tools, parameters, how it sees the room |
//! | a person in the room | [`Human`]: the run ends with a question, and goes on when it is answered |
//! | a function in the room | [`Function`], or an [`Agent`] of your own |
//! | an agent without a chat around it | [`Session`]: message in, message out; what it remembers, by path |
//! | an agent made of agents, in ordinary Rust | [`Turn::ask`]; [`session`] |
//! | agents one after the other, at the same time, by case, again and again, as one agent | [`compose`] |
//! | several ways to reply | [`Stack`]: layers, the first that replies has replied; [`reply`] |
//! | a person who may step in | [`HumanInput`], always, at the end, or never |
//! | tools that another runs | [`Assistant::suggest_tool`] and [`Executor`]; a tool from a closure: [`executor::Declared`] |
//! | tools from functions and methods | [`#[tool]`](macro@tool), [`#[toolkit]`](macro@toolkit) |
//! | code in messages to be run | [`Coder`]: by tools, with a person asked before if need be; [`code`] |
//! | agents and chats as tools | [`AgentTool`] |
//! | agents that reason: in rounds, by a plan, by evidence, by criticism | [`reason`] |
//! | to change what is read or said | [`hook`]; examples before it, a window, messages merged: [`aggregate`] |
//! | values read in what a model writes | [`parse`] |
//! | what was read to be run, and how it ended | [`parse::Actions`], [`parse::Ran`] |
//! | to finish by a call | [`tool::Finish`] |
//! | tools and JSON from models that know neither | [`tooling`], [`PromptedTool`], [`Assistant::output_schema`] |
//! | an order | [`round_robin`], [`sequential`], [`parallel`], or a closure: it is a [`Policy`] |
//! | a group | [`Group`]: round robin, chance, a model ([`Selector`]), a person ([`HumanSelector`]) or your own rule chooses who speaks |
//! | a graph | [`Graph`]: at the same time, joins, conditions, loops |
//! | to hand over | [`Handoff`], a tool, and [`handoffs`] |
//! | a debate and a vote | [`Debate`] |
//! | two roles, one of which instructs and the other solves | [`RolePlay`] |
//! | a plan, and somebody who keeps to it | [`Orchestrator`] |
//! | tasks that agents solve alone, or by talking until they are complete | [`Task`], [`GroupSolve`] and [`EndMode`]; what came of it: [`GroupSolveResult`] |
//! | values that all share | [`state`] |
//! | what is remembered from one conversation to the next | [`memory`] |
//! | to join later | [`joining()`] |
//! | an end | [`stop`], [`LoopDetector`]; they compose by `\|` and `&` |
//! | a summary | [`reflected`], [`reflecting`](order::reflecting), [`summed_up`]; the last message otherwise |
//! | chats one after the other | [`sequence`], [`Carryover`]: what came of each is carried over to the next |
//! | chats that need others | [`Dag`]: what can run at the same time does |
//! | a chat within a chat | put it among the participants: a [`Chat`] is an [`Agent`] |
//! | a chat within a reply | [`Nested`]: a layer, for some of the messages an agent hears |
//! | what came of it, and what it cost | [`Report`] |
//! | the same for a thousand tasks | [`Batch`], and a [`Budget`] for all of them |
//! | to go on after a crash | [`Log::open`] and [`Chat::resume`] |
//! | to watch | [`Log::subscribe`] |
//! | to stop it | [`Log::cancellation`] |

mod agents;
mod layers;
mod policies;
mod runs;
mod tasks;
mod termination;
mod tools;

use agents::{assistant, function, human};
use policies::replay;
use termination::verdict;

pub use agents::{compose, reason, session, tooling};
pub use layers::{aggregate, code, executor, hook, human_input, nested, parse, reply};
pub use policies::{carryover, dag, debate, graph, group, handoff, joining, orchestrator, order};
pub use runs::{batch, report};
pub use tasks::{group_solve, role_play, task};
pub use termination::{loop_detector, stop};
pub use tools::{agent_tool, approval, memory, state, tool};

pub use agent_tool::AgentTool;
pub use approval::Approval;
pub use assistant::Assistant;
pub use batch::Batch;
pub use carryover::{Carryover, WithCarryover};
pub use code::Coder;
pub use dag::Dag;
pub use debate::Debate;
pub use executor::Executor;
pub use function::Function;
pub use graph::Graph;
pub use group::{Group, HumanSelector, Selector};
pub use group_solve::{EndMode, GroupSolve, GroupSolveResult, History};
pub use handoff::{Handoff, handoffs};
pub use human::Human;
pub use human_input::HumanInput;
pub use joining::joining;
pub use loop_detector::LoopDetector;
pub use memory::GetHistory;
pub use nested::{Nested, Outer};
pub use orchestrator::Orchestrator;
pub use order::{parallel, reflected, round_robin, sequence, sequential, summed_up, until, without};
pub use polylogue_core::*;
/// Makes a tool of a function: a value with the function's name, for [`Assistant::tool`] and wherever else a [`Tool`] is taken.
///
/// Models are told what programmers are told: the name of the function, its doc comment, and the names, types and doc comments
/// of its parameters. Without a doc comment it does not compile, since models choose tools by what they are told of them.
///
/// - A parameter is anything that `serde` reads and `schemars` describes; structs and enums of your own derive both. One that is
///   an `Option`, or has `#[default(...)]`, may be left out.
/// - A parameter `&ToolCx<'_>` is no argument: it is what the tool is told of the call.
/// - What is returned is the outcome: a text as it is, nothing as no text, anything else as JSON. The error of a `Result` is told
///   to the model, and the conversation goes on.
/// - `async` or not. What takes long without waiting belongs on a thread of its own.
/// - `#[tool(name = "...", description = "...", repeatable, ends_turn)]` says what the function does not; see
///   [`ToolSpec::repeatable`] and [`ToolSpec::ends_turn`].
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
/// # fn example(model: polylogue::AnyModel) -> Result<(), polylogue::NameError> {
/// let agent = polylogue::Assistant::new("Clerk", model)?.tool(exchange);
/// # Ok(())
/// # }
/// ```
///
/// # What does not compile
/// A tool that says nothing of itself:
/// ```compile_fail
/// #[polylogue::tool]
/// fn clock() -> String {
///     "noon".into()
/// }
/// ```
/// An argument that cannot be described:
/// ```compile_fail
/// struct Mine;
/// /// Takes it.
/// #[polylogue::tool]
/// fn take(mine: Mine) {}
/// ```
pub use polylogue_macros::tool;
/// Makes tools of those methods of a type that have the attribute `#[tool]`; they share a value of it.
///
/// The type gets a method `tools`, which gives them all, for [`Assistant::tools`]. What is said of [`tool`](macro@tool) holds of
/// the methods; they take `&self`. `#[toolkit(prefix = "shop_")]` puts a text before all names.
///
/// What a toolkit holds is configuration, such as a connection. Conversations run at the same time, and begin anew in
/// another process: what belongs to one of them belongs in its log.
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
pub use reply::Stack;
pub use report::Report;
pub use role_play::RolePlay;
pub use session::Session;
pub use stop::Stop;
pub use task::Task;
pub use tooling::{PromptedTool, ToolCalling};

/// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So do those of the pages for those who come from Lagent, LazyLLM and CAMEL.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-lagent.md")]
#[doc = include_str!("../../../docs/from-lazyllm.md")]
struct Pages;
