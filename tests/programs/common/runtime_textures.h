// SPDX-License-Identifier: Apache-2.0
// See textures.h; through the CUDA runtime.
#pragma once

namespace test {

inline cudaChannelFormatDesc floats(unsigned channels) {
    const int used = 32;
    return {used, channels > 1 ? used : 0, channels > 2 ? used : 0, channels > 2 ? used : 0, cudaChannelFormatKindFloat};
}

inline void fill_array(cudaArray_t array, const ArrayShape& shape, const float* texels) {
    cudaMemcpy3DParms copy = {};
    const std::size_t row = shape.width * shape.channels * sizeof(float), height = shape.height ? shape.height : 1;
    copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(texels), row, shape.width, height);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(shape.width, height, shape.depth ? shape.depth : 1);
    copy.kind = cudaMemcpyHostToDevice;
    check(cudaMemcpy3D(&copy), "copy to array");
}

class Array {
public:
    Array(const ArrayShape& shape, const float* texels) {
        const cudaChannelFormatDesc format = floats(shape.channels);
        check(cudaMalloc3DArray(&array_, &format, make_cudaExtent(shape.width, shape.height, shape.depth), shape.flags), "cudaMalloc3DArray");
        if (texels) fill_array(array_, shape, texels);
    }
    Array(const Array&) = delete;
    ~Array() { cudaFreeArray(array_); }
    cudaArray_t get() const { return array_; }

private:
    cudaArray_t array_ = nullptr;
};

/// Square levels of one channel.
class Mipmap {
public:
    Mipmap(unsigned size, const std::vector<std::vector<float>>& levels) {
        const cudaChannelFormatDesc format = floats(1);
        check(cudaMallocMipmappedArray(&mipmap_, &format, make_cudaExtent(size, size, 0), unsigned(levels.size())), "cudaMallocMipmappedArray");
        for (unsigned level = 0; level < levels.size(); ++level) {
            cudaArray_t array = nullptr;
            check(cudaGetMipmappedArrayLevel(&array, mipmap_, level), "cudaGetMipmappedArrayLevel");
            fill_array(array, {size >> level, size >> level, 0, 1, 0}, levels[level].data());
        }
    }
    Mipmap(const Mipmap&) = delete;
    ~Mipmap() { cudaFreeMipmappedArray(mipmap_); }
    cudaMipmappedArray_t get() const { return mipmap_; }

private:
    cudaMipmappedArray_t mipmap_ = nullptr;
};

class Texture {
public:
    Texture(const Array& array, unsigned filter, unsigned coordinates) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array.get();
        make(resource, filter, coordinates);
    }
    explicit Texture(const Mipmap& mipmap) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeMipmappedArray;
        resource.res.mipmap.mipmap = mipmap.get();
        make(resource, filter_linear, normalized);
    }
    /// Bytes in rows.
    Texture(unsigned char* memory, unsigned width, unsigned height, std::size_t pitch) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypePitch2D;
        resource.res.pitch2D.devPtr = memory;
        resource.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
        resource.res.pitch2D.width = width;
        resource.res.pitch2D.height = height;
        resource.res.pitch2D.pitchInBytes = pitch;
        make(resource, filter_point, 0);
    }
    /// Groups of four bytes in a line.
    Texture(unsigned char* memory, std::size_t bytes) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeLinear;
        resource.res.linear.devPtr = memory;
        resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
        resource.res.linear.sizeInBytes = bytes;
        make(resource, filter_point, 0);
    }
    Texture(const Texture&) = delete;
    ~Texture() { cudaDestroyTextureObject(object_); }
    operator unsigned long long() const { return object_; }

private:
    void make(const cudaResourceDesc& resource, unsigned filter, unsigned coordinates) {
        cudaTextureDesc sampler = {};
        for (cudaTextureAddressMode& mode : sampler.addressMode) mode = cudaAddressModeClamp;
        sampler.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
        sampler.normalizedCoords = int(coordinates);
        sampler.maxMipmapLevelClamp = 99;
        check(cudaCreateTextureObject(&object_, &resource, &sampler, nullptr), "cudaCreateTextureObject");
    }
    cudaTextureObject_t object_ = 0;
};

class Surface {
public:
    explicit Surface(const Array& array) {
        cudaResourceDesc resource = {};
        resource.resType = cudaResourceTypeArray;
        resource.res.array.array = array.get();
        check(cudaCreateSurfaceObject(&object_, &resource), "cudaCreateSurfaceObject");
    }
    Surface(const Surface&) = delete;
    ~Surface() { cudaDestroySurfaceObject(object_); }
    operator unsigned long long() const { return object_; }

private:
    cudaSurfaceObject_t object_ = 0;
};

} // namespace test
