//! Feeds what the fuzzer has found, and what chance makes of it, to everything that decodes what comes from outside.

#[path = "../../../fuzz/src/decoders/mod.rs"]
mod decoders;

use std::path::{Path, PathBuf};

use decoders::TARGETS;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
// What the supervisor's words are made of, where they look for it.
use shoal_daemon::cell;

/// Changed inputs for each target.
const CHANGED: usize = 3_000;
/// Bytes of one target's corpus, at most: the repository keeps what is worth most.
const CORPUS_BYTES_MAX: u64 = 8 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The inputs that are kept for a target, in the order of their names.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = fuzz().join("corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// Does to an input what a fuzzer does: bits, bytes, numbers, pieces moved, doubled, cut off or taken from another.
fn change(input: &[u8], other: &[u8], chance: &mut impl Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..chance.random_range(1..4) {
        let at = chance.random_range(0..=bytes.len());
        match chance.random_range(0..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = chance.random(),
            2 => bytes.insert(at, chance.random()),
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..(at + chance.random_range(0..9)).min(bytes.len()))),
            5 => {
                let from = chance.random_range(0..=other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            _ => {
                let numbers = [&b"0"[..], b"-1", b"18446744073709551616", b"1e308", &[0xff; 8], &[0x9b; 9]];
                let number = numbers[chance.random_range(0..numbers.len())];
                bytes.splice(at..at, number.iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn nothing_panics_on_what_the_fuzzer_found_or_on_what_chance_makes_of_it() {
    for (number, (name, target)) in (1..).zip(TARGETS) {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "nothing is kept for {name}");
        corpus.iter().for_each(|input| target(input));
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(number);
        for _ in 0..CHANGED {
            let [one, other] = [(); 2].map(|()| &corpus[chance.random_range(0..corpus.len())]);
            let input = change(one, other, &mut chance);
            let tried = std::panic::catch_unwind(|| target(&input));
            assert!(tried.is_ok(), "{name} panics on {:?}", input.escape_ascii().to_string());
        }
    }
}

#[test]
fn each_target_has_its_program_and_a_small_corpus() {
    let manifest: toml::Table = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap().parse().unwrap();
    let programs: Vec<&str> =
        manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap()).collect();
    assert_eq!(programs, TARGETS.map(|(name, _)| name));
    for (name, _) in TARGETS {
        assert!(fuzz().join("fuzz_targets").join(format!("{name}.rs")).is_file(), "{name}");
        let bytes: u64 = corpus(name).iter().map(|input| input.len() as u64).sum();
        assert!(bytes <= CORPUS_BYTES_MAX, "{name} keeps {bytes} bytes");
    }
}
