//! The mode of the terminal, and waiting for the first key of an answer, so that a question can be withdrawn until then.

use std::io::{self, Write};
use std::time::Duration;

use polylogue::tools::approval::visible;
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::editor;

/// How often the terminal is asked whether a key was pressed.
const TICK: Duration = Duration::from_millis(50);

/// Shows `prompt` and waits until a key was pressed, which is still to be read. Returns at once where the terminal cannot tell. When
/// this is dropped, the terminal is in the mode that it had.
pub(super) async fn pressed(prompt: &str) {
    let saved = SavedMode::save();
    let Some(mode) = saved.0.as_ref().filter(|_| editor::is_possible()) else { return };
    let mut by_key = mode.clone();
    by_key.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    // The editor distinguishes Enter from Ctrl-J.
    by_key.input_modes.remove(InputModes::ICRNL);
    if tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &by_key).is_err() {
        return;
    }
    write(&visible(prompt));
    // The editor does so, too, but what is pasted may be there before it.
    let _paste = BracketedPaste::begin();
    while rustix::io::ioctl_fionread(rustix::stdio::stdin()).is_ok_and(|typed| typed == 0) {
        tokio::time::sleep(TICK).await;
    }
    // The editor shows the prompt itself.
    write("\r\x1b[K");
}

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

/// Has the terminal mark what is pasted, until this is dropped.
struct BracketedPaste;

impl BracketedPaste {
    fn begin() -> Self {
        write("\x1b[?2004h");
        Self
    }
}

impl Drop for BracketedPaste {
    fn drop(&mut self) {
        write("\x1b[?2004l");
    }
}

/// Writes to a terminal that may be gone.
fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes()).and_then(|()| io::stderr().flush());
}
