//! The adapters of this machine, without duplicates, and the selection of those that become devices.
//!
//! Several drivers may report one card, as Vulkan and Direct3D 12 do on Windows: the first of Vulkan, Metal and Direct3D 12 is used.
//! Adapters that run on CPU cores are slower than the CPU backend, so they are used only on request.
use crate::block_on::block_on;
use wgpu::{Adapter, AdapterInfo, Backend, Backends, DeviceType};

/// The variable that selects the adapters that become devices: `all`, `software`, a number in the
/// order of [`adapters`], or part of a name.
const VARIABLE: &str = "FERRAX_GPU";

/// The adapters of this machine, each card once: discrete ones first, software ones last. None is opened.
pub fn adapters() -> Vec<Adapter> {
    let backends = Backends::VULKAN | Backends::METAL | Backends::DX12;
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.backends = backends;
    descriptor.flags = wgpu::InstanceFlags::empty();
    let all = block_on(wgpu::Instance::new(descriptor).enumerate_adapters(backends));
    let facts: Vec<AdapterInfo> = all.iter().map(Adapter::get_info).collect();
    let order = once_each(&facts);
    let mut all: Vec<Option<Adapter>> = all.into_iter().map(Some).collect();
    order.into_iter().filter_map(|i| all[i].take()).collect()
}

/// Those of [`adapters`] that the environment chooses.
pub fn chosen() -> Vec<Adapter> {
    let choice = std::env::var(VARIABLE).unwrap_or_default();
    let all = adapters();
    let facts: Vec<AdapterInfo> = all.iter().map(Adapter::get_info).collect();
    let keep: Vec<bool> = facts.iter().enumerate().map(|(i, a)| is_chosen(&choice, i, a)).collect();
    all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(a, _)| a).collect()
}

fn is_chosen(choice: &str, i: usize, a: &AdapterInfo) -> bool {
    let software = a.device_type == DeviceType::Cpu;
    match choice.trim() {
        "" => !software,
        "all" => true,
        "software" => software,
        name => match name.parse::<usize>() {
            Ok(n) => n == i,
            Err(_) => a.name.to_lowercase().contains(&name.to_lowercase()),
        },
    }
}

/// The places of those to be kept, in their order.
fn once_each(all: &[AdapterInfo]) -> Vec<usize> {
    let interface = |a: &AdapterInfo| match a.backend {
        Backend::Vulkan => 0,
        Backend::Metal => 1,
        _ => 2,
    };
    let kind = |a: &AdapterInfo| match a.device_type {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|i| (kind(&all[*i]), interface(&all[*i])));
    let mut kept: Vec<usize> = vec![];
    // cards that an earlier interface lists already; each excludes one adapter of the same make
    let mut stand_ins: Vec<usize> = vec![];
    for i in order {
        let same_place =
            |k: &usize| !all[i].device_pci_bus_id.is_empty() && all[*k].device_pci_bus_id == all[i].device_pci_bus_id;
        let same_make = |k: &usize| {
            let (a, b) = (&all[*k], &all[i]);
            a.backend != b.backend && (a.vendor, a.device) == (b.vendor, b.device)
        };
        if kept.iter().any(same_place) {
            continue;
        }
        if let Some(k) = kept.iter().find(|k| same_make(k) && !stand_ins.contains(k)) {
            stand_ins.push(*k);
            continue;
        }
        kept.push(i);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(name: &str, make: u32, kind: DeviceType, backend: Backend, place: &str) -> AdapterInfo {
        let mut info = AdapterInfo::new(kind, backend);
        (info.name, info.vendor, info.device, info.device_pci_bus_id) = (name.into(), 1, make, place.into());
        info
    }

    #[test]
    fn a_card_that_two_interfaces_know_is_one() {
        use DeviceType::{Cpu, DiscreteGpu, IntegratedGpu};
        let all = [
            card("Basic Render", 9, Cpu, Backend::Dx12, ""),
            card("Arc", 5, IntegratedGpu, Backend::Dx12, ""),
            card("GeForce", 7, DiscreteGpu, Backend::Dx12, ""),
            card("GeForce", 7, DiscreteGpu, Backend::Dx12, ""),
            card("GeForce", 7, DiscreteGpu, Backend::Vulkan, "01"),
            card("GeForce", 7, DiscreteGpu, Backend::Vulkan, "02"),
            card("GeForce, another driver", 7, DiscreteGpu, Backend::Vulkan, "02"),
            card("llvmpipe", 8, Cpu, Backend::Vulkan, ""),
        ];
        assert_eq!(once_each(&all), [4, 5, 1, 7, 0]);
    }

    #[test]
    fn software_is_taken_when_asked_for() {
        let card = |name, kind| card(name, 1, kind, Backend::Vulkan, "");
        let all = [card("NVIDIA GeForce", DeviceType::DiscreteGpu), card("llvmpipe (LLVM)", DeviceType::Cpu)];
        let chosen = |choice: &str| -> Vec<bool> { (0..2).map(|i| is_chosen(choice, i, &all[i])).collect() };
        assert_eq!(chosen(""), [true, false]);
        assert_eq!(chosen("all"), [true, true]);
        assert_eq!(chosen("software"), [false, true]);
        assert_eq!(chosen("1"), [false, true]);
        assert_eq!(chosen("geforce"), [true, false]);
        assert_eq!(chosen("radeon"), [false, false]);
    }
}
