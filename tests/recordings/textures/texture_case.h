// SPDX-License-Identifier: Apache-2.0
// A combination of texture, sampler and fetch, and what is sampled of it. Shared by the recorder and the test.
#pragma once

#include "runtime/shim/texture_types.h"

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace texture_recording {

enum class Source { array, mipmap, linear, pitch };

/// What the texels hold. `ramp` shows coordinates: channels are 256 times x, y, z (or layer), level. `noise` shows sums,
/// `wild` has infinities, NaNs, subnormals and limits among them, `scales` has finite numbers of all sizes.
enum class Texels { ramp, noise, wild, scales };
/// Which gradients a case has: random ones; one length along x; two along x; one of any direction; two of any direction.
enum class Gradients { mixed, length, lengths, direction, directions };

inline constexpr unsigned layered = 1, surface = 2, cube = 4, gather = 8; ///< array flags
/// Sampler flags; `untuned`: trilinear optimisation disabled.
inline constexpr unsigned as_integer = 1, normalized = 2, srgb = 0x10, untuned = 0x20, seamless = 0x40;
inline constexpr unsigned wrap = 0, clamp = 1, mirror = 2, border = 3;
inline constexpr unsigned u8 = 1, u16 = 2, u32 = 3, s8 = 8, s16 = 9, s32 = 10, f16 = 16, f32 = 32;

struct Case {
    std::string name;
    Source source = Source::array;
    std::array<unsigned, 3> size{}; ///< as CUDA_ARRAY3D_DESCRIPTOR: 0 for dimensions that there are not
    unsigned array_flags = 0, format = f32, channels = 4, levels = 1;
    Texels texels = Texels::noise;
    CUDA_TEXTURE_DESC sampler{};
    std::string fetch;  ///< PTX words, "tex.2d.v4.f32.f32"
    std::string offset; ///< operand e, "{1, -2}"
    bool compare = false, predicate = false;
    Gradients gradients = Gradients::mixed;
    unsigned samples = 512;
    /// Instead of what `texels` and `gradients` say.
    std::function<std::vector<std::uint8_t>(unsigned level)> own_texels;
    std::function<std::vector<std::uint32_t>()> own_inputs;

    bool has(std::string_view word) const {
        return ("." + fetch + ".").find("." + std::string(word) + ".") != std::string::npos;
    }
    bool integer_coordinates() const { return fetch.ends_with(".s32"); }
    bool normalized_coordinates() const { return (sampler.flags & normalized) != 0; }
    /// Extents of a level: width, height, depth or layers; at least 1.
    std::array<unsigned, 3> extent(unsigned level = 0) const;
};

inline constexpr unsigned input_words = 16;
/// Places in a sample's inputs: the coordinate operand as written, level of detail, gradients, value to compare with,
/// texel offsets.
inline constexpr unsigned coordinates_at = 0, lod_at = 4, dpdx_at = 5, dpdy_at = 8, compare_at = 11, offset_at = 12;

/// All combinations, in a fixed order.
std::vector<Case> all_cases();
/// The last of them, from which rules were found.
std::vector<Case> sweep_cases();
/// The bytes of one level, rows without padding; equal on every machine.
std::vector<std::uint8_t> texels_of(const Case& c, unsigned level);
/// `samples` times input_words.
std::vector<std::uint32_t> inputs_of(const Case& c);
unsigned element_bytes(unsigned format, unsigned channels);

/// A kernel `name`(texture, inputs, results, count) that fetches once per thread and stores four words.
std::string kernel_text(const Case& c, const std::string& name);
/// What identifies a kernel: cases of equal keys share one.
std::string kernel_key(const Case& c);

} // namespace texture_recording
