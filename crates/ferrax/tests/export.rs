//! Exported programs: written, read, called, differentiated; and every damaged byte refused.
use ferrax::export::{Constraint, Exported, ExportedSize, ProgramFamily, Signature, TracedProgram};
use ferrax::{Res, Tensor, array, device, eval, grad, jit, vmap};
use ferrax_ir::{Aval, Dtype, Value, parse};
use std::sync::Arc;

fn traced(text: &str, consts: Vec<Value>) -> TracedProgram {
    TracedProgram { program: Arc::new(parse(text).unwrap()), consts }
}
fn signature(name: &str) -> Signature {
    Signature {
        fun_name: name.into(),
        platforms: vec![("cpu".into(), 0)],
        calling_convention: 10,
        ..Signature::default()
    }
}
fn names(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("args[{i}]")).collect()
}
fn exported(name: &str, n_ins: usize, t: TracedProgram) -> Arc<Exported> {
    let family = ProgramFamily::new(&names(n_ins), &[t]).unwrap();
    Exported::new(signature(name), &[(&family, vec![])], None).unwrap()
}
fn constant(shape: &[usize], x: &[f32]) -> Value {
    Tensor::new(x, shape).unwrap().0
}
/// `x w + 1` and its derivative, with w captured.
fn affine() -> Arc<Exported> {
    let w = || vec![constant(&[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    let f = "{ lambda a:f32[2,2]; b:f32[3,2]. let c:f32[3,2] = dot_general[dimension_numbers=(([1], [0]), ([], []))] b a \
             d:f32[3,2] = add c 1.0:f32[] in (d,) }";
    let vjp = "{ lambda a:f32[2,2]; b:f32[3,2] c:f32[3,2]. let \
               d:f32[3,2] = dot_general[dimension_numbers=(([1], [1]), ([], []))] c a in (d,) }";
    let family = ProgramFamily::new(&names(1), &[traced(f, w())]).unwrap();
    let make = move || Ok(exported("fun_vjp_jax", 2, traced(vjp, w())));
    Exported::new(signature("affine"), &[(&family, vec![])], Some(Box::new(make))).unwrap()
}
fn x() -> Tensor {
    Tensor::new(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[3, 2]).unwrap()
}
const Y: [f32; 6] = [8.0, 11.0, 16.0, 23.0, 24.0, 35.0];

#[test]
fn a_program_gives_the_same_after_a_file() {
    let e = affine();
    assert_eq!(e.call(&[x()]).unwrap()[0].to_vec::<f32>().unwrap(), Y);
    let back = Exported::from_bytes(&e.to_bytes(0, None).unwrap()).unwrap();
    assert_eq!(back.call(&[x()]).unwrap()[0].to_vec::<f32>().unwrap(), Y);
    let s = back.signature();
    assert_eq!((&*s.fun_name, s.inputs.len(), s.outputs.len()), ("affine", 1, 1));
    assert_eq!(s.inputs[0].shape.iter().map(ExportedSize::text).collect::<Vec<_>>(), ["3", "2"]);
    assert!(back.text().unwrap().contains("dot_general"));
}
#[test]
fn a_file_is_loaded_from_disk() {
    let path = std::env::temp_dir().join(format!("ferrax_export_{}.ferrax", std::process::id()));
    std::fs::write(&path, affine().to_bytes(0, None).unwrap()).unwrap();
    let y = ferrax::export::load(&path).unwrap().call(&[x()]).unwrap();
    assert_eq!(y[0].to_vec::<f32>().unwrap(), Y);
    std::fs::remove_file(&path).unwrap();
    assert!(ferrax::export::load(&path).is_err_and(|e| e.message().contains("ferrax_export_")));
}
#[test]
fn it_is_called_inside_transforms() {
    let e = Exported::from_bytes(&affine().to_bytes(1, None).unwrap()).unwrap();
    assert!(e.has_vjp());
    let call = |x: &Tensor| Ok(e.call(std::slice::from_ref(x))?.swap_remove(0));
    let f = jit(|x: &Tensor| call(x));
    assert_eq!(f(&x()).unwrap().to_vec::<f32>().unwrap(), Y);
    let g = grad(|x: &Tensor| -> Res<Tensor> { Ok(call(x)?.sum()) })(&x()).unwrap();
    assert_eq!(g.to_vec::<f32>().unwrap(), [3.0, 7.0, 3.0, 7.0, 3.0, 7.0]);
    let rows = Tensor::new(&[0.0f32; 12], &[2, 3, 2]).unwrap();
    let lanes = vmap(|x: &Tensor| call(x))(&rows).unwrap();
    assert_eq!((lanes.shape(), lanes.to_vec::<f32>().unwrap()), (&[2, 3, 2][..], vec![1.0; 12]));
    let without = Exported::from_bytes(&affine().to_bytes(0, None).unwrap()).unwrap();
    let g = grad(|x: &Tensor| -> Res<Tensor> { Ok(without.call(std::slice::from_ref(x))?[0].sum()) })(&x());
    assert_eq!(g.unwrap_err().message(), "No VJP is available");
    let order = e.to_bytes(2, None).unwrap_err();
    assert_eq!(order.message(), "serialization of an Exported that does not have vjps of high-enough order");
}
#[test]
fn every_damaged_byte_is_refused() {
    let file = affine().to_bytes(1, None).unwrap();
    for i in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = file.clone();
            bad[i] ^= flip;
            assert!(Exported::from_bytes(&bad).is_err(), "byte {i}");
        }
        assert!(Exported::from_bytes(&file[..i]).is_err(), "{i} bytes");
    }
    let longer = [&file[..], &[0]].concat();
    assert!(Exported::from_bytes(&longer).is_err());
    let e = Exported::from_bytes(&file[..30]).err().unwrap();
    assert!(e.message().starts_with("not a program exported by Ferrax, or a damaged one"), "{e}");
}
/// With its checksum mended, a damaged file is refused; it neither panics nor takes memory without bounds.
#[test]
fn a_forged_file_is_an_error_or_a_program() {
    let file = affine().to_bytes(1, None).unwrap();
    let checksum = |b: &[u8]| {
        b.iter().fold(0xcbf29ce484222325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100000001b3)).to_le_bytes()
    };
    let (mut seed, end) = (7u64, file.len() - 8);
    let mut random = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 11) as usize % n
    };
    for i in 0..end {
        for value in [0, 1, 2, 0x7f, 0x80, 0xff, random(256)] {
            let mut bad = file.clone();
            bad[i] = value as u8;
            if random(3) == 0 {
                let also = 20 + random(end - 20);
                bad[also] = random(256) as u8;
            }
            let sum = checksum(&bad[..end]);
            bad[end..].copy_from_slice(&sum);
            if let Ok(e) = Exported::from_bytes(&bad) {
                let _ = e.call(&[x()]);
            }
        }
    }
}
#[test]
fn arguments_that_do_not_fit_are_refused() {
    let e = affine();
    let message = |args: &[Tensor]| e.call(args).err().unwrap().message().to_string();
    assert_eq!(
        message(&[Tensor::zeros(&[2, 3])]),
        "Shape mismatch for args[0].shape[0] (expected same constant): expected (3, 2) and called with (2, 3)"
    );
    assert_eq!(message(&[Tensor::zeros(&[3])]), "Rank mismatch for args[0]: expected (3, 2) and called with (3,)");
    let ints = Tensor::new(&[0i32; 6], &[3, 2]).unwrap();
    assert_eq!(message(&[ints]), "Dtype mismatch for args[0]: expected float32 and called with int32");
    assert_eq!(message(&[]), "Function 'affine' was exported with 1 flat arguments and called with 0");
}
#[test]
fn another_platform_is_refused() {
    let family = ProgramFamily::new(&names(1), &[traced("{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }", vec![])]);
    let family = family.unwrap();
    let make = |disabled: Vec<String>| {
        let s = Signature { platforms: vec![("tpu".into(), 0)], disabled_checks: disabled, ..signature("f") };
        Exported::new(s, &[(&family, vec![])], None).unwrap()
    };
    let e = make(vec![]).call(&[Tensor::from(1.0f32)]).err().unwrap();
    assert_eq!(e.message(), "Function 'f' was exported for platforms '('tpu',)' but it is used on '('cpu',)'.");
    let y = make(vec!["platform".into()]).call(&[Tensor::from(1.0f32)]).unwrap();
    assert_eq!(y[0].item(), 1f32.sin() as f64);
}

/// `concatenate(x, 2 x).mean()` at b, as Python would have traced it at two sizes.
fn symbolic(constraints: Vec<Constraint>) -> Res<Arc<Exported>> {
    let at = |b: usize| {
        let two = 2 * b;
        traced(
            &format!(
                "{{ lambda ; a:f32[{b}]. let c:f32[{b}] = mul a 2.0:f32[] d:f32[{two}] = concatenate[dimension=0] a c \
                 e:f32[] = reduce_sum[axes=(0,)] d f:f32[] = div e {two}.0:f32[] in (d, f) }}"
            ),
            vec![],
        )
    };
    let family = ProgramFamily::new(&names(1), &[at(7), at(11), at(13)])?;
    let expressions = family.sizes().iter().map(|v| if v[0] == 7 { "b".into() } else { "2*b".into() }).collect();
    let s = Signature { variables: vec![("b".into(), 7)], constraints, ..signature("f") };
    Exported::new(s, &[(&family, expressions)], None)
}
#[test]
fn symbolic_sizes_are_bound_by_the_arguments() {
    let e = Exported::from_bytes(&symbolic(vec![]).unwrap().to_bytes(0, None).unwrap()).unwrap();
    assert_eq!(e.signature().outputs[0].shape[0].text(), "2*b");
    for b in [1, 2, 5, 100, 7] {
        let y = e.call(&[Tensor::ones(&[b])]).unwrap();
        assert_eq!((y[0].shape(), y[1].item()), (&[2 * b][..], 1.5));
    }
    let none = e.call(&[Tensor::ones(&[0])]).err().unwrap();
    assert_eq!(
        none.message(),
        "Input shapes do not match the polymorphic shapes specification. Expected value >= 1 for dimension variable 'b'. Using the following \
         polymorphic shapes specifications: args[0].shape = (b,). Obtained dimension variables: 'b' = 0 from specification 'b' for dimension \
         args[0].shape[0] (= 0), ."
    );
}
#[test]
fn constraints_are_checked_at_the_call() {
    let difference = ExportedSize::parse("b - 4", &["b".into()]).unwrap();
    let e = symbolic(vec![Constraint { text: "b>=4".into(), difference, equal: false }]).unwrap();
    assert!(e.call(&[Tensor::ones(&[4])]).is_ok());
    let few = e.call(&[Tensor::ones(&[3])]).err().unwrap();
    assert!(
        few.message().starts_with(
            "Input shapes do not match the symbolic shape constraint b>=4. Expected 'b - 4' to be greater or equal to 0, but found -1."
        ),
        "{few}"
    );
}
#[test]
fn programs_that_differ_in_more_than_sizes_are_no_family() {
    let program = |f: &str| traced(&format!("{{ lambda ; a:f32[]. let b:f32[] = {f} a in (b,) }}"), vec![]);
    let e = ProgramFamily::new(&names(1), &[program("sin"), program("cos")]).err().unwrap();
    assert_eq!(e.message(), "one has 'sin' where another has 'cos'");
    let captured =
        |x: f32| traced("{ lambda a:f32[1]; b:f32[1]. let c:f32[1] = add a b in (c,) }", vec![constant(&[1], &[x])]);
    assert!(ProgramFamily::new(&names(1), &[captured(1.0), captured(2.0)]).is_err());
}
#[test]
fn values_keep_their_bits() {
    eval::init();
    let nan = f32::from_bits(0x7fc12345);
    let bytes: Vec<u8> = [nan, -0.0, f32::MIN_POSITIVE / 8.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let aval = Aval { weak: true, ..Aval::new(Dtype::F32, &[3]) };
    let c = array::from_bytes(aval, &bytes, device::default_device(), false).unwrap();
    let t = traced(
        "{ lambda a:f32[3]; b:i32[]. let c:i32[] = add b 1:i32[] in (a, c, -0.0:f64[], (1+2j):c64[], nan:bf16[]) }",
        vec![Value::Array(c)],
    );
    let e = Exported::from_bytes(&exported("f", 1, t).to_bytes(0, None).unwrap()).unwrap();
    let y = e.call(&[Tensor::new(&[4i32], &[]).unwrap()]).unwrap();
    let Value::Array(a) = &y[0].0 else { panic!("no array") };
    assert_eq!(array::bytes(a).unwrap(), bytes);
    assert_eq!(y[1].to_vec::<i32>().unwrap(), [5]);
    assert_eq!(y[2].to_vec::<f64>().unwrap()[0].to_bits(), (-0.0f64).to_bits());
    assert_eq!(y[3].dtype(), Dtype::C64);
}
