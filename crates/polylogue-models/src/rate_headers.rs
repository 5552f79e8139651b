//! What the headers of a response tell of a provider's rate limits.

use std::time::{Duration, SystemTime};

use chrono::DateTime;
use polylogue_core::{LearnedRate, LearnedRates, Rate};
use polylogue_http::HeaderMap;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The rates that `headers` tell: those of OpenAI's API, which others have taken over, or Anthropic's.
///
/// <https://platform.openai.com/docs/guides/rate-limits>, <https://docs.anthropic.com/en/api/rate-limits>
pub(crate) fn rates(headers: &HeaderMap) -> LearnedRates {
    let number = |name: String| text(headers, &name)?.trim().parse::<u64>().ok();
    let open_ai = |what: &str| {
        let limit = number(format!("x-ratelimit-limit-{what}"))?;
        let remaining = number(format!("x-ratelimit-remaining-{what}"));
        let reset = text(headers, &format!("x-ratelimit-reset-{what}")).and_then(duration);
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

/// The wait that a response asks for: `retry-after-ms`, or `retry-after`.
pub(crate) fn asked(headers: &HeaderMap) -> Option<Duration> {
    let milliseconds = text(headers, "retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok());
    milliseconds
        .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1_000.0).ok())
        .or_else(|| text(headers, "retry-after").and_then(|value| retry_after(value, sent_at(headers))))
}

/// Parses a `Retry-After` header: seconds, or a date. A date in the past is no wait.
fn retry_after(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(header).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// How long to wait after a response that met a rate limit and asks for no wait: until the limit that is used up begins again.
/// If none is, or the headers do not tell, the longest time from a second to a minute: longer ones are of limits per day, of which
/// some is left, and shorter ones are of limits of which nearly all is left.
///
/// Every header counts whose name is like `x-ratelimit-reset-requests` (OpenAI, Groq, Azure), `x-ratelimit-reset-tokens-minute`
/// (Cerebras), `x-ratelimit-reset` (Together, OpenRouter), `x-tokenlimit-reset` (Together), `ratelimitbysize-reset` (Mistral) or
/// `anthropic-ratelimit-input-tokens-reset`; what is left of its limit is in the header with `remaining` in its name.
pub(crate) fn until_reset(headers: &HeaderMap) -> Option<Duration> {
    let now = sent_at(headers);
    let limits = headers.iter().filter(|(name, _)| name.as_str().contains("limit"));
    let waits = limits.filter_map(|(name, value)| {
        let name = name.as_str();
        let wait = name.contains("reset").then(|| time_until(value.to_str().ok()?, now)).flatten()?;
        let remaining = text(headers, &name.replacen("reset", "remaining", 1));
        let is_used_up =
            remaining.and_then(|left| left.trim().parse::<f64>().ok()).is_some_and(|left| left <= 0.0);
        let counts = if is_used_up { !wait.is_zero() } else { (SECOND..=MINUTE).contains(&wait) };
        // A limit that is used up comes before all others.
        counts.then_some((is_used_up, wait))
    });
    waits.max().map(|(_, wait)| wait)
}

/// When the server responded, by its own clock, which its times are relative to. Without a `Date`, by ours.
fn sent_at(headers: &HeaderMap) -> SystemTime {
    let date = text(headers, "date").and_then(|date| httpdate::parse_http_date(date.trim()).ok());
    date.unwrap_or_else(SystemTime::now)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// From so many seconds on, a number is a time since 1970: no limit lasts for thirty years.
const SINCE_1970: u64 = 1_000_000_000;
/// From so many on, it is one in milliseconds.
const IN_MILLISECONDS: u64 = 100_000_000_000;

/// The time from `now` until that of a header: a duration, a time by RFC 3339, or one since 1970. A time in the past is no wait.
fn time_until(text: &str, now: SystemTime) -> Option<Duration> {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let Some(time) = duration(text) else {
        let time = DateTime::parse_from_rfc3339(text.trim()).ok()?.timestamp_millis();
        return Some(Duration::from_millis(time.try_into().ok()?).saturating_sub(since));
    };
    Some(match time.as_secs() {
        ..SINCE_1970 => time,
        SINCE_1970..IN_MILLISECONDS => time.saturating_sub(since),
        milliseconds => Duration::from_millis(milliseconds).saturating_sub(since),
    })
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
#[path = "rate_headers_tests.rs"]
mod tests;
