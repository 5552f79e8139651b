//! The address of Vertex AI: it has the region, the project and the publisher of the models.

use polylogue_http::Env;
use url::Url;

use super::credentials::GoogleCredentials;

/// Variables with the project, and with the region; the first that is set counts.
const PROJECT: [&str; 2] = ["GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT"];
const LOCATION: [&str; 3] = ["GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION", "GOOGLE_CLOUD_REGION"];

/// Why there is no address: the message, and the hint.
pub(crate) type NoAddress = (String, String);

/// Whether `env` names a project or a region.
pub(crate) fn names_place(env: &Env) -> bool {
    set(env, &PROJECT).or_else(|| set(env, &LOCATION)).is_some()
}

/// The base URL of Vertex AI for the project and the region of `env`, and its credentials. `at` replaces Google's
/// host, or is the whole base URL if it names a publisher.
pub(crate) fn locate(
    env: &Env,
    at: Option<String>,
) -> Result<(String, Option<GoogleCredentials>), NoAddress> {
    let hint = "set `GOOGLE_APPLICATION_CREDENTIALS` to the file of a service account, or unset it and run `gcloud auth application-default login`";
    let unusable = |why| (why, hint.to_owned());
    let credentials = GoogleCredentials::of_env(env).map_err(unusable)?;
    Ok((address(env, at, credentials.as_ref())?, credentials))
}

/// The same, without the credentials, which can name the project.
pub(crate) fn address(
    env: &Env,
    at: Option<String>,
    credentials: Option<&GoogleCredentials>,
) -> Result<String, NoAddress> {
    if let Some(whole) = at.as_ref().filter(|at| at.contains("/publishers/")) {
        return Ok(whole.clone());
    }
    let of_file = || credentials.and_then(GoogleCredentials::project).map(str::to_owned);
    let project = set(env, &PROJECT).or_else(of_file);
    let either = format!("`GOOGLE_CLOUD_PROJECT` to the id of the project, or `{API_KEY}` to an API key");
    let project = named("project", project, &either)?;
    let location = set(env, &LOCATION);
    let location = named(
        "region",
        location,
        "`GOOGLE_CLOUD_LOCATION` to a region such as `europe-west4`, or to `global`",
    )?;
    let host = at.unwrap_or_else(|| host(&location));
    let place = format!("projects/{project}/locations/{location}/");
    Ok(of_publisher(&host, &place))
}

/// The variable with an API key of Vertex AI, as the AI SDK of Vercel names it.
pub(crate) const API_KEY: &str = "GOOGLE_VERTEX_API_KEY";

/// The base URL of Vertex AI for requests with an API key, which has neither project nor region. `at` as in [`locate`].
pub(crate) fn express(at: Option<String>) -> String {
    match at {
        Some(whole) if whole.contains("/publishers/") => whole,
        at => of_publisher(&at.unwrap_or_else(|| host("global")), ""),
    }
}

fn of_publisher(host: &str, place: &str) -> String {
    let host = host.trim_end_matches('/').trim_end_matches("/v1");
    format!("{host}/v1/{place}publishers/google")
}

fn set(env: &Env, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| env.get(name)).map(|value| value.trim().to_owned())
}

/// `value` if it can be part of an address.
fn named(what: &str, value: Option<String>, set: &str) -> Result<String, NoAddress> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    match value {
        None => Err((format!("the provider `vertex` has no {what}"), format!("set {set}"))),
        Some(value) if value.chars().all(is_legal) => Ok(value),
        Some(value) => Err((format!("`{value}` is no {what} of Google's cloud"), format!("set {set}"))),
    }
}

fn host(location: &str) -> String {
    match location {
        "global" => "https://aiplatform.googleapis.com".to_owned(),
        "us" | "eu" => format!("https://aiplatform.{location}.rep.googleapis.com"),
        region => format!("https://{region}-aiplatform.googleapis.com"),
    }
}

/// The publisher in the address of Google's own models, and that of Claude.
const PUBLISHERS: [&str; 2] = ["/publishers/google", "/publishers/anthropic"];

/// Whether `model` at Vertex AI is a model of Anthropic, which has Anthropic's API there.
pub(crate) fn is_claude(model: &str) -> bool {
    model.starts_with("claude")
}

/// The address of requests to a model of Anthropic, percent-encoded, next to the `base` of Google's models.
pub(crate) fn claude_url(base: &Url, model: &str, stream: bool) -> Url {
    let [google, anthropic] = PUBLISHERS;
    let path = base.path().trim_end_matches('/');
    let method = if stream { "streamRawPredict" } else { "rawPredict" };
    let mut url = base.clone();
    url.set_path(&format!("{}/models/{model}:{method}", path.replacen(google, anthropic, 1)));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_has_another_publisher() {
        let base =
            Url::parse("https://x.googleapis.com/v1/projects/p/locations/eu/publishers/google").unwrap();
        let expected = "https://x.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic/models/";
        let url = |model, stream| claude_url(&base, model, stream).to_string();
        assert_eq!(
            url("claude-sonnet-5@default", false),
            format!("{expected}claude-sonnet-5@default:rawPredict")
        );
        assert_eq!(url("claude-sonnet-5", true), format!("{expected}claude-sonnet-5:streamRawPredict"));
        assert!(is_claude("claude-3-haiku") && !is_claude("gemini-3-pro"));
    }

    /// P67: the address for `global`, for a multi-region and for a region.
    #[test]
    fn the_address_has_region_project_and_publisher() {
        let address = |location: &str, at: Option<&str>| {
            let env = Env::of([("GOOGLE_CLOUD_PROJECT", "acme"), ("GOOGLE_CLOUD_LOCATION", location)]);
            locate(&env, at.map(str::to_owned)).map(|(address, _)| address)
        };
        for (location, host) in [
            ("global", "https://aiplatform.googleapis.com"),
            ("eu", "https://aiplatform.eu.rep.googleapis.com"),
            ("europe-west4", "https://europe-west4-aiplatform.googleapis.com"),
        ] {
            let expected = format!("{host}/v1/projects/acme/locations/{location}/publishers/google");
            assert_eq!(address(location, None), Ok(expected));
        }
        let expected = "http://127.0.0.1:9/v1/projects/acme/locations/eu/publishers/google".to_owned();
        assert_eq!(address("eu", Some("http://127.0.0.1:9/v1/")), Ok(expected));
        let whole = "http://127.0.0.1:9/v1/projects/p/locations/l/publishers/mine";
        assert_eq!(address("eu", Some(whole)), Ok(whole.to_owned()));
        assert!(address("eu/../x", None).unwrap_err().0.contains("no region"));
        assert_eq!(express(None), "https://aiplatform.googleapis.com/v1/publishers/google");
        assert_eq!(express(Some(whole.to_owned())), whole);
    }

    #[test]
    fn a_missing_project_or_region_says_what_to_set() {
        let missing = |name, value| locate(&Env::of([(name, value)]), None).unwrap_err();
        let (message, hint) = missing("GOOGLE_CLOUD_LOCATION", "eu");
        assert_eq!(message, "the provider `vertex` has no project");
        assert!(hint.contains("`GOOGLE_CLOUD_PROJECT`"));
        let (message, hint) = missing("GOOGLE_CLOUD_PROJECT", "acme");
        assert_eq!(message, "the provider `vertex` has no region");
        assert!(hint.contains("`GOOGLE_CLOUD_LOCATION`"));
    }
}
