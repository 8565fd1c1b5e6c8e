// SPDX-License-Identifier: Apache-2.0
// Arrays and mipmapped arrays.
#include "runtime/texture/array.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/texture_types.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Array;
using runtime::ArrayShape;
using runtime::Context;
using runtime::MipmappedArray;

namespace {

ArrayShape shape_of(const CUDA_ARRAY3D_DESCRIPTOR& d) {
    return {d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags};
}

CUresult create(CUarray* handle, const ArrayShape* shape) {
    return context_entry([&](Context& context) {
        if (!handle || !shape) return Status::invalid_value;
        std::shared_ptr<Array> array;
        const Status status = runtime::array_create(context, *shape, array);
        if (status != Status::success) return status;
        runtime::HandleTable<Array>::get().add(array);
        *handle = to_handle<CUarray>(array);
        return Status::success;
    });
}

} // namespace

PTM_API(cuArrayCreate_v2, CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* d) {
    ArrayShape shape;
    if (d) shape = {d->Width, d->Height, 0, d->Format, d->NumChannels, 0};
    return create(handle, d ? &shape : nullptr);
}
PTM_API(cuArray3DCreate_v2, CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* d) {
    ArrayShape shape;
    if (d) shape = shape_of(*d);
    return create(handle, d ? &shape : nullptr);
}
PTM_API(cuArrayDestroy, CUarray handle) {
    return object_entry<Array>(handle, [&](Array& array) { return runtime::array_destroy(array.context(), handle); });
}
PTM_API(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR* d, CUarray handle) {
    return object_entry<Array>(handle, [&](Array& array) {
        if (!d) return Status::invalid_value;
        const ArrayShape& shape = array.shape();
        *d = {shape.width, shape.height, shape.format, shape.channels};
        return Status::success;
    });
}
PTM_API(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR* d, CUarray handle) {
    return object_entry<Array>(handle, [&](Array& array) {
        if (!d) return Status::invalid_value;
        const ArrayShape& shape = array.shape();
        *d = {shape.width, shape.height, shape.depth, shape.format, shape.channels, shape.flags};
        return Status::success;
    });
}

PTM_API(cuMipmappedArrayCreate, CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
    return context_entry([&](Context& context) {
        if (!handle || !d) return Status::invalid_value;
        std::shared_ptr<MipmappedArray> mipmap;
        const Status status = runtime::mipmap_create(context, shape_of(*d), levels, mipmap);
        if (status != Status::success) return status;
        for (const auto& level : mipmap->levels()) {
            level->set_level();
            runtime::HandleTable<Array>::get().add(level);
        }
        runtime::HandleTable<MipmappedArray>::get().add(mipmap);
        *handle = to_handle<CUmipmappedArray>(mipmap);
        return Status::success;
    });
}
PTM_API(cuMipmappedArrayGetLevel, CUarray* level, CUmipmappedArray handle, unsigned number) {
    return object_entry<MipmappedArray>(handle, [&](MipmappedArray& mipmap) {
        if (!level || number >= mipmap.levels().size()) return Status::invalid_value;
        *level = to_handle<CUarray>(mipmap.levels()[number]);
        return Status::success;
    });
}
PTM_API(cuMipmappedArrayDestroy, CUmipmappedArray handle) {
    return object_entry<MipmappedArray>(
        handle, [&](MipmappedArray& mipmap) { return runtime::mipmap_destroy(mipmap.context(), handle); });
}

// What arrays have that cannot be made here: memory that is mapped later or in tiles, and planes.
PTM_API(cuArrayGetMemoryRequirements, void* requirements, CUarray array, CUdevice) {
    PTM_REQUIRE(requirements && array);
    return object_entry<Array>(array, [](Array&) { return Status::invalid_value; });
}
PTM_API(cuArrayGetSparseProperties, void* properties, CUarray array) {
    PTM_REQUIRE(properties && array);
    return object_entry<Array>(array, [](Array&) { return Status::invalid_value; });
}
PTM_API(cuArrayGetPlane, CUarray*, CUarray array, unsigned) {
    return object_entry<Array>(array, [](Array&) { return Status::invalid_value; });
}
PTM_API(cuMipmappedArrayGetMemoryRequirements, void* requirements, CUmipmappedArray array, CUdevice) {
    PTM_REQUIRE(requirements && array);
    return object_entry<MipmappedArray>(array, [](MipmappedArray&) { return Status::invalid_value; });
}
PTM_API(cuMipmappedArrayGetSparseProperties, void* properties, CUmipmappedArray array) {
    PTM_REQUIRE(properties && array);
    return object_entry<MipmappedArray>(array, [](MipmappedArray&) { return Status::invalid_value; });
}
