//! Broken, cut and foreign files: an error that says so, and never a panic.
#![cfg(feature = "engine")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;

use common::tiny::{ARCHITECTURES, Meta, Tiny};
use common::{Asked, model, run};
use polylogue_core::ModelErrorKind;
use polylogue_local::{LoadError, LocalModel, LocalOptions};
use proptest::prelude::*;

/// Opens the file and asks its model for a few tokens: an error, or a reply.
fn used(path: &Path) -> Result<(), String> {
    let options = LocalOptions { window: Some(128), memory: Some(1 << 28), sequences: 1 };
    let model = LocalModel::open(path, options).map_err(|error| error.to_string())?;
    let asked = Asked::new("hi").with(|params| params.max_tokens = Some(2));
    run(asked.ask(&model)).map(drop).map_err(|error| {
        // The engine's own panics are bugs, but errors; the files here are refused before.
        assert!(!error.message.contains("the thread of the model has ended"), "{error}");
        error.to_string()
    })
}

/// The weights are read with the first request. The file is not damaged, and the disk may be back with the next one.
#[test]
fn a_file_that_cannot_be_read_when_it_is_needed_is_read_again() {
    let (folder, model) = model();
    let [path, away] = ["tiny.gguf", "away.gguf"].map(|name| folder.path().join(name));
    std::fs::rename(&path, &away).unwrap();
    for _ in 0..2 {
        let error = run(Asked::new("hi").ask(&model)).unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Config);
        assert!(error.message.starts_with("cannot read `"), "{error}");
    }
    std::fs::rename(&away, &path).unwrap();
    assert!(run(Asked::new("hi").ask(&model)).is_ok());
}

#[test]
fn a_file_that_is_missing_foreign_or_cut_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| LocalModel::open(path, LocalOptions::default()).unwrap_err();
    let path = folder.path().join("none.gguf");
    assert!(matches!(open(&path), LoadError::Unreadable { .. }));
    assert!(matches!(open(folder.path()), LoadError::Unreadable { .. }));
    std::fs::write(&path, "# Not a model\n").unwrap();
    let foreign = open(&path);
    assert!(
        matches!(foreign, LoadError::Foreign { .. }) && foreign.hint().contains("converted"),
        "{foreign}"
    );
    for cut in ["", "GG"] {
        std::fs::write(&path, cut).unwrap();
        assert!(matches!(open(&path), LoadError::Broken { .. }), "{cut}");
    }
    let whole = Tiny::default().bytes();
    std::fs::write(&path, &whole[..whole.len() - 1000]).unwrap();
    let LoadError::Broken { reason, .. } = open(&path) else { panic!("a cut file is used") };
    assert!(reason.contains("ends after the end of the file"), "{reason}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.gguf");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let LoadError::Unreadable { reason, .. } = LocalModel::open(&pipe, LocalOptions::default()).unwrap_err()
    else {
        panic!("a pipe is read")
    };
    assert_eq!(reason, "it is not a file");
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gguf");
    let whole = Tiny::default().bytes();
    for at in (0..whole.len()).step_by(whole.len() / 150) {
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(used(&path).is_err(), "cut at {at} of {}", whole.len());
    }
}

#[test]
fn sizes_that_do_not_fit_the_tensors_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [
        "block_count",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "attention.head_count_kv",
        "attention.key_length",
        "rope.dimension_count",
    ];
    for key in sizes {
        for value in [0, 3, 5, 1 << 20, u32::MAX] {
            let more = vec![(format!("llama.{key}"), Meta::U32(value))];
            let path = Tiny { more, ..Tiny::default() }.write(folder.path(), "sizes.gguf");
            let result = used(&path);
            assert!(result.is_err(), "{key} = {value}");
        }
    }
    for (key, ids) in
        [("tokens", vec![]), ("tokens", vec!["a".to_owned(); 3]), ("tokens", vec!["a".to_owned(); 9999])]
    {
        let more = vec![(format!("tokenizer.ggml.{key}"), Meta::Texts(ids))];
        assert!(used(&Tiny { more, ..Tiny::default() }.write(folder.path(), "tokens.gguf")).is_err());
    }
}

#[test]
fn a_damaged_tensor_is_found_at_the_first_request_if_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = Tiny::default().write(folder.path(), "tiny.gguf");
    let model = LocalModel::open(&path, LocalOptions::default()).unwrap();
    // The weights are read with the first request, and the file has changed since.
    std::fs::write(&path, "gone").unwrap();
    let error = run(Asked::new("hi").ask(&model)).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Config);
    assert!(error.hint.unwrap().contains("download the file again"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_mutated_file_never_panics(
        architecture in 0..ARCHITECTURES.len(),
        byte_pairs in any::<bool>(),
        mutations in proptest::collection::vec((0..20_000_usize, any::<u8>()), 1..12),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let tiny = Tiny { architecture: ARCHITECTURES[architecture], byte_pairs, ..Tiny::default() };
        let mut bytes = tiny.bytes();
        for (at, byte) in mutations {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let path = folder.path().join("mutated.gguf");
        std::fs::write(&path, bytes).unwrap();
        // Damaged weights can still be used; what matters is that nothing panics outside of the guarded thread.
        let _ = used(&path);
    }
}
