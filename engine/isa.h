#pragma once
#include <string>

namespace backdrive {

/// Levels of the x86-64 psABI for which the kernels are compiled.
enum class Isa {
  v2,  ///< SSE4.2, packs of 16 bytes
  v3,  ///< AVX2, FMA, BMI: packs of 32 bytes
  v4,  ///< AVX-512 F, BW, CD, DQ, VL: packs of 64 bytes
};

/// Whether this processor and its operating system run code of that level.
bool supports(Isa isa);

/// From now on best_isa() is this one. What has run kernels keeps those that it has (kernel_isa() of
/// integrators/kernels.h says which): to be called first. Throws Error (usage) for one that is not supported.
void choose_isa(Isa isa);

/// x86-64-v3 of v3, as results say it, and back; other words stay as they are.
std::string with_architecture(Isa isa);
std::string without_architecture(std::string word);

/// The one of choose_isa(); else the one that the environment variable BACKDRIVE_ISA (v2, v3 or v4) names; else the
/// highest level supported. Throws Error: usage when the variable holds another word or a level that is not
/// supported, device when not even v2 is.
Isa best_isa();

const char* to_string(Isa isa);

}  // namespace backdrive
