// SPDX-License-Identifier: Apache-2.0
// The ends of copies of several dimensions, as the driver's structures say them.
#pragma once

#include "runtime/memory/memory.h"
#include "runtime/shim/convert.h"

#include <cstddef>

namespace ptarmigan::shim {

struct EndWords {
    unsigned type;
    void* host_pointer;
    CUdeviceptr device_pointer;
    CUarray array;
    std::size_t pitch, height, x, y, z;
};

/// Of CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
template <class Words> EndWords source_of(const Words& c) {
    return {c.srcMemoryType, const_cast<void*>(c.srcHost),
            c.srcDevice,     c.srcArray,
            c.srcPitch,      c.srcHeight,
            c.srcXInBytes,   c.srcY,
            c.srcZ};
}
template <class Words> EndWords destination_of(const Words& c) {
    return {c.dstMemoryType, c.dstHost,     c.dstDevice, c.dstArray, c.dstPitch,
            c.dstHeight,     c.dstXInBytes, c.dstY,      c.dstZ};
}

/// Of `box`, whose size is known. invalid_value for memory types that there are none of and for boxes that stick out of
/// an array.
Status make_ends(const EndWords& source, const EndWords& destination, runtime::CopyBox& box);

} // namespace ptarmigan::shim
