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

CUresult copy(CUstream stream, DefaultStream default_stream, Side to, void* destination, Side from,
              const void* source, std::size_t size, bool blocking) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        return runtime::memory_copy(queue, to, destination, from, source, size, blocking);
    });
}

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

CUresult copy_2d(const CUDA_MEMCPY2D* c, CUstream stream, DefaultStream default_stream,
                 bool blocking) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!c)
            return Status::invalid_value;
        if (c->srcMemoryType == memory_array || c->dstMemoryType == memory_array)
            return Status::not_supported;
        CopyBox box;
        if (!make_end(box.source, c->srcMemoryType, const_cast<void*>(c->srcHost), c->srcDevice,
                      c->srcPitch, c->srcXInBytes, c->srcY) ||
            !make_end(box.destination, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch,
                      c->dstXInBytes, c->dstY))
            return Status::invalid_value;
        box.width_bytes = c->WidthInBytes;
        box.height = c->Height;
        return runtime::memory_copy(queue, box, blocking);
    });
}

CUresult copy_3d(const CUDA_MEMCPY3D* c, CUstream stream, DefaultStream default_stream,
                 bool blocking) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (!c)
            return Status::invalid_value;
        if (c->srcMemoryType == memory_array || c->dstMemoryType == memory_array)
            return Status::not_supported;
        CopyBox box;
        if (c->srcLOD || c->dstLOD ||
            !make_end(box.source, c->srcMemoryType, const_cast<void*>(c->srcHost), c->srcDevice,
                      c->srcPitch, c->srcXInBytes, c->srcY) ||
            !make_end(box.destination, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch,
                      c->dstXInBytes, c->dstY))
            return Status::invalid_value;
        box.source.z = c->srcZ;
        box.source.height = c->srcHeight;
        box.destination.z = c->dstZ;
        box.destination.height = c->dstHeight;
        box.width_bytes = c->WidthInBytes;
        box.height = c->Height;
        box.depth = c->Depth;
        return runtime::memory_copy(queue, box, blocking);
    });
}

CUresult fill(CUstream stream, DefaultStream default_stream, CUdeviceptr pointer, std::size_t pitch,
              unsigned element_size, unsigned value, std::size_t width, std::size_t height,
              bool blocking) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        return runtime::memory_fill(queue, pointer, pitch, element_size, value, width, height,
                                    blocking);
    });
}

} // namespace

// ---- one-dimensional copies ----

PTM_STREAM_API(cuMemcpy, cuMemcpy_ptds, (CUdeviceptr to, CUdeviceptr from, std::size_t size),
               (to, from, size)) {
    return copy(nullptr, default_stream, Side::unified, host(to), Side::unified, host(from), size,
                true);
}
PTM_STREAM_API(cuMemcpyAsync, cuMemcpyAsync_ptsz,
               (CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream),
               (to, from, size, stream)) {
    return copy(stream, default_stream, Side::unified, host(to), Side::unified, host(from), size,
                false);
}
PTM_STREAM_API(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds,
               (CUdeviceptr to, const void* from, std::size_t size), (to, from, size)) {
    return copy(nullptr, default_stream, Side::device, host(to), Side::host, from, size, true);
}
PTM_STREAM_API(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz,
               (CUdeviceptr to, const void* from, std::size_t size, CUstream stream),
               (to, from, size, stream)) {
    return copy(stream, default_stream, Side::device, host(to), Side::host, from, size, false);
}
PTM_STREAM_API(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds,
               (void* to, CUdeviceptr from, std::size_t size), (to, from, size)) {
    return copy(nullptr, default_stream, Side::host, to, Side::device, host(from), size, true);
}
PTM_STREAM_API(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz,
               (void* to, CUdeviceptr from, std::size_t size, CUstream stream),
               (to, from, size, stream)) {
    return copy(stream, default_stream, Side::host, to, Side::device, host(from), size, false);
}
PTM_STREAM_API(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds,
               (CUdeviceptr to, CUdeviceptr from, std::size_t size), (to, from, size)) {
    return copy(nullptr, default_stream, Side::device, host(to), Side::device, host(from), size,
                true);
}
PTM_STREAM_API(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz,
               (CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream),
               (to, from, size, stream)) {
    return copy(stream, default_stream, Side::device, host(to), Side::device, host(from), size,
                false);
}
PTM_STREAM_API(cuMemcpyPeer, cuMemcpyPeer_ptds,
               (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                std::size_t size),
               (to, to_context, from, from_context, size)) {
    if (!find_handle<runtime::Context>(to_context) || !find_handle<runtime::Context>(from_context))
        return static_cast<CUresult>(Status::invalid_context);
    return copy(nullptr, default_stream, Side::device, host(to), Side::device, host(from), size,
                true);
}
PTM_STREAM_API(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz,
               (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                std::size_t size, CUstream stream),
               (to, to_context, from, from_context, size, stream)) {
    if (!find_handle<runtime::Context>(to_context) || !find_handle<runtime::Context>(from_context))
        return static_cast<CUresult>(Status::invalid_context);
    return copy(stream, default_stream, Side::device, host(to), Side::device, host(from), size,
                false);
}

// ---- two and three dimensions ----

PTM_STREAM_API(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D* box), (box)) {
    return copy_2d(box, nullptr, default_stream, true);
}
PTM_STREAM_API(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D* box),
               (box)) {
    return copy_2d(box, nullptr, default_stream, true);
}
PTM_STREAM_API(cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz,
               (const CUDA_MEMCPY2D* box, CUstream stream), (box, stream)) {
    return copy_2d(box, stream, default_stream, false);
}
PTM_STREAM_API(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, (const CUDA_MEMCPY3D* box), (box)) {
    return copy_3d(box, nullptr, default_stream, true);
}
PTM_STREAM_API(cuMemcpy3DAsync_v2, cuMemcpy3DAsync_v2_ptsz,
               (const CUDA_MEMCPY3D* box, CUstream stream), (box, stream)) {
    return copy_3d(box, stream, default_stream, false);
}

// ---- fills ----

PTM_STREAM_API(cuMemsetD8_v2, cuMemsetD8_v2_ptds,
               (CUdeviceptr to, unsigned char value, std::size_t count), (to, value, count)) {
    return fill(nullptr, default_stream, to, 0, 1, value, count, 1, true);
}
PTM_STREAM_API(cuMemsetD16_v2, cuMemsetD16_v2_ptds,
               (CUdeviceptr to, unsigned short value, std::size_t count), (to, value, count)) {
    return fill(nullptr, default_stream, to, 0, 2, value, count, 1, true);
}
PTM_STREAM_API(cuMemsetD32_v2, cuMemsetD32_v2_ptds,
               (CUdeviceptr to, unsigned value, std::size_t count), (to, value, count)) {
    return fill(nullptr, default_stream, to, 0, 4, value, count, 1, true);
}
PTM_STREAM_API(cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds,
               (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                std::size_t height),
               (to, pitch, value, width, height)) {
    return fill(nullptr, default_stream, to, pitch, 1, value, width, height, true);
}
PTM_STREAM_API(cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds,
               (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                std::size_t height),
               (to, pitch, value, width, height)) {
    return fill(nullptr, default_stream, to, pitch, 2, value, width, height, true);
}
PTM_STREAM_API(cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds,
               (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                std::size_t height),
               (to, pitch, value, width, height)) {
    return fill(nullptr, default_stream, to, pitch, 4, value, width, height, true);
}
PTM_STREAM_API(cuMemsetD8Async, cuMemsetD8Async_ptsz,
               (CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream),
               (to, value, count, stream)) {
    return fill(stream, default_stream, to, 0, 1, value, count, 1, false);
}
PTM_STREAM_API(cuMemsetD16Async, cuMemsetD16Async_ptsz,
               (CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream),
               (to, value, count, stream)) {
    return fill(stream, default_stream, to, 0, 2, value, count, 1, false);
}
PTM_STREAM_API(cuMemsetD32Async, cuMemsetD32Async_ptsz,
               (CUdeviceptr to, unsigned value, std::size_t count, CUstream stream),
               (to, value, count, stream)) {
    return fill(stream, default_stream, to, 0, 4, value, count, 1, false);
}
PTM_STREAM_API(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz,
               (CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                std::size_t height, CUstream stream),
               (to, pitch, value, width, height, stream)) {
    return fill(stream, default_stream, to, pitch, 1, value, width, height, false);
}
PTM_STREAM_API(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz,
               (CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                std::size_t height, CUstream stream),
               (to, pitch, value, width, height, stream)) {
    return fill(stream, default_stream, to, pitch, 2, value, width, height, false);
}
PTM_STREAM_API(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz,
               (CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                std::size_t height, CUstream stream),
               (to, pitch, value, width, height, stream)) {
    return fill(stream, default_stream, to, pitch, 4, value, width, height, false);
}
