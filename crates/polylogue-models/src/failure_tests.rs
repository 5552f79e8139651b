use std::time::SystemTime;

use polylogue_core::Fault;

use super::*;

const KEY: &str = "sk-very-secret-key";

struct Case {
    redactor: Redactor,
    variables: Vec<String>,
}

impl Case {
    fn new() -> Self {
        Self { redactor: Redactor::new([KEY]).with_key_formats(), variables: vec!["OPENAI_API_KEY".into()] }
    }

    fn context(&self) -> ErrorContext<'_> {
        ErrorContext {
            model: "openai:m",
            api: Api::ChatCompletions,
            base_url: "http://127.0.0.1:1",
            has_key: true,
            key_variables: &self.variables,
            proxy: None,
            redactor: &self.redactor,
        }
    }

    fn refused(&self, status: u16, headers: &[(&'static str, &str)], body: &str) -> Failure {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        self.context().refused(&Refusal { status, headers: &headers, body: body.as_bytes(), is_cut: false })
    }
}

fn error_body(message: &str, code: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"{code}","code":"{code}"}}}}"#)
}

#[test]
fn a_refused_key_can_be_in_any_of_several_variables() {
    let case = Case { variables: vec!["A".into(), "B".into()], ..Case::new() };
    let hint = case.refused(401, &[], "").error.hint.unwrap();
    assert_eq!(hint, "check the key in `A` or `B`, and what it is allowed to do");
}

#[test]
fn an_address_that_a_provider_publishes_is_not_doubted() {
    let case = Case::new();
    let hint = |base_url: &str| {
        let failed = ErrorContext { base_url, ..case.context() }.unsent(SendError::Late, Timeouts::default());
        failed.error.hint.unwrap()
    };
    assert!(hint("https://api.openai.com/v1").starts_with("check this machine's connection to the internet"));
    let region = "https://bedrock-runtime.nowhere.amazonaws.com";
    assert!(hint(region).starts_with("check the region, such as `us-east-1` in `AWS_REGION`"));
    for own in ["https://api.openai.com/v2", "http://127.0.0.1:8000/v1"] {
        assert_eq!(hint(own), "check that the server runs and that the base URL is right");
    }
}

#[test]
fn the_address_of_a_hint_is_the_one_at_which_the_model_is() {
    let place = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu";
    let (case, google) = (Case::new(), format!("{place}/publishers/google"));
    for (model, expected) in [("vertex:gemini-3-pro", google.as_str()), ("vertex:claude-sonnet-5", place)] {
        let context = ErrorContext { model, api: Api::Gemini, base_url: &google, ..case.context() };
        assert_eq!(context.address_hint(), format!("check the model's name and the base URL `{expected}`"));
    }
}

#[test]
fn every_status_has_its_kind_its_fault_and_its_retry() {
    let again = RetryAdvice::Yes(None);
    for (status, code, kind, fault, expected, hint) in [
        (301, "", Kind::Config, Fault::Config, RetryAdvice::No, "correct it"),
        (400, "invalid_request_error", Kind::Config, Fault::Config, RetryAdvice::No, ""),
        (
            400,
            "context_length_exceeded",
            Kind::TooLong { tokens: None, limit: None },
            Fault::Config,
            RetryAdvice::No,
            "trim it",
        ),
        (
            401,
            "invalid_api_key",
            Kind::Config,
            Fault::Config,
            RetryAdvice::KeyRefused,
            "check the key in `OPENAI_API_KEY`",
        ),
        (402, "", Kind::QuotaExceeded, Fault::Provider, RetryAdvice::Spent, "credit"),
        (403, "", Kind::Config, Fault::Config, RetryAdvice::No, "`OPENAI_API_KEY`"),
        (404, "model_not_found", Kind::Config, Fault::Config, RetryAdvice::No, "usually ends in `/v1`"),
        (405, "", Kind::Config, Fault::Config, RetryAdvice::No, "usually ends in `/v1`"),
        (408, "", Kind::Unavailable, Fault::Provider, again, ""),
        (409, "", Kind::Unavailable, Fault::Provider, again, ""),
        (413, "", Kind::Config, Fault::Config, RetryAdvice::No, "too many bytes"),
        (413, "rate_limit_exceeded", Kind::Unavailable, Fault::Provider, again, "`per_minute`"),
        (422, "", Kind::Config, Fault::Config, RetryAdvice::No, ""),
        (429, "rate_limit_exceeded", Kind::Unavailable, Fault::Provider, again, "`per_minute`"),
        (429, "insufficient_quota", Kind::QuotaExceeded, Fault::Provider, RetryAdvice::Spent, "credit"),
        (498, "capacity_exceeded", Kind::Unavailable, Fault::Provider, again, ""),
        (499, "CANCELLED", Kind::Unavailable, Fault::Provider, again, ""),
        (500, "server_error", Kind::Unavailable, Fault::Provider, again, "try again later"),
        (503, "", Kind::Unavailable, Fault::Provider, again, "try again later"),
        (529, "overloaded_error", Kind::Unavailable, Fault::Provider, again, "try again later"),
    ] {
        let failure = Case::new().refused(status, &[], &error_body("what they say.", code));
        let error = failure.error;
        assert_eq!((error.kind, error.fault(), failure.again), (kind, fault, expected), "{status} {code}");
        assert_eq!(error.status, Some(status));
        assert!(error.body.as_ref().unwrap().contains("what they say"), "{status}");
        assert!(status < 400 || error.message.ends_with("what they say"), "{error}");
        assert!(error.hint.unwrap_or_default().contains(hint), "{status} {code}");
    }
}

/// Pages of proxies and of servers that are something else. One with the status of a refused key may be about the key.
#[test]
fn a_page_is_no_error_of_the_provider() {
    let page = "<html>\r\n<head><title>400 The plain HTTP request was sent to HTTPS port</title></head>";
    for (status, hint) in [
        (400, "that is a web page: check the model's name and the base URL"),
        (403, "check the key"),
        (404, "check the model's name"),
        (405, "check the model's name"),
        (413, "too many bytes"),
        (418, "that is a web page"),
        (502, "try again later"),
    ] {
        let error = Case::new().refused(status, &[], page).error;
        assert!(error.hint.as_ref().unwrap().contains(hint), "{status}: {error:?}");
        assert!(!error.message.contains('<'), "{error}");
    }
}

/// OpenRouter's limits: that on requests in flight passes, that of an account does not.
#[test]
fn what_may_be_spent_is_waited_for_only_if_it_is_in_flight() {
    let body = |status: u16, metadata: &str| {
        format!(r#"{{"error":{{"code":{status},"message":"It is reached.","metadata":{{{metadata}}}}}}}"#)
    };
    let wait = Some(Duration::from_secs(3));
    let in_flight = r#""reason":"in_flight_budget","limit_source":"openrouter_key_limit""#;
    let budget = |name: &str| format!(r#""limit_source":"openrouter_{name}","resets_at":"2026-08-01""#);
    for (status, metadata, headers, again, hint) in [
        (402, in_flight, &[("retry-after", "3")][..], RetryAdvice::Yes(wait), "`in_flight`"),
        (402, in_flight, &[], RetryAdvice::Yes(None), "`in_flight`"),
        (402, "", &[("retry-after", "3")], RetryAdvice::Yes(wait), "`in_flight`"),
        (402, r#""reason":"weight_exceeds_budget""#, &[], RetryAdvice::Spent, "billing page"),
        (402, r#""limit_source":"openrouter_credits""#, &[], RetryAdvice::Spent, "billing page"),
        (403, &budget("key_limit"), &[], RetryAdvice::Spent, "billing page; it begins again at 2026-08-01"),
        (403, &budget("guardrail_budget"), &[], RetryAdvice::Spent, "it begins again at 2026-08-01"),
        (403, &budget("workspace_budget"), &[], RetryAdvice::Spent, "it begins again at 2026-08-01"),
    ] {
        let (case, body) = (Case::new(), body(status, metadata));
        let refused = case.refused(status, headers, &body);
        let inside = case.context().flawed(DecodeError::Error(body.clone()), 200);
        let kind = if again == RetryAdvice::Spent { Kind::QuotaExceeded } else { Kind::Unavailable };
        assert_eq!((refused.error.kind, refused.again), (kind, again), "{body}");
        assert!(refused.error.hint.unwrap().contains(hint), "{body}");
        // Without headers, it is the body that counts.
        if headers.is_empty() {
            assert_eq!((inside.error.kind, inside.again), (kind, again), "{body}");
        }
    }
}

/// Filters of Azure, OpenAI, Qwen and OpenRouter, as status and inside of a reply. Prompts that are invalid for another reason are mistakes.
#[test]
fn a_prompt_that_a_filter_refused_is_filtered() {
    let flagged = "Invalid prompt: your prompt was flagged as potentially violating our usage policy.";
    for (status, message, code, kind) in [
        (400, "It was filtered.", "content_filter", Kind::ContentFiltered),
        (400, "It was filtered.", "ResponsibleAIPolicyViolation", Kind::ContentFiltered),
        (400, "Your request was rejected.", "content_policy_violation", Kind::ContentFiltered),
        (400, flagged, "invalid_prompt", Kind::ContentFiltered),
        (400, "Invalid prompt: it has no text.", "invalid_prompt", Kind::Config),
        (
            400,
            "Input data may contain inappropriate content.",
            "data_inspection_failed",
            Kind::ContentFiltered,
        ),
        (400, "<400> InternalError.Algo.DataInspectionFailed: Input text data.", "", Kind::ContentFiltered),
        (403, "The model requires moderation. Your input was flagged for x.", "", Kind::ContentFiltered),
        (403, "The key may not be used.", "", Kind::Config),
    ] {
        let (case, body) = (Case::new(), error_body(message, code));
        let failure = case.refused(status, &[], &body);
        assert_eq!((failure.error.kind, failure.again), (kind, RetryAdvice::No), "{message}");
        assert_eq!(
            failure.error.hint.as_deref() == Some(FILTERED),
            kind == Kind::ContentFiltered,
            "{message}"
        );
        if !code.is_empty() && code.contains('_') {
            let inside = case.context().flawed(DecodeError::Error(body), 200);
            assert_eq!((inside.error.kind, inside.again), (kind, RetryAdvice::No), "{message}");
        }
    }
}

#[test]
fn what_the_provider_says_is_found_in_every_form() {
    for (body, expected) in [
        (r#"{"error":{"message":"a"}}"#, "a"),
        (r#"{"error":"a"}"#, "a"),
        (r#"{"message":"a","error":null}"#, "a"),
        (r#"{"detail":"a"}"#, "a"),
        (r#"{"detail":[{"msg":"a"}]}"#, r#"[{"msg":"a"}]"#),
        (r#"[{"error":{"code":400,"message":"a"}}]"#, "a"),
        ("\na.\nmore", "a"),
        ("<html>\n<b>x</b>", "Bad Request"),
        ("", "Bad Request"),
    ] {
        let error = Case::new().refused(400, &[], body).error;
        assert_eq!(error.to_string(), format!("openai:m: the provider answered with status 400: {expected}"));
    }
}

#[test]
fn keys_of_others_that_the_server_quotes_are_not_shown() {
    let case = Case::new();
    for body in [
        error_body("bad key sk-0123456789abcdefsecret", ""),
        error_body(r"bad key\nsk-0123456789abcdefsecret", ""),
        "bad key sk-0123456789abcdefsecret".to_owned(),
    ] {
        let error = case.refused(401, &[], &body).error;
        assert!(error.message.contains("bad key") && error.message.contains("[key]"), "{error:?}");
        assert!(error.body.as_ref().unwrap().contains("[key]"), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
        let inside = case.context().flawed(DecodeError::Error(body), 200).error;
        assert!(!format!("{inside:?}").contains("secret"), "{inside:?}");
    }
}

#[test]
fn a_key_is_never_shown_even_if_the_server_repeats_it() {
    for body in [
        error_body(&format!("wrong key {KEY}"), KEY),
        format!("wrong key {KEY}"),
        format!("{}{KEY}", "x".repeat(2040)),
        // A message is shortened within the key.
        format!("{}{KEY}", "x".repeat(484)),
        error_body(&format!("{}{KEY}", "x".repeat(484)), "x"),
    ] {
        for headers in [&[][..], &[("location", "http://x/sk-very-secret-key?key=sk-very-secret-key")]] {
            for status in [302, 400, 401, 404, 429, 500] {
                let case = Case::new();
                let error = case.refused(status, headers, &body).error;
                assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
                assert!(error.body.unwrap().len() <= BODY_KEPT);
                let inside = case.context().flawed(DecodeError::Error(body.clone()), 200).error;
                assert!(!format!("{inside:?}").contains("secret"), "{inside:?}");
                let begun: String = body.chars().take(EXCERPT).collect();
                for excerpt in [format!("<p>{body}"), begun] {
                    let flaw = DecodeError::Unreadable { why: body.clone(), excerpt };
                    let unread = case.context().flawed(flaw, 200).error;
                    assert!(!format!("{unread:?}").contains("secret"), "{unread:?}");
                }
            }
        }
    }
}

#[test]
fn waits_that_are_asked_for_are_read_from_the_headers() {
    let case = Case::new();
    let again = |headers: &[(&'static str, &str)]| case.refused(429, headers, "").again;
    assert_eq!(again(&[("retry-after", "7")]), RetryAdvice::Yes(Some(Duration::from_secs(7))));
    assert_eq!(
        again(&[("retry-after", "7"), ("retry-after-ms", "250")]),
        RetryAdvice::Yes(Some(Duration::from_millis(250)))
    );
    assert_eq!(again(&[("retry-after-ms", "250.0")]), RetryAdvice::Yes(Some(Duration::from_millis(250))));
    assert_eq!(again(&[("retry-after", "soon")]), RetryAdvice::Yes(None));
    assert_eq!(again(&[("retry-after", "7"), ("x-should-retry", "false")]), RetryAdvice::No);
    // A date is by the clock of the server that names it, however wrong that is.
    let dates = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT")];
    assert_eq!(again(&dates), RetryAdvice::Yes(Some(Duration::from_secs(20))));
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(30));
    let RetryAdvice::Yes(Some(wait)) = again(&[("retry-after", &soon)]) else { panic!("a date is a time") };
    assert!((20..=30).contains(&wait.as_secs()), "{wait:?}");
}

/// Headers of limits tell how long a rate limit lasts, and nothing else: they are sent with every response.
#[test]
fn the_end_of_a_limit_is_waited_for_if_no_wait_is_asked_for() {
    let limit = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
    let again = |status: u16, more: &[(&'static str, &str)], message: &str, code: &str| {
        let headers: Vec<_> = limit.iter().chain(more).copied().collect();
        Case::new().refused(status, &headers, &error_body(message, code)).again
    };
    let after = |seconds| RetryAdvice::Yes(Some(Duration::from_secs(seconds)));
    assert_eq!(again(429, &[], "too many", ""), after(360));
    assert_eq!(again(413, &[], "too many", "rate_limit_exceeded"), after(360));
    assert_eq!(again(429, &[("retry-after", "7")], "too many", ""), after(7));
    assert_eq!(again(429, &[], "Please try again in 3s.", ""), after(3));
    assert_eq!(again(429, &[("x-should-retry", "false")], "too many", ""), RetryAdvice::No);
    assert_eq!(again(429, &[], "no credit", "insufficient_quota"), RetryAdvice::Spent);
    assert_eq!(again(402, &[], "no credit", ""), RetryAdvice::Spent);
    assert_eq!(again(503, &[], "busy", ""), RetryAdvice::Yes(None));
}

/// A wait in words counts where no header has one, and makes nothing retried that is not.
#[test]
fn waits_that_are_asked_for_are_read_in_words() {
    let text = "Rate limit reached. Please try again in 1.5s.";
    let again = |status: u16, headers: &[(&'static str, &str)]| {
        Case::new().refused(status, headers, &error_body(text, "")).again
    };
    let said = RetryAdvice::Yes(Some(Duration::from_millis(1_500)));
    assert_eq!((again(429, &[]), again(503, &[])), (said, said));
    assert_eq!(again(429, &[("retry-after", "7")]), RetryAdvice::Yes(Some(Duration::from_secs(7))));
    assert_eq!((again(400, &[]), again(402, &[])), (RetryAdvice::No, RetryAdvice::Spent));
    let inside = Case::new().context().flawed(DecodeError::Error(error_body(text, "rate_limit")), 200);
    assert_eq!(inside.again, said);
}

#[test]
fn a_rate_limit_that_is_called_a_quota_is_recognized_by_its_retry_after() {
    let message = "You exceeded your current quota, please check your plan and billing details.";
    let google = format!(
        r#"[{{"error":{{"code":429,"message":"{message}","status":"RESOURCE_EXHAUSTED","details":
            [{{"@type":"x"}},{{"retryDelay":"17.5s"}}]}}}}]"#
    );
    let case = Case::new();
    assert_eq!(case.refused(429, &[], &google).again, RetryAdvice::Yes(Some(Duration::from_millis(17_500))));
    assert_eq!(
        case.refused(429, &[], &error_body(message, "RESOURCE_EXHAUSTED")).again,
        RetryAdvice::Yes(None)
    );
    assert_eq!(case.refused(429, &[], &error_body(message, "x")).again, RetryAdvice::Spent);
    let asked = case.refused(429, &[("retry-after", "2")], &error_body(message, "x")).again;
    assert_eq!(asked, RetryAdvice::Yes(Some(Duration::from_secs(2))));
}

#[test]
fn a_limit_on_spending_is_not_waited_for_whatever_its_status_is() {
    let detailed = |code: &str| {
        format!(
            r#"{{"error":{{"type":"rate_limit_error","message":"m","details":{{"error_code":"{code}"}}}}}}"#
        )
    };
    let again = |status, body: &str| Case::new().refused(status, &[], body).again;
    for (status, code) in [(429, "enforced_spend_limit_reached"), (403, "contract_spend_limit_reached")] {
        assert_eq!(again(status, &detailed(code)), RetryAdvice::Spent);
    }
    assert_eq!(again(429, &detailed("ramp_limit_exceeded")), RetryAdvice::Yes(None));
    let low = error_body("Your credit balance is too low to access the API", "invalid_request_error");
    assert_eq!(again(400, &low), RetryAdvice::Spent);
}

#[test]
fn errors_inside_a_stream_count_as_the_status_they_stand_for() {
    for (json, status, again) in [
        (error_body("a", "rate_limit_exceeded"), 429, RetryAdvice::Yes(None)),
        (error_body("a", "insufficient_quota"), 429, RetryAdvice::Spent),
        (error_body("a", "server_error"), 500, RetryAdvice::Yes(None)),
        (error_body("a", "502"), 502, RetryAdvice::Yes(None)),
        (error_body("a", "invalid_request_error"), 400, RetryAdvice::No),
        (r#"{"error":{"message":"a","code":503}}"#.to_owned(), 503, RetryAdvice::Yes(None)),
        (error_body("a", "overloaded_error"), 529, RetryAdvice::Yes(None)),
        (error_body("a", "odd"), 200, RetryAdvice::No),
        (r#"{"error":"a"}"#.to_owned(), 200, RetryAdvice::No),
    ] {
        let failure = Case::new().context().flawed(DecodeError::Error(json.clone()), 200);
        assert_eq!((failure.error.status, failure.again), (Some(status), again), "{json}");
        assert!(failure.error.message.ends_with(": a") && failure.error.body == Some(json));
    }
}

#[test]
fn an_error_after_a_piece_of_a_reply_may_be_billed() {
    for (code, ended) in [
        ("overloaded_error", FailedAttempt::Refused),
        ("rate_limit_exceeded", FailedAttempt::Refused),
        ("modelStreamErrorException", FailedAttempt::Refused),
        ("server_error", FailedAttempt::Broken),
    ] {
        let (case, json) = (Case::new(), error_body("a", code));
        let before = case.context().flawed(DecodeError::Error(json.clone()), 200);
        let after = case.context().flawed(DecodeError::BrokenOff(json), 200);
        assert_eq!((before.ended, after.ended), (ended, FailedAttempt::Broken), "{code}");
        assert_eq!((before.error, before.again), (after.error, after.again), "{code}");
    }
}

#[test]
fn answers_that_are_no_replies_say_what_to_check() {
    let case = Case::new();
    let page = DecodeError::Unreadable { why: "it is not JSON".into(), excerpt: "<html>".into() };
    let error = case.context().flawed(page, 200).error;
    assert_eq!(error.kind, Kind::InvalidReply);
    assert!(error.hint.unwrap().contains("that is a web page: check the model's name and the base URL"));
    let text = DecodeError::Unreadable { why: "it is not JSON".into(), excerpt: "Wrong\n door!".into() };
    let error = case.context().flawed(text, 200).error;
    assert_eq!(error.message, "the reply cannot be read: it is not JSON: `Wrong  door!`");
    assert!(error.hint.unwrap().contains("set `api` of its endpoint"));
    let long = DecodeError::Unreadable { why: "it is odd".into(), excerpt: "é".repeat(EXCERPT) };
    let error = case.context().flawed(long, 200).error;
    assert_eq!(error.message, format!("the reply cannot be read: it is odd: `{}…`", "é".repeat(100)));
    let error = case.context().flawed(DecodeError::Empty, 200).error;
    assert!(error.hint.unwrap().contains("it usually ends in `/v1`"));
    let failure = case.context().flawed(DecodeError::Cut, 200);
    assert_eq!((failure.error.kind, failure.again), (Kind::Connection, RetryAdvice::Yes(None)));
}

#[test]
fn giving_up_says_why() {
    let say = |why| {
        let error =
            ErrorContext::give_up(ModelError::new(Kind::Unavailable, "m", "it broke").hint("wait"), &why);
        (error.message, error.hint.unwrap())
    };
    let seconds = Duration::from_secs;
    assert_eq!(say(RetryStop::Attempts(1)), ("it broke".into(), "wait".into()));
    assert_eq!(say(RetryStop::Attempts(5)).0, "it broke (tried 5 times)");
    assert_eq!(say(RetryStop::Time(seconds(300))).0, "it broke (tried for as long as 300s allow)");
    let (message, hint) = say(RetryStop::Wait { asked: seconds(90), allowed: seconds(60) });
    assert_eq!(message, "it broke; it asks to wait 90s, but at most 60s are allowed");
    assert!(hint.contains("`max_wait` of its endpoint"));
}

#[test]
fn a_missing_key_names_where_it_is_looked_for() {
    let case = Case::new();
    let error = ErrorContext { has_key: false, ..case.context() }.no_key();
    assert_eq!(
        error.hint.clone().unwrap(),
        "no key was sent; set `OPENAI_API_KEY` in the environment or in `.env`"
    );
    assert_eq!(error.fault(), Fault::Config);
}

/// OpenRouter quotes the error of the provider behind it, as a text or as JSON: its cause counts.
#[test]
fn a_quoted_error_counts_as_that_of_the_provider_that_made_it() {
    let quoted = |status: u16, raw: serde_json::Value| {
        let metadata = serde_json::json!({"provider_name": "Some", "raw": raw});
        let error =
            serde_json::json!({"message": "Provider returned error", "code": status, "metadata": metadata});
        Case::new().refused(status, &[], &serde_json::json!({"error": error}).to_string()).error
    };
    let text =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
    for raw in [
        serde_json::json!({"error": {"message": text}}).to_string().into(),
        serde_json::json!({"error": {"message": text}}),
    ] {
        let error = quoted(400, raw);
        assert_eq!(error.kind, Kind::TooLong { tokens: Some(9001), limit: Some(8192) }, "{error}");
    }
    let error = quoted(429, "the model is temporarily rate-limited upstream".into());
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("rate-limited upstream"), "{error}");
    let error = quoted(400, serde_json::Value::Null);
    assert!(error.message.contains("Provider returned error") && !error.message.contains("null"), "{error}");
}

/// What a hint advises against is in the message: whether a request has tools is not known here.
#[test]
fn hints_of_wrong_requests_are_about_what_the_message_names() {
    for (message, hint) in [
        (
            "Invalid schema for response_format 'reply': 'a' is not permitted",
            Some("JSON Schema of the reply"),
        ),
        ("Invalid schema for function 't': 'a' is not permitted", Some("leave the tool out")),
        ("tools.0.custom.input_schema.type: Field required", Some("leave the tool out")),
        ("Conversation roles must alternate user/assistant", Some("roles to alternate")),
        ("`tool_use` ids were found without `tool_result` blocks", None),
        ("response_format is odd", None),
        ("n is above 1; alternatively, send several requests", None),
    ] {
        let error = Case::new().refused(400, &[], &error_body(message, "invalid_request_error")).error;
        assert_eq!(error.hint.is_some(), hint.is_some(), "{message}: {:?}", error.hint);
        assert!(error.hint.unwrap_or_default().contains(hint.unwrap_or_default()), "{message}");
    }
}
