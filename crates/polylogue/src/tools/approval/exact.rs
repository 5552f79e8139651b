//! Exact display of text before it runs: complete, verbatim, without invisible characters.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::code_block::fence;

/// Limits on blank lines, spaces and tabs in a row; longer runs are shown as a count, so that they hide nothing off the
/// screen.
const BLANK_LINES: usize = 8;
const SPACES: usize = 64;
const TABS: usize = 16;

/// What a tab is shown as: it indents, and differs from spaces, because a program may distinguish them.
const TAB: &str = "→   ";

/// Formats `text` as a fenced block: complete and verbatim, except that a tab is shown as an arrow and three spaces,
/// invisible or reordering characters as `⟨U+202E⟩`, and long runs of spaces, tabs and blank lines as a count. Its fence is
/// longer than any in it, so that no text can imitate the text around it.
///
/// ```
/// use polylogue::tools::approval::exact;
///
/// assert_eq!(exact("rm -rf \u{200b}build\nls"), "```\nrm -rf ⟨U+200B⟩build\nls\n```");
/// ```
pub fn exact(text: &str) -> String {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut blank = 0;
    for line in text.split('\n') {
        if line.is_empty() {
            blank += 1;
            continue;
        }
        gap(&mut lines, blank);
        blank = 0;
        lines.push(visible(line));
    }
    gap(&mut lines, blank);
    let (code, fence) = (lines.join("\n"), fence(text));
    format!("{fence}\n{code}\n{fence}")
}

fn gap(lines: &mut Vec<Cow<'_, str>>, blank: usize) {
    if blank > BLANK_LINES {
        lines.push(format!("⟨{blank} blank lines⟩").into());
    } else {
        lines.extend(std::iter::repeat_n(Cow::Borrowed(""), blank));
    }
}

/// Formats `text` on one line with all characters visible.
///
/// ```
/// use polylogue::tools::approval::visible;
///
/// assert_eq!(visible("a\u{1b}[2Jb\u{202e}c"), "a⟨U+001B⟩[2Jb⟨U+202E⟩c");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains("  ") && text.chars().all(shows) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_blank = matches!(c, ' ' | '\t');
        let after =
            if is_blank { rest.trim_start_matches(c) } else { rest.get(c.len_utf8()..).unwrap_or("") };
        let count = rest.len() - after.len();
        // Writing to a string cannot fail.
        let _ = match c {
            ' ' if count > SPACES => write!(shown, "⟨{count} spaces⟩"),
            '\t' if count > TABS => write!(shown, "⟨{count} tabs⟩"),
            ' ' => write!(shown, "{:count$}", ""),
            '\t' => write!(shown, "{}", TAB.repeat(count)),
            c if shows(c) => write!(shown, "{c}"),
            c => write!(shown, "⟨U+{:04X}⟩", u32::from(c)),
        };
        rest = after;
    }
    Cow::Owned(shown)
}

/// Whether `c` is visible as itself: not a control character, a format character of Unicode (zero width, bidirectional,
/// tags), a blank other than the space, or a character without a glyph.
fn shows(c: char) -> bool {
    let hidden = c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            // Format characters (general category Cf of Unicode 16).
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            // Other invisible characters (Default_Ignorable_Code_Point), and a blank pattern of Braille.
            | '\u{34f}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2800}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}'
            // Private use, and all planes from the tags on: fonts have no agreed glyphs for them.
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}');
    !hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_shows_every_character_visibly() {
        assert_eq!(exact("echo `whoami` **[x](http://y)**"), "```\necho `whoami` **[x](http://y)**\n```");
        assert_eq!(exact("a\n\nb\n"), "```\na\n\nb\n```");
        assert_eq!(exact(""), "```\n\n```");
        assert_eq!(exact("a\r\n\tb"), "```\na⟨U+000D⟩\n→   b\n```");
        for (c, name) in [
            ('\u{9b}', "⟨U+009B⟩"),
            ('\u{7f}', "⟨U+007F⟩"),
            ('\u{202e}', "⟨U+202E⟩"),
            ('\u{2066}', "⟨U+2066⟩"),
            ('\u{200d}', "⟨U+200D⟩"),
            ('\u{2063}', "⟨U+2063⟩"),
            ('\u{a0}', "⟨U+00A0⟩"),
            ('\u{2028}', "⟨U+2028⟩"),
            ('\u{feff}', "⟨U+FEFF⟩"),
            ('\u{3164}', "⟨U+3164⟩"),
            ('\u{e0041}', "⟨U+E0041⟩"),
        ] {
            assert_eq!(visible(&format!("a{c}b")), format!("a{name}b"));
        }
        for text in ["é 中文 привет 😀 a\u{301}", "plain"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn a_tab_indents_and_is_not_taken_for_spaces() {
        // A shell ends this text at a line with a tab, and not at one with spaces.
        let here = |blank: &str| exact(&format!("cat <<-END\n{blank}END\nrm x\n"));
        assert_eq!(here("\t"), "```\ncat <<-END\n→   END\nrm x\n```");
        assert_ne!(here("\t"), here("    "));
        assert_eq!(exact("if x:\n\tif y:\n\t\tz()"), "```\nif x:\n→   if y:\n→   →   z()\n```");
    }

    #[test]
    fn long_blanks_are_shown_by_their_number() {
        assert_eq!(exact(&format!("ls{}; rm x", " ".repeat(900))), "```\nls⟨900 spaces⟩; rm x\n```");
        assert_eq!(exact(&format!("ls{}rm x", "\n".repeat(500))), "```\nls\n⟨499 blank lines⟩\nrm x\n```");
        assert_eq!(exact(&format!("ls{}rm x", "\t".repeat(900))), "```\nls⟨900 tabs⟩rm x\n```");
        assert_eq!(exact("  a  b  "), "```\n  a  b  \n```");
    }

    #[test]
    fn no_text_closes_its_fence() {
        for text in ["one\n```\n`yes` runs it", "````\nls\n`````\n", "``\u{200b}`\nls"] {
            let shown = exact(text);
            let fence = shown.lines().next().unwrap();
            assert_eq!(shown.matches(fence).count(), 2, "{shown}");
            assert!(shown.ends_with(&format!("\n{fence}")), "{shown}");
        }
    }
}
