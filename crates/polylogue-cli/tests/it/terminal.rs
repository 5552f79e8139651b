//! A terminal with the program in it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::home::{Home, KEY, PATIENCE, PROGRAM, wait};

/// A terminal, what is to be seen in it, and a process that has it for its own.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<Mutex<Seen>>,
    /// Ends when no process has the terminal any more.
    watch: Option<JoinHandle<()>>,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
}

impl Terminal {
    /// Runs the program in a terminal of this size.
    pub(crate) fn open(home: &Home, size: (u16, u16), args: &[&str]) -> Self {
        Self::run(home, size, &[&[PROGRAM][..], args].concat())
    }

    /// Runs a script of a shell in a terminal of this size.
    pub(crate) fn shell(home: &Home, size: (u16, u16), script: &str) -> Self {
        Self::run(home, size, &["sh", "-c", script])
    }

    fn run(home: &Home, (columns, rows): (u16, u16), command: &[&str]) -> Self {
        let (keys, window) = pair(columns, rows);
        // It makes the window the controlling terminal, so that Ctrl-C is a signal.
        let mut command = home.command("setsid", &[&["--ctty"][..], command].concat());
        command.env("TERM", "xterm-256color");
        let end = || window.try_clone().unwrap();
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = vt100::Parser::new(rows, columns, 10_000);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new() }));
        let watch = Some(watch(keys.try_clone().unwrap(), Arc::clone(&seen)));
        Self { child, keys, seen, watch }
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Presses keys when `text` is on the screen and a question follows it.
    #[track_caller]
    pub(crate) fn press_at(&mut self, text: &str, keys: &str) {
        self.wait_for_question(text);
        self.press(keys);
    }

    /// What is on the screen now.
    pub(crate) fn sees(&self) -> String {
        let contents = self.seen.lock().unwrap().screen.screen().contents();
        contents.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    /// The rows on the screen now, each with whether all that is written in it has the color of code.
    pub(crate) fn rows(&self) -> Vec<(String, bool)> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        let columns = screen.size().1;
        let is_code = |row: u16| {
            let cells = (0..columns).filter_map(|column| screen.cell(row, column));
            let mut written = cells.filter(|cell| !cell.contents().trim().is_empty());
            written.all(|cell| cell.fgcolor() == vt100::Color::Idx(6) && !cell.bold())
        };
        let rows = (0..).zip(screen.rows(0, columns));
        rows.map(|(row, text)| (text.trim_end().to_owned(), is_code(row))).collect()
    }

    /// Waits until `text` is on the screen.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    /// Waits until `text` is on the screen below `before`.
    #[track_caller]
    pub(crate) fn wait_for_text_after(&self, before: &str, text: &str) {
        let is_below =
            |screen: &str| screen.split_once(before).is_some_and(|(_, below)| below.contains(text));
        self.wait_until(text, is_below);
    }

    /// Waits until `text` is on the screen and a question follows it.
    #[track_caller]
    pub(crate) fn wait_for_question(&self, text: &str) {
        let is_asked = |screen: &str| {
            screen.rsplit_once(text).is_some_and(|(_, rest)| rest.trim_end().ends_with(['>', ']']))
        };
        self.wait_until(text, is_asked);
    }

    #[track_caller]
    fn wait_until(&self, text: &str, holds: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !holds(&self.sees()) {
            assert!(begun.elapsed() < PATIENCE, "`{text}` is not on the screen:\n{}", self.sees());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything that was written.
    pub(crate) fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// Waits for the end of a process that runs no conversation. Gives the rows that are on the screen then.
    pub(crate) fn rows_at_end(mut self) -> Vec<String> {
        wait(&mut self.child);
        self.watch.take().unwrap().join().unwrap();
        self.rows().into_iter().map(|(row, _)| row).collect()
    }

    /// Waits for the end of the process. Gives its exit code, and what is on the screen then.
    pub(crate) fn end(mut self) -> (i32, String) {
        let status = wait(&mut self.child);
        // The closing lines end with how to continue, or to look at it again.
        self.wait_for("`polylogue show ");
        assert!(!self.bytes().contains(KEY));
        (status.code().unwrap_or(-1), self.sees())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It is over, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The two ends of a new terminal: for keys and eyes, and for the process.
fn pair(columns: u16, rows: u16) -> (File, OwnedFd) {
    let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&keys).unwrap();
    unlockpt(&keys).unwrap();
    let name = ptsname(&keys, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&keys, size).unwrap();
    let window = OpenOptions::new().read(true).write(true).open(path).unwrap();
    (File::from(keys), window.into())
}

fn watch(mut from: File, seen: Arc<Mutex<Seen>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        // The last process that has the terminal ends it, which is an error to read.
        while let Ok(read @ 1..) = from.read(&mut piece) {
            let mut seen = seen.lock().unwrap();
            seen.screen.process(&piece[..read]);
            seen.bytes.extend_from_slice(&piece[..read]);
        }
    })
}
