// SPDX-License-Identifier: Apache-2.0
// The mbarrier objects of the CTAs that one worker runs, and the steps that wait for their phases. A cluster's CTAs are
// on one worker (launch/README), so a plain read-modify-write of the object's word is atomic to everybody who may look.
#pragma once

#include "translator/kernel_abi.h"

#include <array>
#include <cstdint>
#include <vector>

namespace ptarmigan::runtime {

class AsyncCopies;
class FiberScheduler;
class LateWork;
struct StepFiber;

/// Not thread-safe: belongs to a worker.
class Mbarriers {
public:
    Mbarriers(FiberScheduler& scheduler, AsyncCopies& copies) : scheduler_(scheduler), copies_(copies) {}

    /// Who waits asks this too, behind the copies.
    void ask_too(LateWork& work) { late_work_ = &work; }

    /// The service of kernel_abi.h. Faults (misaligned objects, objects outside of shared memory, counts that leave
    /// their ranges) don't return.
    void run(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width, abi::MbarrierCall& call);

    // For asynchronous copies; `object` is aligned and in shared memory. False: the count would leave its range, which
    // is Fault::mbarrier_overflow; nothing has changed then.
    [[nodiscard]] bool expect_transactions(std::uint64_t* object, std::uint32_t count);
    [[nodiscard]] bool complete_transactions(std::uint64_t* object, std::uint32_t count);
    [[nodiscard]] bool arrive(std::uint64_t* object, std::uint32_t count);

    /// Lets steps go on whose time to wait is over; called when no step can go on (`sleep`: then waits for the first
    /// one's time) and now and then by those that spin. False if nobody waits.
    bool expire(bool sleep);
    /// A step waits for a phase of the object.
    bool is_waited_for(const std::uint64_t* object) const;
    bool has_waiters() const { return waiter_count_ != 0; }
    /// The grid is over.
    void reset();

private:
    struct Waiter {
        StepFiber* step;
        const std::uint64_t* object;
        bool parity;            ///< of the phase that it waits for
        std::uint64_t deadline; ///< nanoseconds of the monotonic clock
    };
    bool apply(std::uint64_t* object, std::int64_t arrivals, std::int64_t dropped, std::int64_t transactions);
    void store(std::uint64_t* object, std::uint64_t word);
    using Waiters = std::vector<Waiter>;
    Waiters& waiters_of(const std::uint64_t* object) { return waiters_[bucket_of(object)]; }
    /// Objects are at the same places of windows that lie far apart.
    static std::size_t bucket_of(const std::uint64_t* object) {
        return reinterpret_cast<std::uintptr_t>(object) * 0x9e3779b97f4a7c15u >> 57;
    }
    void release(Waiters& waiters, std::size_t waiter, bool complete);
    bool complete_next(const std::uint64_t* object);
    bool wait(std::uint64_t* object, bool parity, std::uint64_t nanoseconds);
    void wait_for_lanes(abi::CtaContext& cta, std::uint32_t step, abi::MbarrierCall& call);
    std::uint64_t defer_arrivals(abi::CtaContext& cta, std::uint32_t step, std::uint32_t lane_width,
                                 abi::MbarrierCall& call);

    FiberScheduler& scheduler_;
    AsyncCopies& copies_;
    LateWork* late_work_ = nullptr;
    std::array<Waiters, 128> waiters_; ///< by bucket_of() their object: hundreds of CTAs may wait
    std::size_t waiter_count_ = 0;
};

} // namespace ptarmigan::runtime
