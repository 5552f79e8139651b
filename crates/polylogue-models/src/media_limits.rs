//! What providers take of pictures and documents at most.

use polylogue_core::Media;

use crate::api::Api;
use crate::provider::Provider;

/// A megabyte of a provider, in the larger one of its meanings: what the provider takes is never refused.
const MB: u64 = 1 << 20;

const PDF: &str = "application/pdf";

/// The limits of a provider on pictures and documents, as it publishes them. `None`: it publishes none.
///
/// ```
/// use polylogue_models::MediaLimits;
/// let mistral = MediaLimits::rows().iter().find(|row| row.provider == "mistral").unwrap();
/// assert_eq!(mistral.limits.pictures, Some(8));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaLimits {
    /// The bytes of a picture.
    pub picture_bytes: Option<u64>,
    /// The pixels of a side of a picture.
    pub picture_side: Option<u32>,
    /// The pictures of a request.
    pub pictures: Option<u64>,
    /// A number of pictures, and the pixels of a side of each if a request has more of them.
    pub many_pictures: Option<(u64, u32)>,
    /// The pictures and the documents of a message.
    pub in_message: Option<(usize, usize)>,
    /// The bytes of a PDF.
    pub pdf_bytes: Option<u64>,
    /// The bytes of another document.
    pub document_bytes: Option<u64>,
    /// The bytes of all documents of a request.
    pub all_document_bytes: Option<u64>,
    /// The pages of a PDF.
    pub pdf_pages: Option<u64>,
    /// The pages of all PDFs of a request.
    pub all_pages: Option<u64>,
    /// The bytes of a request.
    pub request_bytes: Option<u64>,
}

/// The limits of some models of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MediaLimitsRow {
    /// The provider, as in the [table of models](crate::KnownModel).
    pub provider: &'static str,
    /// A part of the names of the models; empty for all.
    pub models: &'static str,
    /// The smallest context window of these models, in tokens.
    pub window: u64,
    /// The limits.
    pub limits: MediaLimits,
}

/// The context window of a model that takes as much as others of its provider, which is Anthropic.
const LARGE: u64 = 1_000_000;

/// Those of Claude with a large window at Anthropic.
///
/// - Pictures: <https://platform.claude.com/docs/en/build-with-claude/vision>, which counts the bytes of a picture in base64.
/// - Pages: <https://platform.claude.com/docs/en/build-with-claude/pdf-support>.
/// - Requests, here and at others: <https://platform.claude.com/docs/en/api/overview>.
const CLAUDE: MediaLimits = MediaLimits {
    picture_bytes: Some(10 * MB / 4 * 3),
    picture_side: Some(8_000),
    pictures: Some(600),
    many_pictures: Some((20, 2_000)),
    all_pages: Some(600),
    request_bytes: Some(32 * MB),
    ..MediaLimits::NONE
};

/// Those of Claude at Google.
const CLAUDE_AT_VERTEX: MediaLimits =
    MediaLimits { picture_bytes: Some(5 * MB / 4 * 3), request_bytes: Some(30 * MB), ..CLAUDE };

/// Those of Amazon Bedrock: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>. More than a message can
/// have is named in its text.
const BEDROCK: MediaLimits = MediaLimits {
    picture_bytes: Some(3_932_160),
    picture_side: Some(8_000),
    in_message: Some((20, 5)),
    pdf_bytes: Some(4_718_592),
    document_bytes: Some(4_718_592),
    ..MediaLimits::NONE
};

/// Those of Claude 4 and later at Bedrock: <https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api-restrictions.html>.
const CLAUDE_AT_BEDROCK: MediaLimits =
    MediaLimits { pdf_bytes: None, all_pages: Some(600), request_bytes: Some(20 * MB), ..BEDROCK };

const fn row(
    provider: &'static str,
    models: &'static str,
    window: u64,
    limits: MediaLimits,
) -> MediaLimitsRow {
    MediaLimitsRow { provider, models, window, limits }
}

/// The first row that fits counts.
const ROWS: &[MediaLimitsRow] = &[
    row("anthropic", "", LARGE, CLAUDE),
    row("anthropic", "", 0, CLAUDE.of_small_window()),
    row("vertex", "claude", LARGE, CLAUDE_AT_VERTEX),
    row("vertex", "claude", 0, CLAUDE_AT_VERTEX.of_small_window()),
    // <https://docs.cloud.google.com/vertex-ai/generative-ai/docs/multimodal/document-understanding>, and image-understanding next to it.
    row(
        "vertex",
        "gemini",
        0,
        MediaLimits {
            pictures: Some(3_000),
            pdf_bytes: Some(50 * MB),
            pdf_pages: Some(3_000),
            ..MediaLimits::NONE
        },
    ),
    row("bedrock", "claude-3", 0, BEDROCK),
    row("bedrock", "claude", LARGE, CLAUDE_AT_BEDROCK),
    row("bedrock", "claude", 0, MediaLimits { all_pages: Some(100), ..CLAUDE_AT_BEDROCK }),
    row("bedrock", "nova", 0, MediaLimits { pdf_bytes: None, ..BEDROCK }),
    row("bedrock", "", 0, BEDROCK),
    // <https://ai.google.dev/gemini-api/docs/file-input-methods>, <https://ai.google.dev/gemini-api/docs/image-understanding>.
    row(
        "gemini",
        "",
        0,
        MediaLimits {
            pictures: Some(3_600),
            pdf_bytes: Some(50 * MB),
            pdf_pages: Some(1_000),
            request_bytes: Some(100 * MB),
            ..MediaLimits::NONE
        },
    ),
    // <https://developers.openai.com/api/docs/guides/images-vision>, <https://developers.openai.com/api/docs/guides/file-inputs>.
    row(
        "openai",
        "",
        0,
        MediaLimits {
            pictures: Some(1_500),
            pdf_bytes: Some(50 * MB),
            document_bytes: Some(50 * MB),
            all_document_bytes: Some(50 * MB),
            request_bytes: Some(512 * MB),
            ..MediaLimits::NONE
        },
    ),
    // <https://learn.microsoft.com/azure/foundry/openai/quotas-limits>.
    row("azure", "", 0, MediaLimits { pictures: Some(50), ..MediaLimits::NONE }),
    // <https://docs.mistral.ai/capabilities/vision>.
    row(
        "mistral",
        "",
        0,
        MediaLimits {
            picture_bytes: Some(10 * MB),
            picture_side: Some(10_000),
            pictures: Some(8),
            ..MediaLimits::NONE
        },
    ),
];

/// What is more than a provider takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excess {
    /// What is taken at most, and what there is.
    pub why: String,
    /// What can be done about it.
    pub hint: &'static str,
}

/// What is more than a request can have.
fn of_request(why: String) -> Excess {
    Excess { why, hint: "attach less, or limit what the agent sees of the conversation with `view`" }
}

const SMALLER: &str = "make the picture smaller";
const SPLIT: &str = "split the document, or attach it as text";

impl MediaLimits {
    /// No limits.
    pub(crate) const NONE: Self = Self {
        picture_bytes: None,
        picture_side: None,
        pictures: None,
        many_pictures: None,
        in_message: None,
        pdf_bytes: None,
        document_bytes: None,
        all_document_bytes: None,
        pdf_pages: None,
        all_pages: None,
        request_bytes: None,
    };

    /// The same of Claude with a small window.
    const fn of_small_window(self) -> Self {
        Self { pictures: Some(100), all_pages: Some(100), ..self }
    }

    /// Returns the limits of all providers that publish some. Of several rows for a model, the first one counts.
    pub const fn rows() -> &'static [MediaLimitsRow] {
        ROWS
    }

    /// The limits of `model` of `provider`, called by `api`. A model whose `window` is not known counts as one with a large window.
    pub(crate) fn of(provider: &str, model: &str, window: Option<u64>, api: Api) -> &'static Self {
        let table = Provider::find(provider).map_or(provider, |known| known.table_name());
        // Only Amazon has this API, whatever the endpoint is called.
        let table = if api == Api::Converse { "bedrock" } else { table };
        let window = window.unwrap_or(u64::MAX);
        let fits = |row: &&MediaLimitsRow| {
            row.provider == table && model.contains(row.models) && window >= row.window
        };
        ROWS.iter().find(fits).map_or(&Self::NONE, |row| &row.limits)
    }

    /// How `media` is more than is taken, whatever else there is in a request.
    pub(crate) fn excess(&self, media: &Media) -> Option<Excess> {
        match media.media_type.split_once('/') {
            Some(("image", _)) => self.excess_of_picture(media),
            Some(("audio", _)) => None,
            _ => self.excess_of_document(media),
        }
    }

    fn excess_of_picture(&self, media: &Media) -> Option<Excess> {
        let too_long = over(self.picture_bytes, bytes(media)).map(|(most, has)| {
            let (most, has) = (megabytes(most), megabytes(has));
            let why = format!("a picture can have at most {most}, and this one has {has}");
            Excess { why, hint: SMALLER }
        });
        let too_large = || {
            let (most, (width, height)) = (self.picture_side?, media.pixels()?);
            (width.max(height) > most).then(|| {
                let has = format!("{width} x {height}");
                let why =
                    format!("a picture can have at most {most} pixels on a side, and this one has {has}");
                Excess { why, hint: SMALLER }
            })
        };
        too_long.or_else(too_large)
    }

    fn excess_of_document(&self, media: &Media) -> Option<Excess> {
        let is_pdf = media.media_type == PDF;
        let most = if is_pdf { self.pdf_bytes } else { self.document_bytes };
        let too_long = over(most, bytes(media)).map(|(most, has)| {
            let (most, has) = (megabytes(most), megabytes(has));
            let why = format!("a document can have at most {most}, and this one has {has}");
            Excess { why, hint: SPLIT }
        });
        let many_pages = || {
            let most = self.pdf_pages.into_iter().chain(self.all_pages).min().filter(|_| is_pdf);
            let (most, has) = over(most, most.and_then(|_| media.pages()))?;
            let why = format!("a document can have at most {most} pages, and this one has {has}");
            Some(Excess { why, hint: SPLIT })
        };
        too_long.or_else(many_pages)
    }

    /// How all `media` of a request are more than it can have, if each alone is not.
    pub(crate) fn excess_of_all<'m>(&self, media: impl Iterator<Item = &'m Media> + Clone) -> Option<Excess> {
        let pictures = media.clone().filter(|media| media.media_type.starts_with("image/"));
        let count = pictures.clone().count() as u64;
        if let Some((most, has)) = over(self.pictures, Some(count)) {
            let why = format!("a request can have at most {most} pictures, and this one has {has}");
            return Some(of_request(why));
        }
        if let Some((few, side)) = self.many_pictures.filter(|(few, _)| count > *few) {
            let is_large = |(width, height): &(u32, u32)| width.max(height) > &side;
            if let Some((width, height)) = pictures.filter_map(Media::pixels).find(is_large) {
                let why = format!(
                    "in a request with more than {few} pictures, each can have at most {side} pixels on a side, and one has \
                     {width} x {height}"
                );
                return Some(of_request(why));
            }
        }
        self.excess_of_documents(media.filter(|media| media.media_type == PDF))
    }

    fn excess_of_documents<'m>(&self, pdfs: impl Iterator<Item = &'m Media> + Clone) -> Option<Excess> {
        let why = "the documents of a request can have at most";
        let all: Option<u64> = self.all_document_bytes.map(|_| pdfs.clone().filter_map(bytes).sum());
        if let Some((most, has)) = over(self.all_document_bytes, all) {
            let (most, has) = (megabytes(most), megabytes(has));
            return Some(of_request(format!("{why} {most}, and those of this one have {has}")));
        }
        let all: Option<u64> = self.all_pages.map(|_| pdfs.filter_map(Media::pages).sum());
        let (most, has) = over(self.all_pages, all)?;
        Some(of_request(format!("{why} {most} pages, and those of this one have {has}")))
    }

    /// How a request of so many bytes is longer than is taken.
    pub(crate) fn excess_of_body(&self, bytes: usize) -> Option<Excess> {
        let (most, has) = over(self.request_bytes, u64::try_from(bytes).ok())?;
        let (most, has) = (megabytes(most), megabytes(has));
        Some(of_request(format!("a request can have at most {most}, and this one has {has}")))
    }
}

/// The bytes of the content, if it is in the address.
fn bytes(media: &Media) -> Option<u64> {
    let (_, data) = media.url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(data.trim_end_matches('=').len() as u64 * 3 / 4)
}

/// The limit and what there is, if that is more.
fn over(most: Option<u64>, has: Option<u64>) -> Option<(u64, u64)> {
    most.zip(has).filter(|(most, has)| has > most)
}

/// As megabytes, rounded up to hundredths, so that more than a limit is never shown as the limit.
fn megabytes(bytes: u64) -> String {
    let hundredths = bytes.saturating_mul(100).div_ceil(MB);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    format!("{} MB", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
#[path = "media_limits_tests.rs"]
mod tests;
