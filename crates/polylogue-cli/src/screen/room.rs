//! What a chat within a chat is called.

use polylogue_core::Path;

/// `/critic.2/judge.1` as `critic (2) / judge`: what happens for the first time needs no number.
pub(crate) fn called(at: &Path) -> String {
    let step = |step: &str| match step.rsplit_once('.') {
        Some((name, "1")) => name.to_owned(),
        Some((name, nth)) => format!("{name} ({nth})"),
        None => step.to_owned(),
    };
    at.as_str().split('/').skip(1).map(step).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use polylogue_core::Name;

    use super::*;

    #[test]
    fn only_what_comes_again_is_counted() {
        let name = |text| Name::new(text).unwrap();
        let critic = Path::root().child(&name("critic"), 2);
        assert_eq!(called(&Path::root()), "");
        assert_eq!(called(&critic), "critic (2)");
        assert_eq!(called(&critic.child(&name("judge"), 1)), "critic (2) / judge");
    }
}
