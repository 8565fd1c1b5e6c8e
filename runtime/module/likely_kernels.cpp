// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/likely_kernels.h"

#include "runtime/module/background.h"
#include "runtime/module/module_source.h"

#include <algorithm>
#include <memory>

namespace ptarmigan::runtime {
namespace {

/// How many kernels behind one are looked at; of a program with 54 launched kernels among 102 of its text (thrust) two
/// of five among them were launched.
constexpr std::uint32_t kernels_behind = 6;
/// Of texts with more kernels few are launched.
constexpr std::size_t most_kernels = 256;
/// How many more may be compiled than have been launched by then.
constexpr std::size_t unused_at_first = 12, unused_share = 2;

} // namespace

LikelyKernels::State& LikelyKernels::state(std::uint32_t index) {
    if (states_.size() <= index) states_.resize(index + 1);
    return states_[index];
}

void LikelyKernels::note_launch(std::uint32_t index) {
    const std::lock_guard lock(mutex_);
    if (state(index) == State::compiled) ++used_;
    state(index) = State::launched;
}

void LikelyKernels::compile_behind(ModuleSource& source, std::uint32_t index) {
    const std::size_t count = source.kernels().size();
    if (count > most_kernels) return;
    const auto last = static_cast<std::uint32_t>(std::min<std::size_t>(count - 1, index + kernels_behind));
    const std::lock_guard lock(mutex_);
    if (compiled_ - used_ > unused_at_first + unused_share * used_) return;
    for (std::uint32_t next = last; next > index; --next) { // the newest goes first
        if (state(next) != State::unknown) continue;
        state(next) = State::queued;
        run_in_background(BackgroundOrder::soon, [weak = source.weak_from_this(), next] {
            if (const auto alive = weak.lock()) alive->likely_kernels().compile(*alive, next);
        });
    }
}

void LikelyKernels::compile(ModuleSource& source, std::uint32_t index) {
    {
        const std::lock_guard lock(mutex_);
        if (state(index) != State::queued) return; // it is launched already
    }
    const bool made = source.kernels()[index]->compile_ahead();
    const std::lock_guard lock(mutex_);
    if (!made) return;
    ++compiled_;
    if (state(index) == State::launched)
        ++used_;
    else
        state(index) = State::compiled;
}

} // namespace ptarmigan::runtime
