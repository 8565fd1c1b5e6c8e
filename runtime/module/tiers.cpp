// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/tiers.h"

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/module/background.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace ptarmigan::runtime {
namespace {

TierSetting setting_from_environment() {
    TierSetting setting;
    const std::string text = env_text(Env::tier);
    constexpr std::string_view swap = "swap:";
    if (text == "quick") setting.mode = TierSetting::Mode::quick;
    if (text == "best") setting.mode = TierSetting::Mode::best;
    if (text.starts_with(swap)) {
        setting.mode = TierSetting::Mode::swap;
        setting.swap_at = std::strtoull(text.c_str() + swap.size(), nullptr, 10);
    }
    return setting;
}

/// Quick code that ran for as long as good code takes to make will run longer. Earlier, programs that launch each
/// kernel a few times (thrust) pay for code that they never run: it takes CPU and memory from what compiles their next
/// kernel. Others wait longer, by a part of what good code takes anyhow.
constexpr std::uint64_t least_worth_ns = 1'000'000;

BackgroundOrder order_of(TieredCode::Urgency urgency) {
    switch (urgency) {
    case TieredCode::Urgency::some: return BackgroundOrder::later;
    case TieredCode::Urgency::high: return BackgroundOrder::urgent;
    case TieredCode::Urgency::overdue: return BackgroundOrder::overdue;
    }
    return BackgroundOrder::later;
}

} // namespace

const TierSetting& TierSetting::of_process() {
    static const TierSetting setting = setting_from_environment();
    return setting;
}

bool is_quick(const translator::CompileForm& form) {
    return form.optimization == translator::Optimization::least;
}

const char* tier_name(const translator::CompileForm& form) {
    return is_quick(form) ? "quick" : "good";
}

translator::CompileOptions quick_options(const translator::CompileOptions& good) {
    translator::CompileOptions options = good;
    options.optimization = translator::Optimization::least;
    return options;
}

TieredCode::TieredCode(std::string kernel, std::uint32_t statements, Make make)
    : kernel_(std::move(kernel)), worth_ns_(std::max(least_worth_ns, statements * good_ns_per_statement)),
      hot_ns_(worth_ns_), make_(std::move(make)) {}

void TieredCode::ask(Urgency urgency) {
    const int level = 1 + static_cast<int>(urgency);
    int before = asked_.load(std::memory_order_relaxed);
    if (before >= level) return;
    while (!asked_.compare_exchange_weak(before, level, std::memory_order_relaxed))
        if (before >= level) return;
    const auto order = order_of(urgency);
    run_in_background(order, [self = shared_from_this(), order] {
        // Another thread may be at it if asked twice: one whose priority is low, so what is overdue goes beside it.
        std::unique_lock lock(self->making_, std::defer_lock);
        if (order == BackgroundOrder::overdue || lock.try_lock()) self->make(order);
    });
}

void TieredCode::make(std::optional<BackgroundOrder> order) {
    if (has_good() || failed_) return;
    try {
        auto made = make_(order);
        if (!made) failed_ = true; // its module is gone
        const std::lock_guard lock(mutex_);
        if (!made || has_good()) return;
        good_ = std::move(made);
        is_there_.store(true, std::memory_order_release);
    } catch (const std::exception& error) {
        failed_ = true;
        log(LogLevel::warning, "kernel " + kernel_ + ": goes on with quick code: " + error.what());
    }
}

std::shared_ptr<const LoadedKernel> TieredCode::make_now() {
    make(std::nullopt);
    return good();
}

bool TieredCode::add_run_time(std::uint64_t nanoseconds) {
    const std::uint64_t before = run_ns_.fetch_add(nanoseconds, std::memory_order_relaxed);
    if (before + nanoseconds >= overdue_ns())
        ask(Urgency::overdue);
    else if (before + nanoseconds >= worth_ns_)
        ask(Urgency::some);
    return before < hot_ns_ && before + nanoseconds >= hot_ns_;
}

} // namespace ptarmigan::runtime
