//! Databases that many processes share: their address, and what they say of budgets, rate limits and running conversations.

pub use polylogue_postgres::{
    Address as DatabaseAddress, BudgetFigures, BudgetListing, DatabaseFigures, LivePoint, Migrated,
    PostgresAsked, PostgresWatch, RateLimitFigures, Recount, SharedAmount, WatchedLog, shared_budget_name,
    token_budget,
};

pub use crate::shared_budgets::SharedBudgetSource;
