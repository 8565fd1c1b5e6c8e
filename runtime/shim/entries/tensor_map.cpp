// SPDX-License-Identifier: Apache-2.0
// Tensor maps: cuTensorMapEncode* and what changes maps. A map belongs to nobody: it is 128 bytes of the
// program's.
#include "runtime/copy_engine/tensor_map.h"
#include "runtime/shim/convert.h"

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::TensorMap;
using runtime::TensorMapRequest;

namespace {

std::uint64_t bits(const void* address) {
    return reinterpret_cast<std::uintptr_t>(address);
}

CUresult make(void* map, const TensorMapRequest& request) {
    return context_entry([&](runtime::Context&) {
        if (!map) return Status::invalid_value;
        const unsigned major = runtime::Device::get().compute_capability() / 10;
        TensorMap made;
        const Status status = make_tensor_map(request, major, made);
        if (status == Status::success) std::memcpy(map, &made, sizeof made);
        return status;
    });
}

/// What all three kinds of maps have.
TensorMapRequest request_of(TensorMapRequest::Kind kind, unsigned type, unsigned rank, void* address,
                            const std::uint64_t* dim, const std::uint64_t* stride, const std::uint32_t* step,
                            unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill) {
    TensorMapRequest request;
    request.kind = kind;
    request.type = type;
    request.rank = rank;
    request.address = bits(address);
    request.dim = dim;
    request.stride = stride;
    request.step = step;
    request.interleave = interleave;
    request.swizzle = swizzle;
    request.promotion = promotion;
    request.fill = fill;
    return request;
}

} // namespace

PTM_API(cuTensorMapEncodeTiled, void* map, unsigned type, unsigned rank, void* address, const std::uint64_t* dim,
        const std::uint64_t* stride, const std::uint32_t* box, const std::uint32_t* step, unsigned interleave,
        unsigned swizzle, unsigned promotion, unsigned fill) {
    TensorMapRequest request = request_of(TensorMapRequest::Kind::tiled, type, rank, address, dim, stride, step,
                                          interleave, swizzle, promotion, fill);
    request.box = box;
    return make(map, request);
}

PTM_API(cuTensorMapEncodeIm2col, void* map, unsigned type, unsigned rank, void* address, const std::uint64_t* dim,
        const std::uint64_t* stride, const int* lower, const int* upper, unsigned channels, unsigned pixels,
        const std::uint32_t* step, unsigned interleave, unsigned swizzle, unsigned promotion, unsigned fill) {
    TensorMapRequest request = request_of(TensorMapRequest::Kind::im2col, type, rank, address, dim, stride, step,
                                          interleave, swizzle, promotion, fill);
    request.lower = lower;
    request.upper = upper;
    request.channels = channels;
    request.pixels = pixels;
    return make(map, request);
}

PTM_API(cuTensorMapEncodeIm2colWide, void* map, unsigned type, unsigned rank, void* address, const std::uint64_t* dim,
        const std::uint64_t* stride, int lower, int upper, unsigned channels, unsigned pixels,
        const std::uint32_t* step, unsigned interleave, unsigned mode, unsigned swizzle, unsigned promotion,
        unsigned fill) {
    TensorMapRequest request = request_of(TensorMapRequest::Kind::im2col_wide, type, rank, address, dim, stride, step,
                                          interleave, swizzle, promotion, fill);
    request.lower = &lower;
    request.upper = &upper;
    request.channels = channels;
    request.pixels = pixels;
    request.mode = mode;
    return make(map, request);
}

PTM_API(cuTensorMapReplaceAddress, void* map, void* address) {
    return context_entry([&](runtime::Context&) {
        if (!map || bits(address) % 16 != 0) return Status::invalid_value;
        std::memcpy(map, &address, sizeof address);
        return Status::success;
    });
}

/// The class is for addresses outside of tensors, of which none is made here: "where allocation-class selection has no
/// effect, all three requests succeed" (cuda.h of 13.5).
PTM_API(cuTensorMapSetAllocationClass, void* map, int asked, int* in_effect) {
    constexpr int small = 1, large = 2;
    if (in_effect) *in_effect = small;
    return context_entry([&](runtime::Context&) {
        return map && asked >= 0 && asked <= large ? Status::success : Status::invalid_value;
    });
}
