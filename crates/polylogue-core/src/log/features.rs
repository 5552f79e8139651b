//! Features that logs need and workers offer.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// Words for what a log needs of the worker that runs it, or for what a worker offers, such as `gpu`.
///
/// As text: the words in alphabetical order, separated by spaces.
///
/// ```
/// # use polylogue_core::Features;
/// let (needs, offers) = (Features::parse("gpu mcp:files")?, Features::parse("gpu")?);
/// assert!(!needs.is_subset(&offers));
/// assert_eq!(needs.difference(&offers).to_string(), "mcp:files");
/// # Ok::<(), polylogue_core::FeatureError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Features(BTreeSet<Arc<str>>);

/// Text that is not a list of features.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", refusal(.word))]
pub struct FeatureError {
    word: String,
}

impl FeatureError {
    /// Returns how to fix the error, if that is known.
    pub fn hint(&self) -> Option<String> {
        let most = Features::MAX_BYTES;
        Some(format!(
            "the name of a feature, such as `gpu`, has 1 to {most} bytes, without spaces and control characters"
        ))
    }
}

fn refusal(word: &str) -> String {
    match word {
        "" => "the name of a feature is empty".into(),
        word => format!("`{word}` cannot be the name of a feature"),
    }
}

impl Features {
    /// Maximum length of a feature, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Returns no features.
    pub fn none() -> Self {
        Self::default()
    }

    /// Checks each of `words`.
    ///
    /// # Errors
    /// When one of them is empty, too long, or has a space or a control character.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Result<Self, FeatureError> {
        let words = words.into_iter().map(|word| checked(word.as_ref()));
        words.collect::<Result<_, _>>().map(Self)
    }

    /// Parses the words of `text`, separated by spaces.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn parse(text: &str) -> Result<Self, FeatureError> {
        Self::new(text.split_whitespace())
    }

    /// Returns the words, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|word| &**word)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether all of them are among `offers`: a worker with these can run the log.
    pub fn is_subset(&self, offers: &Self) -> bool {
        self.0.is_subset(&offers.0)
    }

    /// Returns those that are not among `offers`: what a worker with these lacks.
    #[must_use]
    pub fn difference(&self, offers: &Self) -> Self {
        Self(self.0.difference(&offers.0).cloned().collect())
    }
}

fn checked(word: &str) -> Result<Arc<str>, FeatureError> {
    let is_legal = |c: char| !c.is_whitespace() && !c.is_control();
    if (1..=Features::MAX_BYTES).contains(&word.len()) && word.chars().all(is_legal) {
        return Ok(word.into());
    }
    Err(FeatureError { word: word.chars().take(Features::MAX_BYTES).collect() })
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, word) in self.words().enumerate() {
            let space = if number == 0 { "" } else { " " };
            write!(f, "{space}{word}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sorted_words() {
        let features = Features::parse(" mcp:files  gpu gpu ").unwrap();
        assert_eq!(features.to_string(), "gpu mcp:files");
        assert_eq!(Features::parse(&features.to_string()), Ok(features));
        assert_eq!(Features::none().to_string(), "");
    }

    #[test]
    fn a_worker_offers_what_a_log_needs_or_lacks_it() {
        let (needs, offers) = (Features::parse("a b").unwrap(), Features::parse("b c").unwrap());
        assert!(!needs.is_subset(&offers) && Features::none().is_subset(&offers));
        assert_eq!(needs.difference(&offers).to_string(), "a");
        assert!(needs.is_subset(&Features::parse("c a b").unwrap()));
    }

    #[test]
    fn words_are_checked() {
        for word in ["", "a b", "\u{0}", "a\n", &"x".repeat(129), &"é".repeat(65)] {
            let error = Features::new([word]).unwrap_err();
            assert!(error.to_string().contains("the name of a feature"), "{error}");
            assert!(error.hint().unwrap().contains("has 1 to 128 bytes, without spaces"), "{error:?}");
        }
    }
}
