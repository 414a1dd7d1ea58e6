//! A check that the CPU supports all instructions that the program was compiled for, up to x86-64-v3. Without it, the
//! process would be killed at the first unsupported instruction, without a message.
//!
//! The check runs before anything else, and avoids code for which the compiler might use such instructions.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::io::{self, Write};
use std::process::ExitCode;

const MESSAGE: &[u8] = b"error: this program was built for newer processors than this one, or than this virtual machine shows.
  An image built with `--build-arg CPU=x86-64` runs on each of them. One for x86-64-v3, as it is by default, needs AVX2, BMI2
  and FMA, which Intel's processors have since 2013 and AMD's since 2015: give the virtual machine the host's type of processor.
";

/// Fails with a message if the CPU lacks a required feature.
///
/// # Errors
/// The exit code.
#[inline(never)]
pub fn has_all() -> Result<(), ExitCode> {
    if needs().is_shown() {
        return Ok(());
    }
    // The failure of this write cannot be reported.
    let _ = io::stderr().write_all(MESSAGE);
    Err(ExitCode::FAILURE)
}

/// Feature bits of CPUID (Intel's Software Developer's Manual, volume 2A).
#[derive(Debug, Clone, Copy)]
struct CpuFlags {
    /// Leaf 1, ECX.
    basic: u32,
    /// Leaf 7, EBX.
    extended: u32,
    /// Leaf 0x80000001, ECX.
    further: u32,
}

/// Returns the features that the program was compiled for.
const fn needs() -> CpuFlags {
    CpuFlags {
        basic: (cfg!(target_feature = "ssse3") as u32) << 9
            | (cfg!(target_feature = "fma") as u32) << 12
            | (cfg!(target_feature = "sse4.1") as u32) << 19
            | (cfg!(target_feature = "sse4.2") as u32) << 20
            | (cfg!(target_feature = "movbe") as u32) << 22
            | (cfg!(target_feature = "popcnt") as u32) << 23
            // OSXSAVE: the operating system saves the wide registers of each thread.
            | (cfg!(target_feature = "avx") as u32) << 27
            | (cfg!(target_feature = "avx") as u32) << 28
            | (cfg!(target_feature = "f16c") as u32) << 29,
        extended: (cfg!(target_feature = "bmi1") as u32) << 3
            | (cfg!(target_feature = "avx2") as u32) << 5
            | (cfg!(target_feature = "bmi2") as u32) << 8,
        further: (cfg!(target_feature = "lzcnt") as u32) << 5,
    }
}

impl CpuFlags {
    /// Returns whether the CPU has all of these features.
    #[cfg(target_arch = "x86_64")]
    fn is_shown(self) -> bool {
        let extended = match __cpuid(0).eax {
            0..7 => 0,
            _ => __cpuid_count(7, 0).ebx,
        };
        let further = match __cpuid(0x8000_0000).eax {
            0..0x8000_0001 => 0,
            _ => __cpuid(0x8000_0001).ecx,
        };
        self.basic & !__cpuid(1).ecx == 0
            && self.extended & !extended == 0
            && self.further & !further == 0
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_shown(self) -> bool {
        true
    }
}

#[cfg(target_arch = "x86_64")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_shows_what_the_standard_library_finds() {
        let own = |basic: u32, extended: u32, further: u32| {
            let bits = CpuFlags {
                basic: if basic == 0 { 0 } else { 1 << basic },
                extended: if extended == 0 { 0 } else { 1 << extended },
                further: if further == 0 { 0 } else { 1 << further },
            };
            bits.is_shown()
        };
        let found = [
            (own(9, 0, 0), is_x86_feature_detected!("ssse3")),
            (own(12, 0, 0), is_x86_feature_detected!("fma")),
            (own(19, 0, 0), is_x86_feature_detected!("sse4.1")),
            (own(20, 0, 0), is_x86_feature_detected!("sse4.2")),
            (own(22, 0, 0), is_x86_feature_detected!("movbe")),
            (own(23, 0, 0), is_x86_feature_detected!("popcnt")),
            (own(28, 0, 0), is_x86_feature_detected!("avx")),
            (own(29, 0, 0), is_x86_feature_detected!("f16c")),
            (own(0, 3, 0), is_x86_feature_detected!("bmi1")),
            (own(0, 5, 0), is_x86_feature_detected!("avx2")),
            (own(0, 8, 0), is_x86_feature_detected!("bmi2")),
            (own(0, 29, 0), is_x86_feature_detected!("sha")),
            (own(0, 0, 5), is_x86_feature_detected!("lzcnt")),
            (own(0, 0, 6), is_x86_feature_detected!("sse4a")),
        ];
        for (place, (shown, detected)) in found.into_iter().enumerate() {
            assert_eq!(shown, detected, "{place}");
        }
    }

    #[test]
    fn what_this_was_built_for_is_here() {
        assert!(needs().is_shown());
        assert!(has_all().is_ok());
    }
}
