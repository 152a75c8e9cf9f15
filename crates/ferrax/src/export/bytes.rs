//! The container format of a file: magic, version, length, checksum, and the fields inside.
//!
//! ```text
//! "\x89ferrax\n"   version: u32   length of all: u64   fields ..   checksum of all before: u64
//! ```
//!
//! INVARIANT: a file with a changed, missing or additional byte is refused. Numbers are
//! little-endian.
use ferrax_ir::error::{Res, value_err};
use ferrax_kernel::error::room;

pub const MAGIC: [u8; 8] = *b"\x89ferrax\n";
/// Of the format, raised when a file can no longer be read by older versions.
pub const VERSION: u32 = 1;
const HEAD: usize = 20;
const CHECKSUM: usize = 8;

/// FNV-1a over 64 bits: each step is a bijection of the previous state, so two texts that differ in
/// one byte never agree.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf29ce484222325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100000001b3))
}
/// The fields as a file.
pub fn framed(fields: &[u8]) -> Res<Vec<u8>> {
    let n = HEAD + fields.len() + CHECKSUM;
    let mut out = room(n)?;
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((n as u64).to_le_bytes());
    out.extend(fields);
    out.extend(checksum(&out).to_le_bytes());
    Ok(out)
}
fn refused<T>(why: &str) -> Res<T> {
    value_err(format!("not a program exported by Ferrax, or a damaged one: {why}"))
}
/// The fields of a file.
pub fn opened(file: &[u8]) -> Res<&[u8]> {
    if file.len() < HEAD + CHECKSUM {
        return refused(&format!("it has {} bytes, and the shortest has {}", file.len(), HEAD + CHECKSUM));
    }
    let (all, sum) = file.split_at(file.len() - CHECKSUM);
    let mut fields = FieldReader(all);
    if fields.take(MAGIC.len())? != MAGIC {
        return refused("it does not begin as one");
    }
    let version = fields.small()?;
    let length = fields.number()?;
    if version != VERSION {
        return refused(&format!("it is of version {version}, and this is a reader of version {VERSION}"));
    }
    if length != file.len() as u64 {
        return refused(&format!("it says that it has {length} bytes, and has {}", file.len()));
    }
    if checksum(all).to_le_bytes() != sum {
        return refused("its checksum is wrong");
    }
    Ok(fields.0)
}

#[derive(Default)]
pub struct FieldWriter(pub Vec<u8>);
impl FieldWriter {
    pub fn small(&mut self, n: u32) {
        self.0.extend(n.to_le_bytes());
    }
    pub fn number(&mut self, n: u64) {
        self.0.extend(n.to_le_bytes());
    }
    pub fn bytes(&mut self, b: &[u8]) {
        self.number(b.len() as u64);
        self.0.extend(b);
    }
    pub fn all<T>(&mut self, items: &[T], mut f: impl FnMut(&mut FieldWriter, &T)) {
        self.number(items.len() as u64);
        items.iter().for_each(|x| f(self, x));
    }
}

pub struct FieldReader<'a>(pub &'a [u8]);
impl<'a> FieldReader<'a> {
    fn take(&mut self, n: usize) -> Res<&'a [u8]> {
        match self.0.split_at_checked(n) {
            Some((head, rest)) => {
                self.0 = rest;
                Ok(head)
            }
            None => refused("it ends within a field"),
        }
    }
    pub fn small(&mut self) -> Res<u32> {
        let b = self.take(4)?;
        Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
    }
    pub fn number(&mut self) -> Res<u64> {
        let b = self.take(8)?;
        Ok(u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
    }
    pub fn bytes(&mut self) -> Res<&'a [u8]> {
        let n = self.number()?;
        usize::try_from(n).map_or_else(|_| refused("a field is too long"), |n| self.take(n))
    }
    pub fn text(&mut self) -> Res<String> {
        match std::str::from_utf8(self.bytes()?) {
            Ok(s) => Ok(s.into()),
            Err(_) => refused("a text is not valid UTF-8"),
        }
    }
    /// Items, each of which takes at least four bytes.
    pub fn all<T>(&mut self, mut f: impl FnMut(&mut FieldReader<'a>) -> Res<T>) -> Res<Vec<T>> {
        let n = self.number()?;
        if n > self.0.len() as u64 / 4 {
            return refused("it counts more than there is");
        }
        (0..n).map(|_| f(self)).collect()
    }
    pub fn end(&self) -> Res<()> {
        if self.0.is_empty() { Ok(()) } else { refused("something comes after its end") }
    }
}
