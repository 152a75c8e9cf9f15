//! The cases of what numpy and lax compose.
#![allow(clippy::erasing_op)] // `x * 0` is how Python's side writes zeros of a dtype
use super::{F, Inputs, inputs};
use ferrax::*;

pub fn made(name: &str) -> Option<Tensor> {
    let Inputs { x, y, v, s, i, .. } = &inputs();
    let n = &where_(&x.gt(1.0), f64::NAN, x);
    let e = &Tensor::from([-1.0f32, -0.25, 0.0, 0.5, 2.0]);
    let z = v.fft(0);
    let u = v.flip(0);
    let others = Tensor::from([3, 4]);
    let (r, w) = (Tensor::from([1, 2, u32::MAX - 1, 4]), random::normal(&random::key(4), &[5, 48], F));
    Some(match name {
        "searchsorted_nan" => e.append(f64::NAN).searchsorted(Tensor::from([f32::NAN, 0.5, 9.0])),
        "searchsorted_right_nan" => e.append(f64::NAN).searchsorted_right(Tensor::from([f32::NAN, 0.5, 9.0])),
        "det2" => linalg::det(&s.slice(s![..2, ..2])),
        "det3" => linalg::det(&s.slice(s![..3, ..3])),
        "grad_det" => grad(linalg::det)(s).ok()?,
        "grad_det_singular" => grad(linalg::det)(&s.at(s![3]).set(s.slice(s![0]))).ok()?,
        "lexsort" => lexsort(&[x.round(), x.flip(0).round()], 1),
        "partition" => x.partition(2, 1),
        "argpartition" => x.argpartition(2, 0),
        "sort_complex" => v.sort_complex(),
        "unravel_index" => Tensor::from([22, -1, 41]).unravel_index(&[4, 6]).remove(1),
        "ravel_multi_index" => ravel_multi_index(&[Tensor::from([1, 3]), Tensor::from([5, 2])], &[4, 6]),
        "choose" => i.choose(&[v.slice(s![..3]), v.slice(s![3..6]), v.slice(s![5..])]),
        "delete" => x.delete(i, 1),
        "insert" => x.insert(2, v.slice(s![..4]), 1),
        "trim_zeros" => Tensor::from([0.0f32, 0.0, 2.0, 0.0, 3.0, 0.0]).trim_zeros(),
        "ediff1d" => x.ediff1d(),
        "unwrap" => (5 * x).unwrap(1, std::f64::consts::TAU),
        "spacing" => e.spacing(),
        "logaddexp2" => special::logaddexp2(&x.slice(s![0]), x.slice(s![1])),
        "grad_logaddexp2" => grad(|x: &Tensor| special::logaddexp2(x, v).sum())(&u).ok()?,
        "packbits" => x.gt(0).packbits(1),
        "unpackbits" => Tensor::from([250u8, 251, 252, 253]).unpackbits(0),
        "log1mexp" => nn::log1mexp(v),
        "delta_orthogonal" => nn::delta_orthogonal(&random::key(7), &[3, 3, 2, 4], F, 2.0),
        "scaled_matmul" => {
            let (a, b) = (x.expand_dims(0), x.flip(0).expand_dims(0));
            nn::scaled_matmul(&a, &b, &v.reshape(&[1, 4, 2]), &u.reshape(&[1, 4, 2]))
        }
        "scaled_dot_general" => {
            let x = x.astype(Dtype::BF16);
            nn::scaled_dot_general(&x, &x, (&[1], &[1]), (&[], &[]))
        }
        "approx_max_k" => x.approx_max_k(2, -1).0,
        "approx_min_k" => x.approx_min_k(2, 0).1,
        "conv_local" => {
            x.reshape(&[1, 2, 4, 3]).conv_local(&w.reshape(&[5, 8, 3, 2]), &[2, 2], &ConvOptions::default())
        }
        "conv_local_last" => {
            let o = ConvOptions { strides: vec![2, 2], ..ConvOptions::features_last() };
            let w = w.slice(s![.., ..8]).reshape(&[2, 1, 4, 5]);
            x.reshape(&[2, 4, 3, 1]).conv_local(&w, &[2, 2], &o)
        }
        "ragged_dot" => {
            ragged_dot(x, &w.slice(s![.., ..12]).reshape(&[2, 6, 5]).slice(s![.., .., ..4]), &Tensor::from([1, 2]))
        }
        "ragged_dot_general" => {
            let sizes = Tensor::from([2, 3, 1]);
            ragged_dot_general(x, &y.slice(s![.., ..4]), &sizes, (&[1], &[0]), (&[], &[]), 1, &[])
        }
        "rng_bit_generator" => random::rng_bit_generator(&r, &[3, 5], Dtype::U32, random::Algorithm::Default).1,
        "rng_state" => random::rng_bit_generator(&r, &[3, 5], Dtype::U8, random::Algorithm::ThreeFry).0,
        "rng_threefry" => random::rng_bit_generator(&r, &[3, 5], Dtype::U8, random::Algorithm::ThreeFry).1,
        "scaled_dot" => {
            let scales = [x.slice(s![.., ..3]).powi(2), y.slice(s![..2]).powi(2)];
            scaled_dot(x, y, Some(&scales[0]), Some(&scales[1]), Dtype::BF16)
        }
        "scaled_dot_f32" => scaled_dot(x, y, None, Some(&y.slice(s![..3])), F),
        "histogram2d" => v.histogram2d(&u, [3, 4], None).0,
        "histogram2d_edges" => v.histogram2d(&u, [3, 4], None).2,
        "histogramdd" => x.histogramdd(&[2, 3, 1, 2, 2, 1], Some(&[(-1.0, 1.0); 6])).0,
        "histogramdd_edges" => x.histogramdd(&[2; 6], None).1.remove(3),
        "polyfit" => poly::fit(v, &v.sin(), 3),
        "lstsq" => linalg::lstsq(x, &y.slice(s![..4]), None).0,
        "lstsq_residuals" => linalg::lstsq(y, &x.t(), None).1,
        "lstsq_rank" => linalg::lstsq(&y.at(s![.., 1]).set(y.slice(s![.., 0])), &x.t(), Some(1e-5)).2,
        "pinv" => linalg::pinv(x),
        "grad_pinv" => {
            let y = y.slice(s![.., ..4]);
            grad(move |a: &Tensor| (linalg::pinv(a) * &y).sum())(x).ok()?
        }
        "unique_all" => n.round().unique_all().0,
        "unique_all_indices" => n.round().unique_all().1,
        "unique_inverse" => n.round().unique_inverse().1,
        "unique_all_counts" => n.round().unique_counts().1,
        "segment_sum" => x.segment_sum(&Tensor::from([2, -1, 2, 5]), 4),
        "segment_prod" => x.segment_prod(&Tensor::from([2, 1, 2, 0]), 4),
        "segment_max" => x.segment_max(&Tensor::from([2, 1, 2, 4]), 4),
        "segment_min" => i.segment_min(&Tensor::from([1, 1, 3]), 4),
        "segment_row" => x.slice(s![..1]).segment_sum(&Tensor::from([1, 1, 0]), 2),
        "grad_segment_max" => {
            let ids = Tensor::from([0, 1, 0, 1]);
            grad(move |x: &Tensor| x.segment_max(&ids, 2).powi(2).sum())(x).ok()?
        }
        "power_int" => i.pow(3),
        "power_ints" => (i - 1).pow(i),
        "power_array" => v.pow(i.slice(s![0])),
        "power_float_ints" => x.slice(s![0, ..3]).pow(i),
        "power_large" => (v / 3).pow((1i64 << 31) + 5),
        "power_bool" => x.gt(0).pow(x.lt(1)),
        "grad_power" => {
            let f = |x: &Tensor| x.pow(Tensor::from([0.0f32, 2.0, 0.5])).sum();
            grad(f)(&Tensor::from([0.0f32, -3.0, 4.0])).ok()?
        }
        "float_power" => i.float_power(-2),
        "fftn" => x.reshape(&[1, 2, 3, 2, 2]).fftn(..),
        "rfftn" => x.reshape(&[2, 3, 4]).rfftn([2, 0]),
        "irfftn" => x.reshape(&[2, 3, 2, 2]).irfftn(5, ..),
        "irfft_padded" => x.irfft(16, -1),
        "hfft" => z.slice(s![..5]).hfft(7, 0),
        "ihfft" => x.ihfft(0),
        "fftfreq" => fftfreq(7, 0.3),
        "rfftfreq" => rfftfreq(7, 0.3),
        "fftshift" => x.fftshift(..),
        "ifftshift" => v.slice(s![..7]).ifftshift(..),
        "linear_transpose" => {
            let back = linear_transpose(|v: &Tensor| (x.matmul(v) * 3.0).cumsum(0), &v.slice(s![..6])).ok()?;
            back(&v.slice(s![..4])).ok()?
        }
        "floor_divide_zero" => e.floor_div(e * 0),
        "nansum" => n.nansum_axes(1),
        "nanprod" => n.nanprod_axes(0),
        "nanmax" => n.nanmax_axes(1),
        "nanmin" => where_(&Tensor::arange(4, Dtype::I32).expand_dims(-1).eq(2), f64::NAN, n).nanmin_axes(1),
        "nanmean" => n.nanmean_keep(1),
        "nanvar" => n.nanvar_axes(0),
        "nanstd" => n.nanstd(),
        "nanargmax" => n.nanargmax(1),
        "nanargmin" => n.nanargmin(0),
        "nancumsum" => n.nancumsum(1),
        "nancumprod" => n.nancumprod(0),
        "nan_to_num" => n.round().log().nan_to_num(0.5),
        "nanmedian" => n.nanmedian(0),
        "nanquantile" => n.nanquantile(Tensor::from([0.1f32, 0.7]), 1),
        "nanpercentile" => n.nanpercentile(30.0, 1),
        "quantile" => x.quantile(Tensor::from([0.1f32, 0.5, 0.93]), 1),
        "quantile_nan" => n.quantile(0.3, 0),
        "percentile" => x.percentile(12.5, 0),
        "average" => x.average(&x.abs(), 1),
        "cov" => x.cov(1),
        "corrcoef" => x.corrcoef(),
        "ptp" => x.ptp_axes(0),
        "histogram" => x.histogram(5, None).0,
        "histogram_bin_edges" => x.histogram_bin_edges(5, None),
        "histogram_range" => x.histogram(4, Some((-1.0, 1.0))).0,
        "bincount" => i.bincount(5),
        "digitize" => x.digitize(e),
        "digitize_falling" => x.digitize(&e.flip(0)),
        "searchsorted_right" => e.searchsorted_right(Tensor::from([-2.0f32, 0.0, 3.0])),
        "diff" => x.diff(2, 1),
        "gradient" => x.gradient(0.7, 1),
        "trapezoid" => x.trapezoid(0.3, 0),
        "interp" => x.interp(e, &v.slice(s![..5])),
        "convolve_full" => v.convolve(e, Mode::Full),
        "convolve_same" => e.convolve(v, Mode::Same),
        "convolve_valid" => v.convolve(e, Mode::Valid),
        "correlate" => e.correlate(v, Mode::Full),
        "polyval" => poly::val(e, x),
        "polyadd" => poly::add(e, v),
        "polysub" => poly::sub(e, v),
        "polymul" => poly::mul(e, v),
        "polyder" => poly::der(v),
        "polyint" => poly::int(v, 3.0),
        "vander" => poly::vander(v, 4),
        "meshgrid" => stack(&meshgrid(&[e, v]), 0),
        "meshgrid_ij" => stack(&meshgrid_ij(&[e, v]), 0),
        "indices" => Tensor::indices(&[2, 3]),
        "tri" => Tensor::tri(3, 4, 1),
        "tril_indices" => both(Tensor::tril_indices(4, -1, 3)),
        "triu_indices" => both(Tensor::triu_indices(3, 1, 5)),
        "logspace" => Tensor::logspace(-1.0, 2.5, 7),
        "geomspace" => Tensor::geomspace(-3.0, -100.0, 5),
        "bartlett" => windows::bartlett(7),
        "blackman" => windows::blackman(7),
        "hamming" => windows::hamming(7),
        "hanning" => windows::hanning(7),
        "vstack" => vstack(&[e.clone(), e * 2]),
        "hstack" => hstack(&[x, x]),
        "dstack" => dstack(&[e.clone(), e * 2]),
        "column_stack" => column_stack(&[e.clone(), e * 2]),
        "block" => block(&[&[x, x], &[x, &-x]]),
        "array_split" => x.array_split(4, 1).remove(1),
        "rot90" => x.rot90(3, (0, 1)),
        "reciprocal" => x.reciprocal(),
        "log10" => v.log10(),
        "deg2rad" => x.deg2rad(),
        "rad2deg" => x.rad2deg(),
        "trunc" => (x * 3).trunc(),
        "modf" => both((x * 3).modf()),
        "divmod" => both(x.div_mod(0.4)),
        "signbit" => (x * 0).signbit(),
        "copysign" => x.copysign(-0.0),
        "fmax" => n.fmax(0.1),
        "fmin" => n.fmin(x),
        "heaviside" => e.heaviside(0.5),
        "isclose" => x.is_close(x + Tensor::from(1e-5f32) * x.gt(0.0), 1e-5, 1e-8),
        "igamma" => v.igamma(&u),
        "igammac" => v.igammac(&u),
        "igamma_grad_a" => v.igamma_grad_a(&u),
        "random_gamma_grad" => v.random_gamma_grad(&u),
        "zeta" => (v + 1).zeta(&u),
        "betainc" => v.betainc(&u, 0.3),
        "mulhi" => Tensor::from([1 << 30, -5, 7]).mul_hi(Tensor::from([12, 1 << 30, -1])),
        "reduce_precision" => x.reduce_precision(5, 3),
        "reduce_xor" => i.reduce_xor(),
        "dynamic_slice_in_dim" => x.dynamic_slice_in_dim(-3, 2, 1),
        "dynamic_index_in_dim" => x.dynamic_index_in_dim(2, 0),
        "dynamic_update_slice_in_dim" => x.dynamic_update_slice_in_dim(&(x.slice(s![.., ..2]) * 0), 3, 1),
        "dynamic_update_index_in_dim" => x.dynamic_update_index_in_dim(&(x.slice(s![0]) * 0), -1, 0),
        "conv_transpose" => {
            let o = ConvOptions { strides: vec![2, 1], padding: Padding::Same, ..ConvOptions::default() };
            x.slice(s![NewAxis, NewAxis]).conv_transpose(&x.slice(s![NewAxis, NewAxis, ..2, ..3]), &o)
        }
        "conv_transpose_valid" => {
            let o = ConvOptions { strides: vec![2, 3], ..ConvOptions::features_last() };
            let w = x.slice(s![..2, ..3, NewAxis, NewAxis]);
            x.slice(s![NewAxis, .., .., NewAxis]).conv_transpose(&w, &o)
        }
        "conv_patches" => {
            let o = ConvOptions { padding: Padding::Same, ..ConvOptions::default() };
            x.reshape(&[1, 2, 4, 3]).conv_patches(&[2, 2], &o)
        }
        "kron" => linalg::kron(x, e),
        "tensordot" => linalg::tensordot(x, y, 1),
        "cross" => linalg::cross(&x.slice(s![.., ..3]), &x.slice(s![0, 3..])),
        "vdot" => linalg::vdot(&z, &(&z * 2)),
        "matvec" => linalg::matvec(x, &v.slice(s![..6])),
        "vecmat" => linalg::vecmat(&v.slice(s![..4]), x),
        "eigvals" => linalg::eigvals(&x.slice(s![.., ..4])),
        "eigvalsh" => linalg::eigvalsh(s),
        "matrix_norm" => linalg::matrix_norm(x),
        "matrix_rank" => linalg::matrix_rank(x),
        "multi_dot" => linalg::multi_dot(&[x, y, &x.slice(s![.., ..5]).t()]),
        "tensorinv" => linalg::tensorinv(&s.reshape(&[2, 2, 4]), 2),
        "tensorsolve" => linalg::tensorsolve(&s.reshape(&[2, 2, 4]), &x.slice(s![..2, ..2])),
        "unique" => n.round().unique(),
        "unique_sized" => x.round().unique_sized(9).0,
        "unique_counts" => x.round().unique_sized(9).1,
        "nonzero_sized" => stack(&x.gt(0.5).nonzero_sized(4), 0),
        "isin" => i.is_in(&others),
        "union1d" => i.union1d(&others),
        "intersect1d" => i.intersect1d(&Tensor::from([3, 4, 2])),
        "setdiff1d" => i.setdiff1d(&others),
        "setxor1d" => i.setxor1d(&others),
        "extract" => x.extract(&x.gt(0)),
        "sparse_plus" => nn::sparse_plus(x),
        "sparse_sigmoid" => nn::sparse_sigmoid(x),
        "logmeanexp" => nn::logmeanexp(x, 1),
        "polydiv" => poly::div(v, &e.slice(s![..3])).1,
        "poly" => poly::from_roots(&v.slice(s![..4])),
        "roots" => poly::roots(v),
        "sinc" => special::sinc(&((x * 4).round() / 4)),
        "sinc_grad" => vmap(grad(|x: &Tensor| grad(special::sinc)(x)))(e).unwrap(),
        "i0" => special::i0(x),
        "kaiser" => special::kaiser(7, 3.5),
        "gcd" => special::gcd(&(i * 6), Tensor::from([9, -4, 0])),
        "lcm" => special::lcm(&(i * 6), Tensor::from([9, -4, 0])),
        "frexp" => special::frexp(&(x * 1e-39)).0,
        "frexp_exponent" => special::frexp(&(n.abs() - 0.5).log()).1,
        "ldexp" => special::ldexp(x, Tensor::from([1, 127, -3, 0, -130, 4])),
        "reduce" => reduce(x, 0.0, |a: &Tensor, b: &Tensor| a + b + a * b, 1).unwrap(),
        "reduce_window" => {
            reduce_window(x, 1.0, |a: &Tensor, b: &Tensor| a * b, &[2, 3], &[1, 2], &Padding::Same).unwrap()
        }
        _ => return None,
    })
}
fn both(p: (Tensor, Tensor)) -> Tensor {
    stack(&[p.0, p.1], 0)
}
#[test]
fn those_with_a_size_work_under_transforms() {
    let x = Tensor::from([[3.0f32, 1.0, 3.0], [2.0, 2.0, 2.0]]);
    let (values, counts) = jit(vmap(|r: &Tensor| r.unique_sized(3)))(&x).unwrap();
    assert_eq!(values.to_vec::<f32>().unwrap(), [1.0, 3.0, 1.0, 2.0, 2.0, 2.0]);
    assert_eq!(counts.to_vec::<i32>().unwrap(), [1, 2, 0, 3, 0, 0]);
    assert_eq!(jit(|r: &Tensor| r.unique())(&x).unwrap_err().kind(), Some(ErrorKind::NonConcreteBooleanIndex));
    let g = grad(|q: &Tensor| x.quantile(q, 1).sum())(&Tensor::from(0.25f32)).unwrap();
    assert_eq!(g.item(), 4.0);
    let slope = grad(|x: &Tensor| x.nanmean())(&Tensor::from([1.0f32, f32::NAN, 3.0])).unwrap();
    assert_eq!(slope.to_vec::<f32>().unwrap(), [0.5, 0.0, 0.5]);
    assert_eq!(Tensor::zeros_in(&[0], F).nonzero_sized(2)[0].to_vec::<i32>().unwrap(), [0, 0]);
    let empty = Tensor::zeros_in(&[0, 2], F);
    assert_eq!(empty.unique().shape(), [0]);
    let none = Tensor::zeros_in(&[0], Dtype::I32);
    assert_eq!((empty.slice(s![&none]).shape(), empty.at(s![&none]).add(1).shape()), (&[0, 2][..], &[0, 2][..]));
    assert_eq!(x.at(s![.., &none]).set(7.0).sum().item(), x.sum().item());
}
