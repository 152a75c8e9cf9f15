//! Weights in files go both ways: `weights.safetensors` is what Python's package writes for the like tree (`weights.py`).
use ferrax::*;
use std::collections::BTreeMap;

const FILE: &[u8] = include_bytes!("weights.safetensors");

#[derive(Clone, Tree)]
struct Layer {
    w: Tensor,
    b: Tensor,
}
#[derive(Clone, Tree)]
struct Model {
    layers: Vec<Layer>,
    moments: (Tensor, BTreeMap<String, Tensor>),
    spectrum: Tensor,
}
fn model() -> Model {
    let w = random::normal(&random::key(5), &[3, 2], Dtype::F32);
    let flags = [("odd \"key\".1".to_string(), Tensor::from([true, false])), ("step".into(), Tensor::from(7))];
    Model {
        layers: vec![
            Layer { w: w.clone(), b: Tensor::zeros(&[2]) },
            Layer { w: w.t().astype(Dtype::F16), b: Tensor::arange(3, Dtype::I8) },
        ],
        moments: (Tensor::from(0.5f32), flags.into()),
        spectrum: w.slice(s![.., 0]).fft(0),
    }
}

#[test]
fn names_are_those_that_python_gives() {
    let want = [
        "layers.0.w",
        "layers.0.b",
        "layers.1.w",
        "layers.1.b",
        "moments.0",
        "moments.1.odd \"key\".1",
        "moments.1.step",
        "spectrum",
    ];
    assert_eq!(weights::names(&model()), want);
    let mut there: Vec<String> = weights::parse(FILE).unwrap().into_keys().collect();
    let mut mine = weights::names(&model());
    there.sort();
    mine.sort();
    assert_eq!(mine, there);
    let odd: BTreeMap<String, [Tensor; 1]> = [("a]\\\n\u{7f}\"é.".to_string(), [Tensor::from(1)])].into();
    assert_eq!(weights::names(&odd), ["a]\\\n\u{7f}\"é..0"]);
    assert_eq!(weights::names(&Tensor::from(1)), [""]);
}

#[test]
fn what_python_wrote_is_read_and_written_again_bit_for_bit() {
    let read = weights::from_bytes(FILE, &model().map(Tensor::zeros_like)).unwrap();
    let (mut a, mut b) = (vec![], vec![]);
    read.leaves(&mut |t| a.push(t.to_bytes().unwrap()));
    model().leaves(&mut |t| b.push(t.to_bytes().unwrap()));
    assert_eq!(a, b);
    assert_eq!(weights::to_bytes(&read).unwrap(), FILE);
    let path = std::env::temp_dir().join(format!("ferrax-weights-{}", std::process::id()));
    weights::save(&path, &read).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), FILE);
    assert_eq!(weights::load(&path, &read.layers).map(|_| ()).unwrap_err().to_string(), message("0.w"));
    std::fs::remove_file(&path).unwrap();
    let e = weights::load(&path, &read).map(|_| ()).unwrap_err();
    assert!(e.message().contains(&*path.to_string_lossy()), "{e}");
}
/// A part of a tree has other names than it has in the whole.
fn message(name: &str) -> String {
    let there = weights::parse(FILE).unwrap().into_keys().map(|k| format!("{k:?}")).collect::<Vec<_>>().join(", ");
    Error::value(format!("there is no tensor {name:?}; there are {there}")).to_string()
}

#[test]
fn what_does_not_fit_is_told_by_name() {
    let mut wide = model();
    wide.layers[1].b = Tensor::arange(4, Dtype::I8);
    let e = weights::from_bytes(FILE, &wide).map(|_| ()).unwrap_err();
    assert!(e.message().contains("\"layers.1.b\" is int8[3], not int8[4]"), "{e}");
    let e = weights::to_bytes(&random::key(0)).unwrap_err();
    assert!(e.message().contains("safetensors has no name for"), "{e}");
    let clash: BTreeMap<String, BTreeMap<String, Tensor>> = [
        ("a.b".to_string(), [("c".to_string(), Tensor::from(1))].into()),
        ("a".to_string(), [("b.c".to_string(), Tensor::from(2))].into()),
    ]
    .into();
    assert!(weights::to_bytes(&clash).unwrap_err().message().contains("two tensors of the tree are called \"a.b.c\""));
    for cut in [0, 7, 8, 20, FILE.len() - 1] {
        assert!(weights::parse(&FILE[..cut]).is_err(), "{cut}");
    }
    assert!(jit(|x: &Tensor| Ok::<_, Error>(Tensor::from(weights::to_bytes(x)?)))(&Tensor::from(1.0f32)).is_err());
}
