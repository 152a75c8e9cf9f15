//! Weights in files: trees of tensors as `safetensors`, by the names that Python gives their leaves.
//!
//! A tensor's name consists of the keys of its path, joined by dots, like `keystr(path, simple=True, separator=".")` in Python for the
//! same tree of dicts, lists, tuples or dataclasses. So Python and Rust can read each other's files, and other readers of the format can too.
//!
//! ```
//! use ferrax::{Tensor, Tree, weights};
//! #[derive(Clone, Tree)]
//! struct Layer {
//!     w: Tensor,
//!     b: Option<Tensor>,
//! }
//! let layers = vec![Layer { w: Tensor::ones(&[2, 2]), b: None }, Layer { w: Tensor::zeros(&[2]), b: Some(Tensor::from(3)) }];
//! assert_eq!(weights::names(&layers), ["0.w", "1.w", "1.b"]);
//! let bytes = weights::to_bytes(&layers)?;
//! let empty = layers.iter().map(|l| l.map(Tensor::zeros_like)).collect::<Vec<_>>();
//! let read = weights::from_bytes(&bytes, &empty)?; // as `empty` is: structure, shapes and dtypes
//! assert_eq!(read[1].b.as_ref().unwrap().item(), 3.0);
//! assert_eq!(weights::parse(&bytes)?["0.w"].shape(), [2, 2]); // or whatever is there
//! # Ok::<(), ferrax::Error>(())
//! ```
//!
//! INVARIANT: bytes are copied unchanged; no dtype is converted, and a dtype that the format cannot name is an error.
use crate::tensor::Tensor;
use crate::tree::{Tree, flat};
use ferrax_ir::{Aval, Dtype, Error, Res};
use ferrax_kernel::DType;
use safetensors::tensor::{Dtype as Stored, SafeTensors, TensorView, serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Our dtypes that the format has.
const DTYPES: &[(Dtype, Stored)] = &[
    (Dtype::BOOL, Stored::BOOL),
    (Dtype::U8, Stored::U8),
    (Dtype::I8, Stored::I8),
    (Dtype::I16, Stored::I16),
    (Dtype::U16, Stored::U16),
    (Dtype::I32, Stored::I32),
    (Dtype::U32, Stored::U32),
    (Dtype::I64, Stored::I64),
    (Dtype::U64, Stored::U64),
    (Dtype::F16, Stored::F16),
    (Dtype::BF16, Stored::BF16),
    (Dtype::F32, Stored::F32),
    (Dtype::F64, Stored::F64),
    (Dtype::C64, Stored::C64),
    (Dtype::Num(DType::F8E4M3FN), Stored::F8_E4M3),
    (Dtype::Num(DType::F8E5M2), Stored::F8_E5M2),
    (Dtype::Num(DType::F8E4M3FNUZ), Stored::F8_E4M3FNUZ),
    (Dtype::Num(DType::F8E5M2FNUZ), Stored::F8_E5M2FNUZ),
    (Dtype::Num(DType::F8E8M0FNU), Stored::F8_E8M0),
];

/// The name of each tensor: the keys on the way to it, joined by dots. A tree that is a tensor has the empty name.
pub fn names<T: Tree>(tree: &T) -> Vec<String> {
    tree.paths().iter().map(|p| dotted(p)).collect()
}
/// `.layers[0]["w"]` as `layers.0.w`.
fn dotted(path: &str) -> String {
    let mut keys = vec![];
    let mut rest = path;
    while !rest.is_empty() {
        let end;
        if let Some(text) = rest.strip_prefix("[\"") {
            let (key, used) = quoted(text);
            keys.push(key);
            end = 2 + used + 1; // the bracket
        } else if rest.starts_with('[') {
            end = rest.find(']').map_or(rest.len(), |i| i + 1);
            keys.push(rest[1..end].trim_end_matches(']').into());
        } else {
            end = rest[1..].find(['.', '[']).map_or(rest.len(), |i| i + 1);
            keys.push(rest[1..end].into());
        }
        rest = rest.get(end..).unwrap_or("");
    }
    keys.join(".")
}
/// The text before the closing quote of a string's `Debug` form, and its length with the quote.
fn quoted(text: &str) -> (String, usize) {
    let mut key = String::new();
    let mut chars = text.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return (key, i + 1),
            '\\' => match chars.next().map(|c| c.1) {
                Some('n') => key.push('\n'),
                Some('t') => key.push('\t'),
                Some('r') => key.push('\r'),
                Some('0') => key.push('\0'),
                Some('u') => {
                    let digits: String = chars.by_ref().map(|c| c.1).skip(1).take_while(|c| *c != '}').collect();
                    key.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                }
                Some(c) => key.push(c),
                None => (),
            },
            c => key.push(c),
        }
    }
    (key, text.len())
}

/// The tree as a file of the format. Tensors lie one after the other, those of wide elements first.
///
/// # Errors
/// `Value` for two tensors of one name and for dtypes that the format has no name for (keys, complex128, int4 ..), `TracerArray` under a
/// transform; what went wrong, if a computation failed.
pub fn to_bytes<T: Tree>(tree: &T) -> Res<Vec<u8>> {
    let mut all = BTreeMap::new();
    for (name, t) in names(tree).into_iter().zip(flat(tree)) {
        let stored = DTYPES.iter().find(|d| d.0 == t.dtype()).map(|d| d.1).ok_or_else(|| {
            Error::value(format!("{name:?} is {}, which safetensors has no name for", t.aval().long()))
        })?;
        if all.insert(name.clone(), (stored, t.shape().to_vec(), t.to_bytes()?)).is_some() {
            return Err(Error::value(format!("two tensors of the tree are called {name:?}")));
        }
    }
    let views = all.iter().map(|(name, (dtype, shape, bytes))| {
        TensorView::new(*dtype, shape.clone(), bytes).map(|v| (name.as_str(), v)).map_err(wrong)
    });
    serialize(views.collect::<Res<Vec<_>>>()?, None).map_err(wrong)
}
/// All tensors of a file of the format, by name.
///
/// # Errors
/// `Value` for what is no such file, and for dtypes that are not ours.
pub fn parse(bytes: &[u8]) -> Res<BTreeMap<String, Tensor>> {
    let file = SafeTensors::deserialize(bytes).map_err(wrong)?;
    let one = |(name, view): (&str, TensorView)| -> Res<(String, Tensor)> {
        let dtype = DTYPES.iter().find(|d| d.1 == view.dtype()).map(|d| d.0);
        let dtype = dtype.ok_or_else(|| Error::value(format!("{name:?} has elements of {:?}", view.dtype())))?;
        Ok((name.into(), Tensor::from_bytes(view.data(), dtype, view.shape())?))
    };
    file.iter().map(one).collect()
}
/// A tree like `like`, its tensors from a file of the format. What else the file has is left there.
///
/// # Errors
/// Those of [`parse`]; `Value` if a tensor is not there, or has another shape or dtype.
pub fn from_bytes<T: Tree>(bytes: &[u8], like: &T) -> Res<T> {
    let mut all = parse(bytes)?;
    let mut found = vec![];
    for (name, old) in names(like).into_iter().zip(flat(like)) {
        let t = all.remove(&name).ok_or_else(|| {
            let there = all.keys().map(|k| format!("{k:?}")).collect::<Vec<_>>().join(", ");
            Error::value(format!("there is no tensor {name:?}; there are {there}"))
        })?;
        let (want, got) = (old.aval(), t.aval());
        if !same(&want, &got) {
            return Err(Error::value(format!("{name:?} is {}, not {}", got.long(), want.long())));
        }
        found.push(t);
    }
    let mut found = found.into_iter();
    Ok(like.rebuild(&mut |old| found.next().unwrap_or_else(|| old.clone())))
}
fn same(a: &Aval, b: &Aval) -> bool {
    a.shape == b.shape && a.dtype == b.dtype
}
/// [`to_bytes`] into a file.
///
/// ```
/// use ferrax::{Tensor, weights};
/// let path = std::env::temp_dir().join(format!("model-{}.safetensors", std::process::id()));
/// weights::save(&path, &vec![Tensor::from([1.0f32, 2.0])])?;
/// let read = weights::load(&path, &vec![Tensor::zeros(&[2])])?;
/// assert_eq!(read[0].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), ferrax::Error>(())
/// ```
///
/// # Errors
/// Those of `to_bytes`; `Value` with the path and the system's words where it cannot be written.
pub fn save<T: Tree>(path: impl AsRef<Path>, tree: &T) -> Res<()> {
    let path = path.as_ref();
    std::fs::write(path, to_bytes(tree)?).map_err(|e| Error::value(format!("{}: {e}", path.display())))
}
/// [`from_bytes`] of a file.
///
/// # Errors
/// Those of `from_bytes`; `Value` with the path and the system's words where it cannot be read.
pub fn load<T: Tree>(path: impl AsRef<Path>, like: &T) -> Res<T> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|e| Error::value(format!("{}: {e}", path.display())))?;
    from_bytes(&bytes, like)
}
fn wrong(e: safetensors::SafeTensorError) -> Error {
    Error::value(format!("safetensors: {e}"))
}
