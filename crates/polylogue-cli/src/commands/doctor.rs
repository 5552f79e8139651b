//! `polylogue doctor`: what the program finds on this machine.

use std::fmt::Write as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use polylogue::Store;
use polylogue_models::{Env, Provider};
use tokio::net::TcpStream;

use super::write;
use crate::trouble::{Exit, Trouble};
use crate::{args, place};

/// How long a local endpoint has to accept a connection.
const PATIENCE: Duration = Duration::from_millis(500);

/// Says what is there; values of keys are never shown. Fails when the store cannot be used.
pub(crate) async fn run(cli: &args::Cli) -> Result<Exit, Trouble> {
    let mut text = format!("polylogue {}\n\n", env!("CARGO_PKG_VERSION"));
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
        Err(error) => return format!("not usable: {}", error.message),
    };
    let key = config.key_variables.iter().find(|name| env.get(name).is_some());
    match (key, config.needs_key, provider.is_local()) {
        (_, _, true) => {
            let answers = if listens(&config.base_url).await { "answers" } else { "nothing answers" };
            format!("{answers} at {}", config.base_url)
        }
        (Some(variable), _, _) => format!("key found in `{variable}`, at {}", config.base_url),
        (None, true, _) => format!("no key: set `{}`", config.key_variables.join("` or `")),
        (None, false, _) => format!("no key needed, at {}", config.base_url),
    }
}

/// Whether something accepts connections at the address of `url`.
async fn listens(url: &str) -> bool {
    let Some(address) = address(url) else { return false };
    matches!(tokio::time::timeout(PATIENCE, TcpStream::connect(address)).await, Ok(Ok(_)))
}

fn address(url: &str) -> Option<SocketAddr> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    let host = host.rsplit('@').next()?;
    let port = if scheme == "https" { 443 } else { 80 };
    let found = host.to_socket_addrs().or_else(|_| (host, port).to_socket_addrs());
    found.ok()?.next()
}

async fn store(cli: &args::Cli) -> Result<String, (String, Trouble)> {
    let tried = async {
        let place = place::place(cli.store.as_deref())?;
        let store = place::open(cli.store.as_deref())?;
        let logs = store.list().await?.len();
        Ok(format!("{logs} in {}", place.display()))
    };
    tried.await.map_err(|trouble: Trouble| ("cannot be used".to_owned(), trouble))
}
