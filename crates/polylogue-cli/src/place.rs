//! Where conversations, trust and settings are kept for this user, and how people name conversations.

use std::env;
use std::path::{Path, PathBuf};

use polylogue_runtime::database::DatabaseAddress;
use polylogue_runtime::{FilesPolicy, Runtime, StoreLocation};
use polylogue_server::tenant_place;
use rustix::process::geteuid;

use crate::error::CliError;

/// A store, as the command line names it, and whose conversations in it are meant.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamedStore {
    /// Its path or address. Default: the file in the user's data folder.
    pub(crate) store: Option<PathBuf>,
    /// Another tenant than [`Token::LOCAL`](polylogue_server::Token::LOCAL).
    pub(crate) tenant: Option<String>,
}

/// The place of the conversations that are meant.
pub(crate) fn of(named: &NamedStore) -> Result<StoreLocation, CliError> {
    let place = of_store(named.store.as_deref())?;
    Ok(match &named.tenant {
        Some(tenant) => tenant_place(&place, tenant),
        None => place,
    })
}

fn of_store(given: Option<&Path>) -> Result<StoreLocation, CliError> {
    let given = given.filter(|given| !given.as_os_str().is_empty());
    let place = match given.map(|given| (given, address(given))) {
        Some((_, Some(address))) => database(address),
        Some((given, None)) => at_path(given),
        None => Ok(StoreLocation::new(data_folder()?.join("polylogue.db"))),
    };
    let place = place?;
    Ok(match files()? {
        Some(files) => place.with_files(files),
        None => place,
    })
}

/// The store at a path. An error if a folder on the way there, or the store itself as a folder, is a file.
fn at_path(given: &Path) -> Result<StoreLocation, CliError> {
    let is_folder = given.as_os_str().as_encoded_bytes().ends_with(b"/");
    // Without the slash.
    let path = given.components().as_path();
    let mut folders = path.ancestors().skip(usize::from(!is_folder));
    let Some(file) = folders.find(|folder| folder.is_file()) else { return Ok(StoreLocation::new(given)) };
    let (given, file_name) = (given.display(), file.display());
    let error = CliError::usage(format!("`{given}` cannot be a store: `{file_name}` is a file"));
    Err(match file == path {
        true => error.hint(format!("`--store {file_name}` names the file; a folder needs another name")),
        false => error.hint("choose another place with `--store`"),
    })
}

/// What becomes of the files of conversations, if the environment says so.
fn files() -> Result<Option<FilesPolicy>, CliError> {
    let Some(text) = env::var_os(FILES).filter(|text| !text.is_empty()) else { return Ok(None) };
    let policy = text.to_str().and_then(FilesPolicy::parse);
    policy.map(Some).ok_or_else(|| {
        CliError::usage(format!("`{FILES}` is `{}`", text.display()))
            .hint(
                "set it to `kept`, `local`, `none`, or `volume:` and the absolute path of a folder that all machines share, of about 100 \
                 bytes at most",
            )
    })
}

/// The environment variable that says what becomes of the files of conversations.
const FILES: &str = "POLYLOGUE_FILES";

/// As [`of`]; nowhere, if that fails.
pub(crate) fn or_none(named: &NamedStore) -> StoreLocation {
    of(named).unwrap_or_else(|_| StoreLocation::new(""))
}

/// The folder for data of this user.
fn data_folder() -> Result<PathBuf, CliError> {
    user_folder("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
        CliError::usage("no home directory was found for conversations").hint("set a path with `--store`")
    })
}

/// The address of a store, if `given` is one, right or wrong, and no path.
fn address(given: &Path) -> Option<&str> {
    given.to_str().filter(|text| scheme(text).is_some())
}

/// What is before the `:` of an address, also of none that there is: a file of such a name would be made by mistake.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once(':')?;
    let is_word = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let is_database = ["postgres", "postgresql"].iter().any(|name| scheme.eq_ignore_ascii_case(name));
    (is_word && (is_database || rest.starts_with("//"))).then_some(scheme)
}

/// The database at `text`. Its work directories are in the user's data folder.
fn database(text: &str) -> Result<StoreLocation, CliError> {
    if !DatabaseAddress::is_address(text) {
        // Nothing else of it: it may have a password.
        let scheme = scheme(text).unwrap_or_default();
        let what = format!("no store has an address that begins with `{scheme}:`");
        return Err(CliError::usage(what).hint(
            "write `postgres://USER@HOST/DATABASE`, or the path of a file or a folder; the address of a server is for `--server`",
        ));
    }
    let address = DatabaseAddress::parse(text)
        .map_err(|error| CliError::usage(error.to_string()).hint(error.hint().unwrap_or_default()))?;
    let is_in_arguments = || env::args_os().any(|argument| argument.to_string_lossy().contains(text));
    if address.has_password() && is_in_arguments() {
        let what = "the address of the store has a password, which other users of this machine can read in a command line";
        return Err(CliError::usage(what).hint(
            "set `PGPASSWORD`, write the password to `~/.pgpass`, or set `POLYLOGUE_STORE` to the whole address",
        ));
    }
    let folder = data_folder()?.join("postgres").join(address.folder_name());
    Ok(StoreLocation::postgres(address, folder.join("conversations")))
}

/// The folder of this machine with what belongs to the database at `address` and is not in it: work directories, and the tokens of servers.
pub(crate) fn folder_of_database(address: &str) -> Result<Option<PathBuf>, CliError> {
    Ok(database(address)?.path().parent().map(Path::to_path_buf))
}

/// The conversations that are meant.
pub(crate) fn open(named: &NamedStore) -> Result<Runtime, CliError> {
    Ok(Runtime::open_at(of(named)?)?)
}

/// The conversations that are meant, among which something is looked for.
///
/// # Errors
/// When a place was named where nothing is, which is not created.
pub(crate) fn existing(named: &NamedStore) -> Result<Runtime, CliError> {
    if is_empty(named)? {
        Err(polylogue_runtime::Error::Empty { tenant: named.tenant.clone() }.into())
    } else {
        open(named)
    }
}

/// Whether nothing was stored yet of the tenant, or in the store that the variable names.
///
/// # Errors
/// When the command line names a store that does not exist: it is mistyped.
pub(crate) fn is_empty(named: &NamedStore) -> Result<bool, CliError> {
    let store = named.store.as_deref();
    let Some(place) =
        store.filter(|store| !store.as_os_str().is_empty() && address(store).is_none() && !store.exists())
    else {
        // The file of a tenant is not made by looking for it.
        let is_missing = |place: &StoreLocation| !place.is_shared() && !place.path().exists();
        return Ok(named.tenant.is_some() && is_missing(&of(named)?));
    };
    if is_of_variable(place) {
        return Ok(true);
    }
    let what = format!("there is no store at `{}`", place.display());
    Err(CliError::usage(what).hint("correct the path, or leave out `--store` for the default store"))
}

/// Whether `store` is the one that the environment variable names.
fn is_of_variable(store: &Path) -> bool {
    env::var_os("POLYLOGUE_STORE").is_some_and(|named| *store == named)
}

/// Polylogue's folder in the user's folder that `variable` names. See the XDG base directory specification, version 0.8.
fn user_folder(variable: &str, default: &str) -> Option<PathBuf> {
    let given = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = given.or_else(|| env::home_dir().map(|home| home.join(default)));
    folder.map(|folder| folder.join("polylogue"))
}

/// Where it is kept what the user trusts.
pub(crate) fn of_trust() -> Option<PathBuf> {
    user_folder("XDG_STATE_HOME", ".local/state").map(|folder| folder.join("trust.json"))
}

/// Where the user's rules for approvals are.
pub(crate) fn of_rules() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("approvals.yaml"))
}

/// The environment variable that names the file with the user's prices.
pub(crate) const PRICES: &str = "POLYLOGUE_PRICES";

/// Where the user's prices of models are by default.
pub(crate) fn of_prices() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("prices.yaml"))
}

/// Where the user's settings are.
pub(crate) fn of_config() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.yaml"))
}

/// Where the user's tokens of servers are.
pub(crate) fn of_servers() -> Option<PathBuf> {
    user_folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("servers.yaml"))
}

/// Where it is kept what models turned out to support.
pub(crate) fn of_capabilities() -> Option<PathBuf> {
    user_folder("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("capabilities.json"))
}

/// The folder of the lists of models that providers gave.
pub(crate) fn of_model_lists() -> Option<PathBuf> {
    user_folder("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("models"))
}

/// Where the teams that ship are unpacked.
pub(crate) fn of_demos() -> Option<PathBuf> {
    user_folder("XDG_CACHE_HOME", ".cache").map(|folder| folder.join("demos"))
}

/// Where they are unpacked if there is no folder of the user that can be written: in a folder for temporary files of this user alone.
pub(crate) fn of_temporary_demos() -> PathBuf {
    env::temp_dir().join(format!("polylogue-{}", geteuid().as_raw())).join("demos")
}

/// Whether the current folder is within the work directory of a conversation: what is in it may have been written by code that
/// models wrote.
pub(crate) fn is_in_work_directory(place: &StoreLocation) -> bool {
    let here = env::current_dir().and_then(std::fs::canonicalize);
    here.is_ok_and(|here| place.is_in_work_dir(&here))
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

/// The option with which commands that are shown find their conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum PlaceOption {
    /// None is needed: a variable names the place, or the default is meant.
    #[default]
    Unneeded,
    /// `--store`, with the path, and `--tenant`, with the name: one of them or both.
    Store { store: Option<String>, tenant: Option<String> },
    /// `--server`, with the address.
    Server(String),
}

impl PlaceOption {
    /// That of the store that the command line names.
    pub(crate) fn of_store(named: &NamedStore) -> Self {
        let store = named.store.as_deref().filter(|store| !is_of_variable(store));
        Self::naming(store, named.tenant.as_deref())
    }

    /// That of the store at `path`, whatever names it.
    pub(crate) fn naming_store(path: &Path) -> Self {
        Self::naming(Some(path), None)
    }

    fn naming(store: Option<&Path>, tenant: Option<&str>) -> Self {
        let store = store.filter(|store| store.to_str().is_some());
        let store = store.map(|store| format!("--store {}", shell_word(store)));
        match (store, tenant.map(|tenant| format!("--tenant {tenant}"))) {
            (None, None) => Self::Unneeded,
            (store, tenant) => Self::Store { store, tenant },
        }
    }

    /// That of the server at `url`.
    pub(crate) fn naming_server(url: &str) -> Self {
        Self::Server(format!("--server {}", shell_word(Path::new(url))))
    }

    /// That of commands which need the store itself: the one of a server is unknown here.
    pub(crate) fn at_store(&self) -> &Self {
        if matches!(self, Self::Server(_)) { &Self::Unneeded } else { self }
    }

    /// The options that are needed, without that for a tenant if the command has none.
    pub(crate) fn options(&self, has_tenant: bool) -> impl Iterator<Item = &str> {
        let (place, tenant) = match self {
            Self::Unneeded => (None, None),
            Self::Store { store, tenant } => (store.as_deref(), tenant.as_deref()),
            Self::Server(server) => (Some(server.as_str()), None),
        };
        place.into_iter().chain(tenant.filter(|_| has_tenant))
    }

    /// The command `polylogue` with these words, as it can be typed.
    pub(crate) fn command(&self, words: &str) -> String {
        ["polylogue", words].into_iter().chain(self.options(true)).collect::<Vec<_>>().join(" ")
    }
}
