//! Whether the user trusts a team file, and what it is allowed: what a team file asks for beyond its sandbox and the user's own
//! models is refused until the user allows it, at a question, by `--trust` or by `--allow`.

mod dotenv;
mod meant;
mod pin;
pub(crate) mod pins;
pub(crate) mod rules;
pub(crate) mod trust_file;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use polylogue::tools::approval::visible;
use polylogue_models::Env;
use polylogue_runtime::stored::{Sealer, StoredTeam};
use polylogue_runtime::{Access, RequestedPermission, permission_text as words};
use polylogue_team::{Diagnostics, Grant, Loaded, Overrides, Team, Usage};

use crate::args::Permits;
use crate::error::CliError;
use crate::signals::Signals;
use crate::stderr::print_note_wrapped;
use crate::{place, prompt, shipped};
pub(crate) use dotenv::{addresses, of_folder};
use trust_file::{Entry, TrustFile};

/// How the person answers.
const CHOICES: &str =
    "`yes` allows this to the content of these files from now on, `once` for this run, `no` refuses";

/// Nothing but `permits` and what the content `digest` was trusted with before.
pub(crate) fn known(env: Env, permits: &Permits, digest: &str) -> Result<Access, CliError> {
    let mut access = Access::new(env, digest);
    access.grants.extend(permits.grants.iter().copied());
    access.items = TrustFile::read()?.allowed(digest);
    Ok(access)
}

/// Whether the user has rules for approvals, which may be about a team.
pub(crate) fn has_rules() -> bool {
    place::of_rules().is_some_and(|rules| rules.exists())
}

/// The user's seal of what is stored with a conversation, where it allows something.
fn sealer() -> Option<Sealer> {
    // Rules for approvals may be about this team.
    let has_rules = has_rules();
    Some(Arc::new(move |stored: &StoredTeam| {
        let needs_none =
            stored.allowed.is_empty() && stored.mcp.is_none() && stored.dir.is_none() && !has_rules;
        if needs_none { None } else { TrustFile::seal(&stored.content()?) }
    }))
}

/// Whether this user allowed what is in `stored`.
pub(crate) fn is_sealed(stored: &StoredTeam) -> Result<bool, CliError> {
    let Some((seal, content)) = stored.seal.as_ref().zip(stored.content()) else { return Ok(false) };
    Ok(TrustFile::read()?.is_sealed(&content, seal))
}

/// Reads a team file. A demo that was not changed is identified by its name: it is trusted as the program is, and its versions
/// share what they are allowed and what they remember.
pub(crate) fn read(file: &Path, overrides: &Overrides) -> Result<Loaded, Diagnostics> {
    let loaded = polylogue_team::load(file, overrides).map_err(|found| meant::meant(file, found))?;
    Ok(Loaded { digest: shipped::demo_at(file).unwrap_or(loaded.digest), ..loaded })
}

/// Reads a team file. Team files outside its folder are part of what it asks for: when they are not trusted, they are not
/// spoken of.
pub(crate) fn load(file: &Path, overrides: &Overrides, permits: &Permits) -> Result<Loaded, CliError> {
    let outside = Overrides { outside_files: true, ..overrides.clone() };
    let is_allowed = permits.trust || permits.grants.contains(&Grant::OutsideFiles);
    match read(file, &outside) {
        Ok(loaded) => Ok(loaded),
        Err(wrong) if is_allowed => Err(wrong.into()),
        // Lines of other files are not shown.
        Err(wrong) => Err(read(file, overrides).err().unwrap_or(wrong).into()),
    }
}

/// What is kept of a trusted content.
pub(crate) fn entry<'w>(
    digest: &str,
    name: &str,
    file: &str,
    allowed: impl IntoIterator<Item = &'w RequestedPermission>,
) -> Entry {
    let whole = std::path::absolute(file);
    Entry {
        digest: digest.to_owned(),
        name: name.to_owned(),
        file: whole.map_or_else(|_| file.to_owned(), |path| path.display().to_string()),
        allowed: allowed.into_iter().cloned().collect(),
        time_ms: 0,
    }
}

/// A team that is about to run, and from which follows what it asks the user to allow.
pub(crate) struct PermissionRequest<'a> {
    pub(crate) team: &'a Team,
    /// Identifies its content.
    pub(crate) digest: &'a str,
    /// Where it is, for a person.
    pub(crate) file: &'a str,
    /// Team files outside its folder.
    pub(crate) outside: &'a [String],
    pub(crate) usage: Usage,
    pub(crate) permits: &'a Permits,
    /// What the conversation was allowed when it began.
    pub(crate) before: Vec<RequestedPermission>,
    /// The memory that it would share with others.
    pub(crate) memory: Vec<String>,
    /// Whether there may be a person to ask.
    pub(crate) asks: bool,
    /// Whether a person is shown what is allowed.
    pub(crate) shows_permissions: bool,
}

/// What a person says to what a team asks for.
enum Verdict {
    /// Yes, from now on.
    Trusted,
    /// Yes, for this run.
    Once,
    No,
}

impl PermissionRequest<'_> {
    /// All that it asks for.
    fn wants(&self) -> Vec<RequestedPermission> {
        let outside =
            self.outside.iter().map(|file| RequestedPermission::new(Grant::OutsideFiles, file.as_str()));
        let memory = self.memory.iter().map(|scope| RequestedPermission::new(Grant::Memory, scope.as_str()));
        RequestedPermission::of_team(self.team, &self.usage)
            .into_iter()
            .chain(memory)
            .chain(outside)
            .collect()
    }

    /// Returns what the team may use: what was allowed before, by the command line, and by the person at the terminal, who is asked for
    /// what is left. `env` is the environment, with the keys of the `.env` file.
    ///
    /// # Errors
    /// When the person refuses something without which the team does not run, or there is no person to ask.
    pub(crate) async fn resolve(self, env: Env) -> Result<Access, CliError> {
        let book = TrustFile::read()?;
        let addresses = dotenv::Addresses::of(&env, self.team, &self.usage);
        let wants: Vec<RequestedPermission> =
            self.wants().into_iter().chain(addresses.wants.iter().cloned()).collect();
        let flags: BTreeSet<Grant> = self.permits.grants.iter().copied().collect();
        let before = self.before.iter().cloned();
        let items = before.chain(book.allowed(self.digest)).chain(book.allowed(&addresses.digest)).collect();
        let (rules, digest) = (rules::read()?, self.digest.to_owned());
        let mut access = Access { env, grants: flags, items, rules, digest, sealer: sealer() };
        let mut missing: Vec<RequestedPermission> =
            wants.iter().filter(|want| !access.has(want)).cloned().collect();
        if self.permits.trust {
            // Trust is for all that it asks for, however it is used this time.
            let usage = Usage { prices: self.usage.prices.clone(), ..Usage::default() };
            let all = RequestedPermission::of_team(self.team, &usage).into_iter();
            missing.extend(all.filter(|want| !access.has(want) && !wants.contains(want)));
        }
        let is_asked = missing.iter().any(|want| !want.is_optional()) && !self.permits.trust;
        if !is_asked && !self.permits.trust {
            // It runs without, and the user is not asked for that alone.
            self.show_refused(&std::mem::take(&mut missing));
        }
        let verdict = if is_asked { self.ask(&missing).await? } else { Verdict::Trusted };
        match verdict {
            Verdict::No => return Err(self.refused()),
            Verdict::Trusted if !missing.is_empty() => self.remember(&missing, &addresses.digest)?,
            Verdict::Trusted | Verdict::Once => {}
        }
        access.items.extend(missing);
        // What was not shown is not trusted, unless the user trusts the file as a whole.
        access.env = match access.grants.contains(&Grant::Dotenv) {
            true => access.env.trusting(),
            false => access.env.trusting_only(addresses.names),
        };
        let allowed: Vec<RequestedPermission> = wants.into_iter().filter(|want| access.has(want)).collect();
        if self.shows_permissions && !allowed.is_empty() {
            print_note_wrapped(&words::allowed(self.team.name.as_str(), &allowed));
        }
        Ok(access)
    }

    fn show_refused(&self, wants: &[RequestedPermission]) {
        if self.shows_permissions && !wants.is_empty() {
            print_note_wrapped(&words::without(self.team.name.as_str(), wants));
        }
    }

    /// Keeps that the person trusts it with `wants`.
    fn remember(&self, wants: &[RequestedPermission], addresses: &str) -> Result<(), CliError> {
        let is_address = |want: &&RequestedPermission| want.grant() == Some(Grant::Dotenv);
        let (of_file, of_team): (Vec<&RequestedPermission>, Vec<&RequestedPermission>) =
            wants.iter().partition(is_address);
        if !of_team.is_empty() {
            TrustFile::trust(entry(self.digest, self.team.name.as_str(), self.file, of_team))?;
        }
        if !of_file.is_empty() {
            TrustFile::trust(entry(addresses, dotenv::FILE, dotenv::FILE, of_file))?;
        }
        Ok(())
    }

    async fn ask(&self, missing: &[RequestedPermission]) -> Result<Verdict, CliError> {
        if !self.asks || !prompt::is_possible() {
            let what = format!("{} is not trusted, and wants to\n{}", self.title(), words::list(missing));
            return Err(CliError::usage(what).hint(words::flags(missing)));
        }
        let question = format!("{} is not trusted yet. It wants to\n{}", self.title(), words::list(missing));
        let question = format!("{question}\n{}", CHOICES);
        match prompt::choose(&question, &["yes", "once", "no"], &mut Signals::new()?).await? {
            Some("yes") => Ok(Verdict::Trusted),
            Some("once") => Ok(Verdict::Once),
            _ => Ok(Verdict::No),
        }
    }

    fn title(&self) -> String {
        format!("`{}` ({})", self.team.name, visible(self.file))
    }

    fn refused(&self) -> CliError {
        CliError::usage(format!("{} is not trusted; nothing was run", self.title()))
    }
}
