//! Any text: the parser and the verifier give a program or an error, and what was parsed survives its own print.
#![no_main]

use ferrax_ir::{parse, print, verify::verify};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(program) = parse(text) else { return };
    if verify(&program).is_ok() {
        let printed = print(&program);
        let again = parse(&printed).expect("printed text parses");
        assert_eq!(print(&again), printed);
    }
});
