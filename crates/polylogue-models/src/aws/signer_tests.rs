use std::time::UNIX_EPOCH;

use polylogue_http::Env;

use super::*;

fn signer(process: Option<&str>) -> (Signer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let lines = process
        .map_or("aws_access_key_id = id\naws_secret_access_key = secret\n".to_owned(), |command| {
            format!("credential_process = {command}\n")
        });
    std::fs::write(&config, format!("[default]\nregion = eu-west-1\n{lines}")).unwrap();
    let env =
        Env::of([("AWS_CONFIG_FILE", config.to_str().unwrap()), ("AWS_SHARED_CREDENTIALS_FILE", "/none")]);
    (Signer::new(Aws::of(&env).unwrap()), folder)
}

async fn signed(signer: &Signer) -> Result<Vec<(&'static str, String)>, CredentialsError> {
    let url = Url::parse("https://bedrock-runtime.eu-west-1.amazonaws.com/model/a%3A0/converse").unwrap();
    let unsigned = Unsigned { method: "POST", url: &url, content_type: "application/json", body: b"{}" };
    signer.sign(&unsigned).await.map(|signed| signed.headers)
}

fn date(signed: &[(&'static str, String)]) -> String {
    signed.iter().find(|(name, _)| *name == "x-amz-date").unwrap().1.clone()
}

#[tokio::test]
async fn the_clock_is_corrected_by_the_date_of_a_refusal_and_only_if_it_is_wrong() {
    let (signer, _folder) = signer(None);
    let at = |offset: i64| {
        let now = seconds(SystemTime::now()) + offset;
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(now.unsigned_abs()))
    };
    for none in [None, Some("soon"), Some(&*at(100)), Some(&*at(-100))] {
        assert!(!signer.corrects(0, none), "{none:?}");
    }
    let mut skew = 0;
    for offset in [86_400, -86_400] {
        assert!(signer.corrects(skew, Some(&at(offset))));
        assert!(signer.corrects(skew, Some(&at(offset))), "that was signed before");
        assert!(!signer.corrects(offset, Some(&at(offset))), "once");
        let expected = httpdate::fmt_http_date(moved(SystemTime::now(), offset));
        let day = expected.split([' ', ',']).nth(2).unwrap();
        assert_eq!(&date(&signed(&signer).await.unwrap())[6..8], day);
        skew = offset;
    }
    let jumps = (0..100).filter(|nth| signer.corrects(0, Some(&at(90_000 * (nth % 2 * 2 - 1))))).count();
    assert!(jumps < 10, "{jumps}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_is_run_once_until_its_credentials_expire_and_its_error_is_shown() {
    let printing = |expiration: &str, folder: &std::path::Path| {
        let output = format!(
            r#"{{"Version":1,"AccessKeyId":"id","SecretAccessKey":"s","SessionToken":"t"{expiration}}}"#
        );
        std::fs::write(folder.join("output"), output).unwrap();
    };
    let runs =
        |folder: &std::path::Path| std::fs::read_to_string(folder.join("runs")).unwrap().lines().count();
    let other = tempfile::tempdir().unwrap();
    let path = other.path();
    let (signer, _folder) = signer(Some(&format!("echo >> {0}/runs && cat {0}/output", path.display())));
    printing(r#","Expiration":"2020-01-01T00:00:00Z""#, path);
    for expected in [1, 2] {
        let headers = signed(&signer).await.unwrap();
        assert!(headers.contains(&("x-amz-security-token", "t".to_owned())));
        assert_eq!(runs(path), expected, "they have expired");
    }
    printing(r#","Expiration":"2999-01-01T00:00:00+00:00""#, path);
    for _ in 0..3 {
        signed(&signer).await.unwrap();
        assert_eq!(runs(path), 3);
    }
    let (failing, _folder) = self::signer(Some("echo expired >&2; exit 3"));
    let error = signed(&failing).await.unwrap_err();
    assert!(error.to_string().contains("exit status: 3: expired"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_process_is_run_again_once_for_a_call_whose_credentials_are_refused() {
    let output = r#"{"Version":1,"AccessKeyId":"id","SecretAccessKey":"s","SessionToken":"t"}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    std::fs::write(&path, output).unwrap();
    let (signer, _folder) = self::signer(Some(&format!("cat {}", path.display())));
    let secrets = async |signer: &Signer| {
        let url = Url::parse("https://bedrock-runtime.eu-west-1.amazonaws.com/").unwrap();
        let unsigned = Unsigned { method: "POST", url: &url, content_type: "application/json", body: b"{}" };
        signer.sign(&unsigned).await.unwrap().secrets
    };
    for _ in 0..2 {
        let first = secrets(&signer).await;
        assert!(signer.renews(&first), "another run may print others");
        let second = secrets(&signer).await;
        assert!(!signer.renews(&second), "it did not");
    }
    let old = secrets(&signer).await;
    std::fs::write(&path, output.replace("\"s\"", "\"new\"")).unwrap();
    assert!(signer.renews(&old));
    assert_eq!(secrets(&signer).await.first().map(Key::reveal), Some("new"));
    assert!(signer.renews(&old), "of a request that was signed before");
}
