// SPDX-License-Identifier: Apache-2.0
// Making texture and surface objects from the driver's descriptions.
#pragma once

#include "runtime/base/status.h"
#include "runtime/texture/array.h"
#include "runtime/texture/texture.h"

namespace ptarmigan::runtime {

/// What a texture or surface is made of, in the driver's numbers.
struct ResourceDescription {
    enum Type : unsigned { array, mipmapped_array, linear, pitch2d };
    unsigned type = array;
    std::shared_ptr<Array> from_array;
    std::shared_ptr<MipmappedArray> from_mipmap;
    DevicePointer memory = 0; ///< linear and pitch2d
    unsigned format = 0, channels = 0;
    std::size_t bytes = 0, width = 0, height = 0, pitch = 0;
};

struct SamplerDescription {
    static constexpr unsigned read_as_integer = 1, normalized = 2, srgb = 0x10, no_trilinear_optimization = 0x20,
                              seamless = 0x40;
    unsigned address[3] = {}, filter = 0, flags = 0, anisotropy = 0, level_filter = 0;
    float bias = 0, lowest = 0, highest = 0, border_color[4] = {};
};

/// Another look at an array: texels of the same size read as another format, the first layers and levels.
struct ViewDescription {
    unsigned format = 0; ///< CUresourceViewFormat; 0: the array's
    std::size_t width = 0, height = 0, depth = 0;
    unsigned first_level = 0, last_level = 0, first_layer = 0, last_layer = 0;
};
/// Applies a view to a texture that make_texture() made. not_supported: views that begin behind the first level or
/// layer.
Status apply_view(const ViewDescription& view, const SamplerDescription& sampler, TextureObject& texture);

/// cuTexObjectCreate and cuSurfObjectCreate; the codes of the NVIDIA driver.
Status make_texture(const ResourceDescription& resource, const SamplerDescription& sampler, TextureObject& texture);
Status make_surface(const ResourceDescription& resource, TextureObject& surface);

} // namespace ptarmigan::runtime
