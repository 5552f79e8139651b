//! Separates the reasoning of local models from their answer: `<think>...</think>`, or `<thinking>`, at the start of the content.

/// The tags around reasoning.
const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Maximum white space before an opening tag, in bytes.
const MAX_HELD: usize = 1024;

/// The kind of a piece of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reasoning.
    Thought,
    /// The answer.
    Text,
}

/// Splits the streamed content of a local model into reasoning, which is in `<think>` tags at its start, and text. Holds back only a possible incomplete tag and the white space before it.
#[derive(Debug, Default)]
pub struct Splitter {
    state: State,
    /// The closing tag.
    close: &'static str,
    held: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Only white space, and possibly the beginning of the tag, so far.
    #[default]
    Start,
    /// Right after the opening tag, where white space is skipped.
    Opened,
    Inside,
    /// Right after the closing tag, where white space is skipped.
    After,
    Text,
}

impl Splitter {
    /// Takes the next piece of content and calls `emit` with its parts.
    pub fn feed(&mut self, piece: &str, emit: &mut impl FnMut(Kind, &str)) {
        if self.state == State::Text {
            return say(Kind::Text, piece, emit);
        }
        let mut held = std::mem::take(&mut self.held);
        let mut rest = if held.is_empty() {
            piece
        } else {
            held.push_str(piece);
            &held
        };
        loop {
            let (state, left) = match self.state {
                State::Start => self.start(rest),
                State::Opened => begun(rest, State::Opened, State::Inside),
                State::Inside => inside(rest, self.close, emit),
                State::After => begun(rest, State::After, State::Text),
                State::Text => {
                    say(Kind::Text, rest, emit);
                    return;
                }
            };
            rest = left;
            if std::mem::replace(&mut self.state, state) == state {
                break;
            }
        }
        self.held = rest.to_owned();
    }

    fn start<'a>(&mut self, rest: &'a str) -> (State, &'a str) {
        let begun = rest.trim_start();
        for (open, close) in TAGS {
            if let Some(after) = begun.strip_prefix(open) {
                self.close = close;
                return (State::Opened, after);
            }
        }
        let may_begin = TAGS.iter().any(|(open, _)| open.starts_with(begun));
        (if may_begin && rest.len() < MAX_HELD { State::Start } else { State::Text }, rest)
    }

    /// Reasoning came apart from the content: white space before it is no text.
    pub(super) fn pass_thought(&mut self) {
        if self.state == State::Start && self.held.trim().is_empty() {
            self.held.clear();
        }
    }

    /// Ends the content: text that was held back is not a tag.
    pub fn finish(&mut self, emit: &mut impl FnMut(Kind, &str)) {
        let kind = match self.state {
            State::Opened | State::Inside => Kind::Thought,
            State::Start | State::After | State::Text => Kind::Text,
        };
        say(kind, &std::mem::take(&mut self.held), emit);
    }
}

/// The reasoning and the answer of a model whose prompt ends in the opening tag, so that it writes only the closing one. This is
/// known only when the tag arrives.
pub(crate) fn unopened(text: &str) -> Option<(&str, &str)> {
    // This runs for every reply, so it must be fast.
    memchr::memchr(b'<', text.as_bytes())?;
    TAGS.iter().find_map(|(open, close)| {
        let (thought, rest) =
            text.split_at_checked(memchr::memmem::find(text.as_bytes(), close.as_bytes())?)?;
        let answer = rest.strip_prefix(close)?;
        (!thought.contains(open)).then(|| (thought.trim(), answer.trim_start()))
    })
}

fn say(kind: Kind, piece: &str, emit: &mut impl FnMut(Kind, &str)) {
    if !piece.is_empty() {
        emit(kind, piece);
    }
}

/// White space keeps the state; anything else begins the `next`.
fn begun(rest: &str, state: State, next: State) -> (State, &str) {
    let begun = rest.trim_start();
    (if begun.is_empty() { state } else { next }, begun)
}

fn inside<'a>(rest: &'a str, close: &str, emit: &mut impl FnMut(Kind, &str)) -> (State, &'a str) {
    if let Some((thought, after)) = rest.split_once(close) {
        say(Kind::Thought, thought.trim_end(), emit);
        return (State::After, after);
    }
    let begins_tag = |&length: &usize| close.get(..length).is_some_and(|beginning| rest.ends_with(beginning));
    let tag = (1..close.len()).rev().find(begins_tag).unwrap_or(0);
    let (before, _) = rest.split_at(rest.len() - tag);
    let thought = Some(before.trim_end()).filter(|thought| rest.len() - thought.len() < MAX_HELD);
    let (thought, held) = rest.split_at(thought.unwrap_or(before).len());
    say(Kind::Thought, thought, emit);
    (State::Inside, held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(pieces: &[&str]) -> (String, String) {
        let (mut thought, mut text) = (String::new(), String::new());
        let mut emit = |kind, piece: &str| match kind {
            Kind::Thought => thought.push_str(piece),
            Kind::Text => text.push_str(piece),
        };
        let mut splitter = Splitter::default();
        pieces.iter().for_each(|piece| splitter.feed(piece, &mut emit));
        splitter.finish(&mut emit);
        (thought, text)
    }

    #[test]
    fn thoughts_are_separated_from_text_however_the_tag_is_split() {
        for (whole, thought, text) in [
            ("<think>hm</think>\n\nyes", "hm", "yes"),
            ("\n<think>a < b </thin </think>x</think>", "a < b </thin", "x</think>"),
            ("no <think>x</think>", "", "no <think>x</think>"),
            ("<thinking>hm </think> ha</thinking>\nyes", "hm </think> ha", "yes"),
            ("<thinker>", "", "<thinker>"),
            ("<thi", "", "<thi"),
            ("  plain", "", "  plain"),
            ("<think>never ends</thi", "never ends</thi", ""),
            ("<think></think>", "", ""),
            ("<think>\n a\nb \n</think>\n\nyes\n", "a\nb", "yes\n"),
            ("<think> \n </think> ", "", ""),
            ("", "", ""),
        ] {
            let expected = (thought.to_owned(), text.to_owned());
            assert_eq!(split(&[whole]), expected, "{whole:?}");
            let bytewise: Vec<&str> = whole.split("").collect();
            assert_eq!(split(&bytewise), expected, "{whole:?} in single characters");
        }
    }

    #[test]
    fn a_thought_whose_opening_tag_is_in_the_prompt_is_recognized_by_its_end() {
        assert_eq!(unopened("hm\n</think>\n\nyes </think>"), Some(("hm", "yes </think>")));
        assert_eq!(unopened("hm</thinking>yes"), Some(("hm", "yes")));
        assert_eq!(unopened("say <think>x</think> to think"), None);
        assert_eq!(unopened("yes"), None);
    }

    proptest! {
        #[test]
        fn any_split_of_thoughts_gives_the_same_text(pieces in proptest::collection::vec(
            prop_oneof![Just("<think>"), Just("</think>"), Just("<thinking>"), Just("</thinking>"), Just("<"), Just("</th"), Just(" "), Just("ä")], 0..12)) {
            let whole = pieces.concat();
            let chars: Vec<String> = whole.chars().map(String::from).collect();
            let chars: Vec<&str> = chars.iter().map(String::as_str).collect();
            prop_assert_eq!(split(&chars), split(&[&whole]));
        }
    }
}
