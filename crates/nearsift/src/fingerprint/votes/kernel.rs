#![expect(unsafe_code, reason = "functions for instruction sets that were detected at run time")]

use super::uniform::{self, Planes};
use super::{BLOCK, Ones, lane_hash, portable};
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use crate::cpu;
use std::fmt;

/// An implementation of the vote loop. All give the same sums; they differ in speed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Bytes as lanes of 64-bit words: any machine.
    Portable,
    /// 256-bit vectors: x86-64 with AVX2.
    Avx2,
    /// 512-bit vectors and mask registers: x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
    /// 512-bit vectors and dot products of bytes: x86-64 with the above and AVX-512 VBMI and VNNI.
    Avx512Vnni,
    /// 128-bit vectors: every 64-bit ARM.
    Neon,
}

impl Kernel {
    /// All kernels, slowest first on a machine that has them.
    pub const ALL: [Kernel; 5] =
        [Kernel::Portable, Kernel::Neon, Kernel::Avx2, Kernel::Avx512, Kernel::Avx512Vnni];

    /// The name: `portable`, `neon`, `avx2`, `avx512` or `avx512-vnni`.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Portable => "portable",
            Kernel::Avx2 => "avx2",
            Kernel::Avx512 => "avx512",
            Kernel::Avx512Vnni => "avx512-vnni",
            Kernel::Neon => "neon",
        }
    }

    /// Whether this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            Kernel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => cpu::has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => cpu::has_avx512(),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Vnni => cpu::has_avx512_bytes(),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon => cpu::has_neon(),
            #[allow(unreachable_patterns, reason = "the kernels of other architectures")]
            _ => false,
        }
    }

    /// The kernels that this machine can run, slowest first; the portable one is always among them.
    pub fn available() -> impl Iterator<Item = Kernel> {
        Kernel::ALL.into_iter().filter(|kernel| kernel.is_available())
    }

    /// The fastest kernel that this machine can run.
    pub fn best() -> Kernel {
        // Detection is cached by the standard library: a few atomic loads.
        Kernel::available().last().unwrap_or(Kernel::Portable)
    }

    /// Adds weighted votes of one lane. `self` is available, and the slices have equal lengths.
    pub(super) fn weighted(self, hashes: &[u64], weights: &[u8], ones: &mut Ones) {
        debug_assert!(self.is_available() && hashes.len() == weights.len());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX2.
            Kernel::Avx2 => unsafe { super::x86::weighted_avx2(hashes, weights, ones) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX-512 F, BW, DQ and VL.
            Kernel::Avx512 => unsafe { super::x86::weighted_avx512(hashes, weights, ones) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked for AVX-512 with VBMI and VNNI.
            Kernel::Avx512Vnni => unsafe { super::x86::weighted_vnni(hashes, weights, ones) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has NEON.
            Kernel::Neon => unsafe { super::aarch64::weighted(hashes, weights, ones) },
            _ => portable::weighted(hashes, weights, ones),
        }
    }

    /// Adds votes of weight 1 of one lane. `self` is available.
    pub(super) fn unweighted(self, hashes: &[u64], ones: &mut Ones) {
        debug_assert!(self.is_available());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX2.
            Kernel::Avx2 => unsafe { super::x86::unweighted_avx2(hashes, ones) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX-512 F, BW, DQ and VL.
            Kernel::Avx512 => unsafe { super::x86::unweighted_avx512(hashes, ones) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked for AVX-512 with VBMI and VNNI.
            Kernel::Avx512Vnni => unsafe { super::x86::unweighted_vnni(hashes, ones) },
            #[cfg(target_arch = "aarch64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has NEON.
            Kernel::Neon => unsafe { super::aarch64::unweighted(hashes, ones) },
            _ => portable::unweighted(hashes, ones),
        }
    }

    /// Adds votes of one weight of all lanes to sums in binary that are below 2^`bits` with these. `self` is available.
    pub(super) fn uniform(self, hashes: &[u64], weight: u8, planes: &mut Planes, bits: u32) {
        debug_assert!(self.is_available());
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX2.
            Kernel::Avx2 => unsafe { super::x86::uniform_avx2(hashes, weight, planes, bits) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX-512 F, BW, DQ and VL.
            Kernel::Avx512 | Kernel::Avx512Vnni => unsafe {
                super::x86::uniform_avx512(hashes, weight, planes, bits);
            },
            _ => uniform::add(hashes, weight, planes, bits, uniform::count),
        }
    }

    /// Writes the lane hashes of up to [`BLOCK`] features and returns them. `self` is available.
    pub(crate) fn derive<'a>(
        self,
        hashes: &[u64],
        lane: usize,
        derived: &'a mut [u64; BLOCK],
    ) -> &'a [u64] {
        let derived = &mut derived[..hashes.len()];
        match self {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Votes::with_kernel` has checked that the machine has AVX-512 F, BW, DQ and VL.
            Kernel::Avx512 | Kernel::Avx512Vnni => unsafe {
                super::x86::derive_avx512(hashes, lane, derived);
            },
            _ => derive(hashes, lane, derived),
        }
        derived
    }
}

/// Inlined into functions for wider instruction sets, where the compiler makes vectors of it.
#[inline(always)]
pub(super) fn derive(hashes: &[u64], lane: usize, derived: &mut [u64]) {
    for (derived, &hash) in derived.iter_mut().zip(hashes) {
        *derived = lane_hash(hash, lane);
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
