//! The speed of the device, so that no submission exceeds the time limit of its driver, and interrupts are checked in between.
//!
//! Work is counted roughly in scalar operations. The time of one is first estimated by the kind of adapter, and measured whenever a thread
//! waits until the device is idle. `FERRAX_GPU_PACE`, operations in a second, fixes it: then a program is split in the same way each time.
use ferrax_kernel::{Error, Res};
use std::sync::Mutex;
use std::time::Instant;

/// Seconds of work in one submission, and in one dispatch that can be split: drivers abort one of
/// two seconds.
const BUDGET: f64 = 0.05;

/// The pace that `FERRAX_GPU_PACE` fixes.
pub fn fixed() -> Res<Option<f64>> {
    let Ok(text) = std::env::var("FERRAX_GPU_PACE") else { return Ok(None) };
    let pace = text.parse().ok().filter(|pace: &f64| pace.is_finite() && *pace >= 1.0);
    let wrong = || Error::Invalid(format!("FERRAX_GPU_PACE={text:?}: expected operations in a second, as 1e12"));
    pace.map(Some).ok_or_else(wrong)
}

pub struct Pace(Mutex<Rate>);

struct Rate {
    per_second: f64,
    /// The slowest that is believed: a wait may find a device that idled in between.
    least: f64,
    fixed: bool,
    /// Since when it has been at work, and on how much.
    busy: Option<(Instant, u64)>,
    /// Whether some of it is of unknown length.
    unknown: bool,
}

impl Pace {
    pub fn new(kind: wgpu::DeviceType, fixed: Option<f64>) -> Pace {
        let guess = match kind {
            wgpu::DeviceType::DiscreteGpu => 1e12,
            wgpu::DeviceType::IntegratedGpu => 1e11,
            wgpu::DeviceType::Cpu => 2e9,
            wgpu::DeviceType::VirtualGpu | wgpu::DeviceType::Other => 2e10,
        };
        let per_second = fixed.unwrap_or(guess);
        Pace(Mutex::new(Rate {
            per_second,
            least: per_second / 30.0,
            fixed: fixed.is_some(),
            busy: None,
            unknown: false,
        }))
    }
    fn rate(&self) -> std::sync::MutexGuard<'_, Rate> {
        self.0.lock().unwrap_or_else(|p| p.into_inner())
    }
    /// The work that one submission should hold.
    pub fn budget(&self) -> u64 {
        (self.rate().per_second * BUDGET) as u64
    }
    /// The device is given work.
    pub fn given(&self, work: u64) {
        let mut rate = self.rate();
        let (since, so_far) = rate.busy.unwrap_or_else(|| (Instant::now(), 0));
        rate.busy = Some((since, so_far.saturating_add(work)));
    }
    /// The device is given work of which it is unknown how much it is.
    pub fn unknown(&self) {
        self.rate().unknown = true;
    }
    /// The device has completed all submissions; `seen`: it was observed to work until now.
    pub fn idle(&self, seen: bool) {
        let mut rate = self.rate();
        let known = !std::mem::take(&mut rate.unknown);
        if let (Some((since, work)), true) = (rate.busy.take(), seen && known && !rate.fixed) {
            let measured = work as f64 / since.elapsed().as_secs_f64().max(1e-3);
            rate.per_second = (rate.per_second * measured).sqrt().clamp(rate.least, 1e14);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_pace_stays() {
        let pace = Pace::new(wgpu::DeviceType::Cpu, Some(1e6));
        pace.given(u64::MAX);
        pace.idle(true);
        assert_eq!(pace.budget(), 50_000);
    }

    #[test]
    fn the_budget_follows_what_was_measured() {
        let pace = Pace::new(wgpu::DeviceType::Cpu, None);
        let guess = pace.budget();
        pace.given(1);
        pace.idle(false);
        pace.given(1);
        pace.unknown();
        pace.idle(true);
        assert_eq!(pace.budget(), guess);
        pace.given(u64::MAX);
        pace.given(u64::MAX);
        pace.idle(true);
        assert!(pace.budget() > guess);
        (0..40).for_each(|_| {
            pace.given(1);
            pace.idle(true);
        });
        assert!(pace.budget() >= guess / 31, "{} of {guess}", pace.budget());
    }
}
