//! Short pieces of texts, for messages to people.

/// The first `chars` characters of `text` on one line, with `…` when there is more.
pub(crate) fn excerpt(text: &str, chars: usize) -> String {
    let mut rest = text.trim().chars();
    let mut short: String = rest.by_ref().take(chars).map(visible).collect();
    if rest.next().is_some() {
        short.push('…');
    }
    short
}

/// Line breaks and other control characters as a space, so that a message stays one line.
pub(crate) fn visible(c: char) -> char {
    if c.is_control() { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_and_says_when_it_is_cut() {
        assert_eq!(excerpt(" one\ntwo ", 7), "one two");
        assert_eq!(excerpt("Grüße dich", 5), "Grüße…");
        assert_eq!(excerpt("", 5), "");
    }
}
