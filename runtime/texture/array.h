// SPDX-License-Identifier: Apache-2.0
// CUDA arrays and mipmapped arrays: device memory with a shape, rows one after the other.
#pragma once

#include "runtime/base/status.h"
#include "runtime/memory/memory.h"
#include "runtime/texture/texture.h"

#include <memory>
#include <vector>

namespace ptarmigan::runtime {

class Context;

/// As in CUDA_ARRAY3D_DESCRIPTOR: 0 for dimensions that there are not; depth counts layers or faces where flags say so.
struct ArrayShape {
    static constexpr unsigned layered = 1, surface = 2, cube = 4, gather = 8;
    std::size_t width = 0, height = 0, depth = 0;
    unsigned format = 0, channels = 0, flags = 0;
};

/// One level of texels: an array of its own, or a level of a mipmapped one, whose memory it then keeps.
class Array {
public:
    Array(Context& context, const ArrayShape& shape, ImageLevel level, std::shared_ptr<void> memory)
        : context_(context), shape_(shape), level_(level), memory_(std::move(memory)) {}

    Context& context() const { return context_; }
    const ArrayShape& shape() const { return shape_; }
    const ImageLevel& level() const { return level_; }
    /// True for levels of mipmapped arrays, which cannot be destroyed by themselves.
    bool is_level() const { return is_level_; }
    void set_level() { is_level_ = true; }
    std::size_t row_bytes() const;
    std::size_t rows() const; ///< of blocks where it is compressed
    std::size_t slices() const { return shape_.depth ? shape_.depth : 1; }

private:
    Context& context_;
    ArrayShape shape_;
    ImageLevel level_;
    std::shared_ptr<void> memory_;
    bool is_level_ = false;
};

class MipmappedArray {
public:
    MipmappedArray(Context& context, const ArrayShape& shape, std::vector<std::shared_ptr<Array>> levels)
        : context_(context), shape_(shape), levels_(std::move(levels)) {}
    Context& context() const { return context_; }
    const ArrayShape& shape() const { return shape_; }
    const std::vector<std::shared_ptr<Array>>& levels() const { return levels_; }

private:
    Context& context_;
    ArrayShape shape_;
    std::vector<std::shared_ptr<Array>> levels_;
};

/// cuArray3DCreate. invalid_value for shapes that the driver refuses, not_supported for formats that are not done.
Status array_create(Context& context, const ArrayShape& shape, std::shared_ptr<Array>& array);
/// cuMipmappedArrayCreate; more levels than there can be are cut.
Status mipmap_create(Context& context, const ArrayShape& shape, unsigned levels,
                     std::shared_ptr<MipmappedArray>& mipmap);
/// cuArrayDestroy and cuMipmappedArrayDestroy: after the context's work. invalid_handle for what is none.
Status array_destroy(Context& context, const void* handle);
Status mipmap_destroy(Context& context, const void* handle);

/// The image that textures and surfaces see.
Image image_of(const Array& array);
Image image_of(const MipmappedArray& mipmap);

/// One end of a copy that lies in an array; invalid_value if the box sticks out of it.
Status array_end(const Array& array, std::size_t x_bytes, std::size_t y, std::size_t z, const CopyBox& box,
                 CopyBox::End& end);

} // namespace ptarmigan::runtime
