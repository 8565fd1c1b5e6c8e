// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/likely_kernels.h"

#include "runtime/module/background.h"
#include "runtime/module/module_source.h"

#include <atomic>
#include <memory>
#include <ranges>
#include <string>

namespace ptarmigan::runtime {
namespace {

/// How many of the kernels behind one are compiled.
constexpr std::uint32_t kernels_behind = 6;
/// Of texts with more kernels few are launched.
constexpr std::size_t most_kernels = 256;
/// How many more may be compiled than have been launched by then, in all texts of the process together: libraries have
/// many, each with instances for types and shapes that are never launched (a ResNet's first step in PyTorch: 36 kernels
/// were launched, 121 more compiled, none of them for anything).
constexpr std::size_t unused_at_first = 12, unused_share = 2;
std::atomic<std::size_t> compiled{0}, used{0};

bool are_enough() {
    const std::size_t launched = used.load(std::memory_order_relaxed);
    return compiled.load(std::memory_order_relaxed) > launched + unused_at_first + unused_share * launched;
}

} // namespace

bool LikelyKernels::prepare(ModuleSource& source) {
    const auto& kernels = source.kernels();
    if (kernels.size() > most_kernels) return false;
    if (forecast_) return true;
    std::vector<std::string> names;
    for (const auto& kernel : kernels) names.push_back(kernel->name());
    forecast_.emplace(names);
    states_.resize(kernels.size());
    return true;
}

void LikelyKernels::note_launch(ModuleSource& source, std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (!prepare(source)) return;
    if (states_[index] == State::compiled) used.fetch_add(1, std::memory_order_relaxed);
    states_[index] = State::launched;
    forecast_->note_launch(index);
}

void LikelyKernels::compile_behind(ModuleSource& source, std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (!prepare(source) || are_enough()) return;
    for (const std::uint32_t next : forecast_->behind(index, kernels_behind) | std::views::reverse) {
        if (states_[next] != State::unknown && states_[next] != State::queued) continue;
        states_[next] = State::queued; // once more, perhaps: the newest goes first, and now this one is near
        run_in_background(BackgroundOrder::soon, [weak = source.weak_from_this(), next] {
            if (const auto alive = weak.lock()) alive->likely_kernels().compile(*alive, next);
        });
    }
}

void LikelyKernels::compile(ModuleSource& source, std::uint32_t index) {
    {
        const std::lock_guard lock(mutex_);
        if (states_[index] != State::queued) return;        // it is launched already, or was queued twice
        if (are_enough() || !forecast_->is_likely(index)) { // no more
            states_[index] = State::unknown;
            return;
        }
        states_[index] = State::begun;
    }
    const bool made = source.kernels()[index]->compile_ahead();
    const std::lock_guard lock(mutex_);
    if (!made) return;
    compiled.fetch_add(1, std::memory_order_relaxed);
    if (states_[index] == State::launched)
        used.fetch_add(1, std::memory_order_relaxed);
    else
        states_[index] = State::compiled;
}

} // namespace ptarmigan::runtime
