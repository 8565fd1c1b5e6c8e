// SPDX-License-Identifier: Apache-2.0
// What the warp collectives compute (PTX manual 9.7.9.6 shfl.sync, 9.7.13 vote, match, redux,
// elect).
#include "runtime/exec/fiber_cta.h"
#include "runtime/tensor_core/warp_product.h"

#include <algorithm>

namespace ptarmigan::runtime {
namespace {

template <class Visit> void for_each_lane(std::uint32_t lanes, Visit visit) {
    for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<unsigned>(__builtin_ctz(lanes)));
}

/// Operation: 0 up, 1 down, 2 bfly, 3 idx. A source lane that does not take part gives 0: undefined by the manual,
/// constant on GPUs.
void shuffle(std::uint32_t operation, WarpValues& warp) {
    for_each_lane(warp.present, [&](unsigned lane) {
        const int self = static_cast<int>(lane);
        const int bval = static_cast<int>(warp.b[lane] & 31), cval = static_cast<int>(warp.c[lane] & 31);
        const int segment = static_cast<int>(warp.c[lane] >> 8 & 31);
        const int most = (self & segment) | (cval & ~segment), least = self & segment;
        int from = self;
        bool inside = false;
        switch (operation) {
        case 0:
            from = self - bval;
            inside = from >= most;
            break;
        case 1:
            from = self + bval;
            inside = from <= most;
            break;
        case 2:
            from = self ^ bval;
            inside = from <= most;
            break;
        default:
            from = least | (bval & ~segment);
            inside = from <= most;
            break;
        }
        warp.predicate[lane] = inside;
        if (!inside) from = self;
        warp.result[lane] = warp.present >> from & 1 ? warp.source[from] : 0;
    });
}

void ballot(WarpValues& warp) {
    std::uint32_t votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane) votes |= std::uint32_t{warp.source[lane] != 0} << lane;
    votes &= warp.present;
    for_each_lane(warp.present, [&](unsigned lane) {
        warp.result[lane] = votes;
        warp.predicate[lane] = votes != 0;
    });
}

void match(bool all, WarpValues& warp) {
    for_each_lane(warp.present, [&](unsigned lane) {
        std::uint32_t same = 0;
        for_each_lane(warp.present, [&](unsigned other) {
            if (warp.source[other] == warp.source[lane]) same |= 1u << other;
        });
        const bool matches = !all || same == warp.present;
        warp.result[lane] = matches ? same : 0;
        warp.predicate[lane] = matches;
    });
}

std::uint32_t combine(std::uint32_t operation, std::uint32_t a, std::uint32_t b) {
    const auto sa = static_cast<std::int32_t>(a), sb = static_cast<std::int32_t>(b);
    switch (operation) {
    case 0: return a + b;
    case 1: return static_cast<std::uint32_t>(std::min(sa, sb));
    case 2: return static_cast<std::uint32_t>(std::max(sa, sb));
    case 3: return std::min(a, b);
    case 4: return std::max(a, b);
    case 5: return a & b;
    case 6: return a | b;
    default: return a ^ b;
    }
}

/// min and max of floats: NaNs are left out, or win with .NaN; -0 is less than +0.
void reduce_floats(std::uint32_t operation, WarpValues& warp) {
    const bool is_max = operation & 1, absolute = operation & 2, keeps_nan = operation & 4;
    constexpr std::uint32_t sign = 0x80000000, infinity = 0x7f800000, canonical_nan = 0x7fffffff;
    // Floats in the order of unsigned integers.
    const auto key = [](std::uint32_t bits) { return bits & sign ? ~bits : bits | sign; };
    bool any_nan = false, any_number = false;
    std::uint32_t best = 0;
    for_each_lane(warp.present, [&](unsigned lane) {
        auto bits = static_cast<std::uint32_t>(warp.source[lane]);
        bits = absolute ? bits & ~sign : bits;
        if ((bits & ~sign) > infinity) {
            any_nan = true;
            return;
        }
        if (!any_number || (is_max ? key(bits) > key(best) : key(bits) < key(best))) best = bits;
        any_number = true;
    });
    const std::uint32_t result = !any_number || (keeps_nan && any_nan) ? canonical_nan : best;
    for_each_lane(warp.present, [&](unsigned lane) { warp.result[lane] = result; });
}

void reduce(std::uint32_t operation, WarpValues& warp) {
    constexpr std::uint32_t first_of_floats = 8;
    if (operation >= first_of_floats) return reduce_floats(operation, warp);
    std::uint32_t total = 0;
    bool first = true;
    for_each_lane(warp.present, [&](unsigned lane) {
        const auto value = static_cast<std::uint32_t>(warp.source[lane]);
        total = first ? value : combine(operation, total, value);
        first = false;
    });
    for_each_lane(warp.present, [&](unsigned lane) { warp.result[lane] = total; });
}

void elect(WarpValues& warp) {
    const auto leader = static_cast<unsigned>(__builtin_ctz(warp.present));
    for_each_lane(warp.present, [&](unsigned lane) {
        warp.result[lane] = leader;
        warp.predicate[lane] = lane == leader;
    });
}

/// Each lane's source is the address of its step's call.
void multiply_matrices(WarpValues& warp) {
    const auto call_of = [&](unsigned lane) { return reinterpret_cast<abi::MatrixCall*>(warp.source[lane]); };
    abi::MatrixCall whole{};
    for_each_lane(warp.present, [&](unsigned lane) {
        const abi::MatrixCall& step = *call_of(lane);
        tensor_core::deposit_lane(step, lane - step.first_lane, whole, lane);
    });
    tensor_core::multiply_fragments(whole, warp.present);
    for_each_lane(warp.present, [&](unsigned lane) {
        abi::MatrixCall& step = *call_of(lane);
        tensor_core::collect_lane(whole, lane, step, lane - step.first_lane);
    });
}

} // namespace

void evaluate_collective(abi::Collective kind, std::uint32_t operation, WarpValues& warp) {
    if (warp.present == 0) return;
    switch (kind) {
    case abi::Collective::shfl: return shuffle(operation, warp);
    case abi::Collective::vote_ballot: return ballot(warp);
    case abi::Collective::match_any: return match(false, warp);
    case abi::Collective::match_all: return match(true, warp);
    case abi::Collective::redux: return reduce(operation, warp);
    case abi::Collective::elect: return elect(warp);
    case abi::Collective::bar_warp: return;
    case abi::Collective::matrix: return multiply_matrices(warp);
    case abi::Collective::warpgroup: return; // FiberCta
    case abi::Collective::activemask:
        for_each_lane(warp.present, [&](unsigned lane) { warp.result[lane] = warp.present; });
        return;
    }
}

} // namespace ptarmigan::runtime
