//! Loop detection.

use polylogue::stop::LoopDetector;
use polylogue_config::{As, Config};

/// Limits on repetition, or `off`.
#[derive(Config)]
#[config(name = "LoopDetectionValue", by_shape)]
pub(super) enum LoopDetectionKey {
    /// Loop detection is off.
    Off(Off),
    /// Loop detection with these limits.
    On(LoopLimits),
}

/// The word `off`.
#[derive(Config)]
pub(super) enum Off {
    /// Loops are not detected.
    Off,
}

/// Limits on repetition. A chat ends when one is reached.
#[derive(Config)]
#[config(name = "LoopDetection", for = LoopDetector)]
pub(super) struct LoopLimits {
    /// Number of times in a row that every speaker nearly repeats its previous message.
    #[key(default = LoopDetector::default().repetition, range = 2..)]
    repetition: usize,
    /// Share of common word triples at which two messages count as nearly equal, from 0.1 to 1. `1` means equal.
    #[key(default = LoopDetector::default().similarity, range = 0.1..=1.0)]
    similarity: f64,
    /// Number of consecutive messages that are little else than farewells or thanks.
    #[key(default = LoopDetector::default().farewells, range = 2..)]
    farewells: usize,
    /// Number of consecutive silent turns.
    #[key(default = LoopDetector::default().silence, range = 1..)]
    silence: usize,
    /// Number of consecutive equal tool calls with equal results, within one turn or across turns.
    #[key(default = LoopDetector::default().calls, range = 2..)]
    calls: usize,
}

impl As<LoopDetector> for LoopDetectionKey {
    fn into_value(self) -> LoopDetector {
        match self {
            Self::Off(Off::Off) => LoopDetector::OFF,
            Self::On(limits) => limits.into_value(),
        }
    }

    fn from_value(detector: &LoopDetector) -> Self {
        match *detector == LoopDetector::OFF {
            true => Self::Off(Off::Off),
            false => Self::On(LoopLimits::from_value(detector)),
        }
    }
}
