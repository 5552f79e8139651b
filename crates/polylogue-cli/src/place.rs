//! Where conversations are kept, and how people name them.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use polylogue::{AnyStore, Listing, LogId, Store};
use polylogue_store::{Jsonl, Sqlite};

use crate::error::CliError;
use crate::lease_renewal::LeaseRenewal;

/// The store at `place`: a folder that is there, or a path that ends in `/`, is one of JSON lines; everything else is a
/// SQLite file. Without a place, the file in the user's data folder.
pub(crate) fn open(place: Option<&Path>) -> Result<AnyStore, CliError> {
    let place = self::place(place)?;
    if is_folder(&place) {
        return Ok(LeaseRenewal::of(AnyStore::new(Jsonl::open(&place)?)));
    }
    if let Some(folder) = place.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        made_private(folder).map_err(|error| {
            CliError::failed(format!("`{}` cannot be made: {error}", folder.display()))
                .hint("choose another place with `--store`")
        })?;
    }
    Ok(LeaseRenewal::of(AnyStore::new(Sqlite::open(&place)?)))
}

/// `path` as one word of a command for a shell, quoted where it has to be, so that what a hint names can be copied.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    // What begins with `-` would be an option.
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%~=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('~') {
        return text;
    }
    shlex::try_quote(&text).map_or_else(|_| format!("{text:?}"), Into::into)
}

/// Makes a folder that only its owner can look into, unless it exists.
fn made_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The store at `place`, in which something is looked for: a place that was named and is not there holds nothing, and is not made.
pub(crate) fn existing(place: Option<&Path>) -> Result<AnyStore, CliError> {
    if is_missing(place) { Err(none_yet()) } else { open(place) }
}

/// Whether a place was named where nothing is.
pub(crate) fn is_missing(place: Option<&Path>) -> bool {
    place.is_some_and(|place| !place.as_os_str().is_empty() && !place.exists())
}

fn none_yet() -> CliError {
    CliError::usage("there are no conversations yet").hint("`polylogue run` begins one")
}

/// What the store at `place` is, for people.
pub(crate) fn kind(place: &Path) -> String {
    if is_folder(place) {
        format!("JSON lines, format {}", Jsonl::FORMAT)
    } else {
        format!("SQLite, format {}", Sqlite::FORMAT)
    }
}

pub(crate) fn is_folder(place: &Path) -> bool {
    place.is_dir() || place.as_os_str().to_string_lossy().ends_with('/')
}

/// Where the store is.
pub(crate) fn place(given: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(given) = given.filter(|given| !given.as_os_str().is_empty()) {
        return Ok(given.to_owned());
    }
    // The XDG base directory specification, version 0.8.
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let data = data.or_else(|| env::home_dir().map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| {
        CliError::usage("there is no home folder to keep conversations in")
            .hint("name a place with `--store`")
    })?;
    Ok(data.join("polylogue").join("polylogue.db"))
}

/// The option that names the store in a command, unless the variable does.
pub(crate) fn store_option(given: Option<&Path>) -> Option<String> {
    let given = given.filter(|given| env::var_os("POLYLOGUE_STORE").is_none_or(|store| *given != store))?;
    let quoted = shlex::try_quote(given.to_str()?).ok()?.into_owned();
    Some(format!("--store {quoted}"))
}

/// The work directory of the programs of the conversation `id`: beside the store, and by a whole path.
pub(crate) fn of_work(store: Option<&Path>, id: &LogId) -> Result<PathBuf, CliError> {
    let work = std::path::absolute(work_root(&place(store)?))
        .map_err(|error| CliError::failed(format!("there is no work directory: {error}")))?;
    Ok(work.join(id.as_str()))
}

/// Where it is kept what the user trusts: in the user's state folder.
pub(crate) fn of_trust() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| env::home_dir().map(|home| home.join(".local/state")));
    state.map(|state| state.join("polylogue").join("trust.json"))
}

/// Where the user's rules for approvals are: in the user's folder of settings.
pub(crate) fn of_rules() -> Option<PathBuf> {
    let config = env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| env::home_dir().map(|home| home.join(".config")));
    config.map(|config| config.join("polylogue").join("approvals.yaml"))
}

/// Whether the current folder is within the work directory of a conversation: what is in it may have been written by code that
/// models wrote. Work directories are beside their store, in a folder of the store's name and `.work`.
pub(crate) fn is_in_work_directory(store: Option<&Path>) -> bool {
    let Ok(here) = env::current_dir().and_then(std::fs::canonicalize) else { return false };
    let own = place(store).ok().map(|store| work_root(&store));
    let own = own.and_then(|own| std::fs::canonicalize(own).ok());
    if own.is_some_and(|own| here.starts_with(own)) {
        return true;
    }
    here.ancestors().any(|folder| {
        let store = folder.as_os_str().to_string_lossy().strip_suffix(WORK).map(PathBuf::from);
        store.is_some_and(|store| store.exists())
    })
}

/// What the folder of work directories is called, behind the name of the store.
const WORK: &str = ".work";

fn work_root(store: &Path) -> PathBuf {
    // A folder may be written with a slash at its end, which belongs to no name.
    let mut work: OsString = store.components().as_path().as_os_str().to_owned();
    work.push(WORK);
    PathBuf::from(work)
}

/// Where it is kept what models turned out to be able to do: a cache, in the user's cache folder.
pub(crate) fn of_skills() -> Option<PathBuf> {
    cache().map(|cache| cache.join("capabilities.json"))
}

/// Where the teams that ship are unpacked: in the user's cache folder.
pub(crate) fn of_demos() -> Option<PathBuf> {
    cache().map(|cache| cache.join("demos"))
}

fn cache() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("polylogue"))
}

/// The conversation that `text` names: an id, the beginning of just one, or `last`.
pub(crate) async fn find(store: &AnyStore, text: &str) -> Result<LogId, CliError> {
    if let Ok(id) = LogId::new(text)
        && store.meta(&id).await.is_ok()
    {
        return Ok(id);
    }
    let all = store.list().await?;
    let found: Vec<&Listing> = match text {
        "last" => all.iter().take(1).collect(),
        _ => all.iter().filter(|listing| listing.id.as_str().starts_with(text)).collect(),
    };
    match found.as_slice() {
        [only] => Ok(only.id.clone()),
        [] if all.is_empty() => Err(none_yet()),
        [] => {
            Err(CliError::usage(format!("there is no conversation `{text}`"))
                .hint("`polylogue runs` lists them"))
        }
        several => {
            let ids: Vec<_> = several.iter().take(5).map(|listing| format!("`{}`", listing.id)).collect();
            Err(CliError::usage(format!("`{text}` is the beginning of several: {}", ids.join(", "))))
        }
    }
}

/// An id that is short and easy to paste: six of Crockford's 32 digits, which leave out letters that look like others.
pub(crate) fn fresh_id() -> Result<LogId, CliError> {
    use std::hash::{BuildHasher, Hasher, RandomState};
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    // The standard library's hasher is seeded by the system.
    let random = RandomState::new().build_hasher().finish();
    let digit = |at: u32| DIGITS.get((random >> (5 * at)) as usize % 32).copied().unwrap_or(b'0');
    let id: String = (0..6).map(|at| char::from(digit(at))).collect();
    Ok(LogId::new(&id)?)
}
