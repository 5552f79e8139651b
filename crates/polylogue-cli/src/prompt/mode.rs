//! The mode of the terminal.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// Restores the mode of the terminal, even if the line editor is interrupted by a signal.
pub(super) struct SavedMode(pub(super) Option<Termios>);

impl SavedMode {
    pub(super) fn save() -> Self {
        Self(tcgetattr(rustix::stdio::stdin()).ok())
    }
}

impl Drop for SavedMode {
    fn drop(&mut self) {
        if let Some(mode) = &self.0 {
            // A terminal that is gone needs no mode.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, mode);
        }
    }
}
