//! Vertex AI, whose address has the project and the region, but for requests with an API key.

use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_http::Env;

use super::{Provider, VERTEX};
use crate::auth::Auth;
use crate::config::Config;
use crate::google::{self, GoogleCredentials, NoAddress};

impl Provider {
    /// Returns the configuration at `base_url`, as [`config_at`](Self::config_at), for keys of `variables`. The address of
    /// Vertex AI is completed as that of `VERTEX_BASE_URL` is, unless it names a publisher: by the project and the region, if
    /// `env` has them, or without them for an API key.
    ///
    /// # Errors
    /// When `env` has a region and no project, or the other way round.
    pub fn config_moved(&self, env: &Env, base_url: &str, variables: &[&str]) -> Result<Config, ModelError> {
        let config = self.config_at(base_url).for_keys_of(variables);
        if self.name != VERTEX {
            return Ok(config);
        }
        let at = Some(base_url.trim().to_owned());
        let base_url = match config.auth {
            Auth::GoogleKey => google::express(at),
            _ if google::names_place(env) => {
                // They say which project it is, and are not sent to another address.
                let credentials = GoogleCredentials::of_env(env).ok().flatten();
                google::address(env, at, credentials.as_ref()).map_err(|missing| self.no_place(missing))?
            }
            _ => return Ok(config),
        };
        Ok(Config { base_url, ..config })
    }

    /// The configuration of Vertex AI at its own address, or at another host.
    pub(super) fn vertex(
        &self,
        env: &Env,
        at: Option<String>,
        is_express: bool,
    ) -> Result<Config, ModelError> {
        if is_express {
            let config = Config { auth: Auth::GoogleKey, ..self.config_at(&google::express(at)) };
            return Ok(self.with_keys(env, Config { needs_key: true, ..config }));
        }
        let (base_url, credentials) = google::locate(env, at).map_err(|missing| self.no_place(missing))?;
        // A key is a token that replaces those of credentials.
        let needs_key = credentials.is_none();
        let config = Config { auth: Auth::Google(credentials), needs_key, ..self.config_at(&base_url) };
        let mut config = self.with_keys(env, config);
        config.key_variables.insert(0, "GOOGLE_APPLICATION_CREDENTIALS".to_owned());
        Ok(config)
    }

    fn no_place(&self, (message, hint): NoAddress) -> ModelError {
        ModelError::new(ModelErrorKind::Config, self.name, message).hint(hint)
    }
}
