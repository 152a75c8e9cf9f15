//! A loop over a scalar function has the same bits whatever instructions it was vectorised for.
//!
//! Each function is compiled three times from one source, as the backends do: plainly, for AVX2 with fused multiply-add and for AVX-512. NaN
//! results are compared by bits too.
#![cfg(target_arch = "x86_64")]

use ferrax_kernel::math;

/// Arguments of every kind: all exponents, where the functions are at work, and edges; the length is no multiple of a vector's.
fn arguments(seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut out = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        5e-324,
        1e-45,
        -1e-310,
    ];
    for _ in 0..600 {
        out.push(f64::from_bits(next()));
        out.push(f64::from(f32::from_bits(next() as u32)));
        let unit = (next() >> 11) as f64 / (1_u64 << 53) as f64;
        out.extend([
            unit,
            2.0 * unit - 1.0,
            20.0 * unit - 10.0,
            1500.0 * unit - 750.0,
            200.0 * unit - 100.0,
            (unit - 0.5) * 1e7,
        ]);
    }
    out
}

macro_rules! tiers {
    ($($name:ident)*; pairs: $($pair:ident)*) => {
        mod unary { $(pub mod $name { $crate::math_tiers::tiers!(@three $name, f32, narrow, 1); $crate::math_tiers::tiers!(@three $name, f64, wide, 1); })* }
        mod binary { $(pub mod $pair { $crate::math_tiers::tiers!(@three $pair, f32, narrow, 2); $crate::math_tiers::tiers!(@three $pair, f64, wide, 2); })* }

        #[test]
        fn tiers_agree() {
            let x = arguments(1);
            let mut y = arguments(2);
            y.rotate_left(7);
            let (narrow_x, narrow_y): (Vec<f32>, Vec<f32>) = (x.iter().map(|&v| v as f32).collect(), y.iter().map(|&v| v as f32).collect());
            $(unary::$name::narrow::agree(&narrow_x, &narrow_y); unary::$name::wide::agree(&x, &y);)*
            $(binary::$pair::narrow::agree(&narrow_x, &narrow_y); binary::$pair::wide::agree(&x, &y);)*
        }
    };
    (@three $name:ident, $real:ident, $module:ident, $arity:tt) => {
        pub mod $module {
            fn plain(x: &[$real], y: &[$real], out: &mut [$real]) {
                $crate::math_tiers::tiers!(@loop $name, $arity, x, y, out)
            }
            #[target_feature(enable = "avx2,fma")]
            fn avx2(x: &[$real], y: &[$real], out: &mut [$real]) {
                $crate::math_tiers::tiers!(@loop $name, $arity, x, y, out)
            }
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
            fn avx512(x: &[$real], y: &[$real], out: &mut [$real]) {
                $crate::math_tiers::tiers!(@loop $name, $arity, x, y, out)
            }
            pub fn agree(x: &[$real], y: &[$real]) {
                let mut expected = vec![0.0; x.len()];
                plain(x, y, &mut expected);
                let check = |tier: &str, out: &[$real]| {
                    for i in 0..x.len() {
                        let (e, o) = (expected[i], out[i]);
                        assert!(e.to_bits() == o.to_bits(), "{}({:e}, {:e}) in {}: {tier} {o:e}, plain {e:e}", stringify!($name), x[i], y[i], stringify!($real));
                    }
                };
                let mut out = vec![0.0; x.len()];
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                    // SAFETY: the feature that the callee needs has just been detected.
                    unsafe { avx2(x, y, &mut out) };
                    check("avx2", &out);
                }
                if std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512dq")
                    && std::is_x86_feature_detected!("avx512bw")
                {
                    // SAFETY: the features that the callee needs have just been detected.
                    unsafe { avx512(x, y, &mut out) };
                    check("avx512", &out);
                }
            }
        }
    };
    (@loop $name:ident, 1, $x:ident, $y:ident, $out:ident) => {{
        let (n, _) = ($out.len(), $y);
        let $x = &$x[..n];
        for i in 0..n {
            $out[i] = $crate::math_tiers::math::$name($x[i]);
        }
    }};
    (@loop $name:ident, 2, $x:ident, $y:ident, $out:ident) => {{
        let n = $out.len();
        let ($x, $y) = (&$x[..n], &$y[..n]);
        for i in 0..n {
            $out[i] = $crate::math_tiers::math::$name($x[i], $y[i]);
        }
    }};
}
use tiers;

tiers!(
    exp exp2 expm1 logistic sinh cosh tanh log log1p asinh acosh atanh sin cos tan sin_moderate cos_moderate tan_moderate
    asin acos atan erf erfc erf_inv cbrt sqrt rsqrt lgamma digamma round_even round_away
    trunc floor ceil;
    pairs: atan2 pow next_after
);
