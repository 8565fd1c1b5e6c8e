// SPDX-License-Identifier: Apache-2.0
// Copies and fills: range checks at the call, bytes moved in stream order.
#include "runtime/base/tuning.h"
#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/context/printf_buffer.h"
#include "runtime/context/refused_launch.h"
#include "runtime/memory/address_pool.h"
#include "runtime/memory/memory.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/stream/stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ptarmigan::runtime {
namespace {

std::uintptr_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

/// What a range of bytes is, once it has been checked.
enum class Range : std::uint8_t { bad, device, pinned, pageable };

/// Where device memory was, or may be, is no memory of the host's either: it is inaccessible.
bool meets_device_range(const void* pointer, std::size_t size) {
    return AddressSpace::get().meets_reservation(address_of(pointer), size) ||
           AddressPool::get().meets(address_of(pointer), size);
}

/// One end of a copy or fill for a device (an ordinal): `writes` if it is the target.
Range classify(Side side, const void* pointer, std::size_t size, bool writes, int device, bool fills = false) {
    if (!pointer) return Range::bad;
    const KnownRange range = AddressSpace::get().range(address_of(pointer), size, device);
    if (!range.known) return side == Side::device || meets_device_range(pointer, size) ? Range::bad : Range::pageable;
    if (!range.whole) return Range::bad; // also of registered memory that the range goes on after
    constexpr unsigned reads = 1, reads_and_writes = 3;
    const unsigned needed = writes ? reads_and_writes : reads;
    if ((range.access & needed) != needed) return Range::bad;
    if (!range.reached && (range.lent || fills)) return Range::bad;
    return range.host ? Range::pinned : Range::device;
}

/// Ordinal of the calling thread's device, or of the stream's where no context is current.
int device_of(const Stream& stream, Reach reach) {
    if (reach == Reach::between_contexts) return any_device;
    const Context* const context = working_context();
    return context ? context->device() : stream.context().device();
}

/// Runs `work` in stream order. Copies that touch pageable memory, and blocking ones, are done on
/// return; one between device ranges never blocks.
Status run_transfer(Stream& stream, std::function<void()> work, bool wait, std::size_t size) {
    if (!wait) {
        const auto start = size <= tuning::staging_limit ? Stream::Start::inline_if_idle : Stream::Start::elsewhere;
        stream.submit(std::move(work), start);
        return stream.context().status();
    }
    const Status status = stream.submit_and_wait(std::move(work));
    stream.context().printf_buffer().flush();
    return status == Status::success && take_refused_launch() ? Status::not_supported : status;
}

/// Bytes that one end of a box spans, from its base; false if a sum or product does not fit, or if
/// the box sticks out of its pitch or its slice.
bool box_span(const CopyBox::End& end, const CopyBox& box, std::size_t& offset, std::size_t& last, std::size_t& pitch,
              std::size_t& slice) {
    std::size_t row_end = 0, rows_end = 0, depth_end = 0, far = 0;
    if (__builtin_add_overflow(end.x_bytes, box.width_bytes, &row_end) ||
        __builtin_add_overflow(end.y, box.height, &rows_end) || __builtin_add_overflow(end.z, box.depth, &depth_end))
        return false;
    pitch = end.pitch ? end.pitch : row_end;
    const std::size_t rows = end.height ? end.height : rows_end;
    if (row_end > pitch || rows_end > rows) return false;
    if (__builtin_mul_overflow(pitch, rows, &slice)) return false;
    // The last byte of the box lies within this product, so no sum below can overflow.
    if (__builtin_mul_overflow(slice, depth_end, &far)) return false;
    offset = end.z * slice + end.y * pitch + end.x_bytes;
    last = (depth_end - 1) * slice + (rows_end - 1) * pitch + row_end;
    return true;
}

CopyBox line_of(Side to, void* destination, Side from, const void* source, std::size_t size) {
    CopyBox box;
    box.source.side = from;
    box.source.base = const_cast<void*>(source);
    box.destination.side = to;
    box.destination.base = destination;
    box.width_bytes = size;
    return box;
}

} // namespace

Status check_copy(Side to, const void* destination, Side from, const void* source, std::size_t size) {
    if (size == 0) return Status::success;
    const bool good = classify(to, destination, size, true, any_device) != Range::bad &&
                      classify(from, source, size, false, any_device) != Range::bad;
    return good ? Status::success : Status::invalid_value;
}

Status memory_copy(Stream& stream, Side to, void* destination, Side from, const void* source, std::size_t size,
                   bool blocking, Reach reach) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (size == 0) return Status::success;
    if (recorder) return blocking ? recorder->forbid() : recorder->copy(line_of(to, destination, from, source, size));
    const int device = device_of(stream, reach);
    const Range target = classify(to, destination, size, true, device);
    const Range origin = classify(from, source, size, false, device);
    if (target == Range::bad || origin == Range::bad) return Status::invalid_value;
    const bool device_only = target == Range::device && origin == Range::device;
    bool wait = blocking && !device_only;
    if (!blocking && target == Range::pageable) wait = true;
    if (!blocking && origin == Range::pageable && !wait) {
        // The program may reuse its memory when the call returns: read it now, or wait for the
        // turn.
        if (size > tuning::staging_limit) {
            wait = true;
        } else if (!stream.idle()) {
            const auto* bytes = static_cast<const std::uint8_t*>(source);
            auto staged = std::make_shared<std::vector<std::uint8_t>>(bytes, bytes + size);
            stream.submit(
                [=] {
                    const OutsideWrite writes;
                    std::memcpy(destination, staged->data(), size);
                },
                Stream::Start::inline_if_idle);
            return stream.context().status();
        } else {
            wait = true; // idle: done here and now
        }
    }
    return run_transfer(
        stream,
        [=] {
            const OutsideWrite writes;
            std::memmove(destination, source, size);
        },
        wait, size);
}

Status RowCopy::lay_out(const CopyBox& box, RowCopy& copy, int device) {
    copy = {};
    if (box.width_bytes == 0 || box.height == 0 || box.depth == 0) return Status::success;
    const auto lay_out = [&](const CopyBox::End& end, Rows& rows, bool writes) {
        std::size_t offset = 0, last = 0;
        if (!box_span(end, box, offset, last, rows.pitch, rows.slice)) return false;
        rows.first = static_cast<std::uint8_t*>(end.base) + offset;
        const Range range = end.base ? classify(end.side, rows.first, last - offset, writes, device) : Range::bad;
        rows.pageable = range == Range::pageable;
        rows.on_device = range == Range::device;
        return range != Range::bad;
    };
    if (!lay_out(box.source, copy.source, false) || !lay_out(box.destination, copy.destination, true))
        return Status::invalid_value;
    copy.width = box.width_bytes;
    copy.height = box.height;
    copy.depth = box.depth;
    return Status::success;
}

Status check_copy(const CopyBox& box) {
    RowCopy copy;
    return RowCopy::lay_out(box, copy);
}

void RowCopy::run() const {
    const OutsideWrite writes;
    for (std::size_t z = 0; z < depth; ++z)
        for (std::size_t y = 0; y < height; ++y)
            std::memmove(destination.first + z * destination.slice + y * destination.pitch,
                         source.first + z * source.slice + y * source.pitch, width);
}

Status memory_copy(Stream& stream, const CopyBox& box, bool blocking, Reach reach) {
    if (box.width_bytes == 0 || box.height == 0 || box.depth == 0) return Status::success;
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return blocking ? recorder->forbid() : recorder->copy(box);
    RowCopy copy;
    if (const Status status = RowCopy::lay_out(box, copy, device_of(stream, reach)); status != Status::success)
        return status;
    const bool device_only = copy.source.on_device && copy.destination.on_device;
    const bool pageable = copy.source.pageable || copy.destination.pageable;
    return run_transfer(
        stream, [copy] { copy.run(); }, (blocking && !device_only) || pageable, copy.width * copy.height * copy.depth);
}

namespace {

/// Bytes of a row, and from the first row's begin to the last one's end; false if they don't fit.
bool fill_span(std::size_t pitch, unsigned element_size, std::size_t width, std::size_t height, std::size_t& row,
               std::size_t& span) {
    return !__builtin_mul_overflow(width, std::size_t{element_size}, &row) &&
           !__builtin_mul_overflow(height > 1 ? pitch : row, height - 1, &span) &&
           !__builtin_add_overflow(span, row, &span);
}

} // namespace

Status RowFill::check_shape(DevicePointer pointer, std::size_t pitch, unsigned element_size, std::size_t width,
                            std::size_t height) {
    if (element_size != 1 && element_size != 2 && element_size != 4) return Status::invalid_value;
    if (width == 0 || height == 0) return Status::success;
    std::size_t row = 0, span = 0;
    const bool fits = fill_span(pitch, element_size, width, height, row, span);
    if (height > 1 && (!fits || pitch < row || pitch % element_size != 0)) return Status::invalid_value;
    return pointer % element_size == 0 ? Status::success : Status::invalid_value;
}

Status RowFill::lay_out(DevicePointer pointer, std::size_t pitch, unsigned element_size, std::uint32_t value,
                        std::size_t width, std::size_t height, RowFill& fill, int device) {
    fill = {};
    const Status shape = check_shape(pointer, pitch, element_size, width, height);
    if (shape != Status::success || width == 0 || height == 0) return shape;
    std::size_t row = 0, span = 0;
    if (!fill_span(pitch, element_size, width, height, row, span)) return Status::invalid_value;
    auto* first = reinterpret_cast<std::uint8_t*>(pointer);
    const Range range = classify(Side::device, first, span, true, device, true);
    if (range == Range::bad) return Status::invalid_value;
    fill = {first, pitch, row, height, element_size, value, range == Range::pinned};
    return Status::success;
}

void RowFill::run() const {
    const OutsideWrite writes;
    for (std::size_t y = 0; y < height; ++y) {
        auto* line = first + y * pitch;
        if (element_size == 1)
            std::memset(line, static_cast<int>(value), row);
        else if (element_size == 2)
            std::fill_n(reinterpret_cast<std::uint16_t*>(line), row / 2, static_cast<std::uint16_t>(value));
        else
            std::fill_n(reinterpret_cast<std::uint32_t*>(line), row / 4, value);
    }
}

Status memory_fill(Stream& stream, DevicePointer pointer, std::size_t pitch, unsigned element_size, std::uint32_t value,
                   std::size_t width, std::size_t height, bool blocking) {
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder)
        return blocking ? recorder->forbid() : recorder->fill(pointer, pitch, element_size, value, width, height);
    RowFill fill;
    const Status status =
        RowFill::lay_out(pointer, pitch, element_size, value, width, height, fill, stream.context().device());
    if (status != Status::success || !fill.first) return status;
    const std::size_t span = (fill.height - 1) * (fill.height > 1 ? fill.pitch : fill.row) + fill.row;
    return run_transfer(
        stream, [fill] { fill.run(); }, blocking && fill.pinned, span);
}

} // namespace ptarmigan::runtime
