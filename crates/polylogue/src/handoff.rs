//! Handing the turn over by a tool.
