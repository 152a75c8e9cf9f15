//! The corpus (`tests/corpus/*.toml`) on a GPU: every case whose dtypes it has.
//!
//! Without an adapter this says so and does nothing; with `FERRAX_REQUIRE_GPU` set it fails.
use ferrax_kernel::reference::ReferenceBackend;
use ferrax_testkit::corpus;
use std::sync::Arc;

#[test]
fn gpu_answers() {
    let Some(gpu) = ferrax_wgpu::adapters()
        .iter()
        .find_map(|a| ferrax_wgpu::GpuBackend::open(a, None, Arc::new(ReferenceBackend)).ok())
    else {
        assert!(std::env::var_os("FERRAX_REQUIRE_GPU").is_none(), "FERRAX_REQUIRE_GPU is set and no adapter was found");
        eprintln!("no GPU adapter: nothing was tested");
        return;
    };
    let (ran, all) = corpus::check("gpu", &gpu);
    gpu.shaders().iter().for_each(|s| crate::translate::everywhere(s));
    eprintln!("{ran} of {all} cases: the others have 64-bit dtypes");
}
