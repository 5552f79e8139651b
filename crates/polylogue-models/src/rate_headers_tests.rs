use polylogue_http::{HeaderName, HeaderValue};

use super::*;

fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let header = |(name, value): &(&'static str, &'static str)| {
        (HeaderName::from_static(name), HeaderValue::from_static(value))
    };
    headers.iter().map(header).collect()
}

fn of(headers: &[(&'static str, &'static str)]) -> LearnedRates {
    rates(&map(headers))
}

fn brief(learned: Option<LearnedRate>) -> Option<(u64, u64, u64, Option<u64>)> {
    let LearnedRate { rate, remaining } = learned?;
    let burst = format!("{:.0}", rate.burst.floor()).parse().unwrap();
    Some((rate.count, rate.period.as_secs(), burst, remaining))
}

#[test]
fn rates_are_read_from_the_headers_of_providers() {
    let open_ai = of(&[
        ("x-ratelimit-limit-requests", "10000"),
        ("x-ratelimit-remaining-requests", "9999"),
        ("x-ratelimit-reset-requests", "6ms"),
        ("x-ratelimit-limit-tokens", "200000"),
        ("x-ratelimit-remaining-tokens", "150000"),
        ("x-ratelimit-reset-tokens", "15s"),
    ]);
    assert_eq!(brief(open_ai.requests), Some((10_000, 60, 1666, Some(9_999))));
    assert_eq!(brief(open_ai.tokens), Some((200_000, 60, 33_333, Some(150_000))));
    // Groq's limit on requests is per day, and that on tokens per minute.
    let groq = of(&[
        ("x-ratelimit-limit-requests", "14400"),
        ("x-ratelimit-remaining-requests", "14370"),
        ("x-ratelimit-reset-requests", "2m59.56s"),
        ("x-ratelimit-limit-tokens", "18000"),
        ("x-ratelimit-remaining-tokens", "17997"),
        ("x-ratelimit-reset-tokens", "7.66ms"),
    ]);
    assert_eq!(brief(groq.requests), Some((14_400, 86_400, 14_400, Some(14_370))));
    assert_eq!(brief(groq.tokens), Some((18_000, 60, 3000, Some(17_997))));
    let anthropic = of(&[
        ("anthropic-ratelimit-requests-limit", "50"),
        ("anthropic-ratelimit-requests-remaining", "49"),
        ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:01Z"),
        ("anthropic-ratelimit-input-tokens-limit", "30000"),
    ]);
    assert_eq!(brief(anthropic.requests), Some((50, 60, 8, Some(49))));
    assert_eq!(brief(anthropic.tokens), Some((30_000, 60, 5000, None)));
    let second = of(&[
        ("x-ratelimit-limit-requests", "10"),
        ("x-ratelimit-remaining-requests", "4"),
        ("x-ratelimit-reset-requests", "600ms"),
    ]);
    assert_eq!(brief(second.requests), Some((10, 1, 1, Some(4))));
}

#[test]
fn nonsense_in_headers_is_no_rate() {
    for value in ["", "0", "-1", "soon", "1e9", "99999999999999999999999"] {
        let rates = of(&[("x-ratelimit-limit-requests", value), ("x-ratelimit-reset-requests", value)]);
        assert_eq!(rates, LearnedRates::default(), "{value}");
    }
    for (text, milliseconds) in [
        ("1h2m3.5s", Some(3_723_500)),
        ("12ms", Some(12)),
        ("3", Some(3000)),
        ("1x", None),
        ("s", None),
        ("1é", None),
    ] {
        assert_eq!(duration(text).map(|time| time.as_millis()), milliseconds, "{text}");
    }
}

#[test]
fn retry_after_is_seconds_or_a_date() {
    let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
    let after = |header| retry_after(header, now);
    assert_eq!(after(" 20 "), Some(Duration::from_secs(20)));
    assert_eq!(after("1.5"), Some(Duration::from_millis(1500)));
    assert_eq!(after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
    assert_eq!(after("Sunday, 06-Nov-94 08:49:47 GMT"), Some(Duration::from_secs(10)));
    assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
    for nonsense in ["", "soon", "-1", "NaN", "1e400"] {
        assert_eq!(after(nonsense), None, "{nonsense}");
    }
}

/// The forms of OpenAI, Groq, Azure, Together, Cerebras, Mistral, OpenRouter and Anthropic.
#[test]
fn a_limit_that_is_used_up_is_waited_for_until_it_begins_again() {
    const NOW: (&str, &str) = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
    for (headers, milliseconds) in [
        (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1s")][..], 1_000),
        (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "20ms")], 20),
        (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")], 360_000),
        (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "26")], 26_000),
        (&[("x-tokenlimit-remaining", "0"), ("x-tokenlimit-reset", "2.5")], 2_500),
        (&[("ratelimitbysize-remaining", "0"), ("ratelimitbysize-reset", "12")], 12_000),
        (
            &[("x-ratelimit-remaining-requests-day", "0"), ("x-ratelimit-reset-requests-day", "33011.5")],
            33_011_500,
        ),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225630")], 30_000),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1767225630500")], 30_500),
        (
            &[
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:00:17Z"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:41+00:00"),
            ],
            17_000,
        ),
        // The one that is used up counts, not the longer one; of two, the later one.
        (
            &[
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-reset-requests", "2m59.56s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "7.66s"),
            ],
            7_660,
        ),
        (
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "9s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "7s"),
            ],
            9_000,
        ),
    ] {
        let mut headers = map(headers);
        headers.extend(map(&[NOW]));
        let wait = until_reset(&headers).map(|wait| wait.as_millis());
        assert_eq!(wait, Some(milliseconds), "{headers:?}");
    }
}

#[test]
fn limits_that_are_not_used_up_are_waited_for_if_that_makes_sense() {
    for (headers, milliseconds) in [
        // The tokens that are left may be too few. Those of a day are not.
        (
            &[
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-reset-requests", "2m59.56s"),
                ("x-ratelimit-remaining-tokens", "120"),
                ("x-ratelimit-reset-tokens", "41.5s"),
            ][..],
            Some(41_500),
        ),
        (&[("x-ratelimit-reset-requests", "3s"), ("x-ratelimit-reset-tokens", "5s")], Some(5_000)),
        // Nothing was used of it.
        (&[("x-ratelimit-remaining-requests", "9999"), ("x-ratelimit-reset-requests", "6ms")], None),
        // What has passed is no wait.
        (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "0s")], None),
        (&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000000001")], None),
        (
            &[
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2020-01-01T00:00:00Z"),
            ],
            None,
        ),
        (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "soon")], None),
        (&[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-limit-requests", "10")], None),
        (&[("x-password-reset", "9")], None),
        (&[], None),
    ] {
        let wait = until_reset(&map(headers)).map(|wait| wait.as_millis());
        assert_eq!(wait, milliseconds, "{headers:?}");
    }
}
