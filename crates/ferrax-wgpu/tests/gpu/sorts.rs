//! Sorts of which some results are read, in the passes of their orders and of what is read.
use crate::examples::Build;
use crate::rows::at_once;
use crate::run::{Noise, compare, own_gpu};
use ferrax_kernel::plan::{Plan, Step};
use ferrax_kernel::{DType, Routine};
use std::sync::Arc;

fn sort(n: usize, dtypes: &[DType], read: &[bool]) -> Plan {
    let mut b = Build::default();
    let ins = dtypes.iter().map(|d| b.input(*d, n)).collect();
    let outs = dtypes.iter().zip(read).map(|(d, read)| if *read { b.output(*d, n) } else { b.temp(*d, n) }).collect();
    let routine = Arc::new(Routine::Sort { outer: 1, n, inner: 1, dtypes: dtypes.to_vec(), num_keys: 1 });
    b.0.steps = vec![Step::Routine { routine, ins, outs }];
    b.0
}

#[test]
fn results_that_nothing_reads_are_not_made() {
    let Some(all) = own_gpu(None).map(|_| ferrax_wgpu::adapters()[0].limits()) else { return };
    let least = ferrax_wgpu::Limits { max_compute_workgroup_storage_size: 16352, ..all.clone() };
    let (gpu, least) = (own_gpu(Some(all)).unwrap(), own_gpu(Some(least)).unwrap());
    let mut noise = Noise(61);
    // passes of the order: where workgroups have memory for a row, and where for fewer elements
    for (n, orders) in [(300, [1, 1]), (1000, [1, 1]), (1025, [1, 8]), (1600, [1, 8]), (4096, [1, 8]), (4097, [8, 8])] {
        let dtypes = [[DType::F32, DType::I32][noise.below(2)], DType::I32, [DType::U8, DType::F16][noise.below(2)]];
        let ins: Vec<Vec<u8>> = dtypes.iter().map(|d| noise.values(*d, n)).collect();
        for read in [[true; 3], [false, true, false], [true, false, true]] {
            let plan = sort(n, &dtypes, &read);
            for (gpu, order) in [&gpu, &least].into_iter().zip(orders) {
                compare(gpu, &format!("{read:?} of {n}"), plan.clone(), &ins, 0.0, 0.0);
                let passes = at_once(gpu, &plan, &ins).1;
                assert_eq!(passes, order + read.iter().filter(|r| **r).count(), "{read:?} of {n}");
            }
        }
    }
}
