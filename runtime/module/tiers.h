// SPDX-License-Identifier: Apache-2.0
// Quick and good code: which of them a kernel's first launch runs, and how the good one comes to be used.
#pragma once

#include "runtime/module/kernel_cache.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace ptarmigan::runtime {

/// PTARMIGAN_TIER, read once per process.
struct TierSetting {
    enum class Mode : std::uint8_t {
        automatic, ///< quick code first where good code takes long to make, good code when that pays
        quick,     ///< quick code only
        best,      ///< good code only
        swap,      ///< both, for tests: every other launch begins with quick code, and good code takes its CTAs over
    };
    Mode mode = Mode::automatic;
    std::uint64_t swap_at = 0; ///< of `swap`: the first CTA that good code runs

    static const TierSetting& of_process();
};

/// "quick" or "good": what logs, reports and profiles call the tier of code in this form.
const char* tier_name(const translator::CompileForm& form);
/// Code that is made quickly, by what was asked for or because no other form could be compiled.
bool is_quick(const translator::CompileForm& form);
/// The quick tier's form of what is to be compiled.
translator::CompileOptions quick_options(const translator::CompileOptions& good);

/// A kernel of so many statements is compiled well at once: there is little to gain by compiling it twice.
inline constexpr std::uint32_t small_kernel_statements = 32;
/// What good code takes to make for a statement: of 237 kernels (PyTorch's, cuBLAS's, cuDNN's, our benchmarks' and test
/// programs'; AVX-512) half take more.
inline constexpr std::uint64_t good_ns_per_statement = 450'000;
/// Quick code takes a nanosecond and more for a statement of a thread: of grids with at least so many threads it runs
/// for longer than good code takes to make; then both are made side by side, or good code alone.
inline constexpr std::uint64_t long_grid_threads = good_ns_per_statement, longest_quick_threads = 4 * long_grid_threads;

/// The way of one kernel, compiled for one shape of block, from quick code to good code. Thread-safe.
class TieredCode : public std::enable_shared_from_this<TieredCode> {
public:
    enum class Urgency : std::uint8_t {
        some,    ///< has run for a while and may run again: behind others' work
        high,    ///< a grid is running quick code and takes long
        overdue, ///< quick code has run for several times as long as good code takes to make, and that is not there yet
    };

    /// Makes the good code; throws if that can't be. Called on a background thread in the turn that the argument says,
    /// or on that of a launch; again, beside another call, where what is being made is wanted sooner.
    using Make = std::function<std::shared_ptr<const LoadedKernel>(std::optional<BackgroundOrder>)>;

    /// `statements`: of the kernel.
    TieredCode(std::string kernel, std::uint32_t statements, Make make);

    /// Null until it is there, then always the same.
    std::shared_ptr<const LoadedKernel> good() const {
        return is_there_.load(std::memory_order_acquire) ? good_ : nullptr;
    }
    bool has_good() const { return is_there_.load(std::memory_order_acquire); }
    /// Lets a background thread make the good code, unless that was asked for already as urgently.
    void ask(Urgency urgency);
    /// Makes it now, on this thread, if it is not there. Null if it can't be made.
    std::shared_ptr<const LoadedKernel> make_now();
    /// For grids that run quick code: notes what they took, and asks when good code would have paid. True if the kernel
    /// has just become known to be hot: so much time would have been better spent on compiling it well at once.
    bool add_run_time(std::uint64_t nanoseconds);
    /// A grid that has run quick code for so long is worth good code now; and for so long, it has been for too long.
    std::uint64_t long_grid_ns() const { return worth_ns_; }
    std::uint64_t overdue_ns() const { return overdue_factor * worth_ns_; }
    /// About what good code takes to make.
    std::uint64_t good_ns() const { return hot_ns_; }

private:
    static constexpr std::uint64_t overdue_factor = 3;
    void make(std::optional<BackgroundOrder> order);

    const std::string kernel_;
    const std::uint64_t worth_ns_; ///< quick code's run time from which on good code is made
    const std::uint64_t hot_ns_;   ///< good_ns()
    const Make make_;
    std::atomic<std::uint64_t> run_ns_{0};
    std::atomic<int> asked_{0}; ///< 1 + the urgency that was asked with
    std::atomic<bool> failed_{false}, is_there_{false};
    std::mutex making_; ///< held by those who make it and let it wait for others; no launch takes it
    std::mutex mutex_;  ///< guards writing what follows
    std::shared_ptr<const LoadedKernel> good_; ///< written once, before is_there_
};

} // namespace ptarmigan::runtime
