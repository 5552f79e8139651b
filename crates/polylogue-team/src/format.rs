//! One layout for team files.

use std::path::Path;

use crate::check;
use crate::diagnostic::Diagnostics;
use crate::load::read_text;
use crate::source::Source;
use crate::yaml;

/// The text of a team file before and after it is formatted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormattedFile {
    /// The content of the file.
    pub before: String,
    /// The content after formatting.
    pub after: String,
}

impl FormattedFile {
    /// Returns whether the file has this layout already.
    pub fn is_formatted(&self) -> bool {
        self.before == self.after
    }
}

/// Formats the team file at `path`, and writes nothing. The layout is that of [`format`](format()).
///
/// # Errors
/// The file cannot be read, or [`format`](format()) fails.
pub fn format_file(path: impl AsRef<Path>) -> Result<FormattedFile, Diagnostics> {
    let path = path.as_ref();
    let before = read_text(path)?;
    let after = format(&before, &path.display().to_string())?;
    Ok(FormattedFile { before, after })
}

/// Formats the text of a team file: two spaces of indentation, one space after `,`, `:` and `-`, double quotes where a text needs
/// quotes, at most one empty line. Values, comments, line breaks and the order of keys stay, and the result, formatted again, is
/// the same. Keys and names are not checked. Errors call the file `file_name`.
///
/// # Errors
/// The text is not YAML, or uses it in a way that cannot be formatted without changing what it says.
///
/// ```
/// let text = "name: t\nagents:\n- {name: Ann,system: 'You are Ann'} # the only one\n";
/// let formatted = polylogue_team::format(text, "t.yaml")?;
/// assert_eq!(formatted, "name: t\nagents:\n  - {name: Ann, system: \"You are Ann\"} # the only one\n");
/// # Ok::<(), polylogue_team::Diagnostics>(())
/// ```
pub fn format(text: &str, file_name: &str) -> Result<String, Diagnostics> {
    let source = Source::new(file_name, text);
    check::hide_secrets_in(&source);
    yaml::layout::format(&source)
}
