// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/stream_values.h"

#include "runtime/base/host_access.h"
#include "runtime/context/context.h"
#include "runtime/memory/address_space.h"
#include "runtime/memory/outside_writes.h"
#include "runtime/memory/patience.h"
#include "runtime/stream/stream.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

std::uint64_t load(const ValueStep& step) {
    const DeviceMemoryUse use;
    if (step.bytes == 4) return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(step.address), __ATOMIC_ACQUIRE);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(step.address), __ATOMIC_ACQUIRE);
}

void store(const ValueStep& step) {
    const OutsideWrite writes;
    if (step.bytes == 4)
        __atomic_store_n(reinterpret_cast<std::uint32_t*>(step.address), static_cast<std::uint32_t>(step.value),
                         __ATOMIC_SEQ_CST);
    else
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(step.address), step.value, __ATOMIC_SEQ_CST);
}

void wait(const ValueStep& step, const Context& context) {
    Patience patience;
    while (!ends_wait(step, load(step)) && context.status() == Status::success) patience.pass();
}

} // namespace

void make_steps(const std::vector<ValueStep>& steps, const Context& context) {
    for (const ValueStep& step : steps) {
        if (context.status() != Status::success) return;
        if (step.kind == ValueStep::Kind::write) store(step);
        if (step.kind == ValueStep::Kind::wait) wait(step, context);
    }
}

bool ends_wait(const ValueStep& step, std::uint64_t held) {
    const std::uint64_t all = step.bytes == 4 ? 0xffffffffu : ~std::uint64_t{0};
    const std::uint64_t sign = all / 2 + 1, value = step.value & all;
    held &= all;
    switch (step.until) {
    case ValueStep::Until::at_least: return ((held - value) & sign) == 0;
    case ValueStep::Until::equal: return held == value;
    case ValueStep::Until::any_bit: return (held & value) != 0;
    case ValueStep::Until::any_clear_bit: return (~(held | value) & all) != 0;
    }
    return true;
}

Status check_place(const ValueStep& step) {
    if (step.kind == ValueStep::Kind::barrier) return Status::success;
    if (step.address % step.bytes != 0) return Status::invalid_value;
    const auto allocation = AddressSpace::get().find(step.address);
    const bool fits = allocation && !allocation->free_pending && allocation->kind != MemoryKind::managed &&
                      step.bytes <= allocation->end() - step.address;
    return fits ? Status::success : Status::invalid_value;
}

Status submit_values(Stream& stream, std::vector<ValueStep> steps) {
    for (const ValueStep& step : steps) {
        const auto allocation = AddressSpace::get().find(step.address);
        if (allocation && !allocation->is_reached_by(stream.context().device())) return Status::invalid_value;
    }
    std::shared_ptr<StreamRecorder> recorder;
    if (const Status status = stream.begin_work(recorder); status != Status::success) return status;
    if (recorder) return recorder->values(std::move(steps));
    const bool waits = std::any_of(steps.begin(), steps.end(),
                                   [](const ValueStep& step) { return step.kind == ValueStep::Kind::wait; });
    Context& context = stream.context();
    stream.submit([steps = std::move(steps), &context] { make_steps(steps, context); },
                  waits ? Stream::Start::elsewhere : Stream::Start::inline_if_idle);
    return Status::success;
}

} // namespace ptarmigan::runtime
