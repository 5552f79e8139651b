//! Models at Azure: their addresses, and who is authorized by Microsoft Entra.

mod entra;

use polylogue_http::HeaderName;
use url::Url;

pub use entra::AzureCredentials;
pub(crate) use entra::{Application, EntraSource, TOKEN_FILES, read_token};

/// The header with the key of a resource.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("api-key");

/// The base URL of the resource at `address`: that of its v1 API, whatever of it is in `address`.
pub(crate) fn base(address: &str) -> String {
    let address = address.trim();
    let resource = address.split_once("/openai").map_or(address, |(resource, _)| resource);
    format!("{}/openai/v1", resource.trim_end_matches('/'))
}

/// The URL of `target` by a version of the API that is named by its date, such as `2024-10-21`, which has some targets below
/// a `deployment`. Other versions, such as `preview`, are versions of the v1 API.
pub(crate) fn versioned(base: &Url, target: &str, deployment: Option<&str>, version: &str) -> Url {
    let mut url = base.clone();
    let has_date = version.starts_with(|c: char| c.is_ascii_digit());
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        if has_date {
            path.pop();
        }
        if let Some(deployment) = deployment.filter(|_| has_date) {
            path.extend(["deployments", deployment]);
        }
        path.extend(target.split('/').skip(1));
    }
    url.query_pairs_mut().append_pair("api-version", version);
    url
}

/// Whether `version` of the API has Responses, which came with `2025-03-01-preview`.
pub(crate) fn has_responses(version: &str) -> bool {
    !version.starts_with(|c: char| c.is_ascii_digit()) || version >= "2025-03-01"
}

/// The base URL of Claude at the resource `address`, which may be without the path.
pub(crate) fn claude_base(address: &str) -> String {
    let address = address.trim().trim_end_matches('/');
    match Url::parse(address) {
        Ok(url) if url.path() == "/" => format!("{address}/anthropic"),
        _ => address.to_owned(),
    }
}

/// The base URL of Claude at the resource called `name`, if that is the name of one.
pub(crate) fn claude_resource(name: &str) -> Option<String> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    is_name.then(|| format!("https://{name}.services.ai.azure.com/anthropic"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claude_is_below_the_address_of_a_resource() {
        for given in ["https://me.services.ai.azure.com", " https://me.services.ai.azure.com/anthropic/ "] {
            assert_eq!(claude_base(given), "https://me.services.ai.azure.com/anthropic");
        }
        assert_eq!(claude_base("http://127.0.0.1:9/gateway"), "http://127.0.0.1:9/gateway");
    }

    #[test]
    fn the_address_of_a_resource_is_understood_in_every_form() {
        for given in [
            "https://me.openai.azure.com",
            "https://me.openai.azure.com/",
            "https://me.openai.azure.com/openai",
            "https://me.openai.azure.com/openai/v1/",
            "https://me.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
        ] {
            assert_eq!(base(given), "https://me.openai.azure.com/openai/v1", "{given}");
        }
        let project = "https://me.services.ai.azure.com/api/projects/p";
        assert_eq!(base(project), format!("{project}/openai/v1"));
    }

    #[test]
    fn versions_with_a_date_have_paths_of_their_own() {
        let base = Url::parse("https://me.openai.azure.com/openai/v1").unwrap();
        let deployment = Some("my own/d");
        for (target, deployment, version, path) in [
            (
                "/chat/completions",
                deployment,
                "2024-10-21",
                "/openai/deployments/my%20own%2Fd/chat/completions",
            ),
            ("/embeddings", deployment, "2024-10-21", "/openai/deployments/my%20own%2Fd/embeddings"),
            ("/responses", None, "2025-04-01-preview", "/openai/responses"),
            ("/responses", None, "preview", "/openai/v1/responses"),
            ("/chat/completions", deployment, "preview", "/openai/v1/chat/completions"),
        ] {
            let url = versioned(&base, target, deployment, version);
            assert_eq!((url.path(), url.query()), (path, Some(&*format!("api-version={version}"))));
        }
    }
}
