//! Serves a model that Python exported (`examples/serve.py`): no Python anywhere.
//!
//! ```text
//! cargo run --release -p ferrax --example serve -- model.ferrax images.f32 logits.f32
//! ```
//!
//! Reads rows of float32 from a file, as many as there are, runs the model on all of them, and writes what it returns in the same form.
use ferrax::{Error, Res, Tensor, export};

fn floats(path: &str) -> Res<Vec<f32>> {
    let bytes = std::fs::read(path).map_err(|e| Error::value(format!("{path}: {e}")))?;
    Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect())
}

fn main() -> Res<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, from, to] = &args[..] else {
        return Err(Error::value("usage: serve MODEL INPUT OUTPUT"));
    };
    let model = export::load(model)?;
    let input = &model.signature().inputs[0];
    let row: Vec<usize> = input.shape[1..].iter().filter_map(|s| s.expr.number()).map(|n| n as usize).collect();
    let x = floats(from)?;
    let n = x.len() / row.iter().product::<usize>();
    let shape: Vec<usize> = std::iter::once(n).chain(row).collect();
    let y = model.call(&[Tensor::new(&x, &shape)?])?.swap_remove(0);
    let bytes: Vec<u8> = y.to_vec::<f32>()?.iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(to, bytes).map_err(|e| Error::value(format!("{to}: {e}")))?;
    println!("{}: {n} rows, results of shape {:?}", model.signature().fun_name, y.shape());
    Ok(())
}
