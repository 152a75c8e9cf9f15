//! Fourier transforms of every kind and length, against direct sums in double precision.
use crate::rows::at_once;
use crate::run::{Noise, compare, gpu, own_gpu, routine_plan};
use ferrax_kernel::routine::{Fft, FftKind};
use ferrax_kernel::{DType, Dims, Routine};

const KINDS: [FftKind; 4] = [FftKind::Forward, FftKind::Inverse, FftKind::RealForward, FftKind::RealInverse];

fn fft(kind: FftKind, outer: usize, lengths: &[usize], inner: usize) -> Routine {
    Routine::Fft(Fft { kind, outer, lengths: Dims::new(lengths), inner, dtype: DType::F32 })
}

#[test]
fn transforms_of_every_length() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(51);
    // of radices, of other factors, of two passes, of both
    let lengths = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 25, 35, 49, 60, 64, 97, 100, 128, 360, 512, 1000, 1009, 1024];
    for n in lengths.into_iter().chain([1031, 1536, 2048, 2187, 3000, 4096, 4099]) {
        for kind in KINDS {
            let [outer, inner] = if n > 1000 { [1, 1] } else { [[1, 1], [3, 1], [2, 3], [1, 40]][noise.below(4)] };
            let r = fft(kind, outer, &[n], inner);
            check(&gpu, &mut noise, &r, n);
        }
    }
}

#[test]
fn transforms_of_several_axes() {
    let Some(gpu) = gpu() else { return };
    let mut noise = Noise(52);
    for lengths in [&[4, 6][..], &[1, 5], &[16, 11], &[3, 4, 5], &[2, 1, 8], &[40, 33], &[13, 64]] {
        for kind in KINDS {
            let r = fft(kind, 1 + noise.below(3), lengths, 1 + noise.below(3));
            check(&gpu, &mut noise, &r, lengths.iter().product());
        }
    }
}

fn check(gpu: &ferrax_wgpu::GpuBackend, noise: &mut Noise, r: &Routine, n: usize) {
    let Routine::Fft(f) = r else { return };
    let ins: Vec<Vec<u8>> = r.operands().iter().map(|(d, len)| noise.values(*d, *len)).collect();
    let scale = if f.is_inverse() { 1.0 / (n as f64).sqrt() } else { (n as f64).sqrt() };
    compare(gpu, &format!("{r:?}"), routine_plan(r), &ins, 10.0, 8.0 * scale);
}

#[test]
fn a_transform_that_a_workgroup_holds_is_one_pass() {
    let Some(gpu) = own_gpu(None) else { return };
    let mut noise = Noise(53);
    for (n, passes) in [(1, 1), (960, 1), (2048, 1), (4096, 2), (11, 3)] {
        let r = fft(FftKind::Forward, 2, &[n], 1);
        let ins = [noise.values(DType::F32, 4 * n)];
        assert_eq!(at_once(&gpu, &routine_plan(&r), &ins).1, passes, "{n}");
    }
}
