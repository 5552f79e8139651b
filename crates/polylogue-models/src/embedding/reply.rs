//! Replies with vectors, in the forms of all APIs.

use polylogue_core::Usage;
use polylogue_memory::Embedded;
use serde::Deserialize;
use serde_json::Value;

use crate::wire::draft::DecodeError;
use crate::wire::lenient::Count;
use crate::wire::object::Object;

/// A reply of any API.
#[derive(Deserialize)]
struct Answer {
    /// OpenAI's and Mistral's.
    #[serde(default)]
    data: Option<Vec<Row>>,
    #[serde(default)]
    usage: Object<Tokens>,
    /// Ollama's, Gemini's and Cohere's.
    #[serde(default)]
    embeddings: Option<Vectors>,
    /// Titan's and Gemini's for a single text.
    #[serde(default)]
    embedding: Option<Vector>,
    /// Vertex AI's.
    #[serde(default)]
    predictions: Option<Vec<Prediction>>,
    /// Gemini's newer models'.
    #[serde(default, rename = "usageMetadata")]
    counted: Object<Counted>,
    /// Ollama's.
    #[serde(default)]
    prompt_eval_count: Count,
    /// Titan's.
    #[serde(default, rename = "inputTextTokenCount")]
    input_text_token_count: Count,
    /// Cohere's.
    #[serde(default)]
    meta: Object<Meta>,
    /// Some servers report errors with a success status.
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
}

/// Vectors, as a list or in Cohere's object.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vectors {
    List(Vec<Vector>),
    Typed { float: Vec<Vec<f32>> },
}

impl Vectors {
    fn all(self) -> Vec<Vec<f32>> {
        match self {
            Self::List(vectors) => vectors.into_iter().map(Vector::numbers).collect(),
            Self::Typed { float } => float,
        }
    }
}

/// A vector, bare or in Gemini's object.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vector {
    Bare(Vec<f32>),
    Object { values: Vec<f32> },
}

impl Vector {
    fn numbers(self) -> Vec<f32> {
        match self {
            Self::Bare(values) | Self::Object { values } => values,
        }
    }
}

#[derive(Deserialize)]
struct Prediction {
    embeddings: Predicted,
}

#[derive(Deserialize)]
struct Predicted {
    values: Vec<f32>,
    #[serde(default)]
    statistics: Object<Statistics>,
}

#[derive(Deserialize)]
struct Statistics {
    #[serde(default)]
    token_count: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    #[serde(default)]
    prompt_token_count: Count,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    billed_units: Object<Billed>,
}

#[derive(Deserialize)]
struct Billed {
    #[serde(default)]
    input_tokens: Option<Value>,
}

impl Answer {
    /// The tokens of the texts, as far as the reply says.
    fn input(&self) -> Option<u64> {
        let usage = self.usage.0.as_ref();
        let billed = || self.meta.0.as_ref()?.billed_units.0.as_ref()?.input_tokens.as_ref();
        let of_openai = usage.and_then(|usage| usage.prompt_tokens.0.or(usage.total_tokens.0));
        of_openai
            .or(self.prompt_eval_count.0)
            .or(self.input_text_token_count.0)
            .or_else(|| self.counted.0.as_ref()?.prompt_token_count.0)
            .or_else(|| whole(billed()?))
            .or_else(|| self.predictions.as_deref()?.iter().map(Prediction::tokens).sum())
    }

    /// The vectors in the order of the texts.
    fn vectors(self) -> Result<Vec<Vec<f32>>, &'static str> {
        if let Some(rows) = self.data {
            return in_order(rows);
        }
        let single = self.embedding.map(|vector| vec![vector.numbers()]);
        let predicted = |all: Vec<Prediction>| all.into_iter().map(|one| one.embeddings.values).collect();
        let several = self.embeddings.map(Vectors::all).or_else(|| self.predictions.map(predicted));
        several.or(single).ok_or("it has neither `data` nor `embeddings`")
    }
}

impl Prediction {
    fn tokens(&self) -> Option<u64> {
        whole(self.embeddings.statistics.0.as_ref()?.token_count.as_ref()?)
    }
}

/// A count that may be written as `4.0`.
fn whole(number: &Value) -> Option<u64> {
    number.as_u64().or_else(|| format!("{:.0}", number.as_f64()?).parse().ok())
}

/// The vectors of `texts` texts in `body`, each of length 1.
pub(crate) fn decode(body: &[u8], texts: usize) -> Result<Embedded, DecodeError> {
    let excerpt =
        || String::from_utf8_lossy(body.get(..body.len().min(500)).unwrap_or_default()).into_owned();
    let unreadable = |why: String| DecodeError::Unreadable { why, excerpt: excerpt() };
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(DecodeError::Empty);
    }
    let answer: Answer = serde_json::from_slice(body).map_err(|why| unreadable(why.to_string()))?;
    if answer.error.is_some() {
        return Err(DecodeError::Error(String::from_utf8_lossy(body).into_owned()));
    }
    let usage = Usage { input: answer.input(), ..Usage::default() };
    let vectors = answer.vectors().map_err(|why| unreadable(why.to_owned()))?;
    let sound = |vector: &Vec<f32>| !vector.is_empty() && vector.iter().all(|number| number.is_finite());
    if vectors.len() != texts {
        return Err(unreadable(format!("it has {} vectors for {texts} texts", vectors.len())));
    }
    match vectors.iter().all(sound) {
        true => Ok(Embedded { vectors: vectors.into_iter().map(normalized).collect(), usage, cost: None }),
        false => Err(unreadable("one of its vectors is empty, or has a number that is none".to_owned())),
    }
}

/// The vectors in the order of the texts, by their indices if they have any.
fn in_order(mut rows: Vec<Row>) -> Result<Vec<Vec<f32>>, &'static str> {
    if rows.iter().any(|row| row.index.is_some()) {
        rows.sort_by_key(|row| row.index);
        if !rows.iter().enumerate().all(|(place, row)| row.index == Some(place)) {
            return Err("its vectors are not numbered from 0 on");
        }
    }
    Ok(rows.into_iter().map(|row| row.embedding).collect())
}

/// The vector of length 1 in the same direction: shortened vectors of some models have another length. A vector of zeros
/// has no direction and stays one.
fn normalized(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text cost is then unknown.
    #[test]
    fn an_odd_count_costs_no_vector() {
        let input = |counts: &str| {
            let body = format!(r#"{{"data":[{{"embedding":[1.0]}}],{counts}}}"#);
            let embedded = decode(body.as_bytes(), 1).unwrap();
            (embedded.vectors.len(), embedded.usage.input)
        };
        for (count, expected) in
            [("3", Some(3)), ("3.0", Some(3)), ("-1", None), ("null", None), ("[]", None)]
        {
            let counts = format!(r#""usage":{{"prompt_tokens":{count}}}"#);
            assert_eq!(input(&counts), (1, expected), "{count}");
        }
        for odd in [r#""3""#, "3", "[3, 3]", "true"] {
            for name in ["usage", "usageMetadata", "meta"] {
                assert_eq!(input(&format!(r#""{name}":{odd}"#)), (1, None), "{name}: {odd}");
            }
        }
        for (billed, expected) in [("3.0", Some(3)), (r#""many""#, None), ("-1", None)] {
            let counts = format!(r#""meta":{{"billed_units":{{"input_tokens":{billed}}}}}"#);
            assert_eq!(input(&counts), (1, expected), "{billed}");
        }
    }

    #[test]
    fn vectors_have_length_one_and_their_direction() {
        assert_eq!(normalized(vec![3.0, 4.0]), [0.6, 0.8]);
        assert_eq!(normalized(vec![0.0, 0.0]), [0.0, 0.0]);
        // Squares that no 32-bit float can hold.
        assert_eq!(normalized(vec![f32::MAX, 0.0]), [1.0, 0.0]);
    }
}
