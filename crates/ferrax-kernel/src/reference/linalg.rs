//! `Linalg`: one matrix after the other, by the reference implementations in [`crate::linalg`].
use crate::linalg::{Entries, Linalg, Workspace};

pub fn linalg(l: &Linalg, ins: &[&[u8]]) -> Vec<Vec<u8>> {
    let bytes = |(e, n): (Entries, usize)| {
        let (dtype, each) = l.layout(e);
        dtype.size() * each * n
    };
    let sizes: Vec<usize> = l.results().into_iter().map(bytes).collect();
    let operands: Vec<usize> = l.operands().into_iter().map(bytes).collect();
    let mut outs: Vec<Vec<u8>> = sizes.iter().map(|n| vec![0; l.batch * n]).collect();
    let mut work = Workspace::default();
    for i in 0..l.batch {
        let ins: Vec<&[u8]> = ins.iter().zip(&operands).map(|(b, n)| &b[i * n..(i + 1) * n]).collect();
        let mut outs: Vec<&mut [u8]> = outs.iter_mut().zip(&sizes).map(|(b, n)| &mut b[i * n..(i + 1) * n]).collect();
        l.run(&mut work, &ins, &mut outs);
    }
    outs
}
