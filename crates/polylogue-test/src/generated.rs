//! Parts of documents that are generated from the program.

use std::fs;
use std::path::Path;

/// Checks that the part `name` of the document `file` is `text`: what is between the lines `<!-- generated: NAME -->` and `<!-- end -->`. Where the
/// variable `UPDATE` is set, it is written instead.
///
/// # Panics
/// When the part is missing, or is another one; `hint` says how it is written.
pub fn check_part(file: &Path, name: &str, text: &str, hint: &str) {
    let document = fs::read_to_string(file).unwrap_or_default();
    let (begin, end) = (format!("<!-- generated: {name} -->\n\n"), "\n<!-- end -->\n");
    let parts = document.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?)));
    assert!(parts.is_some(), "{} has no part `{name}`", file.display());
    let Some((before, (part, after))) = parts else { return };
    if std::env::var_os("UPDATE").is_some() {
        let written = fs::write(file, format!("{before}{begin}{text}{end}{after}"));
        assert!(written.is_ok(), "{} cannot be written: {written:?}", file.display());
        return;
    }
    assert!(part == text, "the part `{name}` of {} is out of date; {hint}:\n{text}", file.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_another_one_is_refused() {
        let file = std::env::temp_dir().join(format!("polylogue-generated-{}.md", std::process::id()));
        fs::write(&file, "Before.\n\n<!-- generated: table -->\n\n| a |\n\n<!-- end -->\n\nAfter.\n")
            .unwrap();
        check_part(&file, "table", "| a |\n", "write it");
        let checked = std::panic::catch_unwind(|| check_part(&file, "table", "| b |\n", "write it"));
        fs::remove_file(&file).unwrap();
        let refused = checked.unwrap_err();
        let why = refused.downcast_ref::<String>().unwrap();
        assert!(why.contains("is out of date; write it"), "{why}");
    }
}
