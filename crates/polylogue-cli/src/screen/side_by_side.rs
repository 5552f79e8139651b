//! What several agents know: one below the other, or next to each other.

use polylogue_runtime::AgentHistory;
use unicode_width::UnicodeWidthChar;

use super::sanitized::Sanitized;
use super::style::Style;
use super::text::{Line, wrap};

/// A point of view in lines.
struct Blocks {
    system: Option<Vec<Line>>,
    entries: Vec<Vec<Line>>,
}

/// The name of the agent, with the chat if that is an inner one.
fn title(side: &AgentHistory) -> String {
    if side.chat.is_root() { side.who.to_string() } else { format!("{} {}", side.chat, side.who) }
}

impl Blocks {
    /// The system text of `side`, if it has one, and its entries, each of them in lines of at most `width` columns.
    fn of(side: &AgentHistory, width: usize) -> Self {
        let block = |role: &str, words: &str| match width {
            usize::MAX => block(role, words, width),
            _ => block(role, &of_one_width(words), width),
        };
        let system = side.system.as_ref().map(|text| block("system", text));
        let entries = side.history.blocks().map(|(role, words)| block(&role, &words)).collect();
        Self { system, entries }
    }
}

fn block(role: &str, words: &str, width: usize) -> Vec<Line> {
    let head = std::iter::once(Line::new(&format!("[{role}]:"), Style::BOLD));
    let words = words.lines().map(|line| Line::new(line, Style::PLAIN));
    head.chain(words).flat_map(|line| wrap(&line, width)).collect()
}

/// One below the other, each under its name.
pub(crate) fn below(sides: &[AgentHistory], color: bool) -> Sanitized {
    let titled = |side: &AgentHistory| {
        let title = Line::new(&format!("------ {} ------", title(side)), Style::BOLD);
        [Sanitized::lines(&[title], color), alone(side, color)]
    };
    sides.iter().flat_map(titled).collect()
}

/// One alone: its blocks, each with an empty line after it.
pub(crate) fn alone(side: &AgentHistory, color: bool) -> Sanitized {
    let Blocks { system, entries } = Blocks::of(side, usize::MAX);
    let blocks = system.into_iter().chain(entries);
    let lines: Vec<Line> =
        blocks.flat_map(|block| block.into_iter().chain(std::iter::once(Line::default()))).collect();
    Sanitized::lines(&lines, color)
}

/// Between two columns.
const GAP: &str = " | ";
/// Text in narrower columns cannot be read.
const NARROWEST: usize = 16;

/// Next to each other in `width` columns of the terminal: the nth entry of one next to the nth of the others. Those who do not
/// fit come below.
pub(crate) fn columns(sides: &[AgentHistory], width: usize, color: bool) -> Sanitized {
    let fit = ((width + GAP.len()) / (NARROWEST + GAP.len())).max(1);
    let tables = sides.chunks(fit).enumerate().flat_map(|(nth, sides)| {
        let gap = (nth > 0).then(Line::default);
        gap.into_iter().chain(table(sides, width))
    });
    Sanitized::lines(&tables.collect::<Vec<Line>>(), color)
}

fn table(sides: &[AgentHistory], width: usize) -> Vec<Line> {
    let count = sides.len();
    let cell = (width.saturating_sub(GAP.len() * (count - 1)) / count).max(NARROWEST);
    let sides_in_lines: Vec<Blocks> = sides.iter().map(|side| Blocks::of(side, cell)).collect();
    let titles: Vec<Vec<Line>> =
        sides.iter().map(|side| wrap(&Line::new(&title(side), Style::BOLD), cell)).collect();
    let mut lines = rows(&titles.iter().map(Vec::as_slice).collect::<Vec<_>>(), cell);
    let mut add = |cells: Vec<&[Line]>| {
        lines.extend(rows(&vec![&[][..]; count], cell));
        lines.extend(rows(&cells, cell));
    };
    // System texts are no entries: they are in their own row.
    if sides_in_lines.iter().any(|side| side.system.is_some()) {
        add(sides_in_lines.iter().map(|side| side.system.as_deref().unwrap_or_default()).collect());
    }
    for nth in 0..sides_in_lines.iter().map(|side| side.entries.len()).max().unwrap_or(0) {
        add(sides_in_lines.iter().map(|side| side.entries.get(nth).map_or(&[][..], Vec::as_slice)).collect());
    }
    lines
}

/// `text` without what joins and colors emojis: terminals do not agree on the width of the result, and columns would be
/// out of line.
fn of_one_width(text: &str) -> String {
    let mut before = None;
    let keep = |c: &char| {
        let is_emoji = before.replace(*c).is_some_and(|c| c.width() == Some(2) || c == '\u{fe0f}');
        match *c {
            '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' => false,
            '\u{200d}' => !is_emoji,
            _ => true,
        }
    };
    text.chars().filter(keep).collect()
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

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use polylogue::Name;
    use polylogue::tasks::History;
    use polylogue_core::{Entry, Path};

    use super::*;

    fn side(who: &str, texts: &[&str]) -> AgentHistory {
        let entry = |(nth, text): (usize, &&str)| {
            if nth % 2 == 0 { Entry::user(*text) } else { Entry::assistant(*text) }
        };
        let entries = texts.iter().enumerate().map(entry).collect();
        AgentHistory {
            chat: Path::root(),
            who: Name::new(who).unwrap(),
            system: None,
            history: History { entries },
        }
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
        .assert_eq(&columns(&[keeper, guesser], 42, false));
        assert_eq!(&*columns(&[], 42, false), "");
    }

    #[test]
    fn columns_are_in_line_whatever_is_written_in_them() {
        let odd = ["1 かな？ 😀👩‍👩‍👧 👍🏽 ❤️ क्‍ष", "宿題は宿題です、よくできました", "a\u{301}\tb\u{1b}[31m\r"];
        let long = format!("https://example.org/{}", "path/".repeat(40));
        for width in [35, 79, 119] {
            let shown =
                columns(&[side("Keeper", &odd), side("Guesser", &[&*long, "x\n\n\ny", ""])], width, false);
            for line in shown.lines() {
                let (left, _) = line.split_once(" |").unwrap();
                assert_eq!(Line::new(left, Style::PLAIN).width(), (width - GAP.len()) / 2, "{line}");
                assert!(Line::new(line, Style::PLAIN).width() <= width, "{line}");
            }
            assert!(!shown.contains('\u{1b}') && !shown.contains("👩‍"), "{shown}");
            let whole: String =
                shown.lines().filter_map(|line| line.split_once(" | ")).map(|(_, right)| right).collect();
            assert!(whole.contains(&long), "nothing is cut off: {whole}");
        }
        // In color the same, but for the colors.
        let [plain, color] =
            [false, true].map(|color| columns(&[side("Keeper", &odd)], 40, color).to_owned());
        assert!(color.starts_with("\u{1b}[1mKeeper\u{1b}[0m\n"), "{color}");
        let bare = color.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        assert_eq!(bare, *plain);
    }

    #[test]
    fn columns_that_do_not_fit_come_below() {
        let sides = ["Ann", "Bob", "Cem", "Dora", "Eve"].map(|who| side(who, &["hello", "hi"]));
        let shown = columns(&sides, 56, false);
        let heads: Vec<&str> =
            shown.lines().filter(|line| ["Ann", "Dora"].iter().any(|who| line.starts_with(who))).collect();
        assert_eq!(heads, ["Ann              | Bob              | Cem", "Dora                       | Eve"]);
        assert!(shown.lines().all(|line| line.len() <= 56), "{shown}");
    }

    #[test]
    fn a_system_text_is_in_front_and_moves_no_entry() {
        let keeper = AgentHistory { system: Some("Keep it.".into()), ..side("Keeper", &["Choose.", "2"]) };
        let guesser = side("Guesser", &["Find it."]);
        expect![[r#"
            Keeper              | Guesser
                                |
            [system]:           |
            Keep it.            |
                                |
            [user]:             | [user]:
            Choose.             | Find it.
                                |
            [assistant]:        |
            2                   |
        "#]]
        .assert_eq(&columns(&[keeper, guesser], 42, false));
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
        assert_eq!(&*alone(keeper, false), keeper.history.to_string());
        let with_system = AgentHistory { system: Some("Keep it.".into()), ..side("Keeper", &["Choose."]) };
        assert_eq!(&*alone(&with_system, false), "[system]:\nKeep it.\n\n[user]:\nChoose.\n\n");
    }
}
