use super::*;

#[test]
fn settings_are_changed_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/config.yaml");
    let (given, model) = (Some(path.as_path()), Setting::find("model").unwrap());
    assert_eq!(UserConfig::set(given, model, "openai:a").unwrap(), path);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "model: openai:a\n");
    std::fs::write(&path, "# mine\nmodel: 'openai:a' # for now\n# more").unwrap();
    UserConfig::set(given, model, "ollama:llama3.2").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\nmodel: ollama:llama3.2 # for now\n# more");
    assert_eq!(UserConfig::unset(given, model).unwrap(), Some(path.clone()));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\n# more");
    assert_eq!(UserConfig::unset(given, model).unwrap(), None);
    UserConfig::set(given, model, "openai:a").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "# mine\n# more\nmodel: openai:a\n");
}

#[test]
fn a_configuration_file_is_replaced_as_a_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    std::fs::write(&path, "# mine\nmodel: openai:a\n").unwrap();
    let before = std::fs::File::open(&path).unwrap();
    UserConfig::set(Some(&path), Setting::find("model").unwrap(), "openai:b").unwrap();
    // A full disk, or another process that reads it now, finds all of the old one.
    assert_eq!(std::io::read_to_string(before).unwrap(), "# mine\nmodel: openai:a\n");
}

#[test]
fn a_configuration_file_that_cannot_be_edited_is_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.yaml");
    let (given, model) = (Some(path.as_path()), Setting::find("model").unwrap());
    for text in ["{model: openai:a}\n", "? model\n: openai:a\n"] {
        std::fs::write(&path, text).unwrap();
        let done = UserConfig::unset(given, model);
        assert!(done.is_err_and(|error| error.to_string().contains("edit the file")), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn keys_are_refused_and_not_shown() {
    let text = "openai_api_key: hush-hush\nmodel: sk-abcdefghijkl\n";
    let wrong = values(text, "config.yaml").unwrap_err().to_string();
    assert!(wrong.contains("keys are not kept in this file") && wrong.contains("OPENAI_API_KEY"), "{wrong}");
    assert!(!wrong.contains("hush-hush"), "{wrong}");
    // A `.env` file, and a key below a setting.
    for text in
        ["A=1\nOPENAI_API_KEY=hush-hush\n", "model:\n  api_key: hush-hush\n", "model: [sk-hushhushhush]\n"]
    {
        let wrong = values(text, "config.yaml").unwrap_err().to_string();
        assert!(!wrong.contains("hush"), "{wrong}");
        assert_eq!(wrong.contains("keys are not kept in this file"), text.contains('='), "{wrong}");
    }
}
