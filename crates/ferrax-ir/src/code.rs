//! Programs as bytes and back, bit for bit: what text leaves out (weak types, hidden parameters, the bits of a nan) too.
//!
//! ```text
//! program = 0, captured inputs, inputs, their types, equations, outputs      or n: the n-th program that was written before this one
//! equation = the primitive's name, its parameters, the types of its results, its operands
//! ```
//!
//! A program is written as a list of parts first. The lists of programs that differ in sizes only, traced from one function at several
//! sizes, make one [`Family`]: bytes in which each size that varies is the number of an expression. To read them takes the expressions'
//! values, and gives the program at those sizes.
//!
//! INVARIANT: `read(write(p))` equals `p`, weak types included, except for the user's rules, which are not written: a function with a
//! custom derivative is written as the function alone. Reading checks every equation as the verifier does, takes no more memory than a
//! constant times what it reads, and never panics: what cannot be read is an error.
mod read;
mod write;

pub use read::{Decoder, SizeRead};
pub use write::Encoder;

use crate::aval::Lit;
use crate::dtype::Dtype;
use crate::error::{Res, value_err};
use std::collections::HashMap;
use std::sync::Arc;

/// Programs nested deeper than this are neither written nor read: reading recurses into them.
const MAX_DEPTH: usize = 100;

/// One part of an encoded program.
#[derive(Clone, PartialEq, Debug)]
enum Written {
    /// A count or a choice: part of the structure.
    Count(u64),
    /// A name: of a primitive, a parameter, a dtype.
    Name(Arc<str>),
    /// An integer that may be a size.
    Size(i64),
    /// A float, by its bits.
    Float(u64),
    /// A literal that may be a size.
    Literal(Lit),
}

/// Programs of one structure, as one.
pub struct Family {
    tokens: Vec<Written>,
    /// The number of a token among the sizes that vary.
    varying: HashMap<usize, usize>,
    sizes: Vec<Vec<i64>>,
    /// Those of them that are fractions, each by its bits as a double.
    fractions: Vec<bool>,
}

/// The integer that a literal is, if it is one.
fn whole(l: &Lit) -> Option<i64> {
    let x = l.parts().0;
    match l.dtype() {
        Dtype::Num(d) if d.is_int() => l.scalar().map(|s| s.to_i64()),
        d if d.is_float() && x.fract() == 0.0 && x.abs() < 9e15 => Some(x as i64),
        _ => None,
    }
}
/// The bits of a float's value.
fn fraction(l: &Lit) -> Option<i64> {
    l.dtype().is_float().then(|| l.parts().0.to_bits() as i64)
}
/// This integer as a literal with the type of another.
fn of_whole(dtype: Dtype, weak: bool, n: i64) -> Lit {
    let mut l = if dtype.is_float() { Lit::from_f64(dtype, n as f64) } else { Lit::from_i64(dtype, n) };
    l.weak = weak;
    l
}

impl Family {
    /// The family of several encoded programs, at least one.
    ///
    /// # Errors
    /// `Value` if they differ in more than sizes; the message shows the difference between the
    /// first two.
    pub fn of(all: Vec<Encoder>) -> Res<Family> {
        let mut lists: Vec<Vec<Written>> = all.into_iter().map(Encoder::into_tokens).collect();
        let (mut varying, mut numbers) = (HashMap::new(), HashMap::new());
        let (mut sizes, mut fractions) = (vec![], vec![]);
        if let Some(other) = lists.iter().find(|l| l.len() != lists[0].len()) {
            return value_err(format!("one has {} parts and another has {}", lists[0].len(), other.len()));
        }
        for i in 0..lists.first().map_or(0, Vec::len) {
            let first = &lists[0][i];
            if lists.iter().all(|l| l[i] == *first) {
                continue;
            }
            let literal = |l: &Vec<Written>, of: fn(&Lit) -> Option<i64>| match (&l[i], first) {
                (Written::Literal(a), Written::Literal(b)) if (a.dtype(), a.weak) == (b.dtype(), b.weak) => of(a),
                _ => None,
            };
            let size = |l: &Vec<Written>| match (&l[i], first) {
                (Written::Size(n), Written::Size(_)) => Some(*n),
                _ => literal(l, whole),
            };
            let sized = lists.iter().map(size).collect::<Option<Vec<i64>>>();
            let is_fraction = sized.is_none();
            let at = sized.or_else(|| lists.iter().map(|l| literal(l, fraction)).collect());
            let Some(at) = at else {
                let other = lists.iter().find(|l| l[i] != *first).map_or(first, |l| &l[i]);
                return value_err(format!("one has {} where another has {}", shown(first), shown(other)));
            };
            let n = *numbers.entry((is_fraction, at.clone())).or_insert_with(|| {
                sizes.push(at);
                fractions.push(is_fraction);
                sizes.len() - 1
            });
            varying.insert(i, n);
        }
        let tokens = if lists.is_empty() { vec![] } else { lists.swap_remove(0) };
        Ok(Family { tokens, varying, sizes, fractions })
    }
    /// The sizes that vary, each as its values in the family's programs.
    pub fn sizes(&self) -> &[Vec<i64>] {
        &self.sizes
    }
    /// The sizes that are fractions: constants that a program computed from its sizes. Their values are the bits of doubles.
    pub fn fractions(&self) -> &[bool] {
        &self.fractions
    }
    /// The bytes; a size that varies is its number in [`Family::sizes`].
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = vec![];
        let mut names: HashMap<&str, u64> = HashMap::new();
        for (i, t) in self.tokens.iter().enumerate() {
            let expression = self.varying.get(&i).map_or(0, |n| *n as u64 + 1);
            match t {
                Written::Count(n) => varint(&mut out, *n),
                Written::Name(s) => match names.get(&**s) {
                    Some(n) => varint(&mut out, *n + 1),
                    None => {
                        varint(&mut out, 0);
                        varint(&mut out, s.len() as u64);
                        out.extend(s.as_bytes());
                        names.insert(s, names.len() as u64);
                    }
                },
                Written::Size(n) => {
                    varint(&mut out, expression);
                    if expression == 0 {
                        varint(&mut out, ((n << 1) ^ (n >> 63)) as u64);
                    }
                }
                Written::Float(bits) => out.extend(bits.to_le_bytes()),
                Written::Literal(l) => {
                    varint(&mut out, expression);
                    if expression == 0 {
                        out.extend(l.bits().to_le_bytes());
                    }
                }
            }
        }
        out
    }
}
fn shown(t: &Written) -> String {
    match t {
        Written::Count(n) => format!("{n}"),
        Written::Name(s) => format!("'{s}'"),
        Written::Size(n) => format!("the size {n}"),
        Written::Float(bits) => format!("the number {}", f64::from_bits(*bits)),
        Written::Literal(l) => format!("the constant {l}:{}", l.dtype()),
    }
}
/// Seven bits a byte, the lowest first.
fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
