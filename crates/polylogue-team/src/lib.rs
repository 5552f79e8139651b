//! Team files: agents, their chats and their limits, in one file of YAML (or JSON, its subset).
//!
//! [`load`] reads a file and the team files that it names into a [`Team`], or returns all errors in them, each with its line and,
//! where there is one, a suggestion:
//!
//! ```text
//! error: there is no agent, chat or team `Stock_Tradr`
//!   --> teams/trading-bot.yaml:31:17
//!    |
//! 31 | participants: [Stock_Tradr, Python_Programmer]
//!    |                ^^^^^^^^^^^
//! hint: did you mean `Stock_Trader`?
//! ```
//!
//! A team is stored with each of its conversations as the texts of all its files. A conversation can then be resumed when a file has
//! changed or is gone, and errors quote the user's own lines:
//!
//! ```
//! use polylogue_team::{Overrides, Team, parse};
//!
//! let text = "
//! name: greeting
//! vars: {style: friendly}
//! agents:
//!   - {name: Ann, system: 'You are {{style}}. The task: {{task}}'}
//!   - {name: Bob}
//! chat: {participants: [Ann, Bob], stop: {says: BYE, max_turns: 6}}
//! ";
//! let team = parse(text, "greeting.yaml", &Overrides::default())?.team;
//! let ann = team.agents[0].model().ok_or("Ann speaks by a model")?;
//! assert_eq!(ann.system.fill("say hello"), "You are friendly. The task: say hello");
//!
//! let stored = serde_json::to_value(&team)?;
//! assert_eq!(serde_json::from_value::<Team>(stored)?, team);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The types are the one definition of the format: a field is a key. Files are read by them, and [`schema()`] makes a JSON Schema
//! for editors and [`reference()`] the page `docs/reference/team-file.md` of them.

mod agent;
mod approval;
mod at_name;
mod background;
mod bound;
mod build;
mod build_context;
mod built_in;
mod calls;
mod changes;
mod chat;
mod check;
mod codes;
mod command;
mod compaction;
mod condition;
mod diagram;
mod duration;
mod endpoint;
mod flow;
mod foreign;
mod format;
mod grant;
mod human_input;
mod json_schema;
mod limits;
mod load;
mod masking;
mod mcp;
mod memory;
mod model_list;
mod nested_chats;
mod outline;
mod output_blocks;
mod parameters;
mod path;
mod pattern;
mod powers;
mod price;
mod private_agents;
mod reasoning;
mod rows;
mod rules;
mod sandbox;
mod schema;
mod script;
pub mod secret;
mod set;
mod sources;
mod stop;
mod team;
mod text;
mod tooling;
mod vars;
mod web;
mod working;

use polylogue_config::{diagnostic, source, suggest, yaml};

pub use agent::{Agent, AgentKind, ExecutorKeys, HumanKeys, ModelKeys, NoModel, View};
pub use approval::{ApprovalRule, CodeApproval};
pub use background::BackgroundKeys;
pub use bound::{Amount, AttachedSize, BoundRow, LoopKind, OpenLoop, TeamBound};
pub use build::Provide;
pub use build_context::BuildContext;
pub use built_in::built_in_tools;
pub use calls::ApiDocument;
pub use changes::TeamChange;
pub use chat::{
    CarryoverSettings, Chat, InnerChat, Introductions, JoinCondition, LateJoiner, Opening, OpeningLine,
    Reflect, Summary,
};
pub use codes::{FindingKind, finding_kinds};
pub use compaction::CompactionKeys;
pub use diagram::{Diagram, DiagramEdge, DiagramParticipant};
pub use duration::{NoTime, Time};
pub use endpoint::{
    CapabilityKeys, CapabilitySet, Endpoint, FromEnv, Header, KeyVariable, OnlyText, OptionalParameter,
    Timeouts,
};
pub use foreign::names_of;
pub use format::{FormattedFile, format, format_file};
pub use grant::Grant;
pub use human_input::{HumanInputMode, TerminateOn, TerminatingMessage};
pub use limits::{Limits, UsageLimits};
pub use load::{Loaded, load, parse, parse_at};
pub use masking::parse_yaml;
pub use mcp::{McpServer, McpServers, McpTools};
pub use memory::{AgentMemory, TeamMemory};
pub use nested_chats::{NestedChat, NestedContext, NestedSummary, Trigger};
pub use output_blocks::{OutputBlock, RunsOutputBlocks};
pub use parameters::Parameters;
pub use pattern::{
    Completion, Critic, Debate, DecisionWords, Done, Edge, Exit, FirstMessage, Graph, Group, GroupSolve,
    Handoffs, Media, NextStates, Orchestrator, Pattern, Player, RandomSelection, RolePlay, RolePlayTexts,
    SelectSpeaker, Selector, Specifier, StateMachine, Task, Transitions,
};
pub use polylogue_config::diagnostic::{Diagnostic, Diagnostics, Place, Severity};
pub use price::read_prices;
pub use reasoning::{Best, ChoiceTexts, Example, PlanAndSolve, React, Reasoning, Refine, Rewoo};
pub use rows::{Row, Rows};
pub use rules::{Rule, RuleEntry, Rules};
pub use sandbox::{PythonVenv, SandboxBackend, SandboxSettings};
pub use schema::{reference, schema};
pub use sources::Overrides;
pub use stop::{Matches, Says, Stop};
pub use team::{ReceivedMedia, SubTeam, Team, Usage};
pub use text::{Schema, Template};
pub use tooling::{LargeResultsKey, NamedTool, RunTool, ToolEntry, ToolExample, ToolLimits};
pub use web::{EngineName, FetchSettings, KeyedEngine, PageFolder, SearchEngine, Web, WebSearch};
pub use working::{AgentTool, CodeExecution, Language, WorkFile};
