//! How far a batch is, while it runs: a line on the terminal that changes in place, or now and then one more line.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use polylogue_core::{Money, TotalUsage};

use super::record::Record;
use crate::screen::RunState;
use crate::screen::Size;
use crate::screen::text::Line;
use crate::screen::{Style, cost, time};

/// Without a terminal, how often a line is written.
const QUIET: Duration = Duration::from_secs(30);

/// How far a batch is.
pub(crate) struct Progress {
    total: usize,
    /// Over before it began.
    before: usize,
    /// Over, failed and waiting since.
    over: usize,
    failed: usize,
    waiting: usize,
    cost: Money,
    unpriced: bool,
    begun: Instant,
    last_shown: Instant,
    is_terminal: bool,
    /// What else is to be said.
    notice: &'static str,
}

impl Progress {
    pub(crate) fn new(total: usize, before: usize, cost: Money) -> Self {
        let (begun, is_terminal) = (Instant::now(), io::stderr().is_terminal());
        Self {
            total,
            before,
            over: 0,
            failed: 0,
            waiting: 0,
            cost,
            unpriced: false,
            begun,
            last_shown: begun,
            is_terminal,
            notice: "",
        }
    }

    pub(crate) fn count(&mut self, record: &Record<'_>) {
        match record.state {
            RunState::Failed => self.failed += 1,
            RunState::Waiting => self.waiting += 1,
            _ => self.over += 1,
        }
        self.cost += record.usage.cost;
        self.unpriced |= record.usage.unpriced > 0;
    }

    /// Shows `notice` from now on.
    pub(crate) fn say(&mut self, notice: &'static str) {
        self.notice = notice;
        self.show();
    }

    pub(crate) fn tick(&mut self) {
        if self.is_terminal || self.last_shown.elapsed() >= QUIET {
            self.show();
        }
    }

    fn show(&mut self) {
        self.last_shown = Instant::now();
        let line = self.line(self.begun.elapsed());
        // Without a reader there is nothing left to do.
        let _ = if self.is_terminal {
            let line = Line::new(&line, Style::PLAIN).fit(Size::of_terminal().columns.saturating_sub(1));
            write!(io::stderr(), "\r\x1b[K{}", line.text())
        } else {
            writeln!(io::stderr(), "{}", Line::new(&line, Style::PLAIN).text())
        };
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if self.is_terminal {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn line(&self, elapsed: Duration) -> String {
        let ended = self.over + self.failed + self.waiting;
        let mut facts = vec![format!("{}/{}", self.before + ended, self.total)];
        facts.extend((self.failed > 0).then(|| format!("{} failed", self.failed)));
        facts.extend((self.waiting > 0).then(|| format!("{} waiting", self.waiting)));
        let rate = ended as f64 / elapsed.as_secs_f64().max(0.001);
        if ended > 0 {
            facts.push(if rate < 1.0 { format!("{:.1}/min", rate * 60.0) } else { format!("{rate:.0}/s") });
        }
        facts.push(cost(&TotalUsage {
            cost: self.cost,
            unpriced: self.unpriced.into(),
            ..TotalUsage::default()
        }));
        let left = self.total.saturating_sub(self.before + ended);
        if ended > 0 && left > 0 {
            facts.push(format!("{} left", time(Duration::from_secs((left as f64 / rate).ceil() as u64))));
        }
        facts.extend((!self.notice.is_empty()).then(|| self.notice.to_owned()));
        format!("{} {}", bar(self.before + ended, self.total), facts.join(" · "))
    }
}

/// How much is done, in 20 columns.
fn bar(done: usize, total: usize) -> String {
    const WIDTH: usize = 20;
    let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    format!("[{}{}]", "=".repeat(full), " ".repeat(WIDTH - full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_has_counts_cost_and_remaining_time() {
        let mut progress = Progress::new(100, 10, Money::dollars(0.5));
        assert_eq!(progress.line(Duration::ZERO), "[==                  ] 10/100 · $0.50");
        progress.over = 28;
        progress.failed = 2;
        let line = "[========            ] 40/100 · 2 failed · 2/s · $0.50 · 30 s left";
        assert_eq!(progress.line(Duration::from_secs(15)), line);
        progress.unpriced = true;
        progress.notice = "stopping";
        let line = "[========            ] 40/100 · 2 failed · 6.0/min · at least $0.50 · 10 min 00 s left · stopping";
        assert_eq!(progress.line(Duration::from_secs(300)), line);
    }
}
