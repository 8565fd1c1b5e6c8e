// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/texture_reference.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

using Source = ReferenceState::Source;

SamplerDescription sampler_of(const ReferenceState& state) {
    SamplerDescription sampler;
    std::copy_n(state.address, 3, sampler.address);
    sampler.filter = state.filter == 1;
    sampler.flags = state.flags;
    sampler.anisotropy = state.anisotropy;
    sampler.level_filter = state.level_filter;
    sampler.bias = state.bias;
    sampler.lowest = state.lowest;
    sampler.highest = state.highest;
    std::copy_n(state.border_color, 4, sampler.border_color);
    return sampler;
}

/// False if nothing is bound, or no more.
bool resource_of(const ReferenceState& state, ResourceDescription& resource) {
    resource.memory = state.memory;
    resource.format = state.format;
    resource.channels = state.channels;
    switch (state.source) {
    case Source::none: return false;
    case Source::array:
        resource.type = ResourceDescription::array;
        resource.from_array = state.array.lock();
        return resource.from_array != nullptr;
    case Source::mipmap:
        resource.type = ResourceDescription::mipmapped_array;
        resource.from_mipmap = state.mipmap.lock();
        return resource.from_mipmap != nullptr;
    case Source::linear:
        resource.type = ResourceDescription::linear;
        resource.bytes = state.bytes;
        return true;
    case Source::pitched:
        resource.type = ResourceDescription::pitch2d;
        resource.width = state.width;
        resource.height = state.height;
        resource.pitch = state.pitch;
        return true;
    }
    return false;
}

/// The reference's format is what texels are read as, whatever the array's.
Status read_as(const ReferenceState& state, TextureObject& object) {
    Image& image = object.image;
    TexelFormat format;
    if (!decode_format(state.format, state.channels, format) || format.bytes() != image.format.bytes() ||
        format.block != image.format.block)
        return Status::invalid_value;
    image.format = format;
    image.format_code = state.format;
    object.sampler.to_real = format.is_real() || format.always_real ||
                             (!(state.flags & SamplerDescription::read_as_integer) && format.bits < 32);
    return Status::success;
}

} // namespace

Status make_object(const TextureReference& reference, TextureObject& object) {
    const ReferenceState state = reference.state();
    ResourceDescription resource;
    if (!resource_of(state, resource)) return Status::success;
    if (reference.kind() == TextureReference::Kind::surface) return make_surface(resource, object);
    const Status status = make_texture(resource, sampler_of(state), object);
    return status == Status::success ? read_as(state, object) : status;
}

} // namespace ptarmigan::runtime
