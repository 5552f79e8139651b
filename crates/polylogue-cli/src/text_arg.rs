//! Texts of the command line, which can come from a file or from the standard input.

use std::io::{self, Read};
use std::path::Path;

use crate::error::CliError;
use crate::place::shell_word;

/// Whether `given` stands for the standard input.
pub(crate) fn is_input(given: &str) -> bool {
    matches!(given, "-" | "@-")
}

/// The text that `given` stands for: `-` or `@-` is the standard input, `@FILE` the content of a file, and `@@...` a text that
/// begins with `@`. Anything else is the text itself.
pub(crate) fn text_of(given: &str) -> Result<String, CliError> {
    if is_input(given) {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(|error| {
            CliError::usage(format!(
                "the text cannot be read from the standard input: {}",
                unreadable(&error)
            ))
        })?;
        return Ok(text.trim().to_owned());
    }
    match given.strip_prefix('@') {
        None => Ok(given.to_owned()),
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(path) => of_file(path, given),
    }
}

/// Why a file that the user names cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the file does not exist".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
        _ => error.to_string(),
    }
}

fn of_file(path: &str, given: &str) -> Result<String, CliError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let what = format!("the text cannot be read from the file `{path}`: {}", unreadable(&error));
        let literal = shell_word(Path::new(&format!("@{given}")));
        CliError::usage(what).hint(format!("a text that begins with `@` is written with two: {literal}"))
    })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_files_and_texts_that_begin_with_an_at_sign() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("task.txt");
        std::fs::write(&file, "\nWrite a poem.\n").unwrap();
        assert_eq!(text_of(&format!("@{}", file.display())).unwrap(), "Write a poem.");
        for (given, text) in
            [("plain @Ann", "plain @Ann"), ("@@Ann hello", "@Ann hello"), ("@@@x", "@@x"), ("", "")]
        {
            assert_eq!(text_of(given).unwrap(), text);
        }
        std::fs::write(&file, b"\xff\xfe").unwrap();
        let binary = text_of(&format!("@{}", file.display())).unwrap_err().to_string();
        assert!(binary.contains("task.txt`: it is not UTF-8 text\n"), "{binary}");
        let missing = text_of("@Ann hello").unwrap_err().to_string();
        assert!(
            missing.contains("the file `Ann hello`: the file does not exist")
                && missing.contains("'@@Ann hello'"),
            "{missing}"
        );
    }
}
