//! Every shader that a test gives the device, translated as wgpu does on other systems: here only one of their languages runs.
use naga::back::{hlsl, msl, spv};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use std::io::Write;
use std::process::{Command, Stdio};

/// Translates to SPIR-V, to Metal's language and to Direct3D's; panics where one is refused.
pub fn everywhere(wgsl: &str) {
    let module = naga::front::wgsl::parse_str(wgsl).unwrap_or_else(|e| panic!("{}\n{wgsl}", e.emit_to_string(wgsl)));
    let info = Validator::new(ValidationFlags::all(), Capabilities::IMMEDIATES).validate(&module);
    let info = info.unwrap_or_else(|e| panic!("{e:?}\n{wgsl}"));
    let words = spv::write_vec(&module, &info, &spv::Options::default(), None);
    validate(&words.unwrap_or_else(|e| panic!("SPIR-V: {e}\n{wgsl}")), wgsl);
    let text = msl::write_string(&module, &info, &msl::Options::default(), &msl::PipelineOptions::default());
    assert!(text.unwrap_or_else(|e| panic!("Metal: {e}\n{wgsl}")).0.contains("kernel void"));
    let options = hlsl::Options { immediates_target: Some(hlsl::BindTarget::default()), ..Default::default() };
    let pipeline = hlsl::PipelineOptions::default();
    let mut text = String::new();
    let written = hlsl::Writer::new(&mut text, &options, &pipeline).write(&module, &info, None);
    let names = written.unwrap_or_else(|e| panic!("Direct3D: {e}\n{wgsl}")).entry_point_names;
    assert!(names.iter().all(|n| n.is_ok()) && text.contains("numthreads"), "Direct3D: {names:?}\n{wgsl}");
}

/// Asks `spirv-val`, where it is installed (`apt-get install spirv-tools`), about the words.
fn validate(words: &[u32], wgsl: &str) {
    assert!(!words.is_empty());
    let mut ask = Command::new("spirv-val");
    ask.args(["--target-env", "vulkan1.1", "-"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut asked) = ask.spawn() else { return };
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    asked.stdin.take().unwrap().write_all(&bytes).unwrap();
    let answer = asked.wait_with_output().unwrap();
    assert!(answer.status.success(), "spirv-val: {}\n{wgsl}", String::from_utf8_lossy(&answer.stderr));
}
