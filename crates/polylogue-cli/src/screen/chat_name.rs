//! What a chat within a chat is called.

use polylogue_core::Path;

/// `/critic.2/judge.1` as `critic (2) / judge`: what happens for the first time needs no number. Of several chats in one
/// turn, `/critic.2.3` is the third of the second turn: `critic (2, chat 3)`. `/critic.b2` is the second background task of the
/// critic: `critic (background 2)`.
pub(crate) fn of(at: &Path) -> String {
    at.as_str().split('/').skip(1).map(step).collect::<Vec<_>>().join(" / ")
}

fn step(step: &str) -> String {
    if let Some((name, number)) = step.split_once(".b") {
        return format!("{name} (background {number})");
    }
    let mut parts = step.split('.');
    let name = parts.next().unwrap_or_default();
    match (parts.next(), parts.next()) {
        (None | Some("1"), None) => name.to_owned(),
        (Some(turn), None) => format!("{name} ({turn})"),
        (None | Some("1"), Some(nth)) => format!("{name} (chat {nth})"),
        (Some(turn), Some(nth)) => format!("{name} ({turn}, chat {nth})"),
    }
}

/// In whose turn the chat runs, if it is not the outermost.
pub(crate) fn participant(at: &Path) -> Option<&str> {
    at.as_str().rsplit_once('/').map(|(_, step)| step.split('.').next().unwrap_or(step))
}

#[cfg(test)]
mod tests {
    use polylogue_core::Name;

    use super::*;

    fn path(text: &str) -> Path {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn only_what_comes_again_is_counted() {
        let name = |text| Name::new(text).unwrap();
        let critic = Path::root().child(&name("critic"), 2);
        assert_eq!(of(&Path::root()), "");
        assert_eq!(of(&critic), "critic (2)");
        assert_eq!(of(&critic.child(&name("judge"), 1)), "critic (2) / judge");
    }

    #[test]
    fn several_chats_in_one_turn_are_distinguished() {
        assert_eq!(of(&path("/critic.1.2")), "critic (chat 2)");
        assert_eq!(of(&path("/critic.2.3/judge.2")), "critic (2, chat 3) / judge (2)");
        assert_eq!(of(&path("/critic.b2/judge.1")), "critic (background 2) / judge");
        assert_eq!(participant(&path("/critic.b2")), Some("critic"));
        assert_eq!(participant(&path("/critic.2.3/judge.2.2")), Some("judge"));
        assert_eq!(participant(&Path::root()), None);
    }
}
