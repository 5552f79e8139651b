//! Pictures that a caller sends with a message. The server loads nothing from elsewhere: an address could be one that only it reaches.

use polylogue_core::{Media, Message, Opening, Part};
use polylogue_runtime::Prepared;
use polylogue_runtime::models::media_in_words;
use serde_json::Value;

use crate::problem::Problem;

/// The most pictures of a request.
const MOST: usize = 50;

/// A picture, and where the request has it, as a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Picture {
    pub(super) media: Media,
    pub(super) place: String,
}

/// The picture of a part of a message.
pub(super) fn picture(part: &Value, place: String) -> Result<Picture, Problem> {
    let url = part.get("image_url");
    let url = url.and_then(|image| image.get("url").unwrap_or(image).as_str()).unwrap_or_default();
    let wrong =
        |what: &str| Problem::bad_request(format!("a picture {what}")).at(place.clone(), "not a picture");
    let Some(data) = url.strip_prefix("data:") else {
        let refused = "a picture is at another address, and the server loads nothing from there";
        return Err(Problem::unsupported_parameter(refused)
            .at(place, "only pictures in the request are supported")
            .hint("send the picture itself, as `data:image/png;base64,...`"));
    };
    let (head, text) = data.split_once(',').ok_or_else(|| wrong("has no content after a comma"))?;
    let kind = head.strip_suffix(";base64").ok_or_else(|| wrong("is not in base64"))?.to_ascii_lowercase();
    let kind = if kind == "image/jpg" { "image/jpeg".to_owned() } else { kind };
    let url = format!("data:{kind};base64,{text}").into();
    let media = Media { media_type: kind, url };
    let bytes = media.bytes().filter(|bytes| !bytes.is_empty());
    match bytes.as_deref().map(|bytes| Media::detect_type(bytes).filter(|kind| kind.starts_with("image/"))) {
        None => Err(wrong("is not in base64")),
        _ if bytes.as_deref().is_some_and(Media::is_damaged) => Err(wrong("is damaged")),
        Some(Some(kind)) if kind == media.media_type => Ok(Picture { media, place }),
        Some(Some(kind)) => {
            Err(wrong(&format!("is called `{}` and is `{kind}`", media.media_type.escape_debug())))
        }
        Some(None) => {
            Err(wrong("is none of the types that models read").hint("they are PNG, JPEG, GIF and WebP"))
        }
    }
}

/// Refuses more pictures than a request may have, and those that a model of the team is known not to read, before any is called.
pub(super) fn check<'p>(
    team: &Prepared,
    pictures: impl Iterator<Item = &'p Picture> + Clone,
) -> Result<(), Problem> {
    if let Some(picture) = pictures.clone().nth(MOST) {
        return Err(Problem::bad_request(format!("a request has at most {MOST} pictures"))
            .at(picture.place.clone(), "one too many"));
    }
    for Picture { media, place } in pictures {
        let Some(by) = team.unsupported_media(media) else { continue };
        let (what, _) = media_in_words(&media.media_type);
        let why = format!("{what} is sent, and `{}` of the team {}", by.model, by.why());
        return Err(Problem::unsupported_parameter(why).at(place.clone(), "not read").hint(by.hint(media)));
    }
    Ok(())
}

/// The pictures of a message of the user's.
pub(super) fn of_message(message: &Message) -> Vec<Media> {
    let media = message.parts.iter().filter_map(|part| match part {
        Part::Media(media) => Some(media.clone()),
        _ => None,
    });
    media.collect()
}

/// Those that came with the task: others are the team's own.
pub(super) fn of_opening(opening: &Opening) -> Vec<Media> {
    let is_task =
        |message: &&Message| matches!(message.parts.first(), Some(Part::Text(text)) if *text == opening.task);
    opening.messages.iter().find(is_task).map(of_message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

    /// A comment, then a frame of 5 columns and 4 rows.
    const JPEG: &str = "/9j//gAEYWL/wAARCAAEAAUDASIA";

    fn read(url: &str) -> Result<Picture, Problem> {
        picture(
            &json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
            "/messages/0/content/1".into(),
        )
    }

    #[test]
    fn a_picture_is_in_the_request_and_is_what_it_is_called() {
        let url = format!("data:image/png;base64,{PIXEL}");
        let found = read(&url).unwrap();
        assert_eq!((&*found.media.media_type, &*found.media.url), ("image/png", url.as_str()));
        let jpeg = read(&format!("data:image/JPG;base64,{JPEG}")).unwrap();
        assert_eq!(&*jpeg.media.url, format!("data:image/jpeg;base64,{JPEG}"));
        // As some clients write it.
        let plain = picture(&json!({"type": "image_url", "image_url": url}), String::new()).unwrap();
        assert_eq!(plain.media, found.media);
        for (url, why) in [
            (format!("data:image/jpeg;base64,{PIXEL}"), "is called `image/jpeg` and is `image/png`"),
            ("data:image/png;base64,".into(), "is not in base64"),
            ("data:image/png;base64,%%%%".into(), "is not in base64"),
            ("data:image/png,x".into(), "is not in base64"),
            ("data:image/png".into(), "has no content"),
            ("data:image/png;base64,iVBORw0KGgo=".into(), "is damaged"),
            ("data:image/svg+xml;base64,PHN2Zz4=".into(), "none of the types"),
        ] {
            let problem = read(&url).unwrap_err();
            assert!(problem.to_string().contains(why), "{url}: {problem}");
            assert_eq!(problem.param().as_deref(), Some("messages.0.content.1"));
        }
    }

    #[test]
    fn no_address_is_loaded_whatever_it_is() {
        for url in [
            "https://example.org/a.png",
            "http://127.0.0.1:8787/api/v1/teams",
            "http://169.254.169.254/latest/meta-data",
            "http://[::ffff:10.0.0.1]/",
            "file:///etc/passwd",
            "HTTP://localhost/",
            "",
        ] {
            let problem = read(url).unwrap_err();
            assert!(problem.to_string().contains("loads nothing"), "{url}: {problem}");
        }
    }
}
