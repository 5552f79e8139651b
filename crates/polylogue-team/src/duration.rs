//! Times as people write them: a number and its unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use polylogue_config::types::{Kind, Text, Type, Variables};
use polylogue_config::yaml::Node;
use polylogue_config::{Config, Cx, Illegal, Leaf, TextKind};
use serde_json::Value;

/// A time of a team file, such as `500 ms`, `10 s`, `1.5 min` or `1 h`; from a millisecond to a day.
///
/// ```
/// use std::time::Duration;
/// let time: polylogue_team::Time = "1.5 min".parse()?;
/// assert_eq!((Duration::from(time), time.to_string()), (Duration::from_secs(90), "90 s".to_owned()));
/// # Ok::<(), polylogue_team::NoTime>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(Duration);

/// The reason why a text is no [`Time`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTime {
    /// The text is not a number with a unit.
    Unreadable,
    /// The time is shorter than a millisecond or longer than a day.
    OutOfBounds,
}

const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

impl Time {
    /// How to write one.
    pub(crate) const HINT: &str = "write a number and its unit: `500 ms`, `10 s`, `2 min` or `1 h`";

    /// Returns the time in milliseconds.
    pub fn ms(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for NoTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "it is not a number with a unit of time",
            Self::OutOfBounds => "it is less than 1 ms or more than 24 h",
        })
    }
}

impl std::error::Error for NoTime {}

impl FromStr for Time {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<Self, NoTime> {
        let text = text.trim();
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let seconds = match unit.trim_start() {
            "ms" => 0.001,
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(NoTime::Unreadable),
        };
        let number: f64 = number.parse().map_err(|_| NoTime::Unreadable)?;
        let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| NoTime::OutOfBounds)?;
        // To the millisecond, so that what is kept as a text reads back as the same.
        let rounded = time.saturating_add(Duration::from_micros(500)).as_millis();
        let time = Duration::from_millis(u64::try_from(rounded).unwrap_or(u64::MAX));
        if (SHORTEST..=LONGEST).contains(&time) { Ok(Self(time)) } else { Err(NoTime::OutOfBounds) }
    }
}

impl TryFrom<String> for Time {
    type Error = NoTime;

    fn try_from(text: String) -> Result<Self, NoTime> {
        text.parse()
    }
}

impl From<Time> for Duration {
    fn from(time: Time) -> Self {
        time.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.as_secs(), self.0.subsec_millis()) {
            (seconds, 0) => write!(f, "{seconds} s"),
            _ => write!(f, "{} ms", self.0.as_millis()),
        }
    }
}

impl From<Time> for String {
    fn from(time: Time) -> Self {
        time.to_string()
    }
}

impl TextKind for Time {
    type Value = Self;
    const TEXT: Text = Text {
        format: "duration",
        pattern: "^ *[0-9]*\\.?[0-9]* *(ms|s|min|h) *$",
        examples: &["500 ms", "10 s", "2 min"],
        variables: Variables::All,
    };

    fn parse(text: &str) -> Result<Self, Illegal> {
        text.parse().map_err(|error| match error {
            NoTime::Unreadable => Illegal::new(format!("`{text}` is not a time")).hint(Self::HINT),
            NoTime::OutOfBounds => Illegal::new(format!("`{text}` is not a usable limit: {error}")),
        })
    }

    fn to_text(time: &Self) -> String {
        time.to_string()
    }

    fn hole() -> Self {
        Self(SHORTEST)
    }
}

impl Config for Time {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(<Self as TextKind>::TEXT) } }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Leaf::<Self>::read(node, cx).0
    }

    fn hole() -> Self {
        Self(SHORTEST)
    }

    fn write(&self) -> Value {
        Value::String(self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_units() {
        for (text, ms) in
            [("10 s", 10_000), ("500ms", 500), ("1.5 min", 90_000), (" 24 h ", 86_400_000), ("0.25 s", 250)]
        {
            let time: Time = text.parse().unwrap();
            assert_eq!(Duration::from(time), Duration::from_millis(ms), "{text}");
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        for text in ["", "s", "10", "10 sec", "-1 s", "1e3 s", "1.2.3 s", "10 s 5 ms", "ten s"] {
            assert_eq!(text.parse::<Time>(), Err(NoTime::Unreadable), "{text}");
        }
        for text in ["0 s", "0.1 ms", "25 h", "99999999999999999999999999999999 h"] {
            assert_eq!(text.parse::<Time>(), Err(NoTime::OutOfBounds), "{text}");
        }
    }
}
