//! What the headers of a response tell of a provider's rate limits.

use std::time::Duration;

use polylogue_core::{LearnedRate, LearnedRates, Rate};
use polylogue_http::HeaderMap;

const MINUTE: Duration = Duration::from_secs(60);

/// The rates that `headers` tell: those of OpenAI's API, which others have taken over, or Anthropic's.
///
/// <https://platform.openai.com/docs/guides/rate-limits>, <https://docs.anthropic.com/en/api/rate-limits>
pub(crate) fn rates(headers: &HeaderMap) -> LearnedRates {
    let number = |name: String| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
    let text = |name: String| headers.get(name).and_then(|value| value.to_str().ok());
    let open_ai = |what: &str| {
        let limit = number(format!("x-ratelimit-limit-{what}"))?;
        let remaining = number(format!("x-ratelimit-remaining-{what}"));
        let reset = text(format!("x-ratelimit-reset-{what}")).and_then(duration);
        Some((limit, remaining, period(limit, remaining, reset)))
    };
    // All of its limits are per minute.
    let anthropic = |what: &str| {
        let limit = number(format!("anthropic-ratelimit-{what}-limit"))?;
        Some((limit, number(format!("anthropic-ratelimit-{what}-remaining")), MINUTE))
    };
    let tokens = open_ai("tokens").or_else(|| anthropic("tokens")).or_else(|| anthropic("input-tokens"));
    LearnedRates {
        requests: open_ai("requests").or_else(|| anthropic("requests")).and_then(learned),
        tokens: tokens.and_then(learned),
    }
}

fn learned((count, remaining, period): (u64, Option<u64>, Duration)) -> Option<LearnedRate> {
    let rate = Rate { count, period, burst: burst(count, period) };
    (count > 0).then_some(LearnedRate { rate, remaining })
}

/// How many calls at once a provider accepts that allows `count` in a period. Some count in shorter periods than they say; a limit
/// per day is next to one per minute that is not shown.
#[expect(clippy::cast_precision_loss, reason = "no limit needs 52 bits")]
fn burst(count: u64, period: Duration) -> f64 {
    if period > MINUTE { count as f64 } else { (count as f64 / 6.0).max(1.0) }
}

/// The period of a limit: how long it takes to have all of it again, if all is used. A reset is the time until the rest of it
/// is filled up.
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn period(limit: u64, remaining: Option<u64>, reset: Option<Duration>) -> Duration {
    let used = remaining.map(|remaining| limit.saturating_sub(remaining)).filter(|used| *used > 0);
    let Some((used, reset)) = used.zip(reset.filter(|reset| !reset.is_zero())) else { return MINUTE };
    // Rounded times of few requests are far off: only what no rounding explains is not a minute.
    match reset.as_secs_f64() * limit as f64 / used as f64 {
        ..8.0 => Duration::from_secs(1),
        8.0..7200.0 => MINUTE,
        _ => Duration::from_secs(86_400),
    }
}

/// A duration as `1s`, `6m0s`, `12ms`, or a number of seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at_checked(digits)?;
        let letters = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(letters)?;
        let seconds = match unit {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            "us" | "µs" => 0.000_001,
            "ns" => 0.000_000_001,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * seconds;
        rest = after;
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use polylogue_http::{HeaderName, HeaderValue};

    use super::*;

    fn of(headers: &[(&'static str, &'static str)]) -> LearnedRates {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        rates(&headers.iter().map(header).collect())
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
}
