// SPDX-License-Identifier: Apache-2.0
// Operations on mbarrier objects lane by lane, and waking.
#include "runtime/exec/mbarriers.h"

#include "runtime/base/tuning.h"
#include "runtime/code/fault.h"
#include "runtime/exec/async_copies.h"
#include "runtime/exec/fiber_scheduler.h"
#include "runtime/exec/late_work.h"
#include "translator/mbarrier_word.h"

#include <algorithm>
#include <time.h>

namespace ptarmigan::runtime {

using Call = abi::MbarrierCall;
using Operation = abi::MbarrierOperation;

namespace {

std::uint64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_nsec);
}

template <class Visit> void for_each_lane(std::uint64_t lanes, Visit visit) {
    for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctzll(lanes)));
}

std::uint64_t* object_of(const Call& call, unsigned lane) {
    const std::uint64_t address = call.object[call.flags & Call::uniform ? 0 : lane];
    return reinterpret_cast<std::uint64_t*>(address);
}

std::uint32_t count_of(const Call& call, unsigned lane) {
    return call.count[call.flags & Call::uniform ? 0 : lane];
}

FaultRecord fault_at(const abi::CtaContext& cta, std::uint32_t step, const Call& call, unsigned lane,
                     abi::Fault fault) {
    FaultRecord record;
    record.fault = fault;
    record.cta = &cta;
    record.step = step;
    record.lanes = std::uint64_t{1} << lane;
    record.line = call.line;
    record.address = reinterpret_cast<std::uintptr_t>(object_of(call, lane));
    record.has_address = true;
    record.is_write = true;
    return record;
}

/// Objects must be aligned (716 otherwise) and in shared memory (715): as the H200.
void check_objects(const abi::CtaContext& cta, std::uint32_t step, const Call& call) {
    const auto window = reinterpret_cast<std::uint64_t>(cta.shared);
    std::uint64_t lanes = call.flags & Call::uniform ? call.active & -call.active : call.active;
    for (; lanes != 0; lanes &= lanes - 1) {
        const auto lane = static_cast<unsigned>(__builtin_ctzll(lanes));
        const auto address = reinterpret_cast<std::uint64_t>(object_of(call, lane));
        if (address % alignof(std::uint64_t) != 0)
            raise_fault(fault_at(cta, step, call, lane, abi::Fault::misaligned_address));
        if (address - window >= cta.shared_window_size)
            raise_fault(fault_at(cta, step, call, lane, abi::Fault::illegal_instruction));
    }
}

/// What the lanes of one instruction do to one object, added up: they do it at once.
struct Request {
    std::int64_t arrivals = 0, dropped = 0, transactions = 0;
    bool fits = true; ///< no lane counts 2^20 transactions or more
};

Request request_of(const Call& call, std::uint64_t lanes) {
    const auto operation = static_cast<Operation>(call.operation);
    Request request;
    for_each_lane(lanes, [&](unsigned lane) {
        const std::int64_t count = count_of(call, lane);
        const bool counts_transactions = operation == Operation::expect_tx || operation == Operation::complete_tx ||
                                         (call.flags & Call::transactions) != 0;
        request.fits = request.fits && (!counts_transactions || count < mbarrier::full);
        switch (operation) {
        case Operation::expect_tx: request.transactions += count; break;
        case Operation::complete_tx: request.transactions -= count; break;
        case Operation::copy_arrive: request.arrivals += call.flags & Call::no_increment ? 1 : 0; break;
        default: {
            const bool expects = call.flags & Call::transactions;
            request.transactions += expects ? count : 0;
            request.arrivals += expects ? 1 : count;
        }
        }
    });
    if (operation == Operation::arrive_drop) request.dropped = request.arrivals;
    return request;
}

/// States are what the object held before all these lanes; with .noComplete each lane's arrival counts for the next.
void write_states(Call& call, std::uint64_t lanes, std::uint64_t word) {
    std::uint64_t before = 0;
    if (call.flags & Call::uniform && !(call.flags & Call::in_turn)) {
        call.state[0] = word & mbarrier::state_mask;
        return;
    }
    for_each_lane(lanes, [&](unsigned lane) {
        call.state[lane] = (word & mbarrier::state_mask) + (before << mbarrier::pending_bit);
        if (call.flags & Call::in_turn) before += count_of(call, lane);
    });
}

} // namespace

/// A store that completes a phase wakes those who wait for it.
void Mbarriers::store(std::uint64_t* object, std::uint64_t word) {
    *object = word;
    Waiters& waiters = waiters_of(object);
    for (std::size_t i = 0; i < waiters.size();) {
        if (waiters[i].object != object || !mbarrier::is_complete(word, waiters[i].parity))
            ++i;
        else
            release(waiters, i, true);
    }
}

void Mbarriers::release(Waiters& waiters, std::size_t index, bool complete) {
    StepFiber& step = *waiters[index].step;
    waiters[index] = waiters.back();
    waiters.pop_back();
    --waiter_count_;
    step.barrier_result = complete;
    if (complete) scheduler_.note_phase();
    scheduler_.make_runnable(step);
}

void Mbarriers::reset() {
    if (waiter_count_ == 0) return; // after nearly every grid: 3 KiB are not looked at
    for (Waiters& waiters : waiters_) waiters.clear();
    waiter_count_ = 0;
}

bool Mbarriers::is_waited_for(const std::uint64_t* object) const {
    const Waiters& waiters = waiters_[bucket_of(object)];
    return std::any_of(waiters.begin(), waiters.end(), [&](const Waiter& waiter) { return waiter.object == object; });
}

bool Mbarriers::apply(std::uint64_t* object, std::int64_t arrivals, std::int64_t dropped, std::int64_t transactions) {
    if (!mbarrier::is_object(*object)) return false;
    mbarrier::Counts counts = mbarrier::unpack(*object);
    counts.pending -= arrivals;
    counts.expected -= dropped;
    counts.transactions += transactions;
    if (!counts.in_range()) return false;
    store(object, mbarrier::pack(mbarrier::settle(counts)));
    return true;
}

bool Mbarriers::expect_transactions(std::uint64_t* object, std::uint32_t count) {
    return apply(object, 0, 0, count);
}

bool Mbarriers::complete_transactions(std::uint64_t* object, std::uint32_t count) {
    return apply(object, 0, 0, -std::int64_t{count});
}

bool Mbarriers::arrive(std::uint64_t* object, std::uint32_t count) {
    return apply(object, count, 0, 0);
}

/// Suspends the current step until the phase is complete (true) or the time is over.
bool Mbarriers::wait(std::uint64_t* object, bool parity, std::uint64_t nanoseconds) {
    StepFiber& step = *scheduler_.current();
    waiters_of(object).push_back({&step, object, parity, now() + nanoseconds});
    ++waiter_count_;
    scheduler_.block({.kind = Wait::Kind::mbarrier, .address = reinterpret_cast<std::uintptr_t>(object)});
    return step.barrier_result != 0;
}

bool Mbarriers::expire(bool sleep) {
    if (waiter_count_ == 0) return false;
    std::uint64_t time = now(), first = ~std::uint64_t{0};
    for (const Waiters& waiters : waiters_)
        for (const Waiter& waiter : waiters) first = std::min(first, waiter.deadline);
    if (sleep && first > time) {
        const timespec pause{0, static_cast<long>(first - time)};
        nanosleep(&pause, nullptr);
        time = std::max(now(), first);
    }
    if (first > time) return true;
    for (Waiters& waiters : waiters_) {
        for (std::size_t i = 0; i < waiters.size();) {
            if (waiters[i].deadline > time)
                ++i;
            else
                release(waiters, i, false);
        }
    }
    return true;
}

/// Something that was put off, if it counts there.
bool Mbarriers::complete_next(const std::uint64_t* object) {
    return (copies_.pending() && copies_.complete_next(object)) ||
           (late_work_ && late_work_->some_is_late() && late_work_->complete_next(object));
}

void Mbarriers::wait_for_lanes(abi::CtaContext& cta, std::uint32_t step, Call& call) {
    const auto parity_of = [&](unsigned lane) {
        return call.flags & Call::parity ? (count_of(call, lane) & 1) != 0 : mbarrier::phase(call.state[lane]);
    };
    const std::uint64_t asking = call.flags & Call::one_answer ? 1 : call.active;
    const auto look = [&] {
        unsigned behind = 64;
        for_each_lane(asking, [&](unsigned lane) {
            const std::uint64_t word = *object_of(call, lane);
            if (!mbarrier::is_object(word)) raise_fault(fault_at(cta, step, call, lane, abi::Fault::mbarrier_overflow));
            call.complete[lane] = mbarrier::is_complete(word, parity_of(lane));
            if (!call.complete[lane] && behind == 64) behind = lane;
        });
        return behind;
    };
    unsigned behind = look();
    const bool tests = static_cast<Operation>(call.operation) == Operation::test_wait;
    // Copies that are put off until somebody waits for them: a test says no once more, so that it is seen to be able
    // to.
    while (behind != 64 && complete_next(object_of(call, behind)) && !tests) behind = look();
    if (behind == 64) {
        // A warp of a GPU waits for a copy or product as all others do, so none is two phases ahead of another's look,
        // and programs count on that. Here copies may be done at once: without a turn in between the first warp would
        // go through all phases before the others come to see one.
        scheduler_.let_others_run();
        return;
    }
    if (tests) return;
    if (call.others != 0) {
        // Suspending the step would stop the lanes that this one may wait for.
        scheduler_.yield(
            {.kind = Wait::Kind::mbarrier, .address = reinterpret_cast<std::uintptr_t>(object_of(call, behind))});
        look();
        return;
    }
    std::uint64_t* object = object_of(call, behind);
    const bool parity = parity_of(behind);
    const std::uint64_t limit = std::min<std::uint64_t>(
        call.flags & Call::limited ? call.limit[behind] : tuning::mbarrier_wait_ns, tuning::mbarrier_wait_ns);
    const bool complete = wait(object, parity, limit);
    look();
    if (!complete) return;
    // By now the phase after it may be complete too, of the same parity as the one before.
    for_each_lane(asking, [&](unsigned lane) {
        if (object_of(call, lane) == object && parity_of(lane) == parity) call.complete[lane] = 1;
    });
}

/// cp.async.mbarrier.arrive where copies are put off: the lanes whose arrival has to wait for theirs.
std::uint64_t Mbarriers::defer_arrivals(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width,
                                        Call& call) {
    std::uint64_t deferred = 0;
    for_each_lane(call.active, [&](unsigned lane) {
        if (!copies_.defer_arrival(cta, step * lane_width + lane, object_of(call, lane))) return;
        deferred |= std::uint64_t{1} << lane;
        // Without .noinc the arrival is one more than those that are expected.
        if (!(call.flags & Call::no_increment) && !apply(object_of(call, lane), -1, 0, 0))
            raise_fault(fault_at(cta, step, call, lane, abi::Fault::mbarrier_overflow));
    });
    return deferred;
}

void Mbarriers::run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, Call& call) {
    check_objects(cta, step, call);
    const auto operation = static_cast<Operation>(call.operation);
    if (operation == Operation::test_wait || operation == Operation::try_wait) return wait_for_lanes(cta, step, call);
    if (operation == Operation::inval) return; // nothing is kept about objects
    if (operation == Operation::init) {
        for_each_lane(call.active,
                      [&](unsigned lane) { store(object_of(call, lane), mbarrier::initial(count_of(call, lane))); });
        return;
    }
    std::uint64_t left = call.active;
    if (operation == Operation::copy_arrive && copies_.pending()) left &= ~defer_arrivals(cta, step, lane_width, call);
    while (left != 0) {
        const auto first = static_cast<unsigned>(__builtin_ctzll(left));
        std::uint64_t* object = object_of(call, first);
        std::uint64_t lanes = left;
        if (!(call.flags & Call::uniform))
            for_each_lane(left, [&](unsigned lane) {
                if (object_of(call, lane) != object) lanes &= ~(std::uint64_t{1} << lane);
            });
        left &= ~lanes;
        if (call.flags & Call::wants_state) write_states(call, lanes, *object);
        const Request request = request_of(call, lanes);
        if (!request.fits || !apply(object, request.arrivals, request.dropped, request.transactions))
            raise_fault(fault_at(cta, step, call, first, abi::Fault::mbarrier_overflow));
    }
}

} // namespace ptarmigan::runtime
