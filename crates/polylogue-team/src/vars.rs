//! Variables of a team file: those of any configuration file, and the task.

pub(crate) use polylogue_config::vars::{Piece, Vars, is_name, pieces};

/// The variable that is known only when a chat runs.
pub(crate) const TASK: &str = "task";

/// How a name of the user's choice is written.
pub(crate) const NAME_HINT: &str = "a name begins with a letter, followed by letters, digits, `_` and `-`";
