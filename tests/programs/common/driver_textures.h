// SPDX-License-Identifier: Apache-2.0
// See textures.h; through the driver API.
#pragma once

#include "runtime/shim/cuda_types.h"
#include "runtime/shim/texture_types.h"

extern "C" {
CUresult cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*);
CUresult cuArrayDestroy(CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned);
CUresult cuMipmappedArrayGetLevel(CUarray*, CUmipmappedArray, unsigned);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D*);
CUresult cuTexObjectCreate(CUtexObject*, const CUDA_RESOURCE_DESC*, const CUDA_TEXTURE_DESC*, const CUDA_RESOURCE_VIEW_DESC*);
CUresult cuTexObjectDestroy(CUtexObject);
CUresult cuSurfObjectCreate(CUsurfObject*, const CUDA_RESOURCE_DESC*);
CUresult cuSurfObjectDestroy(CUsurfObject);
}

namespace test {

constexpr unsigned format_bytes = 1, format_floats = 32;

inline CUDA_ARRAY3D_DESCRIPTOR descriptor(const ArrayShape& shape) {
    return {shape.width, shape.height, shape.depth, format_floats, shape.channels, shape.flags};
}

inline void fill_array(CUarray array, const ArrayShape& shape, const float* texels) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = 1; // host
    copy.srcHost = texels;
    copy.dstMemoryType = 3; // array
    copy.dstArray = array;
    copy.WidthInBytes = shape.width * shape.channels * sizeof(float);
    copy.Height = shape.height ? shape.height : 1;
    copy.Depth = shape.depth ? shape.depth : 1;
    check(cuMemcpy3D_v2(&copy), "copy to array");
}

class Array {
public:
    Array(const ArrayShape& shape, const float* texels) {
        Device::get();
        const CUDA_ARRAY3D_DESCRIPTOR wanted = descriptor(shape);
        check(cuArray3DCreate_v2(&array_, &wanted), "cuArray3DCreate");
        if (texels) fill_array(array_, shape, texels);
    }
    Array(const Array&) = delete;
    ~Array() { cuArrayDestroy(array_); }
    CUarray get() const { return array_; }

private:
    CUarray array_ = nullptr;
};

/// Square levels of one channel.
class Mipmap {
public:
    Mipmap(unsigned size, const std::vector<std::vector<float>>& levels) {
        const CUDA_ARRAY3D_DESCRIPTOR wanted = descriptor({size, size, 0, 1, 0});
        check(cuMipmappedArrayCreate(&mipmap_, &wanted, unsigned(levels.size())), "cuMipmappedArrayCreate");
        for (unsigned level = 0; level < levels.size(); ++level) {
            CUarray array = nullptr;
            check(cuMipmappedArrayGetLevel(&array, mipmap_, level), "cuMipmappedArrayGetLevel");
            fill_array(array, {size >> level, size >> level, 0, 1, 0}, levels[level].data());
        }
    }
    Mipmap(const Mipmap&) = delete;
    ~Mipmap() { cuMipmappedArrayDestroy(mipmap_); }
    CUmipmappedArray get() const { return mipmap_; }

private:
    CUmipmappedArray mipmap_ = nullptr;
};

class Texture {
public:
    Texture(const Array& array, unsigned filter, unsigned coordinates) {
        CUDA_RESOURCE_DESC resource{};
        resource.res.array.hArray = array.get();
        make(resource, filter, coordinates ? 2 : 0);
    }
    explicit Texture(const Mipmap& mipmap) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = 1;
        resource.res.mipmap.hMipmappedArray = mipmap.get();
        make(resource, filter_linear, 2);
    }
    /// Bytes in rows.
    Texture(unsigned char* memory, unsigned width, unsigned height, std::size_t pitch) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = 3;
        resource.res.pitch2D = {CUdeviceptr(memory), format_bytes, 1, width, height, pitch};
        make(resource, filter_point, 1);
    }
    /// Groups of four bytes in a line.
    Texture(unsigned char* memory, std::size_t bytes) {
        CUDA_RESOURCE_DESC resource{};
        resource.resType = 2;
        resource.res.linear = {CUdeviceptr(memory), format_bytes, 4, bytes};
        make(resource, filter_point, 1);
    }
    Texture(const Texture&) = delete;
    ~Texture() { cuTexObjectDestroy(object_); }
    operator unsigned long long() const { return object_; }

private:
    /// flags: 1 integers stay integers, 2 normalized coordinates.
    void make(const CUDA_RESOURCE_DESC& resource, unsigned filter, unsigned flags) {
        CUDA_TEXTURE_DESC sampler{};
        for (unsigned& mode : sampler.addressMode) mode = 1; // clamp
        sampler.filterMode = filter;
        sampler.flags = flags;
        sampler.maxMipmapLevelClamp = 99;
        check(cuTexObjectCreate(&object_, &resource, &sampler, nullptr), "cuTexObjectCreate");
    }
    CUtexObject object_ = 0;
};

class Surface {
public:
    explicit Surface(const Array& array) {
        CUDA_RESOURCE_DESC resource{};
        resource.res.array.hArray = array.get();
        check(cuSurfObjectCreate(&object_, &resource), "cuSurfObjectCreate");
    }
    Surface(const Surface&) = delete;
    ~Surface() { cuSurfObjectDestroy(object_); }
    operator unsigned long long() const { return object_; }

private:
    CUsurfObject object_ = 0;
};

} // namespace test
