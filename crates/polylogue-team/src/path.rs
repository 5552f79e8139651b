//! Paths as they are compared: by where they lead, not by how they are written.

use serde_json::Value;

/// The arguments that are paths.
const ARGUMENTS: [&str; 9] =
    ["path", "file", "filename", "file_path", "folder", "directory", "from", "to", "destination"];

/// Whether an argument called `name` is a path.
pub(crate) fn is_path(name: &str) -> bool {
    ARGUMENTS.contains(&name)
}

/// `path` without `.`, `..` and doubled slashes, as far as its text tells where it leads: `draft/../a//b/` is `a/b`. What leads
/// out of the folder it begins in begins with `..`.
pub(crate) fn normalized(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.trim().split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            // There is nothing above the root.
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    match (root, parts.is_empty()) {
        ("", true) => ".".to_owned(),
        _ => format!("{root}{}", parts.join("/")),
    }
}

/// Arguments with their paths [normalized].
pub(crate) fn with_normalized(args: &Value) -> Value {
    let mut args = args.clone();
    for (name, value) in args.as_object_mut().into_iter().flatten() {
        if let (true, Value::String(path)) = (is_path(name), &mut *value) {
            *path = normalized(path);
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn paths_are_where_they_lead() {
        for (path, expected) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("draft/../secret", "secret"),
            ("draft/./../secret/x/..", "secret"),
            ("../a", "../a"),
            ("a/../../b", "../b"),
            ("/etc/../../x", "/x"),
            ("a\\..\\b", "b"),
            ("", "."),
            (" a ", "a"),
        ] {
            assert_eq!(normalized(path), expected, "{path}");
        }
    }
}
