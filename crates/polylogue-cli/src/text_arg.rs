//! Texts of the command line, which can come from a file or from the standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::error::CliError;
use crate::place::shell_word;

/// The longest text, in bytes: as long as an answer that a person types can be.
const LONGEST: u64 = 4 << 20;

/// Whether `given` stands for the standard input.
pub(crate) fn is_input(given: &str) -> bool {
    matches!(given, "-" | "@-")
}

/// The text that `given` stands for: `-` or `@-` is the standard input, `@FILE` the content of a file, and `@@...` a text that
/// begins with `@`. Anything else is the text itself. What is read has at most 4 MiB.
pub(crate) fn text_of(given: &str) -> Result<String, CliError> {
    if is_input(given) {
        return trimmed(read_up_to(io::stdin(), LONGEST)).map_err(|why| {
            CliError::usage(format!("the text cannot be read from the standard input: {why}"))
        });
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

/// The content of a file that the user names, if it has at most `most` bytes; otherwise why it cannot be read.
pub(crate) fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let size = file.metadata().map_err(|error| unreadable(&error))?.len();
    if size > most {
        return Err(format!("it has {}, and the limit is {} MiB", mebibytes(size), most >> 20));
    }
    read_up_to(file, most)
}

/// All of `from`, if it has at most `most` bytes; otherwise why it cannot be read. A device or a pipe may never end, and has no size
/// that is known before.
pub(crate) fn read_up_to(from: impl Read, most: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(&error))?;
    match bytes.len() as u64 > most {
        true => Err(format!("it has more than {} MiB, which is the limit", most >> 20)),
        false => Ok(bytes),
    }
}

/// `bytes` as text; otherwise why it is none.
pub(crate) fn utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// A size, rounded up, so that one beyond a limit does not read as the limit.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 20);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Without a byte order mark, which belongs to the file and not to the text.
fn trimmed(read: Result<Vec<u8>, String>) -> Result<String, String> {
    Ok(utf8(read?)?.trim_start_matches('\u{feff}').trim().to_owned())
}

fn of_file(path: &str, given: &str) -> Result<String, CliError> {
    trimmed(read_file(Path::new(path), LONGEST)).map_err(|why| {
        let what = format!("the text cannot be read from the file `{path}`: {why}");
        let literal = shell_word(Path::new(&format!("@{given}")));
        CliError::usage(what).hint(format!("a text that begins with `@` is written with two: {literal}"))
    })
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
        std::fs::write(&file, "\u{feff}Write\r\na poem.\r\n").unwrap();
        assert_eq!(text_of(&format!("@{}", file.display())).unwrap(), "Write\r\na poem.");
        for (given, text) in
            [("plain @Ann", "plain @Ann"), ("@@Ann hello", "@Ann hello"), ("@@@x", "@@x"), ("", "")]
        {
            assert_eq!(text_of(given).unwrap(), text);
        }
        std::fs::write(&file, b"\xff\xfe").unwrap();
        let binary = text_of(&format!("@{}", file.display())).unwrap_err().to_string();
        assert!(binary.contains("task.txt`: it is not UTF-8 text\n"), "{binary}");
        std::fs::write(&file, vec![b'a'; 4 << 20]).unwrap();
        assert_eq!(text_of(&format!("@{}", file.display())).unwrap().len(), 4 << 20);
        File::options().append(true).open(&file).unwrap().set_len((4 << 20) + 1).unwrap();
        let large = text_of(&format!("@{}", file.display())).unwrap_err().to_string();
        assert!(large.contains("task.txt`: it has 4.1 MiB, and the limit is 4 MiB\n"), "{large}");
        let endless = text_of("@/dev/zero").unwrap_err().to_string();
        assert!(endless.contains("/dev/zero`: it has more than 4 MiB, which is the limit\n"), "{endless}");
        let missing = text_of("@Ann hello").unwrap_err().to_string();
        assert!(
            missing.contains("the file `Ann hello`: the file does not exist")
                && missing.contains("'@@Ann hello'"),
            "{missing}"
        );
    }
}
