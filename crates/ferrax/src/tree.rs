//! `Tree`: what a function of tensors takes and returns: a tensor, a tuple, an array, a `Vec`, a reference-counted anything of these.
//! A type of your own is a tree by two methods.
//!
//! ```
//! use ferrax::{Tensor, Tree};
//! struct Layer { w: Tensor, b: Tensor }
//! impl Tree for Layer {
//!     fn leaves(&self, f: &mut dyn FnMut(&Tensor)) { self.w.leaves(f); self.b.leaves(f) }
//!     fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Layer { Layer { w: self.w.rebuild(f), b: self.b.rebuild(f) } }
//! }
//! ```
//!
//! INVARIANT: `leaves` and `rebuild` visit the same tensors in the same order.
use crate::tensor::Tensor;

pub trait Tree: Sized {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor));
    /// The same structure with every tensor replaced.
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;
    /// `f` of corresponding tensors of two trees of one structure.
    fn zip(&self, other: &Self, f: impl Fn(&Tensor, &Tensor) -> Tensor) -> Self {
        let mut theirs = vec![];
        other.leaves(&mut |t| theirs.push(t.clone()));
        let mut next = theirs.into_iter();
        self.rebuild(&mut |t| next.next().map_or_else(|| t.clone(), |o| f(t, &o)))
    }
}

impl Tree for Tensor {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        f(self)
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Tensor {
        f(self)
    }
}
impl<T: Tree> Tree for Vec<T> {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|x| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Vec<T> {
        self.iter().map(|x| x.rebuild(f)).collect()
    }
}
impl<T: Tree, const N: usize> Tree for [T; N] {
    fn leaves(&self, f: &mut dyn FnMut(&Tensor)) {
        self.iter().for_each(|x| x.leaves(f))
    }
    fn rebuild(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> [T; N] {
        std::array::from_fn(|i| self[i].rebuild(f))
    }
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
        }
    }
}
tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
