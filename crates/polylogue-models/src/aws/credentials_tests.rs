use super::*;

fn env(vars: &[(&str, &str)]) -> Env {
    Env::of(vars.iter().copied())
}

fn known(id: &str, secret: &str, token: Option<&str>) -> Source {
    Source::Known(Credentials {
        access_key_id: id.into(),
        secret_access_key: Key::new(secret).unwrap(),
        session_token: token.and_then(Key::new),
    })
}

const CONFIG: &str = "\
# Comment
[default]
region = eu-central-1
s3 =
    addressing_style = path

[profile work]
region=us-west-2 # of the team
credential_process = /opt/bin/creds --profile work

[profile login]
sso_session = company
region = eu-west-1

[sso-session company]
sso_start_url = https://example.com
";

const CREDENTIALS: &str = "\
[default]
aws_access_key_id = ID
aws_secret_access_key = SECRET+with/=signs=
[half]
aws_access_key_id = ID
";

fn with_files(vars: &[(&str, &str)]) -> (tempfile::TempDir, Env) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(".aws");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("config"), CONFIG).unwrap();
    std::fs::write(folder.join("credentials"), CREDENTIALS).unwrap();
    let path = home.path().to_str().unwrap().to_owned();
    let vars: Vec<(&str, &str)> = vars.iter().copied().chain([("HOME", &*path)]).collect();
    let env = env(&vars);
    (home, env)
}

#[test]
fn variables_come_first() {
    let (_home, env) = with_files(&[
        ("AWS_ACCESS_KEY_ID", "A"),
        ("AWS_SECRET_ACCESS_KEY", "S"),
        ("AWS_SESSION_TOKEN", "T"),
        ("AWS_PROFILE", "work"),
        ("AWS_DEFAULT_REGION", "ap-south-1"),
    ]);
    assert_eq!(Source::find(&env), Ok(known("A", "S", Some("T"))));
    assert_eq!(region(&env), Ok(Some("ap-south-1".into())));
}

#[test]
fn profiles_are_read_from_both_files() {
    let (_home, env) = with_files(&[]);
    assert_eq!(Source::find(&env), Ok(known("ID", "SECRET+with/=signs=", None)));
    assert_eq!(region(&env), Ok(Some("eu-central-1".into())));
    let (_home, env) = with_files(&[("AWS_PROFILE", "work")]);
    assert_eq!(Source::find(&env), Ok(Source::Process("/opt/bin/creds --profile work".into())));
    assert_eq!(region(&env), Ok(Some("us-west-2".into())));
}

#[test]
fn what_is_missing_is_named() {
    let found = |vars: &[(&str, &str)]| Source::find(&with_files(vars).1).unwrap_err().to_string();
    assert_eq!(
        found(&[("AWS_PROFILE", "gone")]),
        "there are no credentials: `AWS_ACCESS_KEY_ID` is not set, and there is no profile `gone`"
    );
    assert_eq!(
        found(&[("AWS_PROFILE", "login")]),
        "the profile `login` uses `sso_session`, which is not supported"
    );
    assert_eq!(
        found(&[("AWS_PROFILE", "half")]),
        "the profile `half` has an `aws_access_key_id`, but no `aws_secret_access_key`"
    );
    assert_eq!(
        found(&[("AWS_ACCESS_KEY_ID", "A")]),
        "`AWS_ACCESS_KEY_ID` is set, but `AWS_SECRET_ACCESS_KEY` is not"
    );
    let nothing = Source::find(&env(&[]));
    assert!(matches!(nothing, Err(CredentialsError::Missing { .. })), "{nothing:?}");
}

#[test]
fn a_process_prints_credentials_and_no_error_shows_them() {
    let output = br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S","SessionToken":"T","Expiration":"2026-11-23T04:00:00Z"}"#;
    let (credentials, expiration) = printed(output).unwrap();
    assert_eq!(Source::Known(credentials), known("A", "S", Some("T")));
    assert_eq!(expiration.map(httpdate::fmt_http_date).as_deref(), Some("Mon, 23 Nov 2026 04:00:00 GMT"));
    for output in [
        &br#"{"Version":2,"AccessKeyId":"A","SecretAccessKey":"hunter2"}"#[..],
        br#"{"Version":1,"SecretAccessKey":"hunter2"}"#,
        br#""hunter2""#,
        br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":" "}"#,
        br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"2026-13-23T04:00:00Z"}"#,
        br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"2026-9223372036854775807-23T04:00:00Z"}"#,
        br#"{"Version":1,"AccessKeyId":"A","SecretAccessKey":"hunter2","Expiration":"soon"}"#,
    ] {
        let error = printed(output).unwrap_err();
        assert!(!error.to_string().contains("hunter2") && !error.hint().is_empty(), "{error}");
    }
}
