//! Exported programs as files.
use super::bytes::{FieldReader, FieldWriter, framed, opened};
use super::signature::{Constraint, ExportedSize, Signature};
use super::{Exported, Stored};
use ferrax_ir::error::{Res, value_err};
use std::sync::Arc;

impl Exported {
    /// The file of this program and of its derivatives up to the order `vjp_order`, with `notes` in the place of its own, if they are given.
    ///
    /// # Errors
    /// `Value` if it has no derivatives of so high an order.
    pub fn to_bytes(&self, vjp_order: usize, notes: Option<&[u8]>) -> Res<Vec<u8>> {
        let mut w = FieldWriter::default();
        w.number(vjp_order as u64 + 1);
        self.write(&mut w, notes.unwrap_or(&self.signature.notes));
        let mut next = None;
        for _ in 0..vjp_order {
            let vjp = next.as_deref().unwrap_or(self).vjp()?;
            match vjp {
                Some(v) => next = Some(v),
                None => return value_err("serialization of an Exported that does not have vjps of high-enough order"),
            }
            if let Some(v) = &next {
                v.write(&mut w, &v.signature.notes);
            }
        }
        framed(&w.0)
    }
    /// The program in a file's bytes.
    ///
    /// # Errors
    /// `Value` if they are no exported program, or were damaged.
    pub fn from_bytes(file: &[u8]) -> Res<Arc<Exported>> {
        let mut r = FieldReader(opened(file)?);
        let mut parts = r.all(read)?;
        r.end()?;
        let mut last = None;
        while let Some((signature, stored)) = parts.pop() {
            last = Some(Exported::made(signature, stored, last, None)?);
        }
        last.map_or_else(|| value_err("the file holds no program"), Ok)
    }
    fn write(&self, w: &mut FieldWriter, notes: &[u8]) {
        let s = &*self.signature;
        w.bytes(s.fun_name.as_bytes());
        w.all(&s.platforms, |w, p| {
            w.bytes(p.0.as_bytes());
            w.number(p.1 as u64);
        });
        w.all(&s.disabled_checks, |w, d| w.bytes(d.as_bytes()));
        w.bytes(notes);
        w.small(s.calling_convention);
        w.all(&s.variables, |w, v| {
            w.bytes(v.0.as_bytes());
            w.number(v.1 as u64);
        });
        w.all(&s.constraints, |w, c| {
            w.bytes(c.text.as_bytes());
            w.bytes(c.difference.text().as_bytes());
            w.small(u32::from(c.equal));
        });
        w.all(&self.stored, |w, p| {
            w.bytes(&p.code);
            w.all(&p.sizes, |w, e| w.bytes(e.text().as_bytes()));
            w.all(&p.constants, |w, c| w.bytes(c));
        });
    }
}
fn read(r: &mut FieldReader) -> Res<(Signature, Vec<Stored>)> {
    let mut s = Signature { fun_name: r.text()?, ..Signature::default() };
    s.platforms = r.all(|r| Ok((r.text()?, usize::try_from(r.number()?).unwrap_or(usize::MAX))))?;
    s.disabled_checks = r.all(FieldReader::text)?;
    s.notes = r.bytes()?.to_vec();
    s.calling_convention = r.small()?;
    s.variables = r.all(|r| Ok((r.text()?, r.number()? as i64)))?;
    let names = s.variable_names();
    s.constraints = r.all(|r| {
        let (text, difference) = (r.text()?, ExportedSize::parse(&r.text()?, &names)?);
        Ok(Constraint { text, difference, equal: r.small()? == 1 })
    })?;
    let stored = r.all(|r| {
        let code = r.bytes()?.to_vec();
        let sizes = r.all(|r| ExportedSize::parse(&r.text()?, &names))?;
        Ok(Stored::new(code, sizes, r.all(|r| Ok(r.bytes()?.to_vec()))?))
    })?;
    Ok((s, stored))
}
