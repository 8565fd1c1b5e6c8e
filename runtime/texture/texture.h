// SPDX-License-Identifier: Apache-2.0
// Images and samplers as the sampler and the surface unit see them: plain data, decoded when an object is made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptarmigan::runtime {

/// How a texel lies in memory. Channels lie side by side, the first one lowest.
struct TexelFormat {
    enum class Kind : std::uint8_t { unsigned_integer, signed_integer, half, single };
    Kind kind = Kind::unsigned_integer;
    std::uint8_t bits = 8;     ///< of a channel: 8, 16, 32
    std::uint8_t channels = 1; ///< 1, 2, 4; 3 of BC6H
    bool always_real = false;  ///< CU_AD_FORMAT_UNORM_* and SNORM_*, compressed ones: never read as integers
    bool gamma = false;        ///< CU_AD_FORMAT_BC*_SRGB: textures of it must decode gamma
    bool opaque = false; ///< the fourth channel, not in memory, reads as one: arrays of BC4, BC5 and BC6H, no views
    enum class Block : std::uint8_t { none, bc1, bc2, bc3, bc4, bc5, bc6h_unsigned, bc6h_signed, bc7 };
    Block block =
        Block::none; ///< compressed: memory holds blocks of 4x4 texels, which the rest describes as they are unpacked
    unsigned bytes() const { return bits / 8u * channels; } ///< of an unpacked texel
    unsigned block_bytes() const { return block == Block::bc1 || block == Block::bc4 ? 8 : 16; }
    /// Bytes of a row of `width` texels (of blocks), and rows of memory for `height` rows of texels.
    std::size_t row_bytes(std::size_t width) const {
        return block == Block::none ? width * bytes() : (width + 3) / 4 * block_bytes();
    }
    std::size_t rows(std::size_t height) const { return block == Block::none ? height : (height + 3) / 4; }
    bool is_real() const { return kind == Kind::half || kind == Kind::single; }
    bool operator==(const TexelFormat&) const = default;
};

/// Of CUarray_format and a number of channels; false if there is no such format or it is not supported.
bool decode_format(unsigned format, unsigned channels, TexelFormat& decoded);
/// True for formats of CUDA that arrays can't have here: packed ones.
constexpr bool is_unsupported_format(unsigned format, unsigned channels) {
    return format == 0x50 && channels == 4;
}

/// One level: rows of texels, slices (layers, faces) of rows.
struct ImageLevel {
    std::uint8_t* data = nullptr;
    std::uint32_t width = 1, height = 1, depth = 1; ///< depth: of 3-d images
    std::size_t row = 0, slice = 0;                 ///< bytes from one to the next
};

struct Image {
    static constexpr unsigned max_levels = 18;
    TexelFormat format;
    unsigned format_code = 0;    ///< CUarray_format
    std::uint8_t dimensions = 1; ///< without layers
    bool layered = false, cube = false;
    bool linear = false;      ///< cuTexObjectCreate of linear memory: integer coordinates only
    bool pitched = false;     ///< of pitched memory
    std::uint32_t layers = 1; ///< faces count: 6 per cube
    std::uint32_t levels = 1; ///< 1 for arrays without mipmaps
    bool mipmapped = false;
    std::uint32_t array_width = 0, array_height = 0, array_depth = 0; ///< as the array was made
    ImageLevel level[max_levels];
};

struct Sampler {
    enum Address : std::uint8_t { wrap, clamp, mirror, border };
    Address address[3] = {};
    bool linear = false, linear_levels = false; ///< filter within a level, and between levels
    bool normalized = false;                    ///< coordinates
    bool to_real = false;                       ///< 8- and 16-bit integers become floats
    bool srgb = false, seamless = false;
    bool optimized = true;                   ///< between levels, if anisotropic
    float bias = 0, lowest = 0, highest = 0; ///< of levels
    unsigned anisotropy = 0;
    float border_color[4] = {};
    bool operator==(const Sampler&) const = default;
};

/// What a handle stands for.
struct TextureObject {
    enum class Kind : std::uint32_t { none, texture, surface };
    Kind kind = Kind::none;
    Image image;
    Sampler sampler; ///< of textures
};

} // namespace ptarmigan::runtime
