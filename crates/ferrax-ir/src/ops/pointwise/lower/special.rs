//! Functions that are compositions in the waist: polygamma, and the scaled Bessel functions of the first kind.
//!
//! ```text
//! polygamma(n, x) = (-1)^(n+1) n! zeta(n+1, x)                  n = 1, 2, ..; n = 0 is digamma; other n are nan
//! zeta(s, x)      = sum_{k<9} (x+k)^-s  +  a^(1-s)/(s-1) + a^-s/2 + sum_j B_2j/(2j)! s(s+1)..(s+2j-2) a^(1-s-2j),   a = x + 9
//! bessel_i?e(x)   = e^-|x| I_?(x): a Chebyshev series in |x| up to 8, above it one in 8/|x|, over sqrt |x|
//! bessel_i0e_minus_i1e(x) = e^-|x| (I_0(x) - |I_1(x)|): above 8 such a series over |x| sqrt |x|, for the difference of the two would cancel
//! ```
//! The sum is Euler and Maclaurin's (Abramowitz and Stegun 23.1.30); it holds to x = -8, below which the result is nan. The series'
//! coefficients were computed in 40 digits. Narrow floats are computed in single precision.
use crate::lower::{Graph, TensorId};
use ferrax_kernel::{Bin, DType, Un};

/// `f` in single precision where `x` is narrower.
fn widened(g: &mut Graph, x: &[TensorId], f: impl FnOnce(&mut Graph, &[TensorId]) -> TensorId) -> TensorId {
    let d = g.dtype(x[0]);
    if d.size() >= 4 {
        return f(g, x);
    }
    let wide: Vec<TensorId> = x.iter().map(|v| g.convert(*v, DType::F32)).collect();
    let y = f(g, &wide);
    g.convert(y, d)
}

/// B_2j / (2j)!
pub(in crate::ops) const BERNOULLI: [f64; 12] = [
    8.333_333_333_333_333e-2,
    -1.388_888_888_888_889e-3,
    3.306_878_306_878_307e-5,
    -8.267_195_767_195_768e-7,
    2.087_675_698_786_81e-8,
    -5.284_190_138_687_493e-10,
    1.338_253_653_068_467_9e-11,
    -3.389_680_296_322_583e-13,
    8.586_062_056_277_845e-15,
    -2.174_868_698_558_062e-16,
    5.509_002_828_360_23e-18,
    -1.395_446_468_581_252_3e-19,
];

pub(super) fn polygamma(g: &mut Graph, x: &[TensorId]) -> TensorId {
    widened(g, x, |g, x| {
        let (n, x) = (x[0], x[1]);
        let k = |g: &mut Graph, c: f64| g.scalar(x, c);
        let (zero, one, half) = (k(g, 0.0), k(g, 1.0), k(g, 0.5));
        let s = g.bin(Bin::Add, n, one);
        let minus_s = g.un(Un::Neg, s);
        // the first nine terms
        let mut sum = g.bin(Bin::Pow, x, minus_s);
        for i in 1..9 {
            let i = k(g, i as f64);
            let at = g.bin(Bin::Add, x, i);
            let term = g.bin(Bin::Pow, at, minus_s);
            sum = g.bin(Bin::Add, sum, term);
        }
        let nine = k(g, 9.0);
        let a = g.bin(Bin::Add, x, nine);
        let power = g.bin(Bin::Pow, a, minus_s);
        // its own power: that of s may underflow
        let minus_n = g.un(Un::Neg, n);
        let tail = g.bin(Bin::Pow, a, minus_n);
        let tail = g.bin(Bin::Div, tail, n);
        let edge = g.bin(Bin::Mul, power, half);
        // s (s+1) .. (s+2j-2) a^(1-s-2j), from one j to the next
        let mut factor = g.bin(Bin::Mul, s, power);
        factor = g.bin(Bin::Div, factor, a);
        let a2 = g.bin(Bin::Mul, a, a);
        let mut rest = zero;
        for (j, b) in BERNOULLI.iter().enumerate() {
            let b = k(g, *b);
            let term = g.bin(Bin::Mul, factor, b);
            rest = g.bin(Bin::Add, rest, term);
            for i in [2 * j + 1, 2 * j + 2] {
                let i = k(g, i as f64);
                let up = g.bin(Bin::Add, s, i);
                factor = g.bin(Bin::Mul, factor, up);
            }
            factor = g.bin(Bin::Div, factor, a2);
        }
        let whole = g.bin(Bin::Add, sum, tail);
        let whole = g.bin(Bin::Add, whole, edge);
        let zeta = g.bin(Bin::Add, whole, rest);
        let l = g.un(Un::Lgamma, s);
        let factorial = g.un(Un::Exp, l);
        let size = g.bin(Bin::Mul, factorial, zeta);
        // odd n is positive: n / 2 is not whole
        let h = g.bin(Bin::Mul, n, half);
        let down = g.un(Un::Floor, h);
        let even = g.bin(Bin::Eq, h, down);
        let minus = g.un(Un::Neg, size);
        let y = g.select(even, minus, size);
        // a pole, of which only the odd orders have a limit
        let nan = k(g, f64::NAN);
        let inf = k(g, f64::INFINITY);
        let at = g.un(Un::Floor, x);
        let whole_x = g.bin(Bin::Eq, x, at);
        let low = g.bin(Bin::Le, x, zero);
        let pole = g.bin(Bin::And, whole_x, low);
        let limit = g.select(even, nan, inf);
        let y = g.select(pole, limit, y);
        let far = k(g, -8.0);
        let beyond = g.bin(Bin::Lt, x, far);
        let y = g.select(beyond, nan, y);
        // infinity is left to the terms' own limit, zero
        let is_inf = g.bin(Bin::Eq, x, inf);
        let y = g.select(is_inf, zero, y);
        let whole_n = g.un(Un::Floor, n);
        let fine = g.bin(Bin::Eq, n, whole_n);
        let positive = g.bin(Bin::Gt, n, zero);
        let fine = g.bin(Bin::And, fine, positive);
        let y = g.select(fine, y, nan);
        let first = g.bin(Bin::Eq, n, zero);
        let digamma = g.un(Un::Digamma, x);
        g.select(first, digamma, y)
    })
}

/// A Chebyshev series at t in -1..1, by Clenshaw's recurrence.
fn series(g: &mut Graph, t: TensorId, c: &[f64]) -> TensorId {
    let t2 = g.bin(Bin::Add, t, t);
    let (mut b1, mut b2) = (g.scalar(t, 0.0), g.scalar(t, 0.0));
    for c in c[1..].iter().rev() {
        let p = g.bin(Bin::Mul, t2, b1);
        let p = g.bin(Bin::Sub, p, b2);
        let c = g.scalar(t, *c);
        (b1, b2) = (g.bin(Bin::Add, p, c), b1);
    }
    let p = g.bin(Bin::Mul, t, b1);
    let p = g.bin(Bin::Sub, p, b2);
    let c = g.scalar(t, c[0]);
    g.bin(Bin::Add, p, c)
}
fn bessel(g: &mut Graph, x: &[TensorId], near: &[f64], far: &[f64], odd: bool) -> TensorId {
    widened(g, x, |g, x| {
        let x = x[0];
        let k = |g: &mut Graph, c: f64| g.scalar(x, c);
        let (one, eight) = (k(g, 1.0), k(g, 8.0));
        let size = g.un(Un::Abs, x);
        let close = g.bin(Bin::Le, size, eight);
        let quarter = k(g, 0.25);
        let t = g.bin(Bin::Mul, size, quarter);
        let t = g.bin(Bin::Sub, t, one);
        let mut y = series(g, t, near);
        if odd {
            y = g.bin(Bin::Mul, y, x);
        }
        let sixteen = k(g, 16.0);
        let u = g.bin(Bin::Div, sixteen, size);
        let u = g.bin(Bin::Sub, u, one);
        let z = series(g, u, far);
        let root = g.un(Un::Sqrt, size);
        let z = g.bin(Bin::Div, z, root);
        if !odd {
            return g.select(close, y, z);
        }
        let zero = k(g, 0.0);
        let below = g.bin(Bin::Lt, x, zero);
        let minus = g.un(Un::Neg, z);
        let z = g.select(below, minus, z);
        g.select(close, y, z)
    })
}
pub(super) fn bessel_i0e(g: &mut Graph, x: &[TensorId]) -> TensorId {
    bessel(g, x, I0_NEAR, I0_FAR, false)
}
pub(super) fn bessel_i1e(g: &mut Graph, x: &[TensorId]) -> TensorId {
    bessel(g, x, I1_NEAR, I1_FAR, true)
}

/// Up to 8 the difference, above it by its own series.
pub(super) fn bessel_gap(g: &mut Graph, x: &[TensorId]) -> TensorId {
    widened(g, x, |g, x| {
        let size = g.un(Un::Abs, x[0]);
        let (one, eight, sixteen) = (g.scalar(size, 1.0), g.scalar(size, 8.0), g.scalar(size, 16.0));
        let close = g.bin(Bin::Le, size, eight);
        let (even, odd) = (bessel_i0e(g, &[size]), bessel_i1e(g, &[size]));
        let y = g.bin(Bin::Sub, even, odd);
        let u = g.bin(Bin::Div, sixteen, size);
        let u = g.bin(Bin::Sub, u, one);
        let z = series(g, u, GAP_FAR);
        let z = g.bin(Bin::Div, z, size);
        let root = g.un(Un::Sqrt, size);
        let z = g.bin(Bin::Div, z, root);
        g.select(close, y, z)
    })
}

#[rustfmt::skip]
pub(in crate::ops) const GAP_FAR: &[f64] = &[
    0.20463914491986041,
    0.0053485260935385576,
    0.00019150500095126415,
    1.2032615976256657e-5,
    1.1956976470208373e-6,
    1.7168417718734061e-7,
    2.8338106568544693e-8,
    3.0512068490939512e-9,
    -7.4341354538362426e-10,
    -5.7672839092344347e-10,
    -1.5193610828268227e-10,
    5.6687906228401844e-12,
    1.8044700616077239e-11,
    4.2535720734199775e-12,
    -1.1555903826473055e-12,
    -7.7707032883126273e-13,
    1.4368043830095463e-14,
    1.0913028331644427e-13,
    1.1406069274284165e-14,
    -1.5049144790858717e-14,
    -2.8555810704808023e-15,
    2.2314974017002143e-15,
    5.2722587978145681e-16,
    -3.688525888515701e-16,
    -8.5355991966825099e-17,
    6.7549315226280812e-17,
    1.1811455208665337e-17,
    -1.3225212330303549e-17,
];
#[rustfmt::skip]
const I0_NEAR: &[f64] = &[
    0.33839763720473804,
    -0.30468267234319840,
    0.17162090152220878,
    -0.094901097048047644,
    0.049305284239670708,
    -0.023737414805899469,
    0.010546460394594998,
    -0.0043243099950505759,
    0.0016394756169413358,
    -0.00057637557453858237,
    0.00018850288509584166,
    -5.7541950100821037e-5,
    1.6448448070728897e-5,
    -4.4167383584587506e-6,
    1.1173875391201037e-6,
    -2.6707938539406117e-7,
    6.0469950225419189e-8,
    -1.3000250099862480e-8,
    2.6598237246823867e-9,
    -5.1897956016352629e-10,
    9.6758090353732369e-11,
    -1.7268262914415557e-11,
    2.9550526631296398e-12,
    -4.8564467831119295e-13,
    7.6761854986049356e-14,
    -1.1685332877993452e-14,
    1.7153912855551330e-15,
    -2.4312798465479547e-16,
    3.3307945188222381e-17,
    -4.4153416464793394e-18,
];
#[rustfmt::skip]
const I0_FAR: &[f64] = &[
    0.40224520550705442,
    0.0033691164782556941,
    6.8897583469168240e-5,
    2.8913705208347565e-6,
    2.0489185894690637e-7,
    2.2666689904981781e-8,
    3.3962320257083863e-9,
    4.9406023882249696e-10,
    1.1889147107846438e-11,
    -3.1499165279632414e-11,
    -1.3215811840447713e-11,
    -1.7941785315068061e-12,
    7.1801244513836662e-13,
    3.8527783827421427e-13,
    1.5400862175214098e-14,
    -4.1505693472872221e-14,
    -9.5548466988283076e-15,
    3.8116806693526224e-15,
    1.7725601330565264e-15,
    -3.4254856196772191e-16,
    -2.8276239805165835e-16,
    3.4612228676974611e-17,
    4.4656214202967600e-17,
    -4.8305044859441821e-18,
    -7.2331804878747540e-18,
];
#[rustfmt::skip]
const I1_NEAR: &[f64] = &[
    0.12629359322181683,
    -0.17641651835783406,
    0.10264365868984710,
    -0.052945981208094991,
    0.024726449030626517,
    -0.010564084894626198,
    0.0041564229443128882,
    -0.0015135724506312531,
    0.00051228595616857577,
    -0.00016176081582589675,
    4.7815651075500542e-5,
    -1.3273163656039436e-5,
    3.4702513081376785e-6,
    -8.5687202646954547e-7,
    2.0032947535521353e-7,
    -4.4450591287963281e-8,
    9.3815373864957718e-9,
    -1.8872497517228293e-9,
    3.6255902815521170e-10,
    -6.6634897235020277e-11,
    1.1736186298890902e-11,
    -1.9839743977649437e-12,
    3.2237933659455747e-13,
    -5.0421855047279117e-14,
    7.6006842947354069e-15,
    -1.1055969477353863e-15,
    1.5536319577362005e-16,
    -2.1114212143581661e-17,
    2.7779141127610464e-18,
];
#[rustfmt::skip]
const I1_FAR: &[f64] = &[
    0.38928811750914006,
    -0.0097610974913614684,
    -0.00011058893876262372,
    -3.8825648088776904e-6,
    -2.5122362378702089e-7,
    -2.6314688468895195e-8,
    -3.8353803859642370e-9,
    -5.5897434621965838e-10,
    -1.8974958123505412e-11,
    3.2526035830154882e-11,
    1.4125807436613781e-11,
    2.0356285441470895e-12,
    -7.1985517762459085e-13,
    -4.0835511110921973e-13,
    -2.1015418427726643e-14,
    4.2724400167119514e-14,
    1.0420276984128803e-14,
    -3.8144030724370078e-15,
    -1.8803547755107824e-15,
    3.3082023109209283e-16,
    2.9626289976459501e-16,
    -3.2095259219934240e-17,
    -4.6503053684893583e-17,
    4.4143483230717079e-18,
    7.5172963108421048e-18,
];
