//! Environment variables and `.env` files: the source of keys and addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Environment variables: those of the process, those of a `.env` file, or given ones in tests.
///
/// Variables of the process take precedence over those of the file, and empty ones count as not set. The process's
/// own environment is never changed.
///
/// A file provides [keys](Self::get), but no [addresses](Self::address) unless it is [trusted](Self::trusting): it is
/// in the folder in which a program is started, and an attacker who can write to it could redirect the keys of the
/// process.
#[derive(Clone, Default, derive_more::Debug)]
// Names only: the values may be keys.
#[debug("Env {{ process: {process:?}, names: {:?} }}", self.vars.keys())]
pub struct Env {
    process: bool,
    vars: BTreeMap<String, String>,
    /// Those of `vars` that provide more than keys. `None`: all.
    trusted: Option<BTreeSet<String>>,
}

impl Env {
    /// Reads only the process's variables.
    pub fn process() -> Self {
        Self { process: true, ..Self::default() }
    }

    /// Reads the process's variables, then those of the file at `path`, if it exists.
    ///
    /// # Errors
    /// When the file cannot be read, or has a line that is not `NAME=value`. Errors never contain values.
    pub fn with_file(path: &Path) -> Result<Self, EnvError> {
        let file = path.display();
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let vars = parse(&text).map_err(|flaw| EnvError(format!("`{file}` {flaw}")))?;
                Ok(Self { process: true, vars, trusted: Some(BTreeSet::new()) })
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::process()),
            Err(error) => Err(EnvError(format!("`{file}` cannot be read: {error}"))),
        }
    }

    /// Uses only these variables.
    pub fn of<K: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { process: false, vars, trusted: None }
    }

    /// Trusts the file for addresses and proxies, too.
    #[must_use]
    pub fn trusting(self) -> Self {
        Self { trusted: None, ..self }
    }

    /// Trusts the file for the addresses and proxies in these of its variables only.
    #[must_use]
    pub fn trusting_only(mut self, names: impl IntoIterator<Item = String>) -> Self {
        if let Some(trusted) = &mut self.trusted {
            trusted.extend(names);
        }
        self
    }

    /// Returns the value of `name`, a key or another value that is sent, if it is set and not blank.
    pub fn get(&self, name: &str) -> Option<String> {
        self.of_process(name).or_else(|| self.of_file(name))
    }

    /// Returns the value of `name`, which determines where something is sent or what is run: an address, a proxy, a program. A
    /// value of the file counts only if the file is [trusted](Self::trusting).
    pub fn address(&self, name: &str) -> Option<String> {
        self.of_process(name).or_else(|| self.of_file(name).filter(|_| self.trusts(name)))
    }

    /// Returns the value of `name` in the file alone: it counts for [`get`](Self::get) but not for [`address`](Self::address).
    pub fn untrusted_address(&self, name: &str) -> Option<String> {
        self.get(name).filter(|_| self.address(name).is_none())
    }

    fn trusts(&self, name: &str) -> bool {
        self.trusted.as_ref().is_none_or(|trusted| trusted.contains(name))
    }

    fn of_process(&self, name: &str) -> Option<String> {
        self.process.then(|| std::env::var(name).ok()).flatten().filter(is_set)
    }

    fn of_file(&self, name: &str) -> Option<String> {
        self.vars.get(name).filter(|value| is_set(value)).cloned()
    }
}

#[expect(clippy::ptr_arg, reason = "options pass a reference to what they hold")]
fn is_set(value: &String) -> bool {
    !value.trim().is_empty()
}

/// A `.env` file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvError(String);

/// Parses a `.env` file: `NAME=value`, `export NAME=value`, values plain, in single quotes (verbatim) or in double
/// quotes (with `\n`, `\r`, `\t`, `\"`, `\\`, `\$`), comments after `#`.
fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut vars = BTreeMap::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = variable(line).map_err(|flaw| format!("line {}: {flaw}", index + 1))?;
        vars.insert(name, value);
    }
    Ok(vars)
}

fn variable(line: &str) -> Result<(String, String), &'static str> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or("the `=` is missing")?;
    let name = name.trim_end();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(legal) {
        return Err("the text before the `=` is not a valid variable name");
    }
    Ok((name.to_owned(), self::value(value.trim_start())?))
}

fn value(text: &str) -> Result<String, &'static str> {
    let (value, after) = if let Some(quoted) = text.strip_prefix('\'') {
        quoted
            .split_once('\'')
            .map(|(value, after)| (value.to_owned(), after))
            .ok_or("the quotes do not end")?
    } else if let Some(quoted) = text.strip_prefix('"') {
        double_quoted(quoted).ok_or("the quotes do not end")?
    } else {
        let comment = text.find(" #").or_else(|| text.starts_with('#').then_some(0));
        let (value, _) = text.split_at(comment.unwrap_or(text.len()));
        return Ok(value.trim_end().to_owned());
    };
    let after = after.trim_start();
    if after.is_empty() || after.starts_with('#') { Ok(value) } else { Err("there is text after the quotes") }
}

/// The value up to the closing quote, and the text after it.
fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some((value, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                c @ ('"' | '\\' | '$') => value.push(c),
                c => value.extend(['\\', c]),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_usual_form_of_a_line_is_read() {
        let text = "\u{feff}A=1\r\n# comment\n\nexport B = two words # comment\nC='#1 $x\\n'\n\
                    D=\"a\\n\\\"b\\\" # no comment\" # comment\nE=\nF=#x\nG=a#b\nH=x=y==\n";
        let vars = parse(text).unwrap();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "#1 $x\\n"),
            ("D", "a\n\"b\" # no comment"),
            ("E", ""),
            ("F", ""),
            ("G", "a#b"),
            ("H", "x=y=="),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(vars, BTreeMap::from(expected));
    }

    #[test]
    fn a_bad_line_is_named_by_number_and_not_by_content() {
        for bad in
            ["sk-secret", "A B=sk-secret", "A='sk-secret", "A=\"sk-secret\\", "A='x' sk-secret", "=sk-secret"]
        {
            let error = parse(&format!("OK=1\n{bad}")).unwrap_err();
            assert!(error.starts_with("line 2: ") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_blank_variable_is_not_set_and_values_are_not_shown() {
        let env = Env::of([("A", "secret"), ("B", "  ")]);
        assert_eq!((env.get("A").as_deref(), env.get("B"), env.get("PATH")), (Some("secret"), None, None));
        assert!(!format!("{env:?}").contains("secret"));
    }

    #[test]
    fn the_process_counts_before_the_file_and_a_missing_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        assert_eq!(Env::with_file(&path).unwrap().get("POLYLOGUE_NO_SUCH"), None);
        std::fs::write(&path, "PATH=from-file\nPOLYLOGUE_NO_SUCH=from-file").unwrap();
        let env = Env::with_file(&path).unwrap();
        assert_eq!(env.get("PATH"), std::env::var("PATH").ok());
        assert_eq!(env.get("POLYLOGUE_NO_SUCH").as_deref(), Some("from-file"));
    }

    #[test]
    fn a_file_gives_keys_and_no_addresses_unless_it_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".env");
        std::fs::write(&path, "PATH=from-file\nPOLYLOGUE_NO_SUCH=from-file").unwrap();
        let env = Env::with_file(&path).unwrap();
        assert_eq!(env.get("POLYLOGUE_NO_SUCH").as_deref(), Some("from-file"));
        assert_eq!(
            (env.address("POLYLOGUE_NO_SUCH"), env.address("PATH")),
            (None, std::env::var("PATH").ok())
        );
        assert!(
            env.untrusted_address("POLYLOGUE_NO_SUCH").is_some() && env.untrusted_address("PATH").is_none()
        );
        let only = |name: &str| env.clone().trusting_only([name.to_owned()]).address("POLYLOGUE_NO_SUCH");
        assert_eq!((only("POLYLOGUE_NO_SUCH").as_deref(), only("OTHER")), (Some("from-file"), None));
        let env = env.trusting();
        assert_eq!(env.address("POLYLOGUE_NO_SUCH").as_deref(), Some("from-file"));
        assert_eq!(env.untrusted_address("POLYLOGUE_NO_SUCH"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(\\PC|[\\n\\r='\"\\\\# ]){0,60}") {
            let _ = parse(&text);
        }
    }
}
