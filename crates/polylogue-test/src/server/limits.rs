//! How much of pictures and documents providers take, as they publish it. It is stated here apart from the table of the program, so that a
//! mistake in one of them is found.

use polylogue_core::Media;
use serde_json::Value;

use super::rules::Checked;
use super::{Dialect, Received, Vendor};

/// A megabyte.
const MB: usize = 1024 * 1024;

/// A picture or a document of a request.
struct Medium<'a> {
    kind: String,
    /// The content in base64, unless it is elsewhere.
    data: &'a str,
}

impl Medium<'_> {
    fn is_picture(&self) -> bool {
        self.kind.starts_with("image/")
    }

    fn bytes(&self) -> usize {
        self.data.trim_end_matches('=').len() * 3 / 4
    }

    /// What the first `digits` of its content mean.
    fn content(&self, digits: usize) -> Vec<u8> {
        let data = self.data.get(..digits).unwrap_or(self.data);
        let (kind, url) = (self.kind.clone(), format!("data:{};base64,{data}", self.kind).into());
        Media { media_type: kind, url }.bytes().unwrap_or_default()
    }

    /// The longer side of a PNG.
    fn side(&self) -> Option<u32> {
        let head = self.content(44);
        let number = |from: usize| Some(u32::from_be_bytes(head.get(from..from + 4)?.try_into().ok()?));
        number(16).max(number(20)).filter(|_| head.starts_with(b"\x89PNG"))
    }

    /// The pages of a PDF whose objects are not packed.
    fn pages(&self) -> usize {
        let content = self.content(usize::MAX);
        let text = String::from_utf8_lossy(&content);
        let is_page =
            |rest: &&str| rest.trim_start().strip_prefix("/Page").is_some_and(|rest| !rest.starts_with('s'));
        text.split("/Type").skip(1).filter(is_page).count()
    }
}

/// Checks the media of a request as the provider does that is played.
pub(super) fn check(dialect: Dialect, vendor: Option<Vendor>, received: &Received) -> Checked {
    let mut all = Vec::new();
    collect(&received.body, &mut all);
    let (pictures, documents): (Vec<_>, Vec<_>) = all.into_iter().partition(Medium::is_picture);
    match (dialect, vendor) {
        (Dialect::Messages, _) => anthropic(received, &pictures, &documents),
        (Dialect::GenerateContent, _) => google(received, &pictures, &documents),
        (Dialect::Converse, _) => amazon(received, &pictures, &documents),
        (Dialect::Responses, _) | (Dialect::ChatCompletions, Some(Vendor::OpenAi)) => {
            openai(received, &pictures, &documents)
        }
        (Dialect::ChatCompletions, Some(Vendor::Mistral)) => mistral(&pictures),
        _ => Ok(()),
    }
}

/// Adds the pictures and documents within `value`.
fn collect<'a>(value: &'a Value, all: &mut Vec<Medium<'a>>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, all)),
        Value::Object(fields) => {
            all.extend(medium(value));
            fields.values().for_each(|value| collect(value, all));
        }
        _ => {}
    }
}

/// The picture or document that `value` is in the form of an API.
fn medium(value: &Value) -> Option<Medium<'_>> {
    let text = |place: &str| value.pointer(place).and_then(Value::as_str);
    let of_openai = || {
        let picture = text("/image_url/url").or_else(|| text("/image_url"));
        let address = picture.or_else(|| text("/file_data")).or_else(|| text("/document_url"))?;
        let usual = if picture.is_some() { "image/any" } else { "application/pdf" };
        let content = address.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        let (kind, data) = content.unwrap_or((usual, ""));
        Some(Medium { kind: kind.to_owned(), data })
    };
    let of_anthropic = || match text("/type")? {
        "image" | "document" if text("/source/data").is_some() => {
            Some(Medium { kind: text("/source/media_type")?.to_owned(), data: text("/source/data")? })
        }
        "image" => Some(Medium { kind: "image/any".to_owned(), data: "" }),
        _ => None,
    };
    let of_google =
        || Some(Medium { kind: text("/inlineData/mimeType")?.to_owned(), data: text("/inlineData/data")? });
    let of_amazon = || {
        let (kind, place) = [("image", "/image"), ("application", "/document")]
            .into_iter()
            .find(|(_, place)| value.pointer(place).is_some_and(|block| block.get("format").is_some()))?;
        let format = text(&format!("{place}/format"))?;
        Some(Medium { kind: format!("{kind}/{format}"), data: text(&format!("{place}/source/bytes"))? })
    };
    of_openai().or_else(of_anthropic).or_else(of_google).or_else(of_amazon)
}

fn at_most(most: usize, has: usize, what: impl Fn(usize) -> String) -> Checked {
    if has > most { Err(what(most)) } else { Ok(()) }
}

fn sides(pictures: &[Medium<'_>], most: u32) -> Checked {
    match pictures.iter().filter_map(Medium::side).max() {
        Some(side) if side > most => {
            Err(format!("At least one of the image dimensions exceed max allowed size: {most} pixels"))
        }
        _ => Ok(()),
    }
}

/// Models of Anthropic with a context window of 200,000 tokens.
const SMALL: [&str; 5] =
    ["claude-3", "claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-opus-4-1"];

/// How many pages one of Anthropic's models takes.
fn pages_of_claude(model: &str) -> usize {
    if SMALL.iter().any(|part| model.contains(part)) { 100 } else { 600 }
}

fn anthropic(received: &Received, pictures: &[Medium<'_>], documents: &[Medium<'_>]) -> Checked {
    let is_at_google = received.path.contains("/publishers/anthropic/");
    let (picture, request) = if is_at_google { (5, 30) } else { (10, 32) };
    at_most(request * MB, received.bytes.len(), |_| {
        "Request exceeds the maximum allowed number of bytes.".into()
    })?;
    for Medium { data, .. } in pictures {
        at_most(picture * MB, data.len(), |most| {
            format!("image exceeds {picture} MB maximum: {} bytes > {most} bytes", data.len())
        })?;
    }
    let most = pages_of_claude(received.model());
    at_most(most, pictures.len(), |most| format!("Too many images: the maximum is {most}"))?;
    sides(pictures, if pictures.len() > 20 { 2_000 } else { 8_000 })?;
    let pages = documents.iter().map(Medium::pages).sum();
    at_most(most, pages, |most| format!("A maximum of {most} PDF pages may be provided."))
}

fn google(received: &Received, pictures: &[Medium<'_>], documents: &[Medium<'_>]) -> Checked {
    let is_at_vertex = received.path.contains("/publishers/google/");
    let (most_pictures, most_pages) = if is_at_vertex { (3_000, 3_000) } else { (3_600, 1_000) };
    if !is_at_vertex {
        at_most(100 * MB, received.bytes.len(), |_| "Request payload size exceeds the limit".into())?;
    }
    at_most(most_pictures, pictures.len(), |most| format!("Please use fewer than {most} images"))?;
    for document in documents.iter().filter(|document| document.kind == "application/pdf") {
        at_most(50 * MB, document.bytes(), |_| "The document is larger than 50 MB".into())?;
        at_most(most_pages, document.pages(), |most| {
            format!("The document contains more than {most} pages")
        })?;
    }
    Ok(())
}

fn amazon(received: &Received, pictures: &[Medium<'_>], documents: &[Medium<'_>]) -> Checked {
    let model = received.model();
    for picture in pictures {
        at_most(15 * MB / 4, picture.bytes(), |_| "The image is larger than 3.75 MB".into())?;
    }
    sides(pictures, 8_000)?;
    let is_new_claude = model.contains("claude") && !model.contains("claude-3");
    let takes_long_pdfs = is_new_claude || model.contains("nova");
    for document in documents {
        let is_long_pdf = document.kind.ends_with("/pdf") && takes_long_pdfs;
        let most = if is_long_pdf { usize::MAX } else { 9 * MB / 2 };
        at_most(most, document.bytes(), |_| "The document is larger than 4.5 MB".into())?;
    }
    if is_new_claude {
        at_most(20 * MB, received.bytes.len(), |_| {
            "Input is too long: the payload has 20 MB at most".into()
        })?;
        let pages = documents.iter().map(Medium::pages).sum();
        at_most(pages_of_claude(model), pages, |most| {
            format!("A maximum of {most} PDF pages may be provided.")
        })?;
    }
    Ok(())
}

fn openai(received: &Received, pictures: &[Medium<'_>], documents: &[Medium<'_>]) -> Checked {
    at_most(512 * MB, received.bytes.len(), |_| "The request is larger than 512 MB".into())?;
    at_most(1_500, pictures.len(), |most| format!("Too many images in request. Max is {most}."))?;
    let bytes = documents.iter().map(Medium::bytes).sum();
    at_most(50 * MB, bytes, |_| "The total size of the files is more than 50 MB".into())
}

fn mistral(pictures: &[Medium<'_>]) -> Checked {
    at_most(8, pictures.len(), |most| format!("Too many images: the maximum per request is {most}"))?;
    for picture in pictures {
        at_most(10 * MB, picture.bytes(), |_| "The image is larger than 10 MB".into())?;
    }
    sides(pictures, 10_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pdf::of_pages;
    use crate::picture::png;

    const GEMINI: &str = "/v1beta/models/gemini-3-pro:generateContent";
    const CLAUDE: &str = "/model/anthropic.claude-opus-5/converse";

    /// A medium in the form of the API with this path.
    fn part(path: &str, media: &Media) -> Value {
        let url = &*media.url;
        let (_, data) = url.split_once(";base64,").unwrap();
        let is_picture = media.media_type.starts_with("image/");
        match (Dialect::of(path).unwrap(), is_picture) {
            (Dialect::Messages, _) => {
                let source = json!({"type": "base64", "media_type": media.media_type, "data": data});
                json!({"type": if is_picture { "image" } else { "document" }, "source": source})
            }
            (Dialect::GenerateContent, _) => {
                json!({"inlineData": {"mimeType": media.media_type, "data": data}})
            }
            (Dialect::Converse, true) => json!({"image": {"format": "png", "source": {"bytes": data}}}),
            (Dialect::Converse, false) => json!({"document": {"format": "pdf", "source": {"bytes": data}}}),
            (Dialect::Responses, true) => json!({"type": "input_image", "image_url": url}),
            (Dialect::Responses, false) => json!({"type": "input_file", "file_data": url}),
            (_, true) => json!({"type": "image_url", "image_url": {"url": url}}),
            (_, false) => json!({"type": "file", "file": {"file_data": url}}),
        }
    }

    /// What the provider says about a request with so many of `media`.
    fn said(path: &str, model: &str, vendor: Option<Vendor>, (count, media): (usize, &Media)) -> String {
        let part = part(path, media);
        let body = json!({"model": model, "messages": [{"role": "user", "content": vec![part; count]}]});
        let received = Received { path: path.to_owned(), ..Received::of_body(body) };
        check(received.dialect().unwrap(), vendor, &received).err().unwrap_or_default()
    }

    #[test]
    fn a_request_at_the_limit_is_taken_and_one_above_it_refused() {
        let (chat, responses, messages) = ("/v1/chat/completions", "/v1/responses", "/v1/messages");
        let (new, old) = ("claude-opus-5", "claude-haiku-4-5");
        let picture = |side: u32, bytes: usize| Media::of_bytes(&png(side, 1, bytes)).unwrap();
        let pages = |count: usize| Media::of_bytes(&of_pages(count)).unwrap();
        let [small, wide] = [picture(1, 0), picture(2_001, 0)];
        for (path, model, vendor, taken, refused, why) in [
            (messages, new, None, (600, &small), (601, &small), "Too many images: the maximum is 600"),
            (messages, old, None, (100, &small), (101, &small), "Too many images: the maximum is 100"),
            (messages, new, None, (20, &wide), (21, &wide), "max allowed size: 2000 pixels"),
            (messages, new, None, (1, &picture(8_000, 0)), (1, &picture(8_001, 0)), "size: 8000 pixels"),
            (messages, new, None, (1, &picture(1, 7_864_320)), (1, &picture(1, 7_864_321)), "exceeds 10 MB"),
            (messages, new, None, (1, &pages(600)), (1, &pages(601)), "A maximum of 600 PDF pages"),
            (messages, old, None, (1, &pages(100)), (2, &pages(51)), "A maximum of 100 PDF pages"),
            (chat, "m", Some(Vendor::Mistral), (8, &small), (9, &small), "maximum per request is 8"),
            (chat, "gpt-4o", Some(Vendor::OpenAi), (1_500, &small), (1_501, &small), "Max is 1500."),
            (responses, "gpt-5", None, (1_500, &small), (1_501, &small), "Max is 1500."),
            (GEMINI, "", None, (1, &pages(1_000)), (1, &pages(1_001)), "more than 1000 pages"),
            (CLAUDE, "", None, (1, &picture(1, 3_932_160)), (1, &picture(1, 3_932_161)), "3.75 MB"),
            (CLAUDE, "", None, (1, &picture(8_000, 0)), (1, &picture(8_001, 0)), "size: 8000 pixels"),
            (CLAUDE, "", None, (1, &pages(600)), (1, &pages(601)), "A maximum of 600 PDF pages"),
        ] {
            assert_eq!(said(path, model, vendor, taken), "", "{path} {why}");
            let said = said(path, model, vendor, refused);
            assert!(said.contains(why), "{path}: {said}, not {why}");
        }
    }
}
