//! Passwords that an address lacks: of the environment, or of a file, as `psql` finds them.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use polylogue_core::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::wrong;

/// The password of `PGPASSWORD`, or of the file of passwords, if one of them has it.
pub(crate) fn look_up(config: &Config) -> Result<Option<String>, StoreError> {
    if let Some(password) = env::var("PGPASSWORD").ok().filter(|password| !password.is_empty()) {
        return Ok(Some(password));
    }
    let named = env::var_os("PGPASSFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(path) = named.or_else(|| env::home_dir().map(|home| home.join(".pgpass"))) else {
        return Ok(None);
    };
    Ok(read(&path)?.and_then(|text| find(&text, config)))
}

/// The text of the file; `None` if there is none.
fn read(path: &Path) -> Result<Option<String>, StoreError> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(|error| unreadable(path, &error))?,
    };
    if is_open_to_others(&metadata) {
        let why = format!("the file of its password, {}, can be read by others", path.display());
        return Err(wrong(&why, &format!("`chmod 600 {}`", path.display())));
    }
    fs::read_to_string(path).map(Some).map_err(|error| unreadable(path, &error))
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.is_file() && metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

fn unreadable(path: &Path, error: &io::Error) -> StoreError {
    let why = format!("the file of its password, {}, cannot be read: {error}", path.display());
    wrong(&why, "correct `PGPASSFILE`, or set `PGPASSWORD`")
}

/// The password of the first line that fits: `HOST:PORT:DATABASE:USER:PASSWORD`, where `*` fits everything.
fn find(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(_) => "localhost".to_owned(),
    };
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let wanted = [&host, &port, database, user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, place) = fields.get(4).zip(fields.get(..4))?;
        let fits = place.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| password.clone())
    })
}

/// The parts of a line between colons; `\` takes the meaning from the character behind it.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut characters) = (vec![String::new()], line.chars());
    while let Some(c) = characters.next() {
        let is_end = c == ':' && fields.len() < 5;
        match fields.last_mut() {
            _ if is_end => fields.push(String::new()),
            Some(field) if c == '\\' => field.extend(characters.next()),
            Some(field) => field.push(c),
            None => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# db:5432:chats:ann:no\nother:*:*:*:no\ndb:5432:chats:bob:no\ndb:*:chats:ann:a\\:b\\\\c:d\n*:*:*:*:last";
        let found = |address: &str| find(text, &address.parse().unwrap());
        assert_eq!(found("postgres://ann@db/chats").as_deref(), Some("a:b\\c:d"));
        assert_eq!(found("postgres://ann@db/chats?port=7").as_deref(), Some("a:b\\c:d"));
        assert_eq!(found("postgres://ann@elsewhere/chats").as_deref(), Some("last"));
        assert_eq!(find("db:5432:chats:ann", &"postgres://ann@db/chats".parse().unwrap()), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pgpass");
        assert_eq!(read(&path), Ok(None));
        fs::write(&path, "*:*:*:*:s3cret").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = read(&path).unwrap_err();
        assert!(refused.to_string().ends_with("can be read by others"), "{refused}");
        assert!(refused.hint().unwrap().starts_with("`chmod 600 "));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("*:*:*:*:s3cret"));
    }
}
