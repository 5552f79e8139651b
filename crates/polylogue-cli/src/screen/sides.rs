//! What several agents know: one below the other, or next to each other.

use polylogue::{History, Name, Path};

use super::style::Style;
use super::text::{Line, wrap};

/// One agent's point of view of a chat.
pub(crate) struct Side {
    /// The chat.
    pub(crate) at: Path,
    /// The agent.
    pub(crate) who: Name,
    /// What it was told and said.
    pub(crate) history: History,
}

impl Side {
    fn title(&self) -> String {
        if self.at.is_root() { self.who.to_string() } else { format!("{} {}", self.at, self.who) }
    }

    /// Its entries, each of them in lines of at most `width` columns.
    fn blocks(&self, width: usize) -> Vec<Vec<Line>> {
        let block = |(role, words): (String, String)| {
            let head = std::iter::once(Line::new(&format!("[{role}]:"), Style::BOLD));
            let words = words.lines().map(|line| Line::new(line, Style::PLAIN)).collect::<Vec<_>>();
            head.chain(words).flat_map(|line| wrap(&line, width)).collect()
        };
        self.history.blocks().map(block).collect()
    }
}

/// One below the other, each under its name.
pub(crate) fn below(sides: &[Side], colour: bool) -> String {
    let titled = |side: &Side| {
        let title = Line::new(&format!("------ {} ------", side.title()), Style::BOLD);
        let mut text = written(&[title], colour);
        text.push_str(&alone(side, colour));
        text
    };
    sides.iter().map(titled).collect()
}

/// One alone: its blocks, each with an empty line after it.
pub(crate) fn alone(side: &Side, colour: bool) -> String {
    let blocks = side.blocks(usize::MAX).into_iter();
    let lines: Vec<Line> =
        blocks.flat_map(|block| block.into_iter().chain(std::iter::once(Line::default()))).collect();
    written(&lines, colour)
}

/// Between two columns.
const GAP: &str = " | ";
/// Text in narrower columns cannot be read.
const NARROWEST: usize = 16;

/// Next to each other in `width` columns of the terminal: the nth entry of one beside the nth of the others.
pub(crate) fn beside(sides: &[Side], width: usize, colour: bool) -> String {
    if sides.is_empty() {
        return String::new();
    }
    let count = sides.len();
    let cell = (width.saturating_sub(GAP.len() * (count - 1)) / count).max(NARROWEST);
    let columns: Vec<Vec<Vec<Line>>> = sides.iter().map(|side| side.blocks(cell)).collect();
    let titles: Vec<Vec<Line>> =
        sides.iter().map(|side| wrap(&Line::new(&side.title(), Style::BOLD), cell)).collect();
    let mut lines = rows(&titles.iter().map(Vec::as_slice).collect::<Vec<_>>(), cell);
    for nth in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let blocks: Vec<&[Line]> =
            columns.iter().map(|blocks| blocks.get(nth).map_or(&[][..], Vec::as_slice)).collect();
        lines.extend(rows(&vec![&[][..]; count], cell).into_iter().chain(rows(&blocks, cell)));
    }
    written(&lines, colour)
}

/// Cells next to each other, each filled up to `width`; one empty row when there is nothing in them.
fn rows(cells: &[&[Line]], width: usize) -> Vec<Line> {
    let height = cells.iter().map(|cell| cell.len()).max().unwrap_or(0).max(1);
    let row = |nth: usize| {
        let mut row = Line::default();
        for (column, cell) in cells.iter().enumerate() {
            if column > 0 {
                row.push(GAP, Style::DIM);
            }
            let line = cell.get(nth).cloned().unwrap_or_default();
            let blanks = width.saturating_sub(line.width());
            row.append(&line);
            row.push(&" ".repeat(blanks), Style::PLAIN);
        }
        row.trimmed()
    };
    (0..height).map(row).collect()
}

fn written(lines: &[Line], colour: bool) -> String {
    let mut text = String::new();
    for line in lines {
        line.write(colour, &mut text);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use polylogue::Entry;

    use super::*;

    fn side(who: &str, texts: &[&str]) -> Side {
        let entry = |(nth, text): (usize, &&str)| {
            if nth % 2 == 0 { Entry::user(*text) } else { Entry::assistant(*text) }
        };
        let entries = texts.iter().enumerate().map(entry).collect();
        Side { at: Path::root(), who: Name::new(who).unwrap(), history: History { entries } }
    }

    #[test]
    fn entries_stand_next_to_each_other_and_long_ones_are_broken() {
        let keeper =
            side("Keeper", &["Choose a number.", "It is 2", "Wait for guesses.", "I wait.", "1?", "No."]);
        let guesser =
            side("Guesser", &["Find a number from one to three.", "1?\n\u{1b}[31m", "宿題 は 宿題 です"]);
        expect![[r#"
            Keeper              | Guesser
                                |
            [user]:             | [user]:
            Choose a number.    | Find a number from
                                | one to three.
                                |
            [assistant]:        | [assistant]:
            It is 2             | 1?
                                | ␛[31m
                                |
            [user]:             | [user]:
            Wait for guesses.   | 宿題 は 宿題 です
                                |
            [assistant]:        |
            I wait.             |
                                |
            [user]:             |
            1?                  |
                                |
            [assistant]:        |
            No.                 |
        "#]]
        .assert_eq(&beside(&[keeper, guesser], 42, false));
        assert_eq!(beside(&[], 42, false), "");
    }

    #[test]
    fn one_below_the_other_each_has_its_name() {
        let sides = [side("Keeper", &["Choose.", "2"]), side("Guesser", &["Find it."])];
        expect![[r#"
            ------ Keeper ------
            [user]:
            Choose.

            [assistant]:
            2

            ------ Guesser ------
            [user]:
            Find it.

        "#]]
        .assert_eq(&below(&sides, false));
        let [keeper, _] = &sides;
        assert_eq!(alone(keeper, false), keeper.history.to_string());
    }
}
