//! The keys that there are, for a person who waits.

use std::time::Duration;

use crate::screen::region::Size;
use crate::screen::style::Style;
use crate::screen::text::Line;

/// How long a run lasts before the keys are shown: who waits wants to know them.
const KEYS_AFTER: Duration = Duration::from_secs(2);

/// What is said of the keys, while a run lasts and while it is paused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    pub(crate) running: &'static str,
    pub(crate) paused: &'static str,
}

impl Keys {
    /// The line that says which keys there are, if it is to be shown. `is_idle`: no agent has its turn.
    pub(super) fn line(self, is_paused: bool, is_idle: bool, size: Size, now: Duration) -> Option<Line> {
        let keys = match is_paused {
            _ if size.rows <= 6 => return None,
            true => self.paused,
            false if is_idle || now < KEYS_AFTER => return None,
            false => self.running,
        };
        Some(Line::new(keys, Style::DIM).fit(size.text_columns()))
    }
}
