// SPDX-License-Identifier: Apache-2.0
// Copies and fills, blocking and asynchronous, one- to three-dimensional.
#include "runtime/memory/memory.h"
#include "runtime/shim/convert.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::CopyBox;
using runtime::Side;
using runtime::Stream;

namespace {

void* host(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

/// One end of a two- or three-dimensional copy; false for memory types that there are none of.
bool make_end(CopyBox::End& end, unsigned type, void* host_pointer, CUdeviceptr device_pointer,
              std::size_t pitch, std::size_t x, std::size_t y) {
    switch (type) {
    case memory_host: end.side = Side::host, end.base = host_pointer; break;
    case memory_device: end.side = Side::device, end.base = host(device_pointer); break;
    case memory_unified: end.side = Side::unified, end.base = host(device_pointer); break;
    default: return false;
    }
    end.pitch = pitch;
    end.x_bytes = x;
    end.y = y;
    return true;
}

/// What copies of two and three dimensions have in common.
template <class Copy> Status make_box(const Copy* c, CopyBox& box) {
    if (!c)
        return Status::invalid_value;
    if (c->srcMemoryType == memory_array || c->dstMemoryType == memory_array)
        return Status::not_supported;
    if (!make_end(box.source, c->srcMemoryType, const_cast<void*>(c->srcHost), c->srcDevice, c->srcPitch,
                  c->srcXInBytes, c->srcY) ||
        !make_end(box.destination, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch, c->dstXInBytes, c->dstY))
        return Status::invalid_value;
    box.width_bytes = c->WidthInBytes;
    box.height = c->Height;
    return Status::success;
}

Status copy_box(Stream& queue, const CUDA_MEMCPY2D* c, bool blocking) {
    CopyBox box;
    const Status status = make_box(c, box);
    return status == Status::success ? runtime::memory_copy(queue, box, blocking) : status;
}

Status copy_box(Stream& queue, const CUDA_MEMCPY3D* c, bool blocking) {
    CopyBox box;
    if (const Status status = make_box(c, box); status != Status::success)
        return status;
    if (c->srcLOD || c->dstLOD)
        return Status::invalid_value;
    box.source.z = c->srcZ;
    box.source.height = c->srcHeight;
    box.destination.z = c->dstZ;
    box.destination.height = c->dstHeight;
    box.depth = c->Depth;
    return runtime::memory_copy(queue, box, blocking);
}

Status copy_between(Stream& queue, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    std::size_t size, bool blocking) {
    if (!find_handle<runtime::Context>(to_context) || !find_handle<runtime::Context>(from_context))
        return Status::invalid_context;
    return runtime::memory_copy(queue, Side::device, host(to), Side::device, host(from), size, blocking);
}

} // namespace

/// An entry that blocks and its asynchronous twin, which takes a stream behind the same parameters. Both do what stands
/// last: a Status, from `queue` and `blocking`.
#define PTM_BLOCKING_AND_ASYNC(name, async_name, params, args, ...)                                \
    PTM_STREAM_API(name, name##_ptds, params, args) {                                              \
        return stream_entry(nullptr, default_stream, [&](Stream& queue) {                          \
            constexpr bool blocking = true;                                                        \
            return __VA_ARGS__;                                                                    \
        });                                                                                        \
    }                                                                                              \
    PTM_STREAM_API(async_name, async_name##_ptsz, (PTM_UNWRAP params, CUstream stream),            \
                   (PTM_UNWRAP args, stream)) {                                                    \
        return stream_entry(stream, default_stream, [&](Stream& queue) {                           \
            constexpr bool blocking = false;                                                       \
            return __VA_ARGS__;                                                                    \
        });                                                                                        \
    }

// ---- copies ----

PTM_BLOCKING_AND_ASYNC(cuMemcpy, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, std::size_t size), (to, from, size),
                       runtime::memory_copy(queue, Side::unified, host(to), Side::unified, host(from), size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpyHtoD_v2, cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, std::size_t size),
                       (to, from, size),
                       runtime::memory_copy(queue, Side::device, host(to), Side::host, from, size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpyDtoH_v2, cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, std::size_t size),
                       (to, from, size),
                       runtime::memory_copy(queue, Side::host, to, Side::device, host(from), size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpyDtoD_v2, cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, std::size_t size),
                       (to, from, size),
                       runtime::memory_copy(queue, Side::device, host(to), Side::device, host(from), size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpyPeer, cuMemcpyPeerAsync,
                       (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                        std::size_t size),
                       (to, to_context, from, from_context, size),
                       copy_between(queue, to, to_context, from, from_context, size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpy2D_v2, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* box), (box),
                       copy_box(queue, box, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpy3D_v2, cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* box), (box),
                       copy_box(queue, box, blocking))
PTM_STREAM_API(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D* box), (box)) {
    return stream_entry(nullptr, default_stream, [&](Stream& queue) { return copy_box(queue, box, true); });
}

// ---- fills ----

/// The entries that fill with elements of one type: rows of `count`, or of `width` by `height`.
#define PTM_FILLS(bits, type)                                                                                          \
    PTM_BLOCKING_AND_ASYNC(cuMemsetD##bits##_v2, cuMemsetD##bits##Async,                                               \
                           (CUdeviceptr to, type value, std::size_t count), (to, value, count),                        \
                           runtime::memory_fill(queue, to, 0, sizeof(type), value, count, 1, blocking))                \
    PTM_BLOCKING_AND_ASYNC(                                                                                            \
        cuMemsetD2D##bits##_v2, cuMemsetD2D##bits##Async,                                                              \
        (CUdeviceptr to, std::size_t pitch, type value, std::size_t width, std::size_t height),                        \
        (to, pitch, value, width, height),                                                                             \
        runtime::memory_fill(queue, to, pitch, sizeof(type), value, width, height, blocking))

PTM_FILLS(8, unsigned char)
PTM_FILLS(16, unsigned short)
PTM_FILLS(32, unsigned)
