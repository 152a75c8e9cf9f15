//! `Tree`: the arguments and results of functions of tensors: a tensor, or a structure of them.
//!
//! Tuples, arrays, `Vec`, `Option`, `HashMap`, `BTreeMap`, `Box`, `Arc` of trees are trees; `#[derive(Tree)]` makes your own types trees.
//! `#[derive(Tree)]`.
//!
//! ```
//! use ferrax::{Tensor, Tree};
//! #[derive(Clone, Tree)]
//! struct Layer {
//!     w: Tensor,
//!     b: Option<Tensor>,
//!     #[tree(fixed)]
//!     name: String, // the same in every copy; what is traced depends on it
//! }
//! let l = Layer { w: Tensor::ones(&[2, 2]), b: None, name: "first".into() };
//! assert_eq!(l.map(|t| t * 2.0).w.sum().item(), 8.0);
//! assert_eq!(vec![l].paths(), ["[0].w"]);
//! ```
//!
//! A type can also implement it by hand, if its structure is not that of its fields:
//!
//! ```
//! use ferrax::{Outline, Tensor, Tree, grad};
//! struct Symmetric(Tensor); // what is below the diagonal is not there
//! impl Tree for Symmetric {
//!     fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
//!         f(&self.0.triu(0));
//!     }
//!     fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Symmetric {
//!         let upper = f(&self.0.triu(0));
//!         Symmetric(&upper + upper.triu(1).t())
//!     }
//!     fn outline(&self, out: &mut Outline) {
//!         out.enter(".upper", |out| out.leaf());
//!     }
//! }
//! let g = grad(|s: &Symmetric| s.0.sum())(&Symmetric(Tensor::zeros(&[2, 2])))?;
//! assert_eq!((g.0.triu(0).to_vec::<f32>()?, g.paths()), (vec![1.0, 2.0, 0.0, 1.0], vec![".upper".to_string()]));
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: `leaves`, `rebuild` and `outline` visit the same tensors in the same order; two trees of one outline differ in tensors only.
use crate::tensor::Tensor;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{Debug, Display, Write};
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// A structure of tensors.
pub trait Tree: Sized {
    /// Calls `f` on every tensor.
    fn leaves(&self, f: &mut dyn FnMut(&Tensor));
    /// The same structure with every tensor replaced.
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;
    /// Writes the structure: the key of each part, and the text of each part that is not a tensor. By default the tensors are numbered.
    fn outline(&self, out: &mut Outline) {
        let mut n = 0;
        self.leaves(&mut |_| {
            out.enter(format_args!(".{n}"), |out| out.leaf());
            n += 1;
        });
    }

    /// `f` of every tensor.
    fn map(&self, f: impl Fn(&Tensor) -> Tensor) -> Self {
        self.rebuild(&mut |t| f(t))
    }
    /// `f` of corresponding tensors of two trees of one structure.
    ///
    /// # Panics
    /// If the structures differ.
    #[track_caller]
    fn zip(&self, other: &Self, f: impl Fn(&Tensor, &Tensor) -> Tensor) -> Self {
        alike(self, other);
        let mut next = flat(other).into_iter();
        self.rebuild(&mut |t| next.next().map_or_else(|| t.clone(), |o| f(t, &o)))
    }
    /// `f` of corresponding tensors of several trees of one structure: many trees of tensors as one tree of many.
    ///
    /// ```
    /// use ferrax::{Tensor, Tree, scan, stack};
    /// let layers = [0.5f32, 2.0, 3.0].map(|w| (Tensor::from(w), Tensor::from(1.0f32)));
    /// let all = Tree::zip_all(&layers, |t| stack(t, 0)); // for a loop over layers
    /// let (y, ()) = scan(|x: &Tensor, (w, b): &(Tensor, Tensor)| (x * w + b, ()), &Tensor::from(2.0f32), &all)?;
    /// assert_eq!(y.item(), 16.0);
    /// # Ok::<(), ferrax::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is none, or the structures differ.
    #[track_caller]
    fn zip_all(all: &[Self], f: impl Fn(&[Tensor]) -> Tensor) -> Self {
        let Some((first, others)) = all.split_first() else {
            crate::mistakes::raise(ferrax_ir::Error::value("there is no tree to take the structure of"))
        };
        others.iter().for_each(|o| alike(first, o));
        let mut rows: Vec<_> = all.iter().map(|x| flat(x).into_iter()).collect();
        first.rebuild(&mut |_| f(&rows.iter_mut().filter_map(Iterator::next).collect::<Vec<_>>()))
    }
    /// The way to each tensor: `.layers[0].w`.
    fn paths(&self) -> Vec<String> {
        Outline::of(self).paths
    }
}
/// Two trees have the same parts.
#[track_caller]
fn alike<T: Tree>(x: &T, y: &T) {
    let (mine, theirs) = (x.paths(), y.paths());
    if mine != theirs {
        let at = |p: &[String], i: usize| p.get(i).map_or("nothing".to_string(), |p| format!("`{p}`"));
        let i = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        crate::mistakes::raise(ferrax_ir::Error::value(format!(
            "trees of different structure: {} leaves and {} leaves, {} in the place of {}",
            mine.len(),
            theirs.len(),
            at(&theirs, i),
            at(&mine, i)
        )));
    }
}
/// The tensors of a tree.
pub(crate) fn flat<T: Tree>(x: &T) -> Vec<Tensor> {
    let mut out = vec![];
    x.leaves(&mut |t| out.push(t.clone()));
    out
}

/// What a tree is but for its tensors.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    text: String,
    at: String,
    paths: Vec<String>,
    /// How many tensors each of the outermost parts has.
    parts: Vec<usize>,
    depth: usize,
}
impl Outline {
    /// That of a tree.
    pub fn of<T: Tree>(x: &T) -> Outline {
        let mut out = Outline::default();
        x.outline(&mut out);
        out
    }
    /// A part, by its key: `.w`, `[0]`.
    pub fn enter(&mut self, key: impl Display, part: impl FnOnce(&mut Outline)) {
        let (n, before) = (self.at.len(), self.paths.len());
        let _ = write!(self.at, "{key}");
        let _ = write!(self.text, "{key}(");
        self.depth += 1;
        part(self);
        self.depth -= 1;
        self.text.push(')');
        self.at.truncate(n);
        if self.depth == 0 {
            self.parts.push(self.paths.len() - before);
        }
    }
    /// A tensor.
    pub fn leaf(&mut self) {
        self.text.push('*');
        self.paths.push(if self.at.is_empty() { String::new() } else { self.at.clone() });
    }
    /// What is no tensor: a part of the structure.
    pub fn fixed(&mut self, what: impl Debug) {
        let _ = write!(self.text, "{what:?}");
    }
    /// The structure as text: equal for equal structures.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// The way to each tensor.
    pub fn paths(&self) -> &[String] {
        &self.paths
    }
    pub(crate) fn parts(&self) -> &[usize] {
        &self.parts
    }
}

impl Tree for Tensor {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        f(self)
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
        f(self)
    }
    fn outline(&self, out: &mut Outline) {
        out.leaf()
    }
}
impl Tree for () {
    fn leaves(&self, _: &mut dyn FnMut(&Tensor)) {}
    fn rebuild(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) {}
    fn outline(&self, _: &mut Outline) {}
}
macro_rules! pointer {
    ($($P:ident)*) => { $(impl<T: Tree> Tree for $P<T> {
        fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
            (**self).leaves(f)
        }
        fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> $P<T> {
            $P::new((**self).rebuild(f))
        }
        fn outline(&self, out: &mut Outline) {
            (**self).outline(out)
        }
    })* }
}
pointer! { Box Arc }
impl<T: Tree> Tree for Option<T> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        if let Some(x) = self {
            x.leaves(f)
        }
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Option<T> {
        self.as_ref().map(|x| x.rebuild(f))
    }
    fn outline(&self, out: &mut Outline) {
        match self {
            Some(x) => x.outline(out),
            None => out.fixed(()),
        }
    }
}
impl<T: Tree> Tree for Vec<T> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|x| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<T> {
        self.iter().map(|x| x.rebuild(f)).collect()
    }
    fn outline(&self, out: &mut Outline) {
        self.iter().enumerate().for_each(|(i, x)| out.enter(format_args!("[{i}]"), |out| x.outline(out)))
    }
}
impl<T: Tree, const N: usize> Tree for [T; N] {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|x| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> [T; N] {
        std::array::from_fn(|i| self[i].rebuild(f))
    }
    fn outline(&self, out: &mut Outline) {
        self.iter().enumerate().for_each(|(i, x)| out.enter(format_args!("[{i}]"), |out| x.outline(out)))
    }
}
impl<K: Ord + Clone + Debug, T: Tree> Tree for BTreeMap<K, T> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.values().for_each(|x| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> BTreeMap<K, T> {
        self.iter().map(|(k, x)| (k.clone(), x.rebuild(f))).collect()
    }
    fn outline(&self, out: &mut Outline) {
        self.iter().for_each(|(k, x)| out.enter(format_args!("[{k:?}]"), |out| x.outline(out)))
    }
}
/// In the order of the keys, as Python's dicts are.
impl<K: Ord + Hash + Clone + Debug, T: Tree, H: BuildHasher + Default> Tree for HashMap<K, T, H> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        in_order(self).into_iter().for_each(|(_, x)| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> HashMap<K, T, H> {
        in_order(self).into_iter().map(|(k, x)| (k.clone(), x.rebuild(f))).collect()
    }
    fn outline(&self, out: &mut Outline) {
        in_order(self).into_iter().for_each(|(k, x)| out.enter(format_args!("[{k:?}]"), |out| x.outline(out)))
    }
}
fn in_order<K: Ord, T, H>(m: &HashMap<K, T, H>) -> Vec<(&K, &T)> {
    let mut all: Vec<_> = m.iter().collect();
    all.sort_unstable_by_key(|(k, _)| *k);
    all
}
macro_rules! tuple {
    ($($T:ident $i:tt),*) => {
        impl<$($T: Tree),*> Tree for ($($T,)*) {
            fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
                $(self.$i.leaves(f);)*
            }
            fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                ($(self.$i.rebuild(f),)*)
            }
            fn outline(&self, out: &mut Outline) {
                $(out.enter(concat!(".", $i), |out| self.$i.outline(out));)*
            }
        }
    }
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
