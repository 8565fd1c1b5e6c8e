// SPDX-License-Identifier: Apache-2.0
#include "runtime/texture/array.h"

#include "runtime/base/handle_table.h"
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/context/context_keeper.h"
#include "runtime/stream/dispatcher.h"

#include <algorithm>
#include <bit>

namespace ptarmigan::runtime {
namespace {

constexpr std::size_t row_alignment = 32;

bool is_layered(const ArrayShape& shape) {
    return (shape.flags & (ArrayShape::layered | ArrayShape::cube)) != 0;
}

/// The largest extents of a kind of array, as the device attributes have them; 0: the dimension must not be there.
struct Limits {
    std::size_t width, height, depth;
};

Limits limits_of(const ArrayShape& shape) {
    const bool surface = (shape.flags & ArrayShape::surface) != 0;
    if (shape.flags & ArrayShape::cube)
        return {32768, 32768, shape.flags & ArrayShape::layered ? std::size_t{2046} : std::size_t{6}};
    if (shape.flags & ArrayShape::layered) return {32768, shape.height ? std::size_t{32768} : 0, 2048};
    if (shape.depth) // deep ones may be narrow
        return shape.depth > 16384 ? Limits{8192, 8192, 32768} : Limits{16384, 16384, 16384};
    if (shape.flags & ArrayShape::gather) return {32768, 32768, 0};
    if (shape.height) return {131072, 65536, 0};
    return {surface ? std::size_t{32768} : std::size_t{131072}, 0, 0};
}

Status check(const ArrayShape& shape) {
    constexpr unsigned known_flags = 15, mapped_later = 0xc0, video = 0x100; // sparse, deferred mapping
    if (shape.flags & mapped_later) {
        log_once("array mapping", "sparse arrays and arrays that are mapped later are not supported");
        return Status::not_supported;
    }
    if (shape.flags & ~(known_flags | video)) return Status::invalid_value;
    if (shape.width == 0 || (shape.depth && !shape.height && !is_layered(shape))) return Status::invalid_value;
    TexelFormat format;
    if (decode_format(shape.format, shape.channels, format) && format.block != TexelFormat::Block::none) {
        if (!shape.height) return Status::invalid_value;
        if (shape.flags & ArrayShape::surface) return Status::not_supported; // the NVIDIA driver's answer
    }
    const bool cube = (shape.flags & ArrayShape::cube) != 0;
    if (is_layered(shape) && shape.depth == 0) return Status::invalid_value;
    if (cube && (shape.width != shape.height || shape.depth % 6 != 0)) return Status::invalid_value;
    const bool flat = shape.height != 0 && shape.depth == 0;
    if ((shape.flags & ArrayShape::gather) && !flat) return Status::invalid_value;
    const Limits limits = limits_of(shape);
    if (shape.width > limits.width || shape.height > limits.height || shape.depth > limits.depth)
        return Status::invalid_value;
    return Status::success;
}

ImageLevel level_of(const ArrayShape& shape, const TexelFormat& format) {
    ImageLevel level;
    level.width = static_cast<std::uint32_t>(shape.width);
    level.height = static_cast<std::uint32_t>(std::max<std::size_t>(shape.height, 1));
    level.depth = is_layered(shape) ? 1 : static_cast<std::uint32_t>(std::max<std::size_t>(shape.depth, 1));
    level.row = (format.row_bytes(shape.width) + row_alignment - 1) / row_alignment * row_alignment;
    level.slice = level.row * format.rows(level.height);
    return level;
}

std::size_t bytes_of(const ArrayShape& shape, const ImageLevel& level) {
    return level.slice * std::max<std::size_t>(shape.depth, 1);
}

/// Device memory that programs can't free; given back with the last array that lies in it.
Status allocate(Context& context, std::size_t size, std::shared_ptr<void>& memory) {
    Allocation allocation;
    AddressSpace& space = AddressSpace::get();
    const Status status = space.allocate(size, MemoryKind::device, &context, allocation);
    if (status != Status::success) return status;
    const std::uint64_t id = allocation.id;
    memory = std::shared_ptr<void>(reinterpret_cast<void*>(allocation.base), [id](void* base) {
        // The context may have freed it already, and given the address to somebody else.
        const auto mine = [id](const Allocation& record) { return record.id == id; };
        static_cast<void>(AddressSpace::get().free(reinterpret_cast<std::uintptr_t>(base), mine));
    });
    return space.annotate(allocation.base, [](Allocation& record) { record.owned_by_module = true; });
}

ArrayShape shape_of_level(ArrayShape shape, unsigned level) {
    const auto smaller = [&](std::size_t size) { return size ? std::max<std::size_t>(size >> level, 1) : 0; };
    shape.width = smaller(shape.width);
    shape.height = smaller(shape.height);
    if (!is_layered(shape)) shape.depth = smaller(shape.depth);
    return shape;
}

void wait_for_work(Context& context) {
    Dispatcher::get().wait_for_all(context);
}

void end_arrays(Context& context) {
    const auto mine = [&](const auto& object) { return &object.context() == &context; };
    HandleTable<MipmappedArray>::get().remove_if(mine);
    HandleTable<Array>::get().remove_if(mine);
}

const RegisterContextKeeper arrays_of_contexts(ContextKeeper::Kind::textures, {.end = end_arrays});

Image bare_image(const ArrayShape& shape) {
    Image image;
    static_cast<void>(decode_format(shape.format, shape.channels, image.format));
    image.format_code = shape.format;
    image.cube = (shape.flags & ArrayShape::cube) != 0;
    image.layered = (shape.flags & ArrayShape::layered) != 0;
    const bool layers = is_layered(shape);
    image.dimensions = static_cast<std::uint8_t>(!shape.height ? 1 : shape.depth && !layers ? 3 : 2);
    image.layers = layers ? static_cast<std::uint32_t>(shape.depth) : 1;
    image.array_width = static_cast<std::uint32_t>(shape.width);
    image.array_height = static_cast<std::uint32_t>(shape.height);
    image.array_depth = static_cast<std::uint32_t>(shape.depth);
    return image;
}

} // namespace

std::size_t Array::row_bytes() const {
    TexelFormat format;
    return decode_format(shape_.format, shape_.channels, format) ? format.row_bytes(shape_.width) : 0;
}

std::size_t Array::rows() const {
    TexelFormat format;
    const std::size_t height = std::max<std::size_t>(shape_.height, 1);
    return decode_format(shape_.format, shape_.channels, format) ? format.rows(height) : height;
}

Status array_create(Context& context, const ArrayShape& shape, std::shared_ptr<Array>& array) {
    std::shared_ptr<MipmappedArray> mipmap;
    const Status status = mipmap_create(context, shape, 1, mipmap);
    if (status == Status::success) array = mipmap->levels().front();
    return status;
}

Status mipmap_create(Context& context, const ArrayShape& shape, unsigned count,
                     std::shared_ptr<MipmappedArray>& mipmap) {
    TexelFormat format;
    if (is_unsupported_format(shape.format, shape.channels)) {
        log_once("array format", "arrays of multi-planar formats are not supported");
        return Status::not_supported;
    }
    if (!decode_format(shape.format, shape.channels, format)) return Status::invalid_value;
    if (const Status status = check(shape); status != Status::success) return status;
    const std::size_t longest = std::max({shape.width, shape.height, is_layered(shape) ? 1 : shape.depth});
    const auto most = static_cast<unsigned>(std::bit_width(longest));
    count = std::clamp(count, 1u, std::min(most, Image::max_levels));
    std::vector<ArrayShape> shapes;
    std::vector<ImageLevel> levels;
    std::size_t size = 0;
    for (unsigned i = 0; i < count; ++i) {
        shapes.push_back(shape_of_level(shape, i));
        levels.push_back(level_of(shapes.back(), format));
        size += bytes_of(shapes.back(), levels.back());
    }
    std::shared_ptr<void> memory;
    if (const Status status = allocate(context, size, memory); status != Status::success) return status;
    auto* data = static_cast<std::uint8_t*>(memory.get());
    std::vector<std::shared_ptr<Array>> arrays;
    for (unsigned i = 0; i < count; ++i) {
        levels[i].data = data;
        data += bytes_of(shapes[i], levels[i]);
        arrays.push_back(std::make_shared<Array>(context, shapes[i], levels[i], memory));
    }
    mipmap = std::make_shared<MipmappedArray>(context, shape, std::move(arrays));
    return Status::success;
}

Status array_destroy(Context& context, const void* handle) {
    const auto array = HandleTable<Array>::get().find(handle);
    if (!array || array->is_level()) return Status::invalid_handle;
    wait_for_work(context);
    HandleTable<Array>::get().remove(handle);
    return Status::success;
}

Status mipmap_destroy(Context& context, const void* handle) {
    const auto mipmap = HandleTable<MipmappedArray>::get().find(handle);
    if (!mipmap) return Status::invalid_handle;
    wait_for_work(context);
    for (const auto& level : mipmap->levels()) HandleTable<Array>::get().remove(level.get());
    HandleTable<MipmappedArray>::get().remove(handle);
    return Status::success;
}

Image image_of(const Array& array) {
    Image image = bare_image(array.shape());
    image.level[0] = array.level();
    return image;
}

Image image_of(const MipmappedArray& mipmap) {
    Image image = bare_image(mipmap.shape());
    image.mipmapped = true;
    image.levels = static_cast<std::uint32_t>(mipmap.levels().size());
    for (unsigned i = 0; i < image.levels; ++i) image.level[i] = mipmap.levels()[i]->level();
    return image;
}

Status array_end(const Array& array, std::size_t x_bytes, std::size_t y, std::size_t z, const CopyBox& box,
                 CopyBox::End& end) {
    const auto sticks_out = [](std::size_t first, std::size_t count, std::size_t size) {
        return first > size || count > size - first;
    };
    if (sticks_out(x_bytes, box.width_bytes, array.row_bytes()) || sticks_out(y, box.height, array.rows()) ||
        sticks_out(z, box.depth, array.slices()))
        return Status::invalid_value;
    end.side = Side::device;
    end.base = array.level().data;
    end.pitch = array.level().row;
    end.height = array.rows();
    end.x_bytes = x_bytes;
    end.y = y;
    end.z = z;
    return Status::success;
}

} // namespace ptarmigan::runtime
