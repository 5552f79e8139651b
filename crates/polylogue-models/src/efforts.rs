//! How much a model can be asked to reason.

use polylogue_core::Effort;

/// From the lowest to the highest.
const ALL: [Effort; 7] =
    [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];

/// The efforts that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Efforts([bool; ALL.len()]);

impl Efforts {
    /// Whatever is asked for.
    pub(crate) const ANY: Self = Self([true; ALL.len()]);

    /// Those with these `names`; `None` if there are none.
    pub(crate) fn named(names: &[String]) -> Option<Self> {
        let has = ALL.map(|effort| names.iter().any(|name| name == effort.as_str()));
        has.contains(&true).then_some(Self(has))
    }

    fn each(self) -> impl Iterator<Item = Effort> {
        ALL.into_iter().zip(self.0).filter_map(|(effort, has)| has.then_some(effort))
    }

    /// Whether `effort` is one of them.
    pub(crate) fn has(self, effort: Effort) -> bool {
        self.each().any(|own| own == effort)
    }

    /// The one that is nearest to `asked`: the lower one of two, and none at all only if that is asked for.
    pub(crate) fn nearest(self, asked: Effort) -> Effort {
        let place = |effort: Effort| ALL.iter().position(|other| *other == effort).unwrap_or_default();
        let fits = |effort: &Effort| *effort != Effort::None || asked == Effort::None;
        let distance = |effort: &Effort| place(*effort).abs_diff(place(asked));
        self.each().filter(fits).min_by_key(distance).unwrap_or(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accepts::Accepts;
    use crate::catalog::KnownModel;

    /// What is sent for each effort, from `none` to `max`.
    #[test]
    fn an_effort_that_a_model_refuses_is_moved_to_the_nearest_that_it_takes() {
        for (name, expected) in [
            ("openai:o3", "low low low medium high high high"),
            ("openai:o3-mini-2025-01-31", "low low low medium high high high"),
            ("openai:gpt-5", "minimal minimal low medium high high high"),
            ("openai:gpt-5-mini-2025-08-07", "minimal minimal low medium high high high"),
            ("openai:gpt-5-pro", "high high high high high high high"),
            ("openai:gpt-5.1", "none low low medium high high high"),
            ("openai:gpt-5.1-codex", "low low low medium high high high"),
            ("openai:gpt-5.1-codex-max", "low low low medium high xhigh xhigh"),
            ("openai:gpt-5.2", "none low low medium high xhigh xhigh"),
            ("openai:gpt-5.2-pro", "medium medium medium medium high xhigh xhigh"),
            ("openai:gpt-5.6", "none low low medium high xhigh max"),
            ("openai:gpt-6-astra", "low low low medium high xhigh max"),
            ("azure:gpt-5", "minimal minimal low medium high high high"),
            ("mistral:mistral-medium-latest", "none high high high high high high"),
            ("moonshot:kimi-k3", "low low low low high high max"),
            ("gemini:gemini-3.1-pro-preview", "low low low medium high high high"),
            ("vertex:gemini-3-pro-preview", "low low low low high high high"),
            ("gemini:gemini-3-flash-preview", "minimal minimal low medium high high high"),
            ("gemini:gemini-3.8-flash", "low low low medium high high high"),
            ("anthropic:claude-opus-4-5", "low low low medium high high high"),
            ("anthropic:claude-opus-4-6", "low low low medium high high max"),
        ] {
            let (provider, model) = name.split_once(':').unwrap();
            let efforts = Accepts::of(&KnownModel::find(provider, model).unwrap()).efforts.unwrap();
            assert_eq!(ALL.map(|effort| efforts.nearest(effort).as_str()).join(" "), expected, "{name}");
        }
        assert_eq!(ALL.map(|effort| Efforts::ANY.nearest(effort)), ALL);
        assert_eq!(Efforts::named(&[]), None);
    }
}
