//! Ranks texts by BM25.

use std::collections::HashMap;

/// The parameters k1 and b with their usual values (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and
/// Beyond").
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// The index: how often each word occurs in which text.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    places: HashMap<String, Vec<(usize, u32)>>,
    lengths: Vec<u32>,
}

impl Index {
    /// Adds a text with these words; texts are numbered from 0.
    pub(super) fn add(&mut self, words: impl Iterator<Item = String>) {
        let mut counts: HashMap<String, u32> = HashMap::new();
        let mut length = 0;
        for word in words {
            length += 1;
            *counts.entry(word).or_default() += 1;
        }
        let at = self.lengths.len();
        self.lengths.push(length);
        for (word, count) in counts {
            self.places.entry(word).or_default().push((at, count));
        }
    }

    /// The numbers of the best `limit` texts for `wanted`, the best first; only texts with one of the words.
    pub(super) fn best(&self, wanted: &[String], limit: usize) -> Vec<usize> {
        let count = self.lengths.len() as f64;
        let mean = self.lengths.iter().map(|length| f64::from(*length)).sum::<f64>() / count.max(1.0);
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for places in wanted.iter().filter_map(|word| self.places.get(word)) {
            let having = places.len() as f64;
            let rare = ((count - having + 0.5) / (having + 0.5) + 1.0).ln();
            for (at, times) in places {
                let length = self.lengths.get(*at).copied().map_or(mean, f64::from);
                let times = f64::from(*times);
                let long = SATURATION * (1.0 - LENGTH + LENGTH * length / mean.max(1.0));
                *scores.entry(*at).or_default() += rare * times * (SATURATION + 1.0) / (times + long);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        // Of equals the first, so that the same question has the same answer.
        ranked.sort_by(|(a, one), (b, other)| other.total_cmp(one).then(a.cmp(b)));
        ranked.into_iter().take(limit).map(|(at, _)| at).collect()
    }
}

/// Stop words.
const EMPTY: [&str; 30] = [
    "a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "how", "in", "is", "it",
    "of", "on", "or", "that", "the", "this", "to", "was", "what", "when", "where", "which", "who", "with",
];

/// The words of a text for comparison: in lower case, without inflectional endings of English.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).filter(|word| !EMPTY.contains(&word.as_str())).map(stem)
}

fn stem(mut word: String) -> String {
    const SHORTEST: usize = 3;
    for (ending, instead) in
        [("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("y", ""), ("e", "")]
    {
        let Some(kept) =
            word.strip_suffix(ending).filter(|kept| kept.len() >= SHORTEST && !kept.ends_with('s'))
        else {
            continue;
        };
        word = format!("{kept}{instead}");
        break;
    }
    // `dance` and `dancing` are the same.
    if word.len() > SHORTEST && word.ends_with(['e', 'y']) {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_are_one() {
        for forms in [
            ["dance", "dances", "dancing"],
            ["city", "cities", "CITY"],
            ["warm", "warmed", "warms"],
            ["glass", "glass", "Glass"],
        ] {
            let stems: Vec<String> = forms.iter().flat_map(|form| words(form)).collect();
            assert!(stems.len() == 3 && stems.iter().all(|stem| *stem == stems[0]), "{stems:?}");
        }
        assert_eq!(words("The año-2024, of it's").collect::<Vec<_>>(), ["año", "2024", "s"]);
    }

    #[test]
    fn rare_words_and_short_texts_count_more() {
        let mut index = Index::default();
        for text in ["bee bee flower", "bee flower flower flower tree tree tree tree", "flower", "stone"] {
            index.add(words(text));
        }
        let best = |query: &str| index.best(&words(query).collect::<Vec<_>>(), 9);
        assert_eq!(best("bees"), [0, 1]);
        assert_eq!(best("tree flower"), [1, 2, 0]);
        assert_eq!(best("flower stone"), [3, 2, 1, 0]);
        assert!(best("cloud").is_empty() && Index::default().best(&["x".into()], 1).is_empty());
    }
}
