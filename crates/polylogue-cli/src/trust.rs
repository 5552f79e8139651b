//! Whether the user trusts a team file, and what it is allowed: what a team file asks for beyond its sandbox and the user's own
//! models is refused until the user allows it, at a question, by `--trust` or by `--allow`.

pub(crate) mod book;
mod dotenv;
pub(crate) mod pins;
pub(crate) mod rules;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use polylogue::approval::visible;
use polylogue_models::Env;
use polylogue_team::{Grant, Loaded, Overrides, Rules, Team, Usage};

use crate::args::Permits;
use crate::error::CliError;
use crate::prompt;
use crate::runner::tell_wrapped;
use crate::signals::Signals;
pub(crate) use book::Want;
use book::{Entry, TrustFile};
pub(crate) use dotenv::{addresses, of_folder};
use rules::Always;
pub(crate) use words::list;

/// What a run may use: environment variables, and what was allowed.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) env: Env,
    /// Whole permissions, by `--allow`.
    flags: BTreeSet<Grant>,
    /// What was allowed, one by one.
    items: BTreeSet<Want>,
    /// The user's rules for approvals, and the team that they may be about.
    pub(crate) always: Always,
}

impl Access {
    /// Nothing but `permits` and what the content `digest` was trusted with before.
    pub(crate) fn known(env: Env, permits: &Permits, digest: &str) -> Result<Self, CliError> {
        let flags = permits.grants.iter().copied().collect();
        let always = Always { rules: Rules::default(), team: digest.to_owned() };
        Ok(Self { env, flags, items: TrustFile::read()?.allowed(digest), always })
    }

    /// Whether all of `wants` is allowed.
    pub(crate) fn covers<'w>(&self, wants: impl IntoIterator<Item = &'w Want>) -> bool {
        wants.into_iter().all(|want| self.has(want))
    }

    fn has(&self, want: &Want) -> bool {
        want.grant().is_some_and(|grant| self.flags.contains(&grant)) || self.items.contains(want)
    }

    /// The permissions of which something is allowed.
    pub(crate) fn grants(&self) -> BTreeSet<Grant> {
        self.flags.iter().copied().chain(self.items.iter().filter_map(Want::grant)).collect()
    }

    /// The models of `team` for which its own prices count although they are below the list prices.
    pub(crate) fn lower_prices(&self, team: &Team) -> BTreeSet<String> {
        let wants = wants_of(team, &Usage::default()).into_iter();
        wants.filter(|want| want.is_optional() && self.has(want)).map(|want| want.what).collect()
    }

    /// What of `team` is to be kept with its conversation, so that it can be resumed.
    pub(crate) fn kept(&self, team: &Team) -> Vec<Want> {
        let memory = self.items.iter().filter(|want| want.grant() == Some(Grant::Memory));
        wants_of(team, &Usage::default())
            .into_iter()
            .filter(|want| self.has(want))
            .chain(memory.cloned())
            .collect()
    }

    /// Refuses a team that asks for more than was allowed: one whose variables were given other values, say.
    pub(crate) fn check(&self, team: &Team, usage: &Usage) -> Result<(), CliError> {
        let wants = wants_of(team, usage);
        let missing: Vec<&Want> =
            wants.iter().filter(|want| !want.is_optional() && !self.has(want)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let what = format!(
            "`{}` asks for more than was allowed:\n{}",
            team.name,
            words::list(missing.iter().copied())
        );
        Err(CliError::usage(what).hint(words::flags(missing.iter().copied())))
    }
}

impl Access {
    /// Refuses a team that would share memory with other teams, unless that was allowed.
    pub(crate) fn check_memory(&self, team: &Team, of_others: &BTreeSet<String>) -> Result<(), CliError> {
        let shared = team.memory_scopes().into_iter().filter(|scope| of_others.contains(scope.as_str()));
        let wants: Vec<Want> = shared.map(|scope| Want::new(Grant::Memory, scope.as_str())).collect();
        if self.covers(&wants) {
            return Ok(());
        }
        let what = format!("`{}` asks for more than was allowed:\n{}", team.name, words::list(&wants));
        Err(CliError::usage(what).hint(words::flags(&wants)))
    }
}

/// What `team` asks for when it is used in the way `usage` says.
pub(crate) fn wants_of(team: &Team, usage: &Usage) -> Vec<Want> {
    let wants = team.wants_of(usage).into_iter();
    wants.flat_map(|(grant, what)| what.into_iter().map(move |what| Want::new(grant, what))).collect()
}

/// Reads a team file. Team files outside its folder are part of what it asks for: when they are not trusted, they are not
/// spoken of.
pub(crate) fn load(file: &Path, overrides: &Overrides, permits: &Permits) -> Result<Loaded, CliError> {
    let outside = Overrides { outside_files: true, ..overrides.clone() };
    let is_allowed = permits.trust || permits.grants.contains(&Grant::OutsideFiles);
    match polylogue_team::load(file, &outside) {
        Ok(loaded) => Ok(loaded),
        Err(wrong) if is_allowed => Err(wrong.into()),
        // Lines of other files are not shown.
        Err(wrong) => Err(polylogue_team::load(file, overrides).err().unwrap_or(wrong).into()),
    }
}

/// What is kept of a trusted content.
pub(crate) fn entry<'w>(
    digest: &str,
    name: &str,
    file: &str,
    allowed: impl IntoIterator<Item = &'w Want>,
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

/// A team that is about to run, and how.
pub(crate) struct Request<'a> {
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
    pub(crate) before: Vec<Want>,
    /// The memory that it would share with others.
    pub(crate) memory: Vec<String>,
    /// Whether there may be a person to ask.
    pub(crate) asks: bool,
    /// Whether a person is shown what is allowed.
    pub(crate) tells: bool,
}

/// What a person says to what a team asks for.
enum Verdict {
    /// Yes, from now on.
    Trusted,
    /// Yes, for this run.
    Once,
    No,
}

impl Request<'_> {
    /// All that it asks for.
    fn wants(&self) -> Vec<Want> {
        let outside = self.outside.iter().map(|file| Want::new(Grant::OutsideFiles, file.as_str()));
        let memory = self.memory.iter().map(|scope| Want::new(Grant::Memory, scope.as_str()));
        wants_of(self.team, &self.usage).into_iter().chain(memory).chain(outside).collect()
    }

    /// What it may use, if it may have all that it asks for: what was allowed before, by the command line or by the person at the
    /// terminal.
    pub(crate) async fn pass(self, env: Env) -> Result<Access, CliError> {
        let book = TrustFile::read()?;
        let addresses = dotenv::Addresses::of(&env, self.team, &self.usage);
        let wants: Vec<Want> = self.wants().into_iter().chain(addresses.wants.iter().cloned()).collect();
        let flags: BTreeSet<Grant> = self.permits.grants.iter().copied().collect();
        let before = self.before.iter().cloned();
        let items = before.chain(book.allowed(self.digest)).chain(book.allowed(&addresses.digest)).collect();
        let always = Always { rules: rules::read()?, team: self.digest.to_owned() };
        let mut access = Access { env, flags, items, always };
        let mut missing: Vec<Want> = wants.iter().filter(|want| !access.has(want)).cloned().collect();
        if self.permits.trust {
            // Trust is for all that it asks for, however it is used this time.
            let all = wants_of(self.team, &Usage::default()).into_iter();
            missing.extend(all.filter(|want| !access.has(want) && !wants.contains(want)));
        }
        let is_asked = missing.iter().any(|want| !want.is_optional()) && !self.permits.trust;
        if !is_asked && !self.permits.trust {
            // It runs without, and the user is not asked for that alone.
            self.tell_without(&std::mem::take(&mut missing));
        }
        let verdict = if is_asked { self.ask(&missing).await? } else { Verdict::Trusted };
        match verdict {
            Verdict::No => return Err(self.refused()),
            Verdict::Trusted if !missing.is_empty() => self.remember(&missing, &addresses.digest)?,
            Verdict::Trusted | Verdict::Once => {}
        }
        access.items.extend(missing);
        if !addresses.wants.is_empty() {
            access.env = access.env.trusting();
        }
        let allowed: Vec<Want> = wants.into_iter().filter(|want| access.has(want)).collect();
        if self.tells && !allowed.is_empty() {
            tell_wrapped(&words::allowed(self.team.name.as_str(), &allowed));
        }
        Ok(access)
    }

    fn tell_without(&self, wants: &[Want]) {
        if self.tells && !wants.is_empty() {
            tell_wrapped(&words::without(self.team.name.as_str(), wants));
        }
    }

    /// Keeps that the person trusts it with `wants`.
    fn remember(&self, wants: &[Want], addresses: &str) -> Result<(), CliError> {
        let is_address = |want: &&Want| want.grant() == Some(Grant::Dotenv);
        let (of_file, of_team): (Vec<&Want>, Vec<&Want>) = wants.iter().partition(is_address);
        if !of_team.is_empty() {
            TrustFile::trust(entry(self.digest, self.team.name.as_str(), self.file, of_team))?;
        }
        if !of_file.is_empty() {
            TrustFile::trust(entry(addresses, dotenv::FILE, dotenv::FILE, of_file))?;
        }
        Ok(())
    }

    async fn ask(&self, missing: &[Want]) -> Result<Verdict, CliError> {
        if !self.asks || !prompt::is_possible() {
            let what = format!("{} is not trusted, and wants to\n{}", self.title(), words::list(missing));
            return Err(CliError::usage(what).hint(words::flags(missing)));
        }
        let question = format!("{} is not trusted yet. It wants to\n{}", self.title(), words::list(missing));
        let question = format!("{question}\n{}", words::CHOICES);
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
        CliError::usage(format!("{} is not trusted, and nothing of it was run", self.title()))
    }
}
