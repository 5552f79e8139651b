//! `polylogue doctor`: what the program finds on this machine.

use std::env;
use std::fmt::Write as _;
use std::path::Path;

use polylogue::Store;
use polylogue_models::{Env, Provider};

use super::write;
use crate::probe::{listens, shown};
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

/// Says what is there; values of keys are never shown. Fails when the store cannot be used.
pub(crate) async fn run(cli: &args::Cli) -> Result<Exit, Trouble> {
    let (version, os, arch) = (env!("CARGO_PKG_VERSION"), env::consts::OS, env::consts::ARCH);
    let mut text = format!("polylogue {version}, {os} {arch}\n\n");
    let env = Env::with_file(Path::new(".env"))?;
    text.push_str("models\n");
    for provider in Provider::all() {
        let _ = writeln!(text, "  {:<12} {}", provider.name(), finding(provider, &env).await);
    }
    let store = self::store(cli).await;
    let _ = write!(text, "\nconversations\n  {}\n", store.as_ref().unwrap_or_else(|(what, _)| what));
    write(&text)?;
    store.map(|_| Exit::Done).map_err(|(_, trouble)| trouble)
}

/// What is known of a provider without asking it anything that costs.
async fn finding(provider: &Provider, env: &Env) -> String {
    let config = match provider.config(env) {
        Ok(config) => config,
        Err(_) => return format!("no address: set `{}`", provider.url_variables().join("` or `")),
    };
    let key = config.key_variables.iter().find(|name| env.get(name).is_some());
    match (key, config.needs_key, provider.is_local()) {
        (_, _, true) => {
            let answers = if listens(&config.base_url).await { "answers" } else { "nothing answers" };
            format!("{answers} at {}", shown(&config.base_url))
        }
        (Some(variable), _, _) => format!("key found in `{variable}`, at {}", shown(&config.base_url)),
        (None, true, _) => format!("no key: set `{}`", config.key_variables.join("` or `")),
        (None, false, _) => format!("no key needed, at {}", shown(&config.base_url)),
    }
}

async fn store(cli: &args::Cli) -> Result<String, (String, Trouble)> {
    let tried = async {
        let place = place::place(cli.store.as_deref())?;
        let store = place::open(cli.store.as_deref())?;
        let logs = store.list().await?.len();
        Ok(format!("{logs} in {} ({})", place.display(), place::kind(&place)))
    };
    tried.await.map_err(|trouble: Trouble| ("cannot be used".to_owned(), trouble))
}
