//! The user's lines: asked for when an equation joins a program, kept through transforms, named by errors. A line is a counter here.
use ferrax_ir::Program;
use ferrax_ir::cx::{Lines, install_lines};
use ferrax_testkit::api::*;
use std::cell::Cell;

thread_local! { static ASKED: Cell<u32> = const { Cell::new(0) } }
fn install() {
    let here = || {
        ASKED.set(ASKED.get() + 1);
        ASKED.get()
    };
    install_lines(Lines { here, text: |n| Some(format!("line {n}")), names: |_| String::new(), scopes: None });
    ASKED.set(0);
}
fn staged(f: F) -> Program {
    ferrax_transform::make_program(&|x| Ok(f(x)?.into()), &[sc(0.5).aval()]).unwrap().0
}
fn line_of(p: &Program, name: &str) -> Vec<u32> {
    p.eqns().iter().zip(p.lines()).filter(|(e, _)| e.op.name() == name).map(|(_, l)| *l).collect()
}

#[test]
fn evaluation_asks_for_no_line() {
    install();
    let f: F = &|a| Ok(vec![sin(&a[0]) * &a[0]]);
    f(&[sc(0.5)]).unwrap();
    grad1(&|x| Ok(sin(x) * x), &sc(0.5)).unwrap();
    vmap(f, &[arr(&[2], &[1.0, 2.0])], &[Some(0)], &[0]).unwrap();
    assert_eq!(ASKED.get(), 0);
}
#[test]
fn staging_asks_once_for_each_equation() {
    install();
    let p = staged(&|a| Ok(vec![sin(&a[0]) * &a[0]]));
    assert_eq!((p.lines(), ASKED.get()), (&[1, 2][..], 2));
}
#[test]
fn derivatives_keep_the_line_of_what_they_derive() {
    install();
    let p = staged(&|a| Ok(vec![grad1(&|x| Ok(exp(&sin(x))), &a[0])?]));
    assert_eq!(line_of(&p, "cos").len(), 1);
    // the transposed product has the line of its linear equation, which was traced right after the
    // cosine
    let last = *line_of(&p, "mul").last().unwrap();
    assert!(last > line_of(&p, "sin")[0] && last <= ASKED.get(), "{:?}", p.lines());
}
