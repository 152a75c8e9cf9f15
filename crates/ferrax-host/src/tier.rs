//! Which instructions the loops are compiled for: chosen once, at run time.
//!
//! INVARIANT: all tiers compile the same source without contraction, so they give the same bits. For a fused multiply-add in that source, the portable
//! tier calls the C library.
use once_cell::race::OnceBox;

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Tier {
    Portable,
    /// With fused multiply-add, which every such machine has.
    Avx2,
    Avx512,
}

impl Tier {
    pub const ALL: [Tier; 3] = [Tier::Portable, Tier::Avx2, Tier::Avx512];
    /// Whether this machine has the instructions of this tier.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Tier::Portable => true,
            Tier::Avx2 => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
            }
            Tier::Avx512 => {
                cfg!(feature = "avx512")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("f16c")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        return self == Tier::Portable;
    }
    pub fn name(self) -> &'static str {
        match self {
            Tier::Portable => "portable",
            Tier::Avx2 => "avx2",
            Tier::Avx512 => "avx512",
        }
    }
    /// The best tier of this machine, or the one that `FERRAX_CPU` names if the machine has it.
    pub fn current() -> Tier {
        static TIER: OnceBox<Tier> = OnceBox::new();
        *TIER.get_or_init(|| {
            let asked = std::env::var("FERRAX_CPU").ok();
            let best = Tier::ALL.into_iter().rev().find(|t| t.is_available()).unwrap_or(Tier::Portable);
            let named = |t: &Tier| asked.as_deref() == Some(t.name()) && t.is_available();
            Box::new(Tier::ALL.into_iter().find(named).unwrap_or(best))
        })
    }
}
