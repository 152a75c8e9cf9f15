//! Any text: the parser and the verifier give a program or an error, what was parsed survives its own print, and what a valid program
//! lowers to is a valid plan.
#![no_main]

use ferrax_ir::{parse, print, verify::verify};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(program) = parse(text) else { return };
    if verify(&program).is_ok() {
        let printed = print(&program);
        let again = parse(&printed).expect("printed text parses");
        assert_eq!(print(&again), printed);
        if let Ok(plan) = ferrax_ir::lower::lower(&program) {
            plan.verify().expect("lowering makes plans that keep the rules");
        }
    }
});
