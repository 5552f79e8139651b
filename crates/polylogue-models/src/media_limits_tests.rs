use polylogue_test::pdf::{HUNDRED_PAGES, THREE_PAGES, damaged, of_pages};
use polylogue_test::picture::png;

use super::*;

fn picture(width: u32, height: u32, bytes: usize) -> Media {
    Media::of_bytes(&png(width, height, bytes)).unwrap()
}

fn document(bytes: &[u8]) -> Media {
    Media::of_bytes(bytes).unwrap()
}

/// Why something is refused, and nothing if it is not.
fn why(excess: Option<Excess>) -> String {
    excess.map(|excess| excess.why).unwrap_or_default()
}

#[test]
fn every_row_is_of_a_known_provider_and_none_is_hidden_by_one_before_it() {
    for (at, row) in ROWS.iter().enumerate() {
        assert_eq!(Provider::find(row.provider).map(Provider::table_name), Some(row.provider));
        let hides = |before: &&MediaLimitsRow| {
            before.provider == row.provider
                && row.models.contains(before.models)
                && row.window >= before.window
        };
        assert_eq!(ROWS[..at].iter().find(hides), None, "{row:?}");
        assert_ne!(row.limits, MediaLimits::NONE);
    }
}

#[test]
fn a_model_has_the_limits_of_its_provider_and_window() {
    let (small, large) = (Some(200_000), Some(1_000_000));
    let of = |provider, model, window, api| {
        let MediaLimits { picture_bytes, pictures, all_pages, pdf_pages, pdf_bytes, .. } =
            *MediaLimits::of(provider, model, window, api);
        (picture_bytes, pictures, all_pages.or(pdf_pages), pdf_bytes)
    };
    let mb = |count: u64| Some(count << 20);
    let (ten_encoded, five_encoded) = (Some(7_864_320), Some(3_932_160));
    for (provider, model, window, api, expected) in [
        ("anthropic", "claude-opus-5", large, Api::Messages, (ten_encoded, Some(600), Some(600), None)),
        ("anthropic", "claude-haiku-4-5", small, Api::Messages, (ten_encoded, Some(100), Some(100), None)),
        ("anthropic", "claude-x", None, Api::Messages, (ten_encoded, Some(600), Some(600), None)),
        ("foundry", "claude-opus-5", large, Api::Messages, (ten_encoded, Some(600), Some(600), None)),
        ("vertex", "claude-haiku-4-5", small, Api::Messages, (five_encoded, Some(100), Some(100), None)),
        ("vertex", "gemini-3-pro-preview", large, Api::Gemini, (None, Some(3_000), Some(3_000), mb(50))),
        ("gemini", "gemini-3-pro-preview", large, Api::Gemini, (None, Some(3_600), Some(1_000), mb(50))),
        ("openai", "gpt-5", None, Api::Responses, (None, Some(1_500), None, mb(50))),
        ("openai-chat", "gpt-4o", None, Api::ChatCompletions, (None, Some(1_500), None, mb(50))),
        ("azure", "mine", None, Api::ChatCompletions, (None, Some(50), None, None)),
        ("mistral", "pixtral-large-latest", None, Api::ChatCompletions, (mb(10), Some(8), None, None)),
        (
            "bedrock",
            "us.anthropic.claude-opus-5",
            large,
            Api::Converse,
            (five_encoded, None, Some(600), None),
        ),
        (
            "bedrock",
            "anthropic.claude-3-haiku",
            small,
            Api::Converse,
            (five_encoded, None, None, Some(4_718_592)),
        ),
        ("bedrock", "amazon.nova-pro-v1:0", small, Api::Converse, (five_encoded, None, None, None)),
        ("house", "meta.llama4", small, Api::Converse, (five_encoded, None, None, Some(4_718_592))),
        ("house", "claude-opus-5", large, Api::Messages, (None, None, None, None)),
        ("xai", "grok-4", None, Api::ChatCompletions, (None, None, None, None)),
    ] {
        assert_eq!(of(provider, model, window, api), expected, "{provider}:{model}");
    }
}

#[test]
fn one_that_is_more_than_is_taken_is_named_with_the_limit_and_the_rest_is_not() {
    let limits = MediaLimits {
        picture_bytes: Some(2 * MB),
        picture_side: Some(8_000),
        pdf_bytes: Some(MB),
        document_bytes: Some(MB),
        all_pages: Some(100),
        ..MediaLimits::NONE
    };
    let mb = 1 << 20;
    let other = |kind: &str, bytes: usize| {
        let data = "AAAA".repeat(bytes.div_ceil(3));
        Media { media_type: kind.into(), url: format!("data:{kind};base64,{data}").into() }
    };
    let at = |kind: &str| Media { media_type: kind.into(), url: "https://example.org/a".into() };
    let long = [THREE_PAGES, &b"\n".repeat(mb)].concat();
    for (media, expected) in [
        (picture(8_000, 8_000, 2 * mb), ""),
        (picture(1, 1, 2 * mb + 1), "a picture can have at most 2 MB, and this one has 2.01 MB"),
        (
            picture(100, 8_001, 0),
            "a picture can have at most 8000 pixels on a side, and this one has 100 x 8001",
        ),
        (document(THREE_PAGES), ""),
        (document(&long), "a document can have at most 1 MB, and this one has 1.01 MB"),
        (document(HUNDRED_PAGES), ""),
        (document(&of_pages(101)), "a document can have at most 100 pages, and this one has 101"),
        // Its pages cannot be counted.
        (document(damaged()), ""),
        (other("text/csv", mb - 1), ""),
        (other("text/csv", mb + 3), "a document can have at most 1 MB, and this one has 1.01 MB"),
        (at("image/png"), ""),
        (at("application/pdf"), ""),
        (other("audio/wav", 4 * mb), ""),
    ] {
        assert_eq!(why(limits.excess(&media)), expected, "{}", media.media_type);
        assert_eq!(MediaLimits::NONE.excess(&media), None);
    }
}

#[test]
fn a_request_has_limits_on_all_of_them_together() {
    let limits = MediaLimits {
        pictures: Some(4),
        many_pictures: Some((2, 2_000)),
        all_document_bytes: Some(2 * MB),
        all_pages: Some(100),
        request_bytes: Some(3 * MB),
        ..MediaLimits::NONE
    };
    let (small, large) = (picture(2_000, 2_000, 0), picture(10, 2_001, 0));
    let heavy = document(&[THREE_PAGES, &b"\n".repeat(1 << 20)].concat());
    let sixty = document(&of_pages(60));
    for (all, expected) in [
        (vec![&small; 4], ""),
        (vec![&small; 5], "a request can have at most 4 pictures, and this one has 5"),
        (vec![&large; 2], ""),
        (
            vec![&small, &large, &small],
            "in a request with more than 2 pictures, each can have at most 2000 pixels on a side, and one has 10 x 2001",
        ),
        (vec![&heavy], ""),
        (
            vec![&heavy; 2],
            "the documents of a request can have at most 2 MB, and those of this one have 2.01 MB",
        ),
        (vec![&sixty], ""),
        (
            vec![&sixty; 2],
            "the documents of a request can have at most 100 pages, and those of this one have 120",
        ),
        (vec![&small, &sixty, &small], ""),
    ] {
        assert_eq!(why(limits.excess_of_all(all.iter().copied())), expected);
        assert_eq!(MediaLimits::NONE.excess_of_all(all.iter().copied()), None);
    }
    assert_eq!(limits.excess_of_body(3 << 20), None);
    let longer = limits.excess_of_body((3 << 20) + 1);
    assert_eq!(why(longer), "a request can have at most 3 MB, and this one has 3.01 MB");
    assert_eq!(MediaLimits::NONE.excess_of_body(usize::MAX), None);
}

#[test]
fn more_than_a_limit_never_looks_like_the_limit() {
    let all = [0, 1, 10 * MB, 10 * MB + 1, 7_864_320, 3_932_160, 4_718_592, 100 * MB];
    let shown = ["0 MB", "0.01 MB", "10 MB", "10.01 MB", "7.5 MB", "3.75 MB", "4.5 MB", "100 MB"];
    assert_eq!(all.map(megabytes), shown);
}
