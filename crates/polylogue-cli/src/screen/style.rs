//! How text looks, and whether this output can look that way.

use std::collections::HashMap;
use std::io::IsTerminal;

use polylogue_core::Name;

/// What the person asked for with `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    /// Colors on a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Colors even when the output is not a terminal.
    Always,
    /// Plain text.
    Never,
}

/// What this output can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutputStyle {
    /// Colors and rendered Markdown; otherwise plain text.
    pub(crate) color: bool,
    /// Lines that change in place; otherwise every line is final.
    pub(crate) live: bool,
    /// Whether it is a terminal, which breaks lines that are too long for it.
    pub(crate) terminal: bool,
}

impl OutputStyle {
    /// Plain text that never moves the cursor.
    pub(crate) const PLAIN: Self = Self { color: false, live: false, terminal: false };

    /// What `out` can show in this process' environment.
    pub(crate) fn of(wish: ColorChoice, out: &impl IsTerminal) -> Self {
        Self::choose(wish, out.is_terminal(), &|name| std::env::var(name).ok())
    }

    /// As [`OutputStyle::of`], with the facts given. `NO_COLOR` counts when it is not empty (no-color.org), and a
    /// `TERM=dumb` understands no escape sequences.
    pub(crate) fn choose(wish: ColorChoice, terminal: bool, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let able = terminal && env("TERM").is_none_or(|term| term != "dumb");
        let refused = env("NO_COLOR").is_some_and(|value| !value.is_empty());
        match wish {
            ColorChoice::Never => Self { terminal, ..Self::PLAIN },
            ColorChoice::Always => Self { color: true, live: able, terminal },
            ColorChoice::Auto => Self { color: able && !refused, live: able && !refused, terminal },
        }
    }
}

/// A color of the terminal's own palette, so that it fits the person's theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
    BrightGreen,
    BrightYellow,
    BrightBlue,
    BrightMagenta,
    BrightCyan,
}

impl Color {
    /// Its number in an SGR escape sequence (ECMA-48; 90 and up are the common bright extension).
    const fn sgr(self) -> &'static str {
        match self {
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Blue => "34",
            Self::Magenta => "35",
            Self::Cyan => "36",
            Self::BrightGreen => "92",
            Self::BrightYellow => "93",
            Self::BrightBlue => "94",
            Self::BrightMagenta => "95",
            Self::BrightCyan => "96",
        }
    }
}

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) color: Option<Color>,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
    pub(crate) struck: bool,
}

impl Style {
    /// As the terminal shows text by itself.
    pub(crate) const PLAIN: Self =
        Self { color: None, bold: false, dim: false, italic: false, underline: false, struck: false };
    /// Of less weight: thoughts, hints, what is not said to anyone.
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };
    /// Of more weight.
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    /// Something went wrong.
    pub(crate) const ERROR: Self = Self { color: Some(Color::Red), bold: true, ..Self::PLAIN };
    /// The label of a warning.
    pub(crate) const WARNING: Self = Self { color: Some(Color::Yellow), ..Self::ERROR };

    /// The same in a color.
    pub(crate) const fn color(self, color: Color) -> Self {
        Self { color: Some(color), ..self }
    }

    /// Begins the style. Styles do not nest: each begins from none and is ended by [`Style::END`].
    pub(crate) fn begin(self, out: &mut String) {
        let marks = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.struck, "9"),
        ];
        let marks = marks.into_iter().filter_map(|(on, code)| on.then_some(code));
        let codes: Vec<&str> = marks.chain(self.color.map(Color::sgr)).collect();
        out.push_str("\x1b[");
        out.push_str(&codes.join(";"));
        out.push('m');
    }

    /// Ends any style.
    pub(crate) const END: &'static str = "\x1b[0m";
}

/// Gives every speaker a color that stays, in order of appearance. Red is left to errors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Palette {
    colors: HashMap<Name, Color>,
}

impl Palette {
    const COLORS: [Color; 10] = [
        Color::Cyan,
        Color::Green,
        Color::Magenta,
        Color::Yellow,
        Color::Blue,
        Color::BrightCyan,
        Color::BrightGreen,
        Color::BrightMagenta,
        Color::BrightYellow,
        Color::BrightBlue,
    ];

    /// The style of `name`.
    pub(crate) fn of(&mut self, name: &Name) -> Style {
        let next = Self::COLORS.get(self.colors.len() % Self::COLORS.len()).copied();
        let color = match self.colors.get(name) {
            Some(color) => Some(*color),
            None => next.inspect(|color| {
                self.colors.insert(name.clone(), *color);
            }),
        };
        Style { color, ..Style::BOLD }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_needs_a_terminal_that_understands_it_and_a_person_who_wants_it() {
        let looks = |wish, terminal, env: &'static [(&str, &str)]| {
            let get = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, v)| (*v).to_owned());
            let looks = OutputStyle::choose(wish, terminal, &get);
            (looks.color, looks.live)
        };
        use ColorChoice::{Always, Auto, Never};
        assert_eq!(looks(Auto, true, &[("TERM", "xterm")]), (true, true));
        assert_eq!(looks(Auto, true, &[]), (true, true));
        assert_eq!(looks(Auto, false, &[]), (false, false));
        assert_eq!(looks(Auto, true, &[("NO_COLOR", "1")]), (false, false));
        assert_eq!(looks(Auto, true, &[("NO_COLOR", "")]), (true, true));
        assert_eq!(looks(Auto, true, &[("TERM", "dumb")]), (false, false));
        assert_eq!(looks(Always, false, &[("NO_COLOR", "1")]), (true, false));
        assert_eq!(looks(Always, true, &[("TERM", "dumb")]), (true, false));
        assert_eq!(looks(Never, true, &[]), (false, false));
    }

    #[test]
    fn speakers_keep_their_color() {
        let mut palette = Palette::default();
        let names: Vec<Name> = (0..12).map(|n| Name::new(format!("a{n}")).unwrap()).collect();
        let first: Vec<Style> = names.iter().map(|name| palette.of(name)).collect();
        let again: Vec<Style> = names.iter().map(|name| palette.of(name)).collect();
        assert_eq!(first, again);
        assert_ne!(first[0], first[1]);
        assert_eq!(first[0], first[10], "the eleventh begins again");
        assert!(first.iter().all(|style| style.color != Some(Color::Red)));
    }
}
