//! Patterns that AutoGen 0.2 does not have: handoffs, shared state, debates, orchestrators, graphs. Every conversation
//! here is also cut after each of its events, and must come to the same end with new agents.

mod agent_tool;
mod approval;
mod background;
mod background_random;
mod background_turns;
mod compaction;
mod compaction_cases;
mod compaction_long;
mod debate;
mod graph;
mod graph_build;
mod graph_random;
mod handoff;
mod large_results;
mod orchestrator;
mod origins;
mod stage;
mod state;
mod tool_search;
mod used;
