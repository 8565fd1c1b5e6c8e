// SPDX-License-Identifier: Apache-2.0
// What follows from a form of a product, made when it is first asked for.
#pragma once

#include "frontend/ptx/matrix_form.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ptarmigan::runtime::tensor_core {

/// `Plan` is made of a form, which it keeps as `form`. `places`: a power of two, more than there are forms. Plans stay.
/// Thread-safe.
template <class Plan, std::size_t places> class FormTable {
public:
    const Plan& operator[](const ptx::MatrixForm& form) {
        std::uint64_t words[2];
        std::memcpy(words, &form, sizeof words);
        std::size_t place = (words[0] * 0x9e3779b97f4a7c15 ^ words[1] * 0xbf58476d1ce4e5b9) >> 40;
        for (;; ++place) {
            std::atomic<const Plan*>& entry = table_[place % places];
            const Plan* plan = entry.load(std::memory_order_acquire);
            if (!plan) {
                const Plan* made = new Plan(form);
                if (entry.compare_exchange_strong(plan, made, std::memory_order_acq_rel)) return *made;
                delete made;
            }
            if (std::memcmp(&plan->form, &form, sizeof form) == 0) return *plan;
        }
    }

private:
    static_assert(sizeof(ptx::MatrixForm) == 2 * sizeof(std::uint64_t));
    std::array<std::atomic<const Plan*>, places> table_{};
};

} // namespace ptarmigan::runtime::tensor_core
