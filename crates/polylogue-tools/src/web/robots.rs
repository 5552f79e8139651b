//! `robots.txt` by RFC 9309: what sites ask programs not to fetch.

/// The product name of this program.
pub(super) const NAME: &str = "polylogue";

/// How much of a file is read, in bytes: the minimum of the RFC.
pub(super) const MAX_BYTES: usize = 500 * 1024;

/// The rules of one site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rules(Vec<Rule>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    is_allowed: bool,
    /// Normalized; `*` matches anything, `$` at the end matches the end.
    pattern: String,
}

impl Rules {
    /// Rules that allow everything.
    pub(super) const ALL: Self = Self(Vec::new());

    /// Parses the rules for this program in the file `text`.
    pub(super) fn of(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut own, mut others) = (None::<Vec<Rule>>, Vec::new());
        // Whom the rules are for, and whether one of them was there: then a further name begins again.
        let (mut for_us, mut for_all, mut has_rules) = (false, false, false);
        for line in text.split(['\n', '\r']) {
            let line = line.split('#').next().unwrap_or_default();
            let Some((key, value)) = line.split_once(':') else { continue };
            let (key, value) = (key.trim().to_ascii_lowercase(), value.trim());
            if key == "user-agent" {
                if std::mem::take(&mut has_rules) {
                    (for_us, for_all) = (false, false);
                }
                for_all |= value == "*";
                for_us |= is_us(value);
                if for_us {
                    own.get_or_insert_default();
                }
            } else if key == "allow" || key == "disallow" {
                has_rules = true;
                // Nothing is forbidden by an empty line.
                let rule = || Rule { is_allowed: key == "allow", pattern: alike(value, true) };
                if for_us && !value.is_empty() {
                    own.get_or_insert_default().push(rule());
                }
                if for_all && !value.is_empty() {
                    others.push(rule());
                }
            }
        }
        Self(own.unwrap_or(others))
    }

    /// Whether the page at `path`, including its query, may be fetched.
    pub(super) fn allow(&self, path: &str) -> bool {
        let path = alike(path, false);
        if path == "/robots.txt" {
            return true;
        }
        // The rule that says most decides, and of two that say as much the one that allows.
        let fitting = self.0.iter().filter(|rule| fits(&rule.pattern, &path));
        let strongest = fitting.max_by_key(|rule| (rule.pattern.len(), rule.is_allowed));
        strongest.is_none_or(|rule| rule.is_allowed)
    }
}

/// Whether a `user-agent` line matches this program: its name, possibly with more after it.
fn is_us(value: &str) -> bool {
    let end =
        value.find(|c: char| !c.is_ascii_alphabetic() && !matches!(c, '-' | '_')).unwrap_or(value.len());
    value.get(..end).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
}

/// The normalized form of a path, in ASCII; in a rule `*` and a final `$` keep their meaning.
fn alike(path: &str, is_rule: bool) -> String {
    let bytes = path.as_bytes();
    let mut written = String::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let (byte, was_encoded) = match (*first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => (u8::try_from(high * 16 + low).unwrap_or_default(), true),
            (byte, ..) => (byte, false),
        };
        rest = after.get(if was_encoded { 2 } else { 0 }..).unwrap_or_default();
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_sign = byte.is_ascii_graphic() && !was_encoded && !b"*$".contains(&byte);
        let has_meaning = is_rule && !was_encoded && (byte == b'*' || byte == b'$' && rest.is_empty());
        if is_plain || is_sign || has_meaning {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

/// Whether the beginning of `path` matches `pattern`. Sites write both: each part is found in linear time.
fn fits(pattern: &str, path: &str) -> bool {
    let (pattern, to_the_end) = pattern.strip_suffix('$').map_or((pattern, false), |pattern| (pattern, true));
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return !to_the_end || rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() && to_the_end {
            return rest.ends_with(part);
        }
        // The first place is as good as any later one: what follows has the more room.
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether `path` may be fetched under these lines for all programs.
    fn allows(lines: &str, path: &str) -> bool {
        Rules::of(&format!("User-agent: *\n{lines}")).allow(path)
    }

    #[test]
    fn the_examples_of_the_standard_hold() {
        // RFC 9309, section 5.2.
        let lines = "allow: /example/page/\ndisallow: /example/page/disallowed.gif";
        assert!(
            allows(lines, "/example/page/disallow.gif") && !allows(lines, "/example/page/disallowed.gif")
        );
        // Section 2.2.3.
        let lines = "disallow: *.gif$\ndisallow: /example/\nallow: /publications/";
        for (path, expected) in
            [("/a/b.gif", false), ("/a/b.gif?x", true), ("/example/x", false), ("/publications/x", true)]
        {
            assert_eq!(allows(lines, path), expected, "{path}");
        }
        // Section 2.2.2, octets that are written in several ways.
        for (rule, path, expected) in [
            ("/foo/bar?baz=quz", "/foo/bar?baz=quz", false),
            ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar", false),
            ("/foo/bar/ツ", "/foo/bar/%E3%83%84", false),
            ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", false),
            ("/foo/bar/%62%61%7A", "/foo/bar/baz", false),
            ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", false),
            ("/path/foo-%24", "/path/foo-$", false),
            ("/a%2Fb", "/a/b", true),
        ] {
            assert_eq!(allows(&format!("disallow: {rule}"), path), expected, "{rule} {path}");
        }
    }

    #[test]
    fn patterns_fit_as_in_the_examples_of_others() {
        for (rule, fits, others) in [
            ("/", &["/", "/x"][..], &[][..]),
            (
                "/fish",
                &["/fish", "/fish.html", "/fishheads/a?b", "/fish?id=1"][..],
                &["/Fish.asp", "/catfish"][..],
            ),
            ("/fish*", &["/fish", "/fishheads"], &["/catfish"]),
            ("/fish/", &["/fish/", "/fish/?id=1"], &["/fish", "/fish.html"]),
            ("/*.php", &["/index.php", "/a/b.php?c", "/x.php/"], &["/", "/windows.PHP"]),
            ("/*.php$", &["/a.php", "/a/b.php"], &["/a.php?b", "/a.php/", "/a.php5"]),
            ("/fish*.php", &["/fish.php", "/fishheads/catfish.php?a"], &["/Fish.PHP"]),
            ("/a*b*c$", &["/abc", "/aXbXcXc", "/abbc"], &["/abcd", "/acb"]),
            ("/$", &["/"], &["/a"]),
            ("*", &["/", "/a"], &[]),
        ] {
            for path in fits {
                assert!(!allows(&format!("disallow: {rule}"), path), "{rule} {path}");
            }
            for path in others {
                assert!(allows(&format!("disallow: {rule}"), path), "{rule} {path}");
            }
        }
    }

    #[test]
    fn rules_for_this_program_count_before_those_for_all() {
        let text =
            "\u{feff}User-Agent: OtherBot\nUser-agent: Polylogue/1.0 # us\nCrawl-delay: 1\nDisallow: /a\n\n
            user-agent: *\rDisallow: /\n\nuser-agent: polylogue\nSitemap: x\nAllow: /a/b\nnonsense\n: \n";
        let rules = Rules::of(text);
        for (path, expected) in [("/", true), ("/a", false), ("/a/b", true), ("/robots.txt", true)] {
            assert_eq!(rules.allow(path), expected, "{path}");
        }
        assert!(Rules::of("user-agent: polylogue-other\ndisallow: /").allow("/"));
        assert!(
            Rules::of("user-agent: *\ndisallow: /\n\nuser-agent: polylogue\n").allow("/"),
            "a group without rules"
        );
        assert!(Rules::of("disallow: /").allow("/"), "for no agent");
        assert!(
            !allows("disallow: /\nallow:", "/")
                && allows("disallow:", "/")
                && allows("disallow: /\nallow: /", "/")
        );
        assert!(!Rules::of("user-agent: *\ndisallow: /").allow("/") && Rules::ALL.allow("/"));
    }

    proptest! {
        #[test]
        fn no_file_breaks_the_reader(lines in "((user-agent|allow|disallow)? ?:? ?[ -~ü\u{0}%*$]{0,12}[\n\r#]?){0,12}", path in "/.{0,12}") {
            Rules::of(&lines).allow(&path);
        }
    }
}
