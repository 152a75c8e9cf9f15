//! Text from anywhere: the parser and the verifier give a program or an error, never a panic, and what was parsed survives its own print.
//!
//! The seeds are JAX's own programs; each is cut, doubled and mixed in every way that proptest draws.

use ferrax_ir::{parse, print, verify};
use proptest::prelude::*;

const SEEDS: &str = include_str!("../../../tests/golden/programs.txt");

fn seeds() -> Vec<&'static str> {
    SEEDS.lines().filter_map(|l| l.split_once(": ").map(|(_, text)| text)).collect()
}

/// Parses, verifies, prints and parses again.
fn digest(source: &str) -> bool {
    let Ok(program) = parse(source) else { return false };
    if verify::verify(&program).is_err() {
        return false;
    }
    let printed = print(&program);
    let again = parse(&printed).unwrap_or_else(|e| panic!("printed text does not parse: {e:?}\n{printed}"));
    assert_eq!(print(&again), printed);
    true
}

#[test]
fn every_seed_is_a_program() {
    for seed in seeds() {
        assert!(digest(seed), "{:?}\n{seed}", parse(seed).err());
    }
}

/// Texts that coverage-guided fuzzing found. One had a binder without a name; then an empty text
/// was a variable, and the outputs had no end.
#[test]
fn what_was_found_once_is_refused() {
    for text in [
        "{ lambda ; :f32[3]. let in (,) }",
        "{ lambda ; a:f32[3]:f32[3]. let b:f32[3] = sin a in (b,. let",
        "{ lambda ; a:f32[]. let :f32[] = sin a in (a,) }",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn damaged_programs_do_no_harm(
        seed in prop::sample::select(seeds()),
        other in prop::sample::select(seeds()),
        cuts in prop::collection::vec((0usize..400, 0usize..12, any::<bool>()), 1..4),
        junk in "[-\\[\\]{}():;=,.0-9a-zA-Z_ ]{0,6}",
    ) {
        let mut text: Vec<char> = seed.chars().collect();
        let other: Vec<char> = other.chars().collect();
        for (at, len, insert) in cuts {
            let at = at % (text.len() + 1);
            if insert {
                let from = at % other.len();
                let piece: Vec<char> = other[from..(from + len).min(other.len())].iter().copied().chain(junk.chars()).collect();
                text.splice(at..at, piece);
            } else {
                let end = (at + len).min(text.len());
                text.splice(at..end, junk.chars());
            }
        }
        digest(&text.into_iter().collect::<String>());
    }

    #[test]
    fn noise_does_no_harm(noise in "\\PC{0,60}") {
        digest(&noise);
        digest(&format!("{{ lambda ; a:f32[3]. let {noise} in (a,) }}"));
    }
}
