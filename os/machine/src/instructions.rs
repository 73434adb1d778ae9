//! Detects the instruction sets that numerical kernels use.

/// Returns the instruction sets that the processor and the operating system support, the oldest first.
#[must_use]
pub fn here() -> Vec<&'static str> {
    let mut found = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        macro_rules! look {
            ($($name:tt),*) => { $( if std::arch::is_x86_feature_detected!($name) { found.push($name); } )* };
        }
        look!(
            "sse2",
            "sse3",
            "ssse3",
            "sse4.1",
            "sse4.2",
            "popcnt",
            "avx",
            "f16c",
            "fma",
            "bmi2",
            "avx2",
            "avx512f",
            "avx512dq",
            "avx512bw",
            "avx512vl",
            "avx512vnni",
            "avx512bf16",
            "avx512fp16"
        );
    }
    #[cfg(target_arch = "aarch64")]
    {
        macro_rules! look {
            ($($name:tt),*) => { $( if std::arch::is_aarch64_feature_detected!($name) { found.push($name); } )* };
        }
        look!("neon", "fp16", "dotprod", "bf16", "i8mm", "sve", "sve2");
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn oldest_set_is_always_available() {
        let oldest = if cfg!(target_arch = "x86_64") { "sse2" } else { "neon" };
        assert_eq!(super::here().first(), Some(&oldest));
    }
}
