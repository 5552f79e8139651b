//! The tokens of the pages of documents, by provider.

use polylogue_core::Bound;

use crate::provider::Provider;

/// The most tokens of a page's text, where it is not known.
const TEXT: u64 = Bound::PAGE_TEXT_TOKENS;

/// The most tokens of a page, by provider as in the table of models, and by a part of the model's name. The first row that fits counts.
///
/// Providers read the text of a page, and look at a picture of it.
///
/// - Claude: a text of 1,500 to 3,000 tokens (<https://platform.claude.com/docs/en/build-with-claude/pdf-support>), and a picture of
///   4,784 at most, or 1,600 up to Claude Opus 4.6 (<https://platform.claude.com/docs/en/build-with-claude/vision>).
/// - Gemini: 258 tokens up to Gemini 2.5, and by `media_resolution` 280 to 2,240 from Gemini 3 on
///   (<https://ai.google.dev/gemini-api/docs/media-resolution>).
/// - OpenAI: a picture of high detail, which is the default from GPT-5.6 on
///   (<https://developers.openai.com/api/docs/guides/file-inputs>): 2,500 patches of 2.46 tokens at most, or 2,833 tokens and 5,667 for each
///   of 8 tiles with GPT-4o mini (<https://developers.openai.com/api/docs/guides/images-vision>).
/// - Ollama reads no documents: they are named in the text.
const ROWS: [(&str, &str, u64); 10] = [
    ("anthropic", "", TEXT + 4_784),
    ("bedrock", "claude", TEXT + 4_784),
    ("vertex", "claude", TEXT + 4_784),
    ("vertex", "gemini", TEXT + 2_240),
    ("gemini", "", TEXT + 2_240),
    ("openai", "gpt-4o-mini", TEXT + 48_169),
    ("openai", "", TEXT + 6_150),
    ("azure", "gpt-4o-mini", TEXT + 48_169),
    ("azure", "", TEXT + 6_150),
    ("ollama", "", 0),
];

/// The most tokens of a page of a document for `model` of `provider`.
pub(crate) fn page_tokens(provider: &str, model: &str) -> u64 {
    let table = Provider::find(provider).map_or(provider, |known| known.table_name());
    let row = ROWS.iter().find(|(of, part, _)| *of == table && model.contains(*part));
    row.map_or(Bound::PAGE_TOKENS, |(_, _, tokens)| *tokens)
}
