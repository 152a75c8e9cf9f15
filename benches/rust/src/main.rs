//! Rows of training and of arithmetic in Ferrax, candle and burn: same numbers in, results compared, times taken in turns.
//!
//! `cargo xtask bench rust [ROWS] [--rounds N] [--only LIBRARY]`. A ratio is the other library's time over ours: above 1 we are ahead.
mod data;
mod with_burn;
mod with_candle;
mod with_ferrax;

use std::time::Instant;

/// What a row does, again and again.
pub trait Timed {
    /// Once; whatever it gives is there when this returns.
    fn go(&mut self);
    /// All numbers that the last one gave.
    fn results(&self) -> Vec<f32>;
}
/// Steps that start from where the last one ended.
pub struct Training<S, F, R> {
    state: S,
    step: F,
    read: R,
}
impl<S: 'static, F: Fn(&S) -> S + 'static, R: Fn(&S) -> Vec<f32> + 'static> Training<S, F, R> {
    pub fn boxed(state: S, step: F, read: R) -> Box<dyn Timed> {
        Box::new(Training { state, step, read })
    }
}
impl<S, F: Fn(&S) -> S, R: Fn(&S) -> Vec<f32>> Timed for Training<S, F, R> {
    fn go(&mut self) {
        self.state = (self.step)(&self.state);
    }
    fn results(&self) -> Vec<f32> {
        (self.read)(&self.state)
    }
}
/// The same again.
pub struct Inference<Y, F, R> {
    last: Option<Y>,
    run: F,
    read: R,
}
impl<Y: 'static, F: Fn() -> Y + 'static, R: Fn(&Y) -> Vec<f32> + 'static> Inference<Y, F, R> {
    pub fn boxed(run: F, read: R) -> Box<dyn Timed> {
        Box::new(Inference { last: None, run, read })
    }
}
impl<Y, F: Fn() -> Y, R: Fn(&Y) -> Vec<f32>> Timed for Inference<Y, F, R> {
    fn go(&mut self) {
        self.last = None;
        self.last = Some((self.run)());
    }
    fn results(&self) -> Vec<f32> {
        self.last.as_ref().map(&self.read).unwrap_or_default()
    }
}

type Make = fn() -> Box<dyn Timed>;
const LIBRARIES: [&str; 3] = ["ferrax", "candle", "burn"];
const ROWS: &[(&str, [Make; 3])] = &[
    ("mlp step", [with_ferrax::mlp, with_candle::mlp, with_burn::mlp]),
    ("convolution step", [with_ferrax::conv, with_candle::conv, with_burn::conv]),
    ("transformer step", [with_ferrax::transformer, with_candle::transformer, with_burn::transformer]),
    ("rnn step", [with_ferrax::rnn, with_candle::rnn, with_burn::rnn]),
    ("softmax", [with_ferrax::softmax, with_candle::softmax, with_burn::softmax]),
    ("chain", [with_ferrax::chain, with_candle::chain, with_burn::chain]),
    ("small", [with_ferrax::small, with_candle::small, with_burn::small]),
];
/// Steps after which results are compared: training must have gone the same way.
const STEPS: usize = 3;
/// How far results may be apart, as a part of the largest.
const NEAR: f32 = 2e-4;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let after = |flag: &str| args.iter().position(|a| a == flag).and_then(|i| args.get(i + 1));
    let rounds = after("--rounds").map_or(15, |n| n.parse().expect("a number of rounds"));
    let only = after("--only").map(String::as_str);
    let values = ["--rounds", "--only"].map(after);
    let words: Vec<&String> =
        args.iter().filter(|a| !a.starts_with("--") && !values.iter().any(|v| *v == Some(*a))).collect();
    println!("{:<18} {:>11} {:>11} {:>11}   candle   burn", "", LIBRARIES[0], LIBRARIES[1], LIBRARIES[2]);
    let mut ratios = [vec![], vec![]];
    let mut wrong = false;
    for (name, make) in ROWS {
        if !words.is_empty() && !words.iter().any(|w| name.contains(w.as_str())) {
            continue;
        }
        let mut works: Vec<Box<dyn Timed>> = make.iter().map(|m| m()).collect();
        if let Some(k) = only.and_then(|l| LIBRARIES.iter().position(|n| *n == l)) {
            println!("{name:<18} {:>9.1} us", alone(&mut *works[k], rounds) * 1e6);
            continue;
        }
        let verdict = compared(&mut works);
        wrong |= verdict.is_err();
        let times = in_turns(&mut works, rounds);
        let by = [times[1] / times[0], times[2] / times[0]];
        ratios.iter_mut().zip(by).for_each(|(all, r)| all.push(r));
        print!("{name:<18}");
        times.iter().for_each(|t| print!(" {:>8.1} us", t * 1e6));
        println!("   {:>6.2} {:>6.2}   {}", by[0], by[1], verdict.unwrap_or_else(|e| format!("DIFFER: {e}")));
    }
    let mean = |v: &[f64]| (v.iter().map(|x| x.ln()).sum::<f64>() / v.len() as f64).exp();
    if !ratios[0].is_empty() {
        let all = ratios.concat();
        println!(
            "geometric means of ratios: candle {:.2}, burn {:.2}, both {:.2}",
            mean(&ratios[0]),
            mean(&ratios[1]),
            mean(&all)
        );
    }
    if wrong {
        std::process::exit(1);
    }
}
/// The largest difference after some steps, as a part of the largest number.
fn compared(works: &mut [Box<dyn Timed>]) -> Result<String, String> {
    for _ in 0..STEPS {
        works.iter_mut().for_each(|w| w.go());
    }
    let all: Vec<Vec<f32>> = works.iter().map(|w| w.results()).collect();
    let most = all[0].iter().fold(0f32, |m, x| m.max(x.abs()));
    let mut worst = 0f32;
    for (other, name) in all.iter().zip(LIBRARIES).skip(1) {
        if other.len() != all[0].len() {
            return Err(format!("{name} gives {} numbers, not {}", other.len(), all[0].len()));
        }
        let far = other
            .iter()
            .zip(&all[0])
            .fold(0f32, |m, (a, b)| if a.is_nan() || b.is_nan() { f32::NAN } else { m.max((a - b).abs()) });
        if far.is_nan() || far > NEAR * most {
            return Err(format!("{name} is {far:e} away of {most}"));
        }
        worst = worst.max(far / most);
    }
    Ok(format!("equal to {worst:.0e}"))
}
/// Seconds of one go of each: the median over rounds, in each of which all take their turn.
fn in_turns(works: &mut [Box<dyn Timed>], rounds: usize) -> Vec<f64> {
    let each: Vec<usize> = works.iter_mut().map(|w| repeats(&mut **w)).collect();
    let mut times = vec![vec![]; works.len()];
    for r in 0..rounds {
        for i in 0..works.len() {
            let k = (i + r) % works.len();
            times[k].push(timed(&mut *works[k], each[k]));
        }
    }
    times.into_iter().map(median).collect()
}
fn alone(work: &mut dyn Timed, rounds: usize) -> f64 {
    let n = repeats(work);
    median((0..rounds).map(|_| timed(work, n)).collect())
}
/// How many make a turn of some 30 ms.
fn repeats(work: &mut dyn Timed) -> usize {
    timed(work, 2);
    let once = timed(work, 2);
    (0.03 / once).clamp(1.0, 20_000.0) as usize
}
fn timed(work: &mut dyn Timed, n: usize) -> f64 {
    let start = Instant::now();
    (0..n).for_each(|_| work.go());
    start.elapsed().as_secs_f64() / n as f64
}
fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
