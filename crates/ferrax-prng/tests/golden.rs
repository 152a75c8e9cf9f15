//! Keys, splits, folds and bits equal what JAX answered (`golden/threefry.txt`, made by `golden/threefry.py`).

use ferrax_prng::{Bits, Layout, Width, fold_in, key_from_seed, split};

const GOLDEN: &str = include_str!("golden/threefry.txt");

fn hex(word: &str) -> u32 {
    u32::from_str_radix(word, 16).unwrap()
}

fn layout(name: &str) -> Layout {
    match name {
        "partitionable" => Layout::Partitionable,
        "original" => Layout::Original,
        other => panic!("layout {other}"),
    }
}

fn answer(case: &[&str]) -> Vec<u64> {
    let wide = |[x, y]: [u32; 2]| vec![u64::from(x), u64::from(y)];
    match *case {
        ["seed", mode, seed] => wide(key_from_seed(seed.parse().unwrap(), mode == "64")),
        ["split", l, k0, k1, n] => {
            let n: u32 = n.parse().unwrap();
            (0..n).flat_map(|i| wide(split(layout(l), [hex(k0), hex(k1)], i, n))).collect()
        }
        ["fold_in", _, k0, k1, data] => wide(fold_in([hex(k0), hex(k1)], data.parse().unwrap())),
        ["bits", l, k0, k1, width, n] => {
            let n: u32 = n.parse().unwrap();
            let width = Width::from_bits(width.parse().unwrap()).unwrap();
            let draw = Bits::new(layout(l), width, u64::from(n)).unwrap();
            let element = |i| {
                let [high, low] = draw.element([hex(k0), hex(k1)], [0, i]);
                u64::from(high) << 32 | u64::from(low)
            };
            (0..n).map(element).collect()
        }
        ref other => panic!("case {other:?}"),
    }
}

#[test]
fn equals_jax() {
    let mut cases = 0;
    for line in GOLDEN.lines() {
        let (head, words) = line.split_once(" =").unwrap();
        let expected: Vec<u64> = words.split_whitespace().map(|w| u64::from_str_radix(w, 16).unwrap()).collect();
        let case: Vec<&str> = head.split_whitespace().collect();
        assert_eq!(answer(&case), expected, "{head}");
        cases += 1;
    }
    assert!(cases > 500, "{cases} cases");
}

/// Partitionable elements do not depend on the draw's length, and count past 32 bits.
#[test]
fn partitionable_counts_in_64_bits() {
    let key = [3, 5];
    let draw = |len| Bits::new(Layout::Partitionable, Width::W32, len).unwrap();
    assert_eq!(draw(7).element(key, [0, 6]), draw(1 << 40).element(key, [0, 6]));
    assert_ne!(draw(1 << 40).element(key, [1, 6]), draw(1 << 40).element(key, [0, 6]));
}

#[test]
fn original_refuses_more_words_than_counters() {
    let most = u64::from(u32::MAX);
    assert!(Bits::new(Layout::Original, Width::W32, most).is_ok());
    assert_eq!(Bits::new(Layout::Original, Width::W32, most + 1).unwrap_err().words, most + 1);
    assert!(Bits::new(Layout::Original, Width::W8, 4 * most).is_ok());
    assert!(Bits::new(Layout::Original, Width::W64, most / 2 + 1).is_err());
    assert!(Bits::new(Layout::Partitionable, Width::W64, u64::MAX).is_ok());
}
