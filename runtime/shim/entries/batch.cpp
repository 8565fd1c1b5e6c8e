// SPDX-License-Identifier: Apache-2.0
// Batches: of copies, of prefetches and discards of managed memory. All copies of a batch are checked before any is
// made.
#include "runtime/memory/managed_advice.h"
#include "runtime/shim/convert.h"
#include "runtime/texture/array.h"

#include <span>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::CopyBox;
using runtime::MemoryPlace;
using runtime::Side;
using runtime::Stream;

namespace {

constexpr int during_the_call = 2, last_order = 3; ///< CUmemcpySrcAccessOrder
constexpr unsigned known_flags = 1;                ///< CUmemcpyFlags

void* host(CUdeviceptr pointer) {
    return reinterpret_cast<void*>(pointer);
}

/// stream_entry() for batches, which the default stream does not take.
template <class Body> CUresult batch_entry(CUstream stream, DefaultStream default_stream, Body&& body) {
    PTM_REQUIRE(stream || default_stream == DefaultStream::per_thread);
    return stream_entry(stream, default_stream, body);
}
/// Which of `indices` is in force where: each from its own index on. The first has to be 0, and where they `rise` each
/// beyond the one before.
bool valid_indices(std::span<const std::size_t> indices, std::size_t count, bool rise) {
    if (indices.empty() || indices.size() > count || indices[0] != 0) return false;
    for (std::size_t i = 1; i < indices.size(); ++i)
        if (indices[i] >= count || (rise && indices[i] <= indices[i - 1])) return false;
    return true;
}

/// Hints have no effect, but have to name a place.
bool is_place(const CUmemLocation& hint) {
    if (hint.type == MemoryPlace::device) return hint.id >= 0 && hint.id < runtime::Device::count();
    return hint.type >= MemoryPlace::none && hint.type <= MemoryPlace::host_numa_current;
}

bool valid_order(int order, unsigned flags) {
    return order >= 1 && order <= last_order && (flags & ~known_flags) == 0;
}

Status copy_batch(Stream& queue, CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                  CUmemcpyAttributes* attributes, std::size_t* indices, std::size_t attribute_count,
                  std::size_t* wrong) {
    store(wrong, SIZE_MAX);
    if (queue.kind() == runtime::StreamKind::legacy) return Status::invalid_value;
    if (!to || !from || !sizes || !attributes || !indices || count == 0) return Status::invalid_value;
    if (!valid_indices({indices, attribute_count}, count, true)) return Status::invalid_value;
    for (std::size_t i = 0; i < attribute_count; ++i)
        if (!valid_order(attributes[i].srcAccessOrder, attributes[i].flags) || !is_place(attributes[i].srcLocHint) ||
            !is_place(attributes[i].dstLocHint))
            return Status::invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
        Status status = runtime::check_copy(Side::unified, host(to[i]), Side::unified, host(from[i]), sizes[i]);
        if (sizes[i] == 0) status = Status::invalid_value;
        if (status == Status::success) continue;
        store(wrong, i);
        return status;
    }
    for (std::size_t i = 0, used = 0; i < count; ++i) {
        if (used + 1 < attribute_count && indices[used + 1] == i) ++used;
        const bool now = attributes[used].srcAccessOrder == during_the_call;
        const Status status =
            runtime::memory_copy(queue, Side::unified, host(to[i]), Side::unified, host(from[i]), sizes[i], now);
        if (status != Status::success) return status;
    }
    return Status::success;
}

/// One end of a box; `element` is the array's, or stays.
Status read_array(const CUmemcpy3DOperand& operand, std::shared_ptr<runtime::Array>& array, std::size_t& element) {
    if (operand.type != 1 && operand.type != 2) return Status::invalid_value;
    if (operand.type == 1) return Status::success;
    array = find_handle<runtime::Array>(operand.op.array.array);
    if (!array) return operand.op.array.array ? Status::invalid_handle : Status::invalid_value;
    const std::size_t size = array->row_bytes() / array->shape().width;
    if (element != 0 && element != size) return Status::invalid_value;
    element = size;
    return Status::success;
}

bool rows_hold(const CUmemcpy3DOperand& operand, const std::size_t (&extent)[3]) {
    if (operand.type != 1) return true;
    const auto& rows = operand.op.ptr;
    return (!rows.rowLength || rows.rowLength >= extent[0]) && (!rows.layerHeight || rows.layerHeight >= extent[1]);
}

/// What is wrong with a box whatever memory there is.
Status check_words(const CUDA_MEMCPY3D_BATCH_OP& op) {
    if (!valid_order(op.srcAccessOrder, op.flags)) return Status::invalid_value;
    if (op.extent[0] == 0 || op.extent[1] == 0 || op.extent[2] == 0) return Status::invalid_value;
    std::shared_ptr<runtime::Array> source, destination;
    std::size_t element = 0;
    if (const Status status = read_array(op.src, source, element); status != Status::success) return status;
    if (const Status status = read_array(op.dst, destination, element); status != Status::success) return status;
    return rows_hold(op.src, op.extent) && rows_hold(op.dst, op.extent) ? Status::success : Status::invalid_value;
}

Status make_end(const CUmemcpy3DOperand& operand, const runtime::Array* array, std::size_t element, const CopyBox& box,
                CopyBox::End& end) {
    std::size_t x = 0;
    if (array) {
        const auto& at = operand.op.array.offset;
        if (__builtin_mul_overflow(at[0], element, &x)) return Status::invalid_value;
        return runtime::array_end(*array, x, at[1], at[2], box, end);
    }
    const auto& rows = operand.op.ptr;
    if (__builtin_mul_overflow(rows.rowLength, element, &end.pitch)) return Status::invalid_value;
    end.side = Side::unified;
    end.base = host(rows.ptr);
    end.height = rows.layerHeight;
    return Status::success;
}

Status make_box(const CUDA_MEMCPY3D_BATCH_OP& op, CopyBox& box) {
    std::shared_ptr<runtime::Array> source, destination;
    std::size_t element = 0;
    if (const Status status = read_array(op.src, source, element); status != Status::success) return status;
    if (const Status status = read_array(op.dst, destination, element); status != Status::success) return status;
    if (element == 0) element = 1;
    if (__builtin_mul_overflow(op.extent[0], element, &box.width_bytes)) return Status::invalid_value;
    box.height = op.extent[1];
    box.depth = op.extent[2];
    const Status status = make_end(op.src, source.get(), element, box, box.source);
    return status == Status::success ? make_end(op.dst, destination.get(), element, box, box.destination) : status;
}

Status copy_boxes(Stream& queue, std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                  std::size_t* wrong) {
    store(wrong, SIZE_MAX);
    if (queue.kind() == runtime::StreamKind::legacy) return Status::invalid_value;
    if (!list || count == 0 || flags) return Status::invalid_value;
    for (std::size_t i = 0; i < count; ++i) {
        const Status status = check_words(list[i]);
        if (status == Status::success) continue;
        store(wrong, i);
        return status;
    }
    for (std::size_t i = 0; i < count; ++i) { // which one sticks out of its memory is not told
        CopyBox box;
        Status status = make_box(list[i], box);
        if (status == Status::success) status = runtime::check_copy(box);
        if (status != Status::success) return status;
    }
    for (std::size_t i = 0; i < count; ++i) {
        CopyBox box;
        Status status = make_box(list[i], box);
        if (status == Status::success)
            status = runtime::memory_copy(queue, box, list[i].srcAccessOrder == during_the_call);
        if (status != Status::success) return status;
    }
    return Status::success;
}

/// The single copies with attributes (CUDA 13.2), which no GPU's driver was asked about: the batches' rules.
Status copy_one(Stream& queue, CUdeviceptr to, CUdeviceptr from, std::size_t size,
                const CUmemcpyAttributes* attributes) {
    if (!attributes || !valid_order(attributes->srcAccessOrder, attributes->flags) ||
        !is_place(attributes->srcLocHint) || !is_place(attributes->dstLocHint))
        return Status::invalid_value;
    const bool now = attributes->srcAccessOrder == during_the_call;
    return runtime::memory_copy(queue, Side::unified, host(to), Side::unified, host(from), size, now);
}

Status copy_one(Stream& queue, const CUDA_MEMCPY3D_BATCH_OP* op, unsigned long long flags) {
    if (!op || flags) return Status::invalid_value;
    CopyBox box;
    Status status = check_words(*op);
    if (status == Status::success) status = make_box(*op, box);
    if (status != Status::success) return status;
    return runtime::memory_copy(queue, box, op->srcAccessOrder == during_the_call);
}

Status discard_batch(const Stream& queue, CUdeviceptr* pointers, std::size_t* sizes, std::size_t count,
                     unsigned long long flags) {
    if (queue.kind() == runtime::StreamKind::legacy) return Status::invalid_value;
    if (!pointers || !sizes || count == 0 || flags) return Status::invalid_value;
    for (std::size_t i = 0; i < count; ++i)
        if (!runtime::is_managed(pointers[i], sizes[i])) return Status::invalid_value;
    return Status::success; // what may be forgotten may be kept
}

Status prefetch_batch(const Stream& queue, CUdeviceptr* pointers, std::size_t* sizes, std::size_t count,
                      CUmemLocation* places, std::size_t* indices, std::size_t place_count, unsigned long long flags) {
    if (queue.kind() == runtime::StreamKind::legacy) return Status::invalid_value;
    if (!pointers || !sizes || count == 0 || !places || !indices || flags) return Status::invalid_value;
    if (!valid_indices({indices, place_count}, count, false)) return Status::invalid_value;
    // One after the other, up to the first that is wrong.
    for (std::size_t i = 0, used = 0; i < count; ++i) {
        while (i > 0 && used + 1 < place_count && indices[used + 1] == i) ++used;
        const MemoryPlace place{places[used].type, places[used].id};
        const Status status = runtime::managed_prefetch(pointers[i], sizes[i], place);
        if (status != Status::success) return Status::invalid_value;
    }
    return Status::success;
}

} // namespace

PTM_STREAM_API(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz,
               (CUdeviceptr * to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                CUmemcpyAttributes* attributes, std::size_t* indices, std::size_t attribute_count, std::size_t* wrong,
                CUstream stream),
               (to, from, sizes, count, attributes, indices, attribute_count, wrong, stream)) {
    return batch_entry(stream, default_stream, [&](Stream& queue) {
        return copy_batch(queue, to, from, sizes, count, attributes, indices, attribute_count, wrong);
    });
}
PTM_STREAM_API(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz,
               (CUdeviceptr * to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                CUmemcpyAttributes* attributes, std::size_t* indices, std::size_t attribute_count, CUstream stream),
               (to, from, sizes, count, attributes, indices, attribute_count, stream)) {
    PTM_REQUIRE(to);
    return batch_entry(stream, default_stream, [&](Stream& queue) {
        return copy_batch(queue, to, from, sizes, count, attributes, indices, attribute_count, nullptr);
    });
}
PTM_STREAM_API(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz,
               (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, std::size_t* wrong, unsigned long long flags,
                CUstream stream),
               (count, list, wrong, flags, stream)) {
    return batch_entry(stream, default_stream,
                       [&](Stream& queue) { return copy_boxes(queue, count, list, flags, wrong); });
}
PTM_STREAM_API(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync_v2_ptsz,
               (std::size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags, CUstream stream),
               (count, list, flags, stream)) {
    PTM_REQUIRE(list);
    return batch_entry(stream, default_stream,
                       [&](Stream& queue) { return copy_boxes(queue, count, list, flags, nullptr); });
}

PTM_STREAM_API(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync_ptsz,
               (CUdeviceptr * pointers, std::size_t* sizes, std::size_t count, CUmemLocation* places,
                std::size_t* indices, std::size_t place_count, unsigned long long flags, CUstream stream),
               (pointers, sizes, count, places, indices, place_count, flags, stream)) {
    return batch_entry(stream, default_stream, [&](Stream& queue) {
        return prefetch_batch(queue, pointers, sizes, count, places, indices, place_count, flags);
    });
}
PTM_STREAM_API(cuMemDiscardBatchAsync, cuMemDiscardBatchAsync_ptsz,
               (CUdeviceptr * pointers, std::size_t* sizes, std::size_t count, unsigned long long flags,
                CUstream stream),
               (pointers, sizes, count, flags, stream)) {
    return batch_entry(stream, default_stream,
                       [&](Stream& queue) { return discard_batch(queue, pointers, sizes, count, flags); });
}
PTM_STREAM_API(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync_ptsz,
               (CUdeviceptr * pointers, std::size_t* sizes, std::size_t count, CUmemLocation* places,
                std::size_t* indices, std::size_t place_count, unsigned long long flags, CUstream stream),
               (pointers, sizes, count, places, indices, place_count, flags, stream)) {
    return batch_entry(stream, default_stream, [&](Stream& queue) {
        return prefetch_batch(queue, pointers, sizes, count, places, indices, place_count, flags);
    });
}

PTM_STREAM_API(cuMemcpyWithAttributesAsync, cuMemcpyWithAttributesAsync_ptsz,
               (CUdeviceptr to, CUdeviceptr from, std::size_t size, const CUmemcpyAttributes* attributes,
                CUstream stream),
               (to, from, size, attributes, stream)) {
    return stream_entry(stream, default_stream,
                        [&](Stream& queue) { return copy_one(queue, to, from, size, attributes); });
}
PTM_STREAM_API(cuMemcpy3DWithAttributesAsync, cuMemcpy3DWithAttributesAsync_ptsz,
               (const CUDA_MEMCPY3D_BATCH_OP* op, unsigned long long flags, CUstream stream), (op, flags, stream)) {
    return stream_entry(stream, default_stream, [&](Stream& queue) { return copy_one(queue, op, flags); });
}
