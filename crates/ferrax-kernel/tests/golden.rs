//! The reference evaluator answers as JAX did (`golden/waist.txt`, made by `golden/waist.py`).
use ferrax_kernel::kernel::Node;
use ferrax_kernel::routine::{Combine, Conv, CumulativeKind, Dot, Gather, OutOfBounds, Scatter};
use ferrax_kernel::{Access, Affine, Bin, DType, Dims, Kernel, ReduceKind, Routine, Scalar, Un, reference};
use std::collections::HashMap;

const GOLDEN: &str = include_str!("golden/waist.txt");

struct Case<'a> {
    name: &'a str,
    params: HashMap<&'a str, &'a str>,
    ins: Vec<(DType, Vec<u8>)>,
    outs: Vec<(DType, Vec<u8>)>,
}

impl<'a> Case<'a> {
    fn parse(line: &'a str) -> Case<'a> {
        let parts: Vec<&str> = line.split('|').collect();
        let mut words = parts[0].split_whitespace();
        let name = words.next().unwrap();
        let params = words.map(|w| w.split_once('=').unwrap()).collect();
        let arrays = |s: &str| s.split_whitespace().map(array).collect();
        Case { name, params, ins: arrays(parts[1]), outs: arrays(parts[2]) }
    }
    fn text(&self, key: &str) -> &'a str {
        self.params[key]
    }
    fn list<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, key: &str) -> Vec<T> {
        self.text(key).split(',').filter(|w| !w.is_empty()).map(|w| w.parse().unwrap()).collect()
    }
    fn dims(&self, key: &str) -> Dims {
        self.list(key).into_iter().collect()
    }
    fn number(&self, key: &str) -> usize {
        self.text(key).parse().unwrap()
    }
    fn padding(&self) -> Vec<(i64, i64)> {
        self.list("padding").chunks(2).map(|p| (p[0], p[1])).collect()
    }
    fn mode(&self) -> OutOfBounds {
        if self.text("mode") == "clip" { OutOfBounds::Clip } else { OutOfBounds::FillOrDrop }
    }
    fn reduce_kind(&self) -> ReduceKind {
        ReduceKind::from_name(self.text("kind")).unwrap()
    }
}

fn array(word: &str) -> (DType, Vec<u8>) {
    let (d, hex) = word.split_once(':').unwrap();
    let bytes = (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
    (DType::from_short(d).unwrap(), bytes.collect())
}

/// One node over the elements of the operands.
fn pointwise(case: &Case, dtype: DType, node: Node) -> Kernel {
    let len = case.ins[0].1.len() / case.ins[0].0.size();
    let load = |(i, (d, _)): (usize, &(DType, Vec<u8>))| {
        let access = Access { input: i as u32, at: Affine::new(0, [1]), guards: vec![].into(), fill: Scalar::zero(*d) };
        (*d, Node::Load(Box::new(access)))
    };
    let mut nodes: Vec<_> = case.ins.iter().enumerate().map(load).collect();
    nodes.push((dtype, node));
    let outputs = vec![nodes.len() as u32 - 1];
    let inputs = case.ins.iter().map(|(d, _)| (*d, len)).collect();
    Kernel { grid: [len].into(), rdims: [].into(), inputs, nodes, outputs }
}

fn row_reduction(case: &Case) -> Kernel {
    let (shape, d) = (case.dims("shape"), case.ins[0].0);
    let at = Affine::new(0, [shape[1] as i64, 1]);
    let load = Node::Load(Box::new(Access { input: 0, at, guards: vec![].into(), fill: Scalar::zero(d) }));
    let reduce = Node::Reduce { kind: case.reduce_kind(), of: 0 };
    Kernel {
        grid: [shape[0]].into(),
        rdims: [shape[1]].into(),
        inputs: vec![(d, shape.size())],
        nodes: vec![(d, load), (case.outs[0].0, reduce)],
        outputs: vec![1],
    }
}

fn as_kernel(case: &Case) -> Option<Kernel> {
    let d = case.outs[0].0;
    Some(match case.name {
        "un" => pointwise(case, d, Node::Un(Un::from_name(case.text("f")).unwrap(), 0)),
        "bin" => pointwise(case, d, Node::Bin(Bin::from_name(case.text("f")).unwrap(), 0, 1)),
        "convert" => pointwise(case, d, Node::Convert(0)),
        "round" => {
            let (exponent, mantissa) = (case.number("exponent") as u8, case.number("mantissa") as u8);
            pointwise(case, d, Node::Round { of: 0, exponent, mantissa })
        }
        "reduce" => row_reduction(case),
        _ => return None,
    })
}

fn as_routine(case: &Case) -> Routine {
    let dtype = case.ins[0].0;
    let index = |at: usize| case.ins.get(at).map_or(DType::I32, |x| x.0);
    match case.name {
        "gather" => Routine::Gather(Gather {
            operand: case.dims("operand"),
            indices: case.dims("indices"),
            slice_sizes: case.dims("sizes"),
            offset_dims: case.dims("offset"),
            collapsed_slice_dims: case.dims("collapsed"),
            start_index_map: case.dims("map"),
            operand_batching_dims: case.dims("batch"),
            start_indices_batching_dims: case.dims("index_batch"),
            mode: case.mode(),
            fill: Scalar::f32(-5.0),
            dtype,
            index_dtype: index(1),
            out: case.dims("out"),
        }),
        "scatter" => Routine::Scatter(Scatter {
            operand: case.dims("operand"),
            indices: case.dims("indices"),
            updates: case.dims("updates"),
            update_window_dims: case.dims("window"),
            inserted_window_dims: case.dims("inserted"),
            scatter_dims_to_operand_dims: case.dims("map"),
            operand_batching_dims: case.dims("batch"),
            scatter_indices_batching_dims: case.dims("index_batch"),
            combine: match case.text("how") {
                "set" => Combine::Set,
                "sub" => Combine::Sub,
                kind => Combine::Reduce(ReduceKind::from_name(kind).unwrap()),
            },
            mode: case.mode(),
            unique: false,
            dtype,
            index_dtype: index(1),
        }),
        "dynamic_slice" => Routine::DynamicSlice {
            operand: case.dims("operand"),
            sizes: case.dims("sizes"),
            dtype,
            index_dtype: index(1),
        },
        "dynamic_update_slice" => Routine::DynamicUpdateSlice {
            operand: case.dims("operand"),
            update: case.dims("update"),
            dtype,
            index_dtype: index(2),
        },
        "sort" => Routine::Sort {
            outer: case.number("outer"),
            n: case.number("n"),
            inner: case.number("inner"),
            dtypes: case.ins.iter().map(|x| x.0).collect(),
            num_keys: case.number("num_keys"),
        },
        "cumulative" => Routine::Cumulative {
            kind: match case.text("kind") {
                "sum" => CumulativeKind::Sum,
                "prod" => CumulativeKind::Prod,
                "max" => CumulativeKind::Max,
                "min" => CumulativeKind::Min,
                _ => CumulativeKind::LogSumExp,
            },
            outer: case.number("outer"),
            n: case.number("n"),
            inner: case.number("inner"),
            reverse: case.number("reverse") == 1,
            dtype,
        },
        "reduce_window" => Routine::ReduceWindow {
            kind: case.reduce_kind(),
            operand: case.dims("operand"),
            window: case.dims("window"),
            strides: case.dims("strides"),
            base_dilation: case.dims("base"),
            window_dilation: case.dims("dilation"),
            padding: case.padding(),
            dtype,
            out: case.dims("out"),
        },
        "dot" => Routine::Dot(Dot {
            b: case.number("b"),
            m: case.number("m"),
            n: case.number("n"),
            k: case.number("k"),
            lhs: case.list("lhs").try_into().unwrap(),
            rhs: case.list("rhs").try_into().unwrap(),
            dtype,
            out: case.outs[0].0,
        }),
        "conv" => Routine::Conv(Box::new(Conv {
            lhs: case.dims("lhs"),
            rhs: case.dims("rhs"),
            out: case.dims("out"),
            strides: case.dims("strides"),
            padding: case.padding(),
            lhs_dilation: case.dims("lhs_dilation"),
            rhs_dilation: case.dims("rhs_dilation"),
            feature_groups: case.number("feature_groups"),
            batch_groups: case.number("batch_groups"),
            dtype,
            out_dtype: case.outs[0].0,
        })),
        other => panic!("case {other}"),
    }
}

/// Equal bits, or two nans, or within `rtol` of each other, or a subnormal number where JAX on CPU flushed it to zero.
fn agree(a: Scalar, b: Scalar, rtol: f64) -> bool {
    let (x, y) = (a.to_f64(), b.to_f64());
    let least_normal = match a.dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 0.0, // kept by JAX too
        _ => f32::MIN_POSITIVE as f64,
    };
    let flushed = y == 0.0 && x.abs() < least_normal;
    a == b
        || a.dtype.is_float() && (x.is_nan() && y.is_nan() || flushed || (x - y).abs() <= rtol * y.abs() + rtol * 0.1)
}

#[test]
fn every_case_agrees() {
    let mut wrong = vec![];
    for line in GOLDEN.lines() {
        let case = Case::parse(line);
        let ins: Vec<&[u8]> = case.ins.iter().map(|x| &x.1[..]).collect();
        let outs = match as_kernel(&case) {
            Some(k) => reference::kernel(&k, &ins),
            None => reference::routine(&as_routine(&case), &ins),
        };
        let outs = outs.unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(outs.len(), case.outs.len(), "{line}");
        let rtol: f64 = case.text("rtol").parse().unwrap();
        for (got, (d, expected)) in outs.iter().zip(&case.outs) {
            let (got, expected) = (reference::read(*d, got), reference::read(*d, expected));
            assert_eq!(got.len(), expected.len(), "{line}");
            for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
                if !agree(*g, *e, rtol) {
                    let operands: Vec<_> =
                        case.ins.iter().filter_map(|(d, b)| reference::read(*d, b).get(i).copied()).collect();
                    wrong.push(format!(
                        "{} {:?} at {i}: {g:?} is not {e:?}; operands there {operands:?}",
                        case.name, case.params
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

#[test]
fn every_function_and_routine_has_a_case() {
    let cases: Vec<Case> = GOLDEN.lines().map(Case::parse).collect();
    let has =
        |name: &str, key: &str, value: &str| cases.iter().any(|c| c.name == name && c.params.get(key) == Some(&value));
    for f in Un::ALL {
        assert!(has("un", "f", f.name()), "{}", f.name());
    }
    for f in Bin::ALL.iter().filter(|f| **f != Bin::MulZero) {
        assert!(has("bin", "f", f.name()), "{}", f.name());
    }
    for kind in ReduceKind::ALL {
        assert!(has("reduce", "kind", kind.name()), "{}", kind.name());
    }
}
