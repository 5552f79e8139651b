//! Cassettes that were changed at random: what is replayed is what was recorded, or an error says where the damage begins.

use std::fs;

use polylogue_models::{Cassette, Recorder, Recording};
use polylogue_test::random::Random;

use super::{Asked, Fake, Fresh, reply};

/// How many are tried, unless `POLYLOGUE_MUTATIONS` says otherwise.
const CHANGES: u64 = 5_000;

const REPLIES: [&str; 4] = ["one", "two", "three", "four"];

/// Damage as disks, editors and people do it.
fn mutated(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=random.index(3) {
        let (a, b) = (random.index(bytes.len() + 1), random.index(bytes.len() + 1));
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 60));
        match random.index(8) {
            0 if start < bytes.len() => bytes[start] ^= 1 << random.index(8),
            1 if start < bytes.len() => bytes[start] = (random.number() & 0xff) as u8,
            2 => drop(bytes.drain(start..end)),
            3 => bytes.truncate(start),
            4 => {
                let piece = bytes[start..end].to_vec();
                bytes.splice(start..start, piece);
            }
            5 => bytes[start..end].fill(0),
            6 => {
                // Another word of the same length, in valid JSON.
                let (from, to) = [("one", "six"), ("two", "ten"), ("four", "nine"), ("go", "no"), ("0", "1")]
                    [random.index(5)];
                bytes = String::from_utf8_lossy(&bytes).replacen(from, to, 1 + random.index(2)).into_bytes();
            }
            _ => {
                let mut lines: Vec<Vec<u8>> =
                    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                let (i, j) = (random.index(lines.len()), random.index(lines.len()));
                if !lines.is_empty() {
                    lines.swap(i, j);
                }
                bytes = lines.concat();
            }
        }
    }
    bytes
}

#[tokio::test]
async fn whatever_is_changed_in_a_cassette_nothing_else_is_replayed_than_was_recorded() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let (count, first) =
        (number("POLYLOGUE_MUTATIONS").unwrap_or(CHANGES), number("POLYLOGUE_SEED").unwrap_or(1));
    println!("{count} mutations from the seed {first} on");
    let file = Fresh::new();
    let model = Recorder::new(Fake::saying(&REPLIES), &Cassette::create(&file).unwrap());
    for nth in 0..REPLIES.len() as u64 {
        Asked::new("A", nth).of(&model).await.unwrap();
    }
    drop(model);
    let whole = fs::read(&file).unwrap();
    let (mut refused, mut shorter, mut same) = (0, 0, 0);
    for seed in first..first + count {
        let bytes = mutated(&whole, &mut Random::new(seed));
        fs::write(&file, &bytes).unwrap();
        let opened = Recording::open(&file);
        match &opened {
            Err(_) => refused += 1,
            Ok(_) if bytes == whole => same += 1,
            Ok(recording) => {
                // Only an end can be missing: all lines that are there are lines that were written.
                shorter += 1;
                let calls = recording.calls();
                assert!(whole.starts_with(&bytes) || recording.is_cut_off(), "seed {seed}: {calls} calls");
            }
        }
        for (nth, text) in REPLIES.iter().enumerate() {
            let Ok(recording) = &opened else { break };
            let answer = Asked::new("A", nth as u64).of(&recording.model("fake:model")).await;
            assert_eq!(answer.is_ok(), nth < recording.calls(), "seed {seed}, call {nth}");
            assert!(answer.is_err() || answer == Ok(reply(text)), "seed {seed}, call {nth}: {answer:?}");
        }
        // Recording continues behind what is intact, or not at all; an empty file is a new one.
        assert_eq!(Cassette::append(&file).is_ok(), opened.is_ok() || bytes.is_empty(), "seed {seed}");
    }
    println!("{refused} refused, {shorter} shorter, {same} the same");
    assert!(refused > count / 2 && shorter > 0, "{refused} refused, {shorter} shorter");
}
