// SPDX-License-Identifier: Apache-2.0
// Values that streams write and wait for. What is refused, and with what, is an H100's
// (tests/driver_api/answers/stream_value_answers_h100.txt).
#include "runtime/memory/stream_values.h"

#include "runtime/shim/convert.h"
#include "runtime/shim/stream_types.h"
#include "runtime/shim/value_steps.h"

#include <vector>

using namespace ptarmigan;
using namespace ptarmigan::shim;
using runtime::Stream;
using runtime::ValueStep;

namespace {

/// CUstreamBatchMemOpType, and flags of the operations.
enum BatchOperation : int {
    wait_32 = 1,
    write_32 = 2,
    flush_remote_writes = 3,
    wait_64 = 4,
    write_64 = 5,
    barrier = 6
};
constexpr unsigned wait_flush = 1u << 30, most_operations = 255;

Status make_write(unsigned bytes, CUdeviceptr address, std::uint64_t value, unsigned flags, ValueStep& step) {
    if (flags != 0) return Status::invalid_value;
    step = {.kind = ValueStep::Kind::write, .bytes = bytes, .address = address, .value = value};
    return runtime::check_place(step);
}

Status make_wait(unsigned bytes, CUdeviceptr address, std::uint64_t value, unsigned flags, ValueStep& step) {
    if (flags & wait_flush) return Status::not_supported; // the device attribute of it is 0, as an H100's
    if (flags > 3) return Status::invalid_value;
    step = {.kind = ValueStep::Kind::wait,
            .until = static_cast<ValueStep::Until>(flags),
            .bytes = bytes,
            .address = address,
            .value = value};
    return runtime::check_place(step);
}

template <class Make> CUresult submit_one(CUstream stream, DefaultStream default_stream, Make&& make) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        ValueStep step;
        if (const Status status = make(step); status != Status::success) return status;
        return runtime::submit_values(queue, {step});
    });
}

CUresult submit_batch(CUstream stream, DefaultStream default_stream, unsigned count,
                      const CUstreamBatchMemOpParams* given, unsigned flags) {
    return stream_entry(stream, default_stream, [&](Stream& queue) {
        if (flags != 0 || count > most_operations || (count != 0 && !given)) return Status::invalid_value;
        if (count == 0) return Status::success;
        std::vector<ValueStep> steps(count);
        for (unsigned i = 0; i < count; ++i)
            if (const Status status = make_value_step(given[i], steps[i]); status != Status::success) return status;
        return runtime::submit_values(queue, std::move(steps));
    });
}

} // namespace

Status ptarmigan::shim::make_value_step(const CUstreamBatchMemOpParams& given, ValueStep& step) {
    const auto& value = given.value;
    switch (given.operation) {
    case wait_32: return make_wait(4, value.address, value.value, value.flags, step);
    case write_32: return make_write(4, value.address, value.value, value.flags, step);
    case wait_64: return make_wait(8, value.address, value.value, value.flags, step);
    case write_64: return make_write(8, value.address, value.value, value.flags, step);
    case barrier: return given.barrier.flags > 1 ? Status::invalid_value : Status::success;
    case flush_remote_writes: return Status::not_supported;
    default: return Status::invalid_value;
    }
}

// The first versions, without _v2, are refused as by an H100's driver.
#define PTM_VALUE_API(name, bytes, Value, make)                                                                        \
    PTM_STREAM_API(name##_v2, name##_v2_ptsz, (CUstream stream, CUdeviceptr address, Value value, unsigned flags),     \
                   (stream, address, value, flags)) {                                                                  \
        return submit_one(stream, default_stream,                                                                      \
                          [&](ValueStep& step) { return make(bytes, address, value, flags, step); });                  \
    }

PTM_VALUE_API(cuStreamWriteValue32, 4, std::uint32_t, make_write)
PTM_VALUE_API(cuStreamWriteValue64, 8, std::uint64_t, make_write)
PTM_VALUE_API(cuStreamWaitValue32, 4, std::uint32_t, make_wait)
PTM_VALUE_API(cuStreamWaitValue64, 8, std::uint64_t, make_wait)

PTM_STREAM_API(cuStreamBatchMemOp_v2, cuStreamBatchMemOp_v2_ptsz,
               (CUstream stream, unsigned count, CUstreamBatchMemOpParams* steps, unsigned flags),
               (stream, count, steps, flags)) {
    return submit_batch(stream, default_stream, count, steps, flags);
}
