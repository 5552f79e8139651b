//! A planner that keeps a ledger.
