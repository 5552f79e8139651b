//! What is checked of the models of a team before it runs, for the command line and for servers alike.

use polylogue_team::{Diagnostics, Grant, Loaded};

use crate::bound::unpriced_models;
use crate::models::{check_embedding, check_parameters, unsupported_media};
use crate::{Access, RunOptions};

/// Checks the models of a team that was read: each has a known provider, reads what the team attaches for its agents, takes the
/// parameters of those that call it, makes embeddings for a memory, and has a price where there is a limit on cost. Nothing is sent. Of the file of a model in the process
/// only the header is read, if the team sets parameters for it and may read the file.
/// With a model in the options, the names in the files are not looked up. Of endpoints of the team that `access` does not allow nothing is looked up either, neither a key nor
/// another variable, and nothing is said of their models.
///
/// # Errors
/// All mistakes of all kinds and all warnings, in the order of the text.
///
/// ```
/// use polylogue_models::Env;
/// use polylogue_runtime::{Access, RunOptions, check_models};
/// use polylogue_team::{Overrides, parse};
///
/// let text = "
/// name: t
/// model: openai:test
/// limits: {cost: 1}
/// agents: [{name: Ann}]
/// chat: {participants: [Ann], stop: {max_turns: 2}}
/// ";
/// let loaded = parse(text, "t.yaml", &Overrides::default())?;
/// let access = Access::new(Env::default(), loaded.digest.as_str());
/// let errors = check_models(loaded, &access, &RunOptions::default()).unwrap_err().to_string();
/// assert!(errors.starts_with("error: `openai:test`: there is a limit on cost, but its price is unknown"));
/// # Ok::<(), polylogue_team::Diagnostics>(())
/// ```
pub fn check_models(
    mut loaded: Loaded,
    access: &Access,
    options: &RunOptions,
) -> Result<Loaded, Diagnostics> {
    let Loaded { team, warnings, .. } = &mut loaded;
    if options.models.model.is_none() {
        warnings.merge(team.unknown_models());
    }
    warnings.merge(unsupported_media(team, access, &options.models));
    if options.has_budget(team) && !access.grants.contains(&Grant::UnknownPrice) {
        warnings.merge(team.errors_of_models(&unpriced_models(team, &options.models.prices)));
    }
    warnings.merge(check_parameters(team, access, &options.models));
    warnings.merge(check_embedding(team, access, &options.models));
    if loaded.warnings.errors() > 0 { Err(loaded.warnings) } else { Ok(loaded) }
}
