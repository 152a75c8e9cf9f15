//! `#[derive(Tree)]` over types of every form.
use ferrax::*;
use std::fmt::Debug;
use std::marker::PhantomData;

fn paths<T: Tree>(x: &T) -> Vec<String> {
    let same = x.map(Tensor::clone);
    assert_eq!(Outline::of(x).text(), Outline::of(&same).text());
    x.paths()
}
fn two() -> Tensor {
    Tensor::from([1.0f32, 2.0])
}

#[derive(Tree)]
struct Scaled<F, U: Clone, T = Tensor>
where
    F: Fn(f32) -> f32 + Clone,
    T: Clone,
{
    w: T,
    #[tree(fixed)]
    f: Shown<F>,
    #[tree(fixed)]
    unit: PhantomData<U>,
}
#[derive(Clone)]
struct Shown<F>(F);
impl<F> Debug for Shown<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a function")
    }
}
#[derive(Clone, Debug)]
struct Metres;

#[test]
fn parameters_are_bound_by_the_fields_that_name_them() {
    let s = Scaled { w: two(), f: Shown(f32::sqrt as fn(f32) -> f32), unit: PhantomData::<Metres> };
    assert_eq!(paths(&s), [".w"]);
    let s = grad(|s: &Scaled<fn(f32) -> f32, Metres>| (&s.w * (s.f.0)(4.0) as f64).sum())(&s).unwrap();
    assert_eq!(s.w.to_vec::<f32>().unwrap(), [2.0, 2.0]);
}

#[derive(Tree)]
struct Pair<T, const N: usize>(pub [T; N], #[tree(fixed)] &'static str)
where
    T: Clone + Debug;
#[derive(Tree)]
struct Nothing;
#[derive(Tree)]
struct Empty {}
#[derive(Tree)]
enum Never {}
#[derive(Tree)]
#[repr(u8)]
enum Stage {
    Start = 1 << 3,
    /// A layer.
    Run {
        r#type: Option<Box<Tensor>>,
        more: Vec<Stage>,
    } = (4 < 3) as u8,
    Both(Tensor, #[tree(fixed)] fn(u8) -> Vec<u8>) = 77,
}

#[test]
fn structures_and_enumerations_of_every_form() {
    let p = Pair([Some(two()), None, Some(two())], "x");
    assert_eq!(paths(&p), [".0[0]", ".0[2]"]);
    assert_eq!((paths(&Nothing).len(), paths(&Empty {}).len(), paths(&None::<Never>).len()), (0, 0, 0));
    let run = |more| Stage::Run { r#type: Some(Box::new(two())), more };
    let s = run(vec![Stage::Start, Stage::Both(two(), |n| vec![n]), run(vec![])]);
    assert_eq!(paths(&s), [".type", ".more[1].0", ".more[2].type"]);
    let total = jit(|s: &Stage| {
        let mut all = vec![];
        s.leaves(&mut |t| all.push(t.sum()));
        all.into_iter().sum::<Tensor>()
    });
    assert_eq!(total(&s).unwrap().item(), 9.0);
    assert_eq!(total(&Stage::Start).unwrap().item(), 0.0);
    // one of another structure is another trace, and does not go with this one
    let e = catch(|| Ok(s.zip(&run(vec![]), |a, _| a.clone()))).err().unwrap();
    assert!(e.message().contains("3 leaves and 1 leaves, nothing in the place of `.more[1].0`"), "{e}");
}
#[test]
fn many_trees_become_one() {
    let layers = [1.0f32, 2.0, 3.0].map(|x| (Tensor::from(x), vec![Tensor::from([x, x])]));
    let all = Tree::zip_all(&layers, |t| stack(t, 0));
    assert_eq!((all.0.to_vec::<f32>().unwrap(), all.1[0].shape()), (vec![1.0, 2.0, 3.0], &[3, 2][..]));
    let uneven = [vec![two()], vec![two(), two()]];
    assert!(catch(|| Ok(Tree::zip_all(&uneven, |t| t[0].clone()))).is_err());
}
