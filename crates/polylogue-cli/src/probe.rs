//! What an Ollama server says of itself, asked without a call that costs.

use std::time::Duration;

use polylogue_core::ModelError;
use polylogue_models::{Api, Config, Endpoint, ServedModel, Timeouts};

/// How long a server has to say what models it has.
const LISTING: Duration = Duration::from_secs(2);

/// So many models are named.
const MAX_NAMED: usize = 20;

/// What an Ollama server says of itself and of its models, a few lines; nothing of other servers.
pub(crate) async fn ollama(config: &Config) -> Vec<String> {
    if config.api != Api::Ollama {
        return Vec::new();
    }
    let models = async {
        let timeouts = Timeouts { total: LISTING, connect: LISTING, ..config.timeouts };
        let endpoint = Endpoint::new(Config { timeouts, ..config.clone() })?;
        Ok::<_, ModelError>((endpoint.version().await?, endpoint.models().await?))
    };
    match models.await {
        Ok((version, models)) => {
            [format!("Ollama {}", version.unwrap_or_default())].into_iter().chain([named(&models)]).collect()
        }
        Err(error) => vec![format!("which models it has is not known: {}", error.message)],
    }
}

fn named(models: &[ServedModel]) -> String {
    if models.is_empty() {
        return "no models yet: get one with `ollama pull llama3.2`".to_owned();
    }
    let size = |model: &ServedModel| model.bytes.map(|bytes| format!(" ({})", gigabytes(bytes)));
    let name = |model: &ServedModel| format!("{}{}", model.name, size(model).unwrap_or_default());
    let names: Vec<String> = models.iter().take(MAX_NAMED).map(name).collect();
    let more = models.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("models: {}{more}", names.join(", "))
}

/// In units of 10⁹ bytes, with one digit after the point, as `ollama list` shows it.
fn gigabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000_000) / 100_000_000;
    format!("{}.{} GB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_named_with_their_sizes_up_to_a_bound() {
        assert_eq!([2_019_393_189, 49_999_999, 950_000_000].map(gigabytes), ["2.0 GB", "0.0 GB", "1.0 GB"]);
        assert!(named(&[]).contains("`ollama pull llama3.2`"));
    }
}
