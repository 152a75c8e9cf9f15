//! Sizes, paddings, strides and dilations up to the ends of 64 bits: `infer` gives the shape that 128 bits give, or an error that says why; and what has a
//! shape that a machine can hold can be lowered. Nothing panics, and nothing wraps around. `HUGE=n` sets how many are drawn of each primitive.
use ferrax_ir::text::parse_application;
use ferrax_ir::{Aval, ErrorKind, Op};
use ferrax_testkit::api::{catch, init, make_program};
use ferrax_testkit::rng::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Parameters at the edges of 64 bits.
trait Huge {
    /// A size: mostly small, sometimes at an edge.
    fn size(&mut self) -> i128;
    /// Of either sign.
    fn signed(&mut self) -> i128;
    fn sizes(&mut self, rank: usize) -> Vec<i128> {
        (0..rank).map(|_| self.size()).collect()
    }
    fn positive(&mut self, rank: usize) -> Vec<i128> {
        (0..rank).map(|_| self.size().max(1)).collect()
    }
}
impl Huge for Rng {
    fn size(&mut self) -> i128 {
        const EDGES: [i128; 8] =
            [0, 1 << 31, (1 << 32) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, (1 << 63) - 2, 3_037_000_500];
        if self.below(3) == 0 { EDGES[self.below(EDGES.len())] } else { 1 + self.below(6) as i128 }
    }
    fn signed(&mut self) -> i128 {
        match self.below(12) {
            0 => -(1 << 63),
            1..6 => -self.size(),
            _ => self.size(),
        }
    }
}

fn tuple<T: std::fmt::Debug>(x: &[T]) -> String {
    let all: Vec<String> = x.iter().map(|n| format!("{n:?}")).collect();
    format!("({}{})", all.join(", "), if x.len() == 1 { "," } else { "" })
}
fn aval(x: &[i128]) -> String {
    format!("f32[{}]", x.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(","))
}
/// The number of windows along an axis: (size, stride, padding, base dilation, dilation).
fn windows(n: i128, size: i128, stride: i128, (lo, hi): (i128, i128), base: i128, dilation: i128) -> i128 {
    let far = |n: i128, d: i128| if n == 0 { 0 } else { (n - 1) * d + 1 };
    let room = far(n, base) + lo + hi - far(size, dilation);
    if room < 0 { 0 } else { room / stride + 1 }
}

/// An application, and the shape of its result; `None` where it has none.
type Drawn = (String, Option<Vec<i128>>);

fn iota(r: &mut Rng) -> Drawn {
    let shape = r.sizes(2);
    (format!("iota[dimension=0 dtype=float32 shape={}]", tuple(&shape)), Some(shape))
}
fn pad(r: &mut Rng) -> Drawn {
    let shape = r.sizes(2);
    let config: Vec<(i128, i128, i128)> = (0..2).map(|_| (r.signed(), r.signed(), r.size() - 1)).collect();
    let out: Vec<i128> =
        shape.iter().zip(&config).map(|(n, (lo, hi, int))| n + lo + hi + int * (n - 1).max(0)).collect();
    let right = out.iter().all(|n| *n >= 0) && config.iter().all(|c| c.2 >= 0);
    (format!("pad[padding_config={}] {} f32[]", tuple(&config), aval(&shape)), right.then_some(out))
}
fn concatenate(r: &mut Rng) -> Drawn {
    let (a, b) = (r.sizes(2), r.size());
    (format!("concatenate[dimension=0] {} {}", aval(&a), aval(&[b, a[1]])), Some(vec![a[0] + b, a[1]]))
}
fn split(r: &mut Rng) -> Drawn {
    let (a, b) = (r.sizes(2), r.size());
    let text = format!("split[axis=0 sizes={}] {}", tuple(&[a[0], b]), aval(&[a[0].wrapping_add(b), a[1]]));
    (text, Some(vec![a[0], a[1]]))
}
fn stack(r: &mut Rng) -> Drawn {
    let a = r.sizes(2);
    (format!("stack[axis=1] {} {}", aval(&a), aval(&a)), Some(vec![a[0], 2, a[1]]))
}
fn unstack(r: &mut Rng) -> Drawn {
    let a = r.sizes(2);
    (format!("unstack[axis=0] {}", aval(&a)), Some(vec![a[1]]))
}
fn tile(r: &mut Rng) -> Drawn {
    let (a, reps) = (r.sizes(2), r.sizes(2));
    (format!("tile[reps={}] {}", tuple(&reps), aval(&a)), Some(vec![a[0] * reps[0], a[1] * reps[1]]))
}
fn broadcast(r: &mut Rng) -> Drawn {
    let (a, shape) = (r.size(), r.sizes(2));
    let text = format!("broadcast_in_dim[broadcast_dimensions=(1,) shape={}] {}", tuple(&shape), aval(&[a]));
    (text, (a == 1 || a == shape[1]).then_some(shape))
}
fn reshape(r: &mut Rng) -> Drawn {
    let a = r.sizes(3);
    let to = if r.below(2) == 0 { r.sizes(2) } else { vec![a[0], a[1] * a[2]] };
    let count = |x: &[i128]| x.iter().try_fold(1i128, |n, d| n.checked_mul(*d));
    let same = count(&a).is_some() && count(&a) == count(&to);
    (format!("reshape[new_sizes={}] {}", tuple(&to), aval(&a)), same.then_some(to))
}
fn slice(r: &mut Rng) -> Drawn {
    let (a, start, limit, by) = (r.size(), r.size(), r.size(), r.size().max(1));
    let text = format!("slice[limit_indices=({limit},) start_indices=({start},) strides=({by},)] {}", aval(&[a]));
    (text, (start <= limit && limit <= a).then(|| vec![(limit - start + by - 1) / by]))
}
fn dot_general(r: &mut Rng) -> Drawn {
    let (b, m, k, n) = (r.size(), r.size(), r.size(), r.size());
    let text = format!(
        "dot_general[dimension_numbers=(([2], [1]), ([0], [0])) preferred_element_type=float32] {} {}",
        aval(&[b, m, k]),
        aval(&[b, k, n])
    );
    (text, Some(vec![b, m, n]))
}
fn gather(r: &mut Rng) -> Drawn {
    let (a, window, places) = (r.sizes(2), r.sizes(2), r.size());
    let text = format!(
        "gather[dimension_numbers=GatherDimensionNumbers(offset_dims=(1, 2) collapsed_slice_dims=() start_index_map=(0,) operand_batching_dims=() start_indices_batching_dims=()) fill_value=None indices_are_sorted=False mode=GatherScatterMode.CLIP slice_sizes={} unique_indices=False] {} i32[{places},1]",
        tuple(&window),
        aval(&a)
    );
    (text, (window[0] <= a[0] && window[1] <= a[1]).then(|| vec![places, window[0], window[1]]))
}
fn scatter(r: &mut Rng) -> Drawn {
    let (a, window, places) = (r.sizes(2), r.size(), r.size());
    let text = format!(
        "scatter-add[dimension_numbers=ScatterDimensionNumbers(update_window_dims=(1,) inserted_window_dims=(0,) scatter_dims_to_operand_dims=(0,) operand_batching_dims=() scatter_indices_batching_dims=()) indices_are_sorted=False mode=GatherScatterMode.CLIP unique_indices=False] {} i32[{places},1] {}",
        aval(&a),
        aval(&[places, window])
    );
    (text, (window <= a[1].max(1)).then_some(a))
}
fn reduce_window(r: &mut Rng) -> Drawn {
    let a = r.sizes(2);
    let (size, by, base, dilation) = (r.positive(2), r.positive(2), r.positive(2), r.positive(2));
    let padding: Vec<(i128, i128)> = (0..2).map(|_| (r.signed(), r.signed())).collect();
    let text = format!(
        "reduce_window_max[base_dilation={} padding={} window_dilation={} window_dimensions={} window_strides={}] {}",
        tuple(&base),
        tuple(&padding),
        tuple(&dilation),
        tuple(&size),
        tuple(&by),
        aval(&a)
    );
    (text, Some((0..2).map(|k| windows(a[k], size[k], by[k], padding[k], base[k], dilation[k])).collect()))
}
fn conv(r: &mut Rng) -> Drawn {
    let (n, c, o, space, size) = (r.size(), r.size(), r.size(), r.size(), r.size());
    let (by, base, dilation) = (r.size().max(1), r.size().max(1), r.size().max(1));
    let padding = (r.signed(), r.signed());
    let text = format!(
        "conv_general_dilated[batch_group_count=1 dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2)) feature_group_count=1 lhs_dilation=({base},) out_sharding=None padding=({padding:?},) precision=None preferred_element_type=None rhs_dilation=({dilation},) window_strides=({by},)] {} {}",
        aval(&[n, c, space]),
        aval(&[o, c, size])
    );
    let far = if space == 0 { 0 } else { (space - 1) * base + 1 };
    let enough = far + padding.0 + padding.1 >= 0 && size > 0;
    (text, enough.then(|| vec![n, o, windows(space, size, by, padding, base, dilation)]))
}
fn all_gather(r: &mut Rng) -> Drawn {
    let (a, n) = (r.sizes(2), r.size());
    let text = format!("all_gather[all_gather_dimension=0 axis_name=(i,) axis_size={n} tiled=True] {}", aval(&a));
    (text, Some(vec![a[0] * n, a[1]]))
}
fn random_split(r: &mut Rng) -> Drawn {
    let (a, shape) = (r.sizes(1), r.sizes(2));
    (format!("random_split[shape={}] key<fry>[{}]", tuple(&shape), a[0]), Some([a, shape].concat()))
}
fn random_bits(r: &mut Rng) -> Drawn {
    let (a, shape) = (r.sizes(1), r.sizes(2));
    (format!("random_bits[bit_width=32 shape={}] key<fry>[{}]", tuple(&shape), a[0]), Some([a, shape].concat()))
}

const ALL: &[(&str, fn(&mut Rng) -> Drawn)] = &[
    ("iota", iota),
    ("pad", pad),
    ("concatenate", concatenate),
    ("split", split),
    ("stack", stack),
    ("unstack", unstack),
    ("tile", tile),
    ("broadcast_in_dim", broadcast),
    ("reshape", reshape),
    ("slice", slice),
    ("dot_general", dot_general),
    ("gather", gather),
    ("scatter-add", scatter),
    ("reduce_window_max", reduce_window),
    ("conv_general_dilated", conv),
    ("all_gather", all_gather),
    ("random_split", random_split),
    ("random_bits", random_bits),
];

/// Whether a machine could hold it: each axis countable, all of it addressable.
fn held(shape: &[i128], bytes: i128) -> bool {
    const MAX_SIZE: i128 = i64::MAX as i128;
    let all = shape.iter().try_fold(bytes, |n, d| n.checked_mul(*d));
    shape.iter().all(|d| *d <= MAX_SIZE) && (shape.contains(&0) || all.is_some_and(|n| n <= MAX_SIZE))
}
/// Few elements, and no axis so long that products of several are beyond 64 bits.
fn small(avals: &[Aval]) -> bool {
    avals.iter().all(|a| a.shape.size() <= 1 << 12 && a.shape.iter().all(|n| *n <= 1 << 20))
}

#[test]
fn a_shape_is_right_or_there_is_a_sentence() {
    init();
    std::panic::set_hook(Box::new(|_| ()));
    let each: usize = std::env::var("HUGE").map_or(3000, |n| n.parse().expect("a number"));
    for (n, (name, draw)) in ALL.iter().enumerate() {
        let mut r = Rng(0x9E37_79B9_7F4A_7C15 ^ (n as u64 + 1) << 32);
        let (mut right, mut refused, mut lowered) = (0, 0, 0);
        for _ in 0..each {
            let (text, want) = draw(&mut r);
            let quietly = |f: &mut dyn FnMut() -> Option<Vec<Aval>>| {
                catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|_| fail(&format!("{text}: a panic")))
            };
            let mut given: Option<(Op, Vec<Aval>)> = None;
            let got = quietly(&mut || {
                let (op, avals) = parse_application(&text).ok()?;
                // if an operand is impossible, so is the result
                let possible = avals.iter().all(|a| a.shape.checked(a.dtype.size()).is_ok());
                let out = if possible { op.results(&avals) } else { return None };
                given = Some((op, avals));
                match out {
                    Ok(out) => Some(out.into_vec()),
                    Err(e) if e.message().len() > 10 && e.kind() != Some(ErrorKind::Runtime) => None,
                    Err(e) => fail(&format!("{text}: no sentence: {e}")),
                }
            });
            match (&got, &want) {
                (Some(out), Some(want)) => {
                    right += 1;
                    let wrong = |a: &Aval| {
                        let shape: Vec<i128> = a.shape.iter().map(|d| *d as i128).collect();
                        shape != *want || !held(want, a.dtype.size() as i128)
                    };
                    // an axis that was unstacked may have had no parts
                    if out.first().is_some_and(wrong) {
                        fail(&format!("{text}: {:?}, not {want:?}", out[0]));
                    }
                }
                (Some(out), None) => fail(&format!("{text}: {out:?} where there is no result")),
                (None, _) => refused += 1,
            }
            // a representable size can be lowered
            if let (Some(out), Some((op, avals))) = (got, given)
                && (out.iter().all(|a| a.shape.contains(&0)) || small(&avals) && small(&out))
                && !text.starts_with("all_gather")
            {
                quietly(&mut || {
                    let run = |x: &[ferrax_ir::Value]| Ok(ferrax_ir::cx::bind(&op, x)?.into_vec());
                    let (p, _) = make_program(&run, &avals).unwrap_or_else(|e| fail(&format!("{text}: {e}")));
                    match catch(|| ferrax_ir::lower::lower(&p)) {
                        Ok(plan) => {
                            plan.verify().unwrap_or_else(|e| fail(&format!("{text}: {e}")));
                            lowered += 1;
                        }
                        Err(e) if e.message().len() > 10 => (),
                        Err(e) => fail(&format!("{text}: no sentence: {e}")),
                    }
                    None
                });
            }
        }
        // a test that refuses everything proves little
        if right * 40 < each || refused == 0 || lowered * 8 < right && *name != "all_gather" {
            fail(&format!("{name}: {right} right, {refused} refused, {lowered} lowered"));
        }
    }
}
/// The panic hook is silent: the failure prints its own message.
fn fail(why: &str) -> ! {
    eprintln!("{why}");
    panic!("{why}")
}
