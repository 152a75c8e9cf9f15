//! Random programs (`programs.py` draws them) give in Rust the bits that they give in Python, value by value.
use ferrax::*;

/// Operands, then parameters, of one line.
fn run(op: &str, x: &[&Tensor], p: &[i64]) -> Option<Tensor> {
    let (a, axis) = (x[0], p.first().copied().unwrap_or(0));
    if let Some(op) = op.strip_suffix("_any") {
        return binary(op, a, x[1]);
    }
    if let Some(op) = op.strip_suffix("_axis") {
        return reduction(op, a, axis, false);
    }
    if let Some(op) = op.strip_suffix("_keep") {
        return reduction(op, a, axis, true);
    }
    let found = match x {
        [a] => unary(op, a),
        [a, b] => binary(op, a, b),
        _ => None,
    };
    found.or_else(|| shaped(op, x, p)).or_else(|| transformed(op, x, axis))
}
fn unary(op: &str, x: &Tensor) -> Option<Tensor> {
    Some(match op {
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "exp" => x.exp(),
        "log" => x.log(),
        "log2" => x.log2(),
        "arcsin" => x.asin(),
        "arctanh" => x.atanh(),
        "isinf" => x.is_inf(),
        "ceil" => x.ceil(),
        "sinc" => special::sinc(x),
        "erf" => x.erf(),
        "erfc" => x.erfc(),
        "erf_inv" => x.erf_inv(),
        "lgamma" => x.lgamma(),
        "digamma" => x.digamma(),
        "rsqrt" => x.rsqrt(),
        "bessel_i0e" => x.bessel_i0e(),
        "bessel_i1e" => x.bessel_i1e(),
        "tanh" => x.tanh(),
        "exp2" => x.exp2(),
        "expm1" => x.expm1(),
        "log1p" => x.log1p(),
        "arctan" => x.atan(),
        "arcsinh" => x.asinh(),
        "sqrt" => x.sqrt(),
        "cbrt" => x.cbrt(),
        "abs" => x.abs(),
        "negative" => -x,
        "sign" => x.sign(),
        "square" => x.square(),
        "isnan" => x.is_nan(),
        "isfinite" => x.is_finite(),
        "floor" => x.floor(),
        "rint" => x.round(),
        "trunc" => x.trunc(),
        "log10" => x.log10(),
        "deg2rad" => x.deg2rad(),
        "reciprocal" => x.reciprocal(),
        "signbit" => x.signbit(),
        "relu" => nn::relu(x),
        "sigmoid" => nn::sigmoid(x),
        "softplus" => nn::softplus(x),
        "silu" => nn::silu(x),
        "gelu" => nn::gelu(x),
        "selu" => nn::selu(x),
        "celu" => nn::celu(x, 1.0),
        "mish" => nn::mish(x),
        "soft_sign" => nn::soft_sign(x),
        "log_sigmoid" => nn::log_sigmoid(x),
        "sparse_plus" => nn::sparse_plus(x),
        _ => return None,
    })
}
fn binary(op: &str, x: &Tensor, y: &Tensor) -> Option<Tensor> {
    Some(match op {
        "add" => x + y,
        "subtract" => x - y,
        "multiply" => x * y,
        "divide" => x / y,
        "maximum" => x.maximum(y),
        "minimum" => x.minimum(y),
        "arctan2" => x.atan2(y),
        "power" => x.pow(y),
        "hypot" => x.hypot(y),
        "less" => x.lt(y),
        "greater_equal" => x.ge(y),
        "equal" => x.eq(y),
        "floor_divide" => x.floor_div(y),
        "mod" => x.modulo(y),
        "fmax" => x.fmax(y),
        "copysign" => x.copysign(y),
        "heaviside" => x.heaviside(y),
        "bitwise_and" => x & y,
        "bitwise_or" => x | y,
        "bitwise_xor" => x ^ y,
        "gcd" => special::gcd(x, y),
        "lcm" => special::lcm(x, y),
        "einsum" => einsum("ij,kj->ki", &[x, y]),
        "convolve" => x.convolve(y, Mode::Full),
        "interp" => x.interp(&Tensor::arange(y.size(), y.dtype()), y),
        "searchsorted" => x.sort(0).searchsorted(y),
        "scatter_set" => x.at(s![y.abs().modulo(x.shape()[0])]).set(2),
        "scatter_mul" => x.at(s![y]).mul(2),
        "get_or" => x.at(s![y]).get_or(-1.0),
        "matmul" => x.matmul(y),
        "outer" => x.outer(y),
        "stack" => stack(&[x, y], 0),
        _ => return None,
    })
}
fn reduction(op: &str, x: &Tensor, axis: i64, keep: bool) -> Option<Tensor> {
    macro_rules! of {
        ($($name:literal $axes:ident $keep:ident;)*) => {
            match op {
                $($name => if keep { x.$keep(axis) } else { x.$axes(axis) },)*
                "count_nonzero" => {
                    let nonzero = x.ne(0).astype(Dtype::I32);
                    if keep { nonzero.sum_keep(axis) } else { nonzero.sum_axes(axis) }
                }
                _ => return None,
            }
        };
    }
    Some(of! {
        "sum" sum_axes sum_keep; "prod" prod_axes prod_keep; "max" max_axes max_keep; "min" min_axes min_keep;
        "mean" mean_axes mean_keep; "var" var_axes var_keep; "std" std_axes std_keep; "all" all_axes all_keep; "any" any_axes any_keep;
        "nansum" nansum_axes nansum_keep; "nanmax" nanmax_axes nanmax_keep; "nanmin" nanmin_axes nanmin_keep; "nanmean" nanmean_axes nanmean_keep;
        "ptp" ptp_axes ptp_keep;
    })
}
fn shaped(op: &str, x: &[&Tensor], p: &[i64]) -> Option<Tensor> {
    let (a, axis) = (x[0], p.first().copied().unwrap_or(0));
    Some(match op {
        "scale" => a * (p[0] as f64 / 4.0),
        "shift" => a + p[0],
        "reshape" => a.reshape(p),
        "transpose" => a.permute(p),
        "expand_dims" => a.expand_dims(axis),
        "slice" => {
            let part = |e: &[i64]| Subscript::Range { start: Some(e[0]), stop: Some(e[1]), step: Some(e[2]) };
            a.slice(p.chunks(3).map(part).collect::<Vec<_>>())
        }
        "take" => a.take(&x[1].abs().modulo(a.shape()[axis as usize]), axis),
        "scatter" => a.at(s![p[0]]).add(p[1]),
        "concatenate" => concatenate(x, axis),
        "where" => where_(&a.gt(0), x[1], x[2]),
        "sort" => a.sort(axis),
        "argsort" => a.argsort(axis),
        "argmax" => a.argmax(axis),
        "flip" => a.flip(axis),
        "roll" => a.roll(p[1], axis),
        "repeat" => a.repeat(2, axis),
        "tile" => a.tile(&[2, 1]),
        "diff" => a.diff(1, axis),
        "clip" => a.clip(-0.5, 0.75),
        "to_f16" => a.astype(Dtype::F16),
        "to_f32" => a.astype(Dtype::F32),
        "to_i32" => a.clip(-99, 99).astype(Dtype::I32),
        "to_bool" => a.astype(Dtype::BOOL),
        "tril" => a.tril(0),
        "diagonal" => a.diagonal(),
        "cumsum" => a.cumsum(axis),
        "cummax" => a.cummax(axis),
        "softmax" => nn::softmax(a, axis),
        "logsumexp" => a.log_sum_exp_axes(axis),
        "quantile" => a.quantile(0.3, axis),
        "argmin" => a.argmin(axis),
        "cumprod" => a.cumprod(axis),
        "swapaxes" => a.swap_axes(p[0], p[1]),
        "moveaxis" => a.move_axis(p[0], p[1]),
        "pad" => a.pad(&p.chunks(2).map(|w| (w[0], w[1])).collect::<Vec<_>>(), 0),
        "triu" => a.triu(1),
        "rot90" => a.rot90(axis, (0, 1)),
        "dynamic_slice" => a.dynamic_slice(p, &smaller(a)),
        "dynamic_update" => a.dynamic_update(&Tensor::ones(&smaller(a)).astype(a.dtype()), p),
        "fft" => a.fft(-1).abs(),
        "rfft" => a.rfft(-1).real(),
        "det" => linalg::det(a),
        "cholesky" => linalg::cholesky(&definite(a)),
        "solve" => linalg::solve(&definite(a), a),
        "eigvalsh" => linalg::eigvalsh(&(a + a.t())),
        "draw" => random::normal(&random::fold_in(&random::key(7), axis), a.shape(), Dtype::F32),
        "shuffle" => random::permutation(&random::key(axis as i32), a, 0),
        "gamma" => random::gamma(&random::key(axis as i32), a.abs() + 0.5, a.shape(), Dtype::F32),
        "layer_norm" => nn::standardize(a, -1, 1e-5),
        "one_hot" => nn::one_hot(a, 3),
        "top_k" => a.top_k(1, -1).0,
        _ => return None,
    })
}
fn smaller(x: &Tensor) -> Vec<usize> {
    x.shape().iter().map(|n| (n - 1).max(1)).collect()
}
fn definite(x: &Tensor) -> Tensor {
    let n = x.shape()[0];
    x.matmul(x.t()) + Tensor::eye(n, n)
}
fn bent(x: &Tensor) -> Res<Tensor> {
    custom_jvp(|x: &Tensor| x.sin(), |x: &Tensor, dx: &Tensor| -> Res<_> { Ok((bent(x)?, 3 * dx)) })(x)
}
fn halved(x: &Tensor) -> Res<Tensor> {
    custom_vjp(|x: &Tensor| x * x, |x: &Tensor| (x * x, x.clone()), |x: &Tensor, ct: &Tensor| ct * x / 2)(x)
}
fn transformed(op: &str, x: &[&Tensor], n: i64) -> Option<Tensor> {
    let a = x[0];
    let y: Res<Tensor> = match op {
        "cond" => cond(&a.sum().gt(0), |v: &Tensor| v.sin(), |v: &Tensor| v * 2, x[1]),
        "fori" => fori_loop(0, n, |i: &Tensor, v: &Tensor| v.cos() * 0.5 + i, a),
        "while" => while_loop(|v: &Tensor| (v * v).sum().gt(0.5), |v: &Tensor| v / 2, a),
        "scan" => {
            let step = |c: &Tensor, v: &Tensor| ((c / 2 + v.sum()).tanh(), c * v);
            scan(step, &Tensor::from(0.5f32), a).map(|r| r.1)
        }
        "vmap" => vmap(|v: &Tensor| v.tanh().sum() * v)(a),
        "grad" => grad(|v: &Tensor| (v.sin() * v).sum())(a),
        "grad_softplus" => grad(|v: &Tensor| (nn::softplus(v) * v.atan()).sum())(a),
        "jvp" => jvp(|v: &Tensor| v.tanh() * (1 + v * v).sqrt(), a, x[1]).map(|r| r.1),
        "jit" => jit(|v: &Tensor| v.sin() / (1 + v * v))(a),
        "switch" => {
            switch(&Tensor::from(n as i32), &[&|v: &Tensor| v.sin(), &|v: &Tensor| v * 2, &|v: &Tensor| v.tanh()], a)
        }
        "associative_scan" => associative_scan(|x: &Tensor, y: &Tensor| x + y, a, n, false),
        "scan_reverse" => {
            let o = ScanOptions { reverse: true, ..ScanOptions::default() };
            scan_with(o, |c: &Tensor, v: &Tensor| (c * 0.5 + v.sum(), c.clone()), &Tensor::from(1.0f32), a).map(|r| r.1)
        }
        "hessian" => hessian(|v: &Tensor| (v.sin() * v.flip(0)).sum())(a),
        "jacfwd" => jacfwd(|v: &Tensor| v.tanh() * v.slice(s![0]))(a),
        "jacrev" => jacrev(|v: &Tensor| v.tanh() * v.slice(s![0]))(a),
        "vmap_last" => {
            let o = VmapOptions { in_axes: &[Some(-1)], ..VmapOptions::default() };
            vmap_with(o, |v: &Tensor| v * v.sum())(a)
        }
        "vmap_named" => {
            let o = VmapOptions { name: Some("i"), ..VmapOptions::default() };
            vmap_with(o, |v: &Tensor| v / (1 + psum(v * v, "i")))(a)
        }
        "nested" => jit(vmap(grad(|v: &Tensor| (v.cos() * v).sum())))(a),
        "custom_jvp" => grad(|v: &Tensor| -> Res<Tensor> { Ok((bent(v)? * v).sum()) })(a),
        "custom_vjp" => jit(grad(|v: &Tensor| -> Res<Tensor> { Ok((halved(v)? + v).sum()) }))(a),
        "grad_scan" => grad(|v: &Tensor| -> Res<Tensor> {
            Ok(scan(|c: &Tensor, u: &Tensor| ((c + u.sum()).tanh(), ()), &Tensor::from(0.1f32), v)?.0)
        })(a),
        "grad_fori" => {
            grad(|v: &Tensor| -> Res<Tensor> { Ok(fori_loop(0, 3, |i: &Tensor, s: &Tensor| s.sin() + i, v)?.sum()) })(a)
        }
        "checkpoint" => grad(checkpoint(|v: &Tensor| v.cos().sin().sum()))(a),
        _ => return None,
    };
    Some(y.unwrap_or_else(|e| panic!("{op}: {e}")))
}

fn numbers(text: &str) -> Vec<i64> {
    text.trim().split(',').filter(|n| !n.is_empty()).map(|n| n.parse().expect("a number")).collect()
}
fn input(line: &str) -> Tensor {
    let (head, seed) = line.split_once(';').expect("a seed");
    let (kind, shape) = head.split_once(' ').expect("a shape");
    let shape: Vec<usize> = numbers(shape).into_iter().map(|n| n as usize).collect();
    let key = random::key(seed.trim().parse().expect("a seed"));
    match kind {
        "float32" => random::normal(&key, &shape, Dtype::F32),
        "int32" => random::randint(&key, &shape, -4, 6),
        _ => random::bernoulli(&key, 0.5, &shape),
    }
}
/// Dtype, shape, and a hash of all bytes; a nan is a nan.
fn hashed(x: &Tensor) -> String {
    let x = if x.dtype().is_float() { where_(&x.is_nan(), x.full_like(f64::NAN), x) } else { x.clone() };
    let bytes = x.to_bytes().expect("a value");
    let hash = bytes.iter().fold(0xCBF29CE484222325u64, |h, b| (h ^ *b as u64).wrapping_mul(0x100000001B3));
    let shape = x.shape().iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    format!("{} {shape}; {hash:016x}", x.dtype().long())
}
/// The programs of a text; what differs, and how many values there were.
fn differences(text: &str) -> (Vec<String>, usize) {
    let (mut wrong, mut count) = (vec![], 0);
    for program in text.split("\n\n") {
        let mut values: Vec<Tensor> = vec![];
        for line in program.lines() {
            if let Some(line) = line.strip_prefix("in ") {
                values.push(input(line));
                continue;
            }
            let (call, want) = line.split_once(" = ").expect("a result");
            let (head, parameters) = call.split_once(';').expect("parameters");
            let (op, operands) = head.split_once(' ').expect("operands");
            let x: Vec<&Tensor> = numbers(operands).into_iter().map(|i| &values[i as usize]).collect();
            let y = catch(|| Ok(run(op, &x, &numbers(parameters))));
            let got = match &y {
                Ok(Some(y)) => hashed(y),
                Ok(None) => "no such operation here".into(),
                Err(e) => e.to_string(),
            };
            count += 1;
            if got != want {
                let shown = |t: &Tensor| format!("{t:?}").chars().take(300).collect::<String>();
                let from = x.iter().map(|t| shown(t)).collect::<Vec<_>>().join("\n  of ");
                let y = y.ok().flatten().map(|y| shown(&y)).unwrap_or_default();
                wrong.push(format!("{line}\n  here {got}\n  {y}\n  of {from}"));
                break; // what follows reads it
            }
            values.extend(y.ok().flatten());
        }
    }
    (wrong, count)
}

#[test]
fn random_programs_give_python_s_bits() {
    let (wrong, count) = differences(include_str!("programs.txt"));
    assert!(wrong.is_empty(), "{} programs differ:\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n"));
    assert!(count > 3000, "{count} values");
    // others than those that are kept: PROGRAMS names a file of them
    if let Ok(path) = std::env::var("PROGRAMS") {
        let (wrong, count) = differences(&std::fs::read_to_string(path).expect("programs"));
        assert!(wrong.is_empty() && count > 0, "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    }
}
