//! Asking in its own process, because whom to trust is said by the environment of the process.

use std::process::Command;

use polylogue_models::{Config, Endpoint, Env, Provider, Retries};

use crate::common::{reply, text};

/// The prefix of what the child received, in the output of a test.
const HEARD: &str = "heard: ";

/// Asks the endpoint at `base_url` in a process with `vars`, and returns the words of the reply or the error.
pub(crate) async fn ask(base_url: &str, vars: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "network::child::answers", "--ignored", "--nocapture"]);
    for name in ["ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"] {
        child.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    child.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    child.env("OPENAI_BASE_URL", base_url).env("OPENAI_API_KEY", crate::common::KEY);
    child.envs(vars.iter().copied());
    let output = tokio::task::spawn_blocking(move || child.output()).await.unwrap().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let received = printed.lines().find_map(|line| line.split_once(HEARD)).expect(&printed);
    assert!(output.status.success(), "{printed}");
    received.1.to_owned()
}

#[tokio::test]
#[ignore = "run by other tests, in its own process"]
async fn answers() {
    let found = Provider::find("compatible").unwrap().config(&Env::process()).unwrap();
    let endpoint = Endpoint::new(Config { retries: Retries::none(), ..found }).unwrap();
    match reply(&endpoint.model("m")).await {
        Ok(reply) => println!("{HEARD}{}", text(&reply)),
        Err(error) => println!("{HEARD}{error} (hint: {})", error.hint.clone().unwrap_or_default()),
    }
}
