// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/texture_objects.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

Status linear_image(const ResourceDescription &resource, Image &image) {
    constexpr std::size_t alignment = 16, most_texels = 268435456;
    if (!decode_format(resource.format, resource.channels, image.format) || resource.memory == 0 ||
        resource.memory % alignment != 0)
        return Status::invalid_value;
    const std::size_t texels = resource.bytes / image.format.bytes();
    if (texels == 0 || texels > most_texels)
        return Status::invalid_value;
    image.linear = true;
    image.format_code = resource.format;
    ImageLevel &level = image.level[0];
    level.data = reinterpret_cast<std::uint8_t *>(resource.memory);
    level.width = image.array_width = static_cast<std::uint32_t>(texels);
    return Status::success;
}

Status pitched_image(const ResourceDescription &resource, Image &image) {
    constexpr std::size_t pitch_alignment = 32, alignment = 32;
    if (!decode_format(resource.format, resource.channels, image.format) || resource.memory == 0 ||
        resource.memory % alignment != 0)
        return Status::invalid_value;
    if (resource.width == 0 || resource.height == 0 || resource.width > 131072 || resource.height > 65000 ||
        resource.pitch > 2097120 || resource.pitch % pitch_alignment != 0 ||
        resource.pitch < resource.width * image.format.bytes())
        return Status::invalid_value;
    image.pitched = true;
    image.dimensions = 2;
    image.format_code = resource.format;
    ImageLevel &level = image.level[0];
    level.data = reinterpret_cast<std::uint8_t *>(resource.memory);
    level.width = image.array_width = static_cast<std::uint32_t>(resource.width);
    level.height = image.array_height = static_cast<std::uint32_t>(resource.height);
    level.row = resource.pitch;
    return Status::success;
}

Status image_of(const ResourceDescription &resource, Image &image) {
    switch (resource.type) {
    case ResourceDescription::array:
        if (!resource.from_array)
            return Status::invalid_handle;
        image = image_of(*resource.from_array);
        return Status::success;
    case ResourceDescription::mipmapped_array:
        if (!resource.from_mipmap)
            return Status::invalid_handle;
        image = image_of(*resource.from_mipmap);
        return Status::success;
    case ResourceDescription::linear: return linear_image(resource, image);
    case ResourceDescription::pitch2d: return pitched_image(resource, image);
    default: return Status::invalid_value;
    }
}

} // namespace

Status make_texture(const ResourceDescription &resource, const SamplerDescription &description, TextureObject &texture) {
    using Description = SamplerDescription;
    constexpr unsigned known_flags = Description::read_as_integer | Description::normalized | Description::srgb |
                                     Description::no_trilinear_optimization | Description::seamless;
    if (description.filter > 1 || description.level_filter > 1 || (description.flags & ~known_flags))
        return Status::invalid_value;
    if (std::any_of(description.address, description.address + 3, [](unsigned mode) { return mode > 3; }))
        return Status::invalid_value;
    texture.kind = TextureObject::Kind::texture;
    if (const Status status = image_of(resource, texture.image); status != Status::success)
        return status;
    const TexelFormat &format = texture.image.format;
    Sampler &sampler = texture.sampler;
    for (unsigned i = 0; i < 3; ++i)
        sampler.address[i] = static_cast<Sampler::Address>(description.address[i]);
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
    sampler.anisotropy = description.anisotropy;
    std::copy_n(description.border_color, 4, sampler.border_color);
    return Status::success;
}

Status make_surface(const ResourceDescription &resource, TextureObject &surface) {
    if (resource.type != ResourceDescription::array)
        return Status::invalid_value;
    if (!resource.from_array)
        return Status::invalid_handle;
    if (!(resource.from_array->shape().flags & ArrayShape::surface))
        return Status::invalid_value;
    surface.kind = TextureObject::Kind::surface;
    surface.image = image_of(*resource.from_array);
    return Status::success;
}

} // namespace ptarmigan::runtime
