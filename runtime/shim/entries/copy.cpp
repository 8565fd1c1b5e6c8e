// SPDX-License-Identifier: Apache-2.0
// Copies and fills, blocking and asynchronous, one- to three-dimensional.
#include "runtime/memory/memory.h"
#include "runtime/shim/convert.h"
#include "runtime/shim/copy_ends.h"
#include "runtime/texture/array.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::CopyBox;
using runtime::Reach;
using runtime::Side;
using runtime::Stream;

namespace {

void* host(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

Status run_copy(Stream& queue, const EndWords& source, const EndWords& destination, CopyBox& box, bool blocking,
                Reach reach = Reach::of_caller) {
    if (const Status status = make_ends(source, destination, box); status != Status::success) return status;
    return runtime::memory_copy(queue, box, blocking, reach);
}

Status copy_box(Stream& queue, const CUDA_MEMCPY2D* c, bool blocking) {
    if (!c) return Status::invalid_value;
    CopyBox box;
    box.width_bytes = c->WidthInBytes;
    box.height = c->Height;
    return run_copy(
        queue,
        {c->srcMemoryType, const_cast<void*>(c->srcHost), c->srcDevice, c->srcArray, c->srcPitch, 0, c->srcXInBytes,
         c->srcY, 0},
        {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstPitch, 0, c->dstXInBytes, c->dstY, 0}, box,
        blocking);
}

template <class Words> Status copy_box_3d(Stream& queue, const Words& c, bool blocking, Reach reach) {
    CopyBox box;
    box.width_bytes = c.WidthInBytes;
    box.height = c.Height;
    box.depth = c.Depth;
    return run_copy(queue, source_of(c), destination_of(c), box, blocking, reach);
}

Status copy_box(Stream& queue, const CUDA_MEMCPY3D* c, bool blocking) {
    if (!c || c->srcLOD || c->dstLOD) return Status::invalid_value;
    return copy_box_3d(queue, *c, blocking, Reach::of_caller);
}

/// Both ends name the context that they are of, which nobody looks at: addresses tell where memory is.
Status copy_box(Stream& queue, const CUDA_MEMCPY3D_PEER* c, bool blocking) {
    if (!c) return Status::invalid_value;
    return copy_box_3d(queue, *c, blocking, Reach::between_contexts);
}

/// A line of bytes of an array that has one row.
EndWords line(CUarray array, std::size_t offset) {
    return {memory_array, nullptr, 0, array, 0, 0, offset, 0, 0};
}
EndWords line(CUdeviceptr pointer) {
    return {memory_device, nullptr, pointer, nullptr, 0, 0, 0, 0, 0};
}
EndWords line(const void* pointer) {
    return {memory_host, const_cast<void*>(pointer), 0, nullptr, 0, 0, 0, 0, 0};
}

Status copy_line(Stream& queue, const EndWords& to, const EndWords& from, std::size_t size, bool blocking) {
    if (size == 0) return Status::success; // wherever it is, and without an array
    CopyBox box;
    box.width_bytes = size;
    return run_copy(queue, from, to, box, blocking);
}

/// The contexts are not looked at: addresses tell where memory is. Between devices it is not captured.
Status copy_between(Stream& queue, CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                    std::size_t size, bool blocking) {
    if (const auto recorder = queue.recorder()) {
        const auto target = find_handle<runtime::Context>(to_context);
        const auto origin = find_handle<runtime::Context>(from_context);
        if (target && origin && target->device() != origin->device()) return recorder->forbid();
    }
    return runtime::memory_copy(queue, Side::device, host(to), Side::device, host(from), size, blocking,
                                Reach::between_contexts);
}

} // namespace

/// An entry that blocks and its asynchronous twin, which takes a stream behind the same parameters. Both do what stands
/// last: a Status, from `queue` and `blocking`.
#define PTM_BLOCKING_AND_ASYNC(name, async_name, params, args, ...)                                                    \
    PTM_STREAM_API(name, name##_ptds, params, args) {                                                                  \
        return stream_entry(nullptr, default_stream, [&](Stream& queue) {                                              \
            constexpr bool blocking = true;                                                                            \
            return __VA_ARGS__;                                                                                        \
        });                                                                                                            \
    }                                                                                                                  \
    PTM_STREAM_API(async_name, async_name##_ptsz, (PTM_UNWRAP params, CUstream stream), (PTM_UNWRAP args, stream)) {   \
        return stream_entry(stream, default_stream, [&](Stream& queue) {                                               \
            constexpr bool blocking = false;                                                                           \
            return __VA_ARGS__;                                                                                        \
        });                                                                                                            \
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
PTM_BLOCKING_AND_ASYNC(cuMemcpy3DPeer, cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* box), (box),
                       copy_box(queue, box, blocking))
PTM_STREAM_API(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D* box), (box)) {
    return stream_entry(nullptr, default_stream, [&](Stream& queue) { return copy_box(queue, box, true); });
}

// ---- arrays of one row ----

PTM_BLOCKING_AND_ASYNC(cuMemcpyHtoA_v2, cuMemcpyHtoAAsync_v2,
                       (CUarray to, std::size_t offset, const void* from, std::size_t size), (to, offset, from, size),
                       copy_line(queue, line(to, offset), line(from), size, blocking))
PTM_BLOCKING_AND_ASYNC(cuMemcpyAtoH_v2, cuMemcpyAtoHAsync_v2,
                       (void* to, CUarray from, std::size_t offset, std::size_t size), (to, from, offset, size),
                       copy_line(queue, line(to), line(from, offset), size, blocking))
PTM_STREAM_API(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds,
               (CUarray to, std::size_t offset, CUdeviceptr from, std::size_t size), (to, offset, from, size)) {
    return stream_entry(nullptr, default_stream,
                        [&](Stream& queue) { return copy_line(queue, line(to, offset), line(from), size, true); });
}
PTM_STREAM_API(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds,
               (CUdeviceptr to, CUarray from, std::size_t offset, std::size_t size), (to, from, offset, size)) {
    return stream_entry(nullptr, default_stream,
                        [&](Stream& queue) { return copy_line(queue, line(to), line(from, offset), size, true); });
}
PTM_STREAM_API(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds,
               (CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset, std::size_t size),
               (to, to_offset, from, from_offset, size)) {
    return stream_entry(nullptr, default_stream, [&](Stream& queue) {
        return copy_line(queue, line(to, to_offset), line(from, from_offset), size, true);
    });
}

// ---- fills ----

/// The entries that fill with elements of one type: rows of `count`, or of `width` by `height`.
#define PTM_FILLS(bits, type)                                                                                          \
    PTM_BLOCKING_AND_ASYNC(cuMemsetD##bits##_v2, cuMemsetD##bits##Async,                                               \
                           (CUdeviceptr to, type value, std::size_t count), (to, value, count),                        \
                           runtime::memory_fill(queue, to, 0, sizeof(type), value, count, 1, blocking))                \
    PTM_BLOCKING_AND_ASYNC(cuMemsetD2D##bits##_v2, cuMemsetD2D##bits##Async,                                           \
                           (CUdeviceptr to, std::size_t pitch, type value, std::size_t width, std::size_t height),     \
                           (to, pitch, value, width, height),                                                          \
                           runtime::memory_fill(queue, to, pitch, sizeof(type), value, width, height, blocking))

PTM_FILLS(8, unsigned char)
PTM_FILLS(16, unsigned short)
PTM_FILLS(32, unsigned)
