// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/texture_objects.h"

#include "runtime/base/log.h"

#include <algorithm>
#include <iterator>

namespace ptarmigan::runtime {
namespace {

Status linear_image(const ResourceDescription& resource, Image& image) {
    constexpr std::size_t alignment = 512, most_texels = std::size_t{1} << 31;
    if (!decode_format(resource.format, resource.channels, image.format) || resource.memory == 0 ||
        resource.memory % alignment != 0 || image.format.always_real) // compressed ones too
        return Status::invalid_value;
    const std::size_t texels = std::min(resource.bytes / image.format.bytes(), most_texels);
    image.linear = true;
    image.format_code = resource.format;
    ImageLevel& level = image.level[0];
    level.data = reinterpret_cast<std::uint8_t*>(resource.memory);
    level.width = image.array_width = static_cast<std::uint32_t>(texels);
    return Status::success;
}

Status pitched_image(const ResourceDescription& resource, Image& image) {
    constexpr std::size_t pitch_alignment = 32, alignment = 512;
    if (!decode_format(resource.format, resource.channels, image.format) || resource.memory == 0 ||
        resource.memory % alignment != 0 || image.format.block != TexelFormat::Block::none)
        return Status::invalid_value;
    if (resource.width > 131072 || resource.height > 65000 || resource.pitch > 2097120 ||
        resource.pitch % pitch_alignment != 0)
        return Status::invalid_value;
    image.pitched = true;
    image.dimensions = 2;
    image.format_code = resource.format;
    ImageLevel& level = image.level[0];
    level.data = reinterpret_cast<std::uint8_t*>(resource.memory);
    level.width = image.array_width = static_cast<std::uint32_t>(resource.width);
    level.height = image.array_height = static_cast<std::uint32_t>(resource.height);
    level.row = resource.pitch;
    return Status::success;
}

Status image_of(const ResourceDescription& resource, Image& image) {
    switch (resource.type) {
    case ResourceDescription::array:
        if (!resource.from_array) return Status::invalid_value;
        image = image_of(*resource.from_array);
        return Status::success;
    case ResourceDescription::mipmapped_array:
        if (!resource.from_mipmap) return Status::invalid_value;
        image = image_of(*resource.from_mipmap);
        return Status::success;
    case ResourceDescription::linear: return linear_image(resource, image);
    case ResourceDescription::pitch2d: return pitched_image(resource, image);
    default: return Status::invalid_value;
    }
}

constexpr unsigned first_compressed = 0x19; ///< of CUresourceViewFormat

/// Blocks that lie in an array as texels of two or four words.
Status apply_compressed_view(const ViewDescription& view, TextureObject& texture) {
    // Array formats, channels.
    static constexpr unsigned formats[][2] = {{0x91, 4}, {0x93, 4}, {0x95, 4}, {0x97, 1}, {0x98, 1},
                                              {0x99, 2}, {0x9a, 2}, {0x9b, 3}, {0x9c, 3}, {0x9d, 4}};
    constexpr unsigned words = 3, side = 4; // CU_AD_FORMAT_UNSIGNED_INT32; texels
    Image& image = texture.image;
    const unsigned index = view.format - first_compressed;
    if (index >= std::size(formats)) return Status::invalid_value;
    TexelFormat format;
    if (!decode_format(formats[index][0], formats[index][1], format) || image.format_code != words ||
        image.format.bytes() != format.block_bytes())
        return Status::invalid_value;
    if (view.width != std::size_t{image.array_width} * side || view.height != std::size_t{image.array_height} * side ||
        view.depth != image.array_depth || view.last_level >= image.levels ||
        (view.last_layer != 0 && view.last_layer >= image.layers))
        return Status::invalid_value;
    for (unsigned i = 0; i < image.levels; ++i) {
        ImageLevel& level = image.level[i];
        level.width = std::min(std::max(static_cast<std::uint32_t>(view.width) >> i, 1u), level.width * side);
        level.height = std::min(std::max(static_cast<std::uint32_t>(view.height) >> i, 1u), level.height * side);
    }
    format.opaque = false; // views read channels that aren't there as zeros, the fourth too
    image.format = format;
    image.format_code = formats[index][0];
    image.levels = view.last_level + 1;
    if (view.last_layer != 0) image.layers = view.last_layer + 1;
    texture.sampler.to_real = true;
    return Status::success;
}

} // namespace

Status make_texture(const ResourceDescription& resource, const SamplerDescription& description,
                    TextureObject& texture) {
    using Description = SamplerDescription;
    constexpr unsigned known_flags = 0x7f; // two of them without a name
    if (description.filter > 1 || description.level_filter > 1 || (description.flags & ~known_flags))
        return Status::invalid_value;
    if (std::any_of(description.address, description.address + 3, [](unsigned mode) { return mode > 3; }))
        return Status::invalid_value;
    texture.kind = TextureObject::Kind::texture;
    if (const Status status = image_of(resource, texture.image); status != Status::success) return status;
    if ((description.flags & Description::seamless) && !texture.image.cube) return Status::invalid_value;
    const TexelFormat& format = texture.image.format;
    if (format.gamma && !(description.flags & Description::srgb)) return Status::invalid_value;
    Sampler& sampler = texture.sampler;
    for (unsigned i = 0; i < 3; ++i) sampler.address[i] = static_cast<Sampler::Address>(description.address[i]);
    sampler.normalized = (description.flags & Description::normalized) != 0;
    sampler.to_real = format.is_real() || format.always_real ||
                      (!(description.flags & Description::read_as_integer) && format.bits < 32);
    sampler.linear = description.filter == 1;
    sampler.linear_levels = description.level_filter == 1;
    sampler.srgb = (description.flags & Description::srgb) != 0;
    sampler.seamless = (description.flags & Description::seamless) != 0;
    sampler.bias = description.bias;
    sampler.lowest = description.lowest;
    sampler.highest = description.highest;
    sampler.optimized = (description.flags & Description::no_trilinear_optimization) == 0;
    sampler.anisotropy = description.anisotropy;
    std::copy_n(description.border_color, 4, sampler.border_color);
    return Status::success;
}

Status apply_view(const ViewDescription& view, const SamplerDescription& description, TextureObject& texture) {
    struct Viewed {
        unsigned format, channels;
    };
    // In the order of CUresourceViewFormat, which numbers them in hexadecimal.
    static constexpr Viewed formats[] = {{},      {1, 1},  {1, 2},  {1, 4},  {8, 1},  {8, 2},  {8, 4}, {2, 1},  {2, 2},
                                         {2, 4},  {9, 1},  {9, 2},  {9, 4},  {3, 1},  {3, 2},  {3, 4}, {10, 1}, {10, 2},
                                         {10, 4}, {16, 1}, {16, 2}, {16, 4}, {32, 1}, {32, 2}, {32, 4}};
    constexpr unsigned last_format = 0x22;
    Image& image = texture.image;
    if (image.linear || image.pitched || image.format.block != TexelFormat::Block::none || view.format == 0 ||
        view.format > last_format)
        return Status::invalid_value;
    if (view.format >= first_compressed && view.first_level == 0 && view.first_layer == 0)
        return apply_compressed_view(view, texture);
    if (view.first_level != 0 || view.first_layer != 0) {
        log_once("resource view", "resource views that begin behind the first level or layer are not supported");
        return Status::not_supported;
    }
    TexelFormat format;
    if (!decode_format(formats[view.format].format, formats[view.format].channels, format) ||
        format.bytes() != image.format.bytes())
        return Status::invalid_value;
    if (view.width != image.array_width || view.height != image.array_height || view.depth != image.array_depth ||
        view.last_level >= image.levels || (view.last_layer != 0 && view.last_layer >= image.layers))
        return Status::invalid_value;
    image.format = format;
    image.format_code = formats[view.format].format;
    image.levels = view.last_level + 1;
    if (view.last_layer != 0) image.layers = view.last_layer + 1;
    texture.sampler.to_real =
        format.is_real() || (!(description.flags & SamplerDescription::read_as_integer) && format.bits < 32);
    return Status::success;
}

Status make_surface(const ResourceDescription& resource, TextureObject& surface) {
    if (resource.type != ResourceDescription::array) return Status::invalid_value;
    if (!resource.from_array) return Status::invalid_value;
    surface.kind = TextureObject::Kind::surface;
    surface.image = image_of(*resource.from_array);
    return surface.image.format.block == TexelFormat::Block::none ? Status::success : Status::invalid_value;
}

} // namespace ptarmigan::runtime
