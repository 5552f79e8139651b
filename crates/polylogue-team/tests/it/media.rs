//! Pictures, sounds and documents that a team attaches from files.

use std::fs;
use std::path::Path;

use polylogue_core::Media;
use polylogue_team::{Loaded, Overrides, Team, format, load, parse_at};

use crate::common;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01";

/// A team whose opening has `media`.
fn text(media: &str) -> String {
    format!(
        "name: t\nagents: [{{name: A}}]\nchat:\n  participants: [A]\n  pattern: sequential\n  opening:\n    text: What is it?\n    media:\n      - {media}\n"
    )
}

/// Loads a team whose opening has `media`.
fn loaded(folder: &Path, media: &str) -> Result<Loaded, String> {
    fs::write(folder.join("t.yaml"), text(media)).unwrap();
    load(folder.join("t.yaml"), &Overrides::default()).map_err(|errors| errors.to_string())
}

fn attached(team: &Team) -> Vec<Media> {
    team.chat.opening.0[0].media.iter().map(|media| media.part().unwrap()).collect()
}

/// A folder `team` with files of each type, and a secret next to it.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let team = dir.path().join("team");
    fs::create_dir_all(team.join("pictures")).unwrap();
    fs::write(dir.path().join("secret.png"), PNG).unwrap();
    fs::write(team.join("pictures/dot.png"), PNG).unwrap();
    fs::write(team.join("a.pdf"), b"%PDF-1.7 ....").unwrap();
    fs::write(team.join("a.wav"), b"RIFF....WAVEfmt ").unwrap();
    fs::write(team.join("notes.txt"), "text").unwrap();
    fs::write(team.join("empty.png"), "").unwrap();
    (dir, team)
}

#[test]
fn files_below_the_folder_are_attached_with_the_type_of_their_content() {
    let (_dir, folder) = folder();
    for (media, kind) in [
        ("{file: pictures/dot.png}", "image/png"),
        ("{type: image/png, file: ./pictures/dot.png}", "image/png"),
        ("{file: a.pdf}", "application/pdf"),
        ("{file: a.wav}", "audio/wav"),
    ] {
        let team = loaded(&folder, media).unwrap().team;
        let [media] = &attached(&team)[..] else { panic!("{media}") };
        assert_eq!(media.media_type, kind);
        assert!(media.url.starts_with(&format!("data:{kind};base64,")) && media.bytes().is_some());
    }
}

#[test]
fn what_cannot_be_attached_is_reported_at_its_line() {
    let (_dir, folder) = folder();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.png", folder.join("link.png")).unwrap();
    fs::write(folder.join("half.png"), &PNG[..20]).unwrap();
    fs::create_dir(folder.join(".private")).unwrap();
    for file in [".own.png", ".private/own.png"] {
        fs::write(folder.join(file), PNG).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(".private/own.png", folder.join("own.png")).unwrap();
    let large = fs::File::create(folder.join("large.png")).unwrap();
    large.set_len(Media::MAX_BYTES + 1).unwrap();
    let below = "it is not below the folder of the team file";
    for (media, why) in [
        ("{file: gone.png}", "the file `gone.png` cannot be attached: the file does not exist"),
        ("{file: ../secret.png}", below),
        ("{file: pictures/../../secret.png}", below),
        ("{file: /etc/hostname}", below),
        #[cfg(unix)]
        ("{file: link.png}", below),
        ("{file: .own.png}", "it is hidden"),
        ("{file: ./.private/own.png}", "it is hidden"),
        #[cfg(unix)]
        ("{file: own.png}", "it is hidden"),
        ("{file: pictures}", "it is not a file"),
        ("{file: large.png}", "all that a team attaches has 20 MiB at most"),
        ("{file: notes.txt}", "its type is not supported"),
        ("{file: empty.png}", "its type is not supported"),
        ("{file: half.png}", "it is a damaged picture"),
        ("{type: image/jpeg, file: a.pdf}", "it is `application/pdf`, and not `image/jpeg`"),
    ] {
        let errors = loaded(&folder, media).unwrap_err();
        assert!(errors.contains(why), "{media}: {errors}");
        assert!(errors.contains("t.yaml:9:") && errors.matches("error: ").count() == 1, "{media}: {errors}");
    }
    for (media, why) in [
        ("{type: image/png}", "nothing is attached: there is neither `file` nor `url`"),
        ("{url: 'https://example.org/a.png'}", "`url` also needs `type`"),
        (
            "{type: image/png, url: 'https://example.org/a.png', file: a.png}",
            "`url` and `file` cannot both be given",
        ),
    ] {
        let errors = loaded(&folder, media).unwrap_err();
        assert!(errors.contains(why), "{media}: {errors}");
    }
}

/// The limits are those of the whole team, as its files are kept with every conversation.
#[test]
fn all_files_of_a_team_share_one_limit() {
    let (_dir, folder) = folder();
    let mut half = PNG.to_vec();
    half.resize(usize::try_from(Media::MAX_BYTES / 2).unwrap() + 1, 0);
    fs::write(folder.join("half.png"), half).unwrap();
    assert!(loaded(&folder, "{file: half.png}").is_ok());
    let errors = loaded(&folder, "{file: half.png}\n      - {file: half.png}").unwrap_err();
    assert!(errors.contains("t.yaml:10:") && errors.contains("20 MiB at most"), "{errors}");
    let many = vec!["{file: a.pdf}"; 65].join("\n      - ");
    let errors = loaded(&folder, &many).unwrap_err();
    assert!(errors.contains("t.yaml:73:") && errors.contains("at most 64 files"), "{errors}");
}

/// A team that is stored with a conversation has what was attached, whatever becomes of the file.
#[test]
fn a_stored_team_keeps_what_was_attached() {
    let (_dir, folder) = folder();
    let Loaded { team, digest, .. } = loaded(&folder, "{file: pictures/dot.png}").unwrap();
    let stored = serde_json::to_value(&team).unwrap();
    let changed = [PNG, b"more"].concat();
    fs::write(folder.join("pictures/dot.png"), &changed).unwrap();
    let newer = team.reload().unwrap().unwrap();
    assert_ne!(newer.digest, digest);
    let changes: Vec<_> = team.changes_to(&newer.team).iter().map(ToString::to_string).collect();
    assert_eq!(changes.len(), 1);
    assert!(changes[0].ends_with("pictures/dot.png` has changed"), "{changes:?}");
    fs::remove_dir_all(&folder).unwrap();
    assert!(team.reload().is_none());
    let again: Team = serde_json::from_value(stored).unwrap();
    assert_eq!(again, team);
    assert_eq!(attached(&again)[0].bytes().unwrap(), PNG);
}

#[test]
fn texts_from_elsewhere_attach_only_what_is_in_their_folder() {
    let (_dir, folder) = folder();
    let path = folder.join("t.yaml");
    let of = |media: &str| parse_at(&text(media), &path, &[], &Overrides::default());
    assert_eq!(attached(&of("{file: a.pdf}").unwrap().team)[0].media_type, "application/pdf");
    let errors = of("{file: ../secret.png}").unwrap_err().to_string();
    assert!(errors.contains("it is not below the folder of the team file"), "{errors}");
    let errors = common::wrong(&text("{file: a.pdf}"));
    assert!(errors.contains("files are not read here"), "{errors}");
}

/// Each team within a team has the files of its own folder.
#[test]
fn a_team_within_a_team_attaches_files_of_its_folder() {
    let (_dir, folder) = folder();
    fs::write(folder.join("pictures/inner.yaml"), text("{file: dot.png}")).unwrap();
    let outer = "name: o\nteams: [{name: Inner, file: pictures/inner.yaml}]\nchat: {participants: [Inner], pattern: sequential}\n";
    fs::write(folder.join("o.yaml"), outer).unwrap();
    let team = load(folder.join("o.yaml"), &Overrides::default()).unwrap().team;
    assert_eq!(attached(&team.teams[0].team)[0].media_type, "image/png");
    fs::write(folder.join("pictures/inner.yaml"), text("{file: ../a.pdf}")).unwrap();
    let errors = load(folder.join("o.yaml"), &Overrides::default()).unwrap_err().to_string();
    assert!(errors.contains("inner.yaml:9:") && errors.contains("not below the folder"), "{errors}");
}

#[test]
fn fmt_keeps_them() {
    let written = text("{file:   pictures/dot.png}");
    let formatted = format(&written, "t.yaml").unwrap();
    assert!(formatted.contains("{file: pictures/dot.png}"), "{}", formatted);
}
