// SPDX-License-Identifier: Apache-2.0
// Measured (2026-11-28, Zen 5, 16M floats, CPU ms): a matrix transposed 106 -> 34, a matrix plus its transpose 94 ->
// 38, heads to the front 32 -> 9.8. Models in C++ of the first: in order 89, 16 or 32 CTAs along the columns and then
// the next 47, all of them before the next row 28 to 31.
#include "runtime/launch/cta_walk.h"

#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

namespace ptarmigan::runtime {
namespace {

using translator::KnownAddress;

/// A CTA that continues another one does so in the same line, or behind as much as lanes read in one piece.
constexpr std::int64_t line = 64;
/// What lies further apart is in another page.
constexpr std::int64_t far = 4096;
/// Longer pieces are streams of their own.
constexpr std::int64_t long_piece = 2048;
/// Fewer CTAs in a row don't pay.
constexpr std::uint64_t least_count = 4;
/// CTAs that are looked at one by one; strides of a power of two and the like are found by where steps of equal length
/// end.
constexpr std::uint64_t looked_at = 8;
constexpr unsigned most_levels = 6;

class WalkFinder {
public:
    WalkFinder(const translator::AddressProgram& program, std::span<const std::uint8_t> parameters,
               const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block)
        : finder_(program, parameters), grid_(grid), block_(block), ctas_(std::uint64_t{grid[0]} * grid[1] * grid[2]),
          threads_(block[0] * block[1] * block[2]) {}

    CtaWalk find() {
        if (threads_ < 2) return {};
        for (const KnownAddress& access : accesses(0, 0)) accesses_.push_back({access, 0});
        // Most are of one piece, or of one place: the last thread tells.
        for (const KnownAddress& last : accesses(0, threads_ - 1))
            std::erase_if(accesses_, [&](const Access& access) {
                const auto distance = static_cast<std::int64_t>(static_cast<std::uint64_t>(last.address) -
                                                                static_cast<std::uint64_t>(access.first.address));
                return access.first.step == last.step &&
                       (distance == 0 || distance == std::int64_t{threads_ - 1} * last.bytes);
            });
        for (Access& access : accesses_) access.piece = piece_of(access.first);
        std::erase_if(accesses_, [&](const Access& access) { return !is_scattered(access); });
        for (const Access& access : accesses_)
            if (continues(access, 1)) return {}; // they are in a good order
        for (const Access& access : accesses_)
            if (const CtaWalk walk = walk_of(access)) return walk;
        return {};
    }

private:
    struct Access {
        KnownAddress first; ///< thread 0's of CTA 0
        std::int64_t piece; ///< bytes that neighbouring threads read together, as far as is seen
    };

    const std::vector<KnownAddress>& accesses(std::uint64_t cta, std::uint32_t thread) {
        const auto place = [](std::uint64_t number, const std::array<std::uint32_t, 3>& extents) {
            return std::array{static_cast<std::uint32_t>(number % extents[0]),
                              static_cast<std::uint32_t>(number / extents[0] % extents[1]),
                              static_cast<std::uint32_t>(number / extents[0] / extents[1])};
        };
        return finder_.of({grid_, place(cta, grid_), place(thread, block_)});
    }

    /// How far the access of a thread of a CTA is from the first one's; none if it does not come to it.
    std::optional<std::int64_t> distance(const KnownAddress& access, std::uint64_t cta, std::uint32_t thread = 0) {
        for (const KnownAddress& each : accesses(cta, thread))
            if (each.step == access.step)
                return static_cast<std::int64_t>(static_cast<std::uint64_t>(each.address) -
                                                 static_cast<std::uint64_t>(access.address));
        return std::nullopt;
    }

    std::int64_t piece_of(const KnownAddress& access) {
        const std::int64_t bytes = access.bytes;
        const auto is_inside = [&](std::uint32_t thread) { return distance(access, 0, thread) == thread * bytes; };
        std::uint32_t inside = 0, outside = threads_ - 1;
        while (outside - inside > 1) {
            const std::uint32_t middle = inside + (outside - inside) / 2;
            (is_inside(middle) ? inside : outside) = middle;
        }
        return outside * bytes;
    }

    /// Its threads are in several pieces, none of them a stream.
    bool is_scattered(const Access& access) {
        const auto threads = static_cast<std::uint32_t>(access.piece / access.first.bytes);
        if (access.piece >= long_piece || threads >= threads_) return false;
        const std::optional<std::int64_t> next = distance(access.first, 0, threads);
        return next && std::abs(*next) >= std::max(line, 2 * access.piece);
    }

    bool continues(const Access& access, std::uint64_t stride) {
        const std::optional<std::int64_t> next = distance(access.first, stride);
        return next && *next != 0 && std::abs(*next) <= std::max(line, access.piece);
    }

    /// How many CTAs `stride` apart lie equally far from each other, the first one included.
    std::uint64_t count_of(const Access& access, std::uint64_t stride) {
        const std::optional<std::int64_t> step = distance(access.first, stride);
        if (!step) return 1;
        const std::uint64_t most = (ctas_ - 1) / stride;
        const auto is_even = [&](std::uint64_t times) {
            const std::optional<std::int64_t> next = distance(access.first, stride * times);
            return next && static_cast<std::uint64_t>(*next) == static_cast<std::uint64_t>(*step) * times;
        };
        std::uint64_t even = 1, uneven = 2;
        while (uneven <= most && is_even(uneven)) {
            even = uneven;
            uneven *= 2;
        }
        uneven = std::min(uneven, most + 1);
        while (uneven - even > 1) {
            const std::uint64_t middle = even + (uneven - even) / 2;
            (is_even(middle) ? even : uneven) = middle;
        }
        return even + 1;
    }

    bool is_worth(const Access& access, std::uint64_t stride) {
        return stride > 1 && stride < ctas_ / least_count && continues(access, stride) &&
               count_of(access, stride) >= least_count;
    }

    CtaWalk walk_of(const Access& access) {
        const std::optional<std::int64_t> next = distance(access.first, 1);
        if (!next || std::abs(*next) < far || stays_in_caches(access, *next)) return {};
        if (const CtaWalk walk = uneven_columns(access, *next)) return walk;
        const auto along = [&](std::uint64_t stride) -> CtaWalk {
            if (!is_worth(access, stride)) return {};
            const std::uint64_t columns = count_of(access, stride);
            return {stride * columns, columns};
        };
        for (std::uint64_t stride = 2; stride <= looked_at; ++stride)
            if (const CtaWalk walk = along(stride)) return walk;
        std::uint64_t stride = 1;
        for (unsigned level = 0; level < most_levels && stride < ctas_ / least_count; ++level) {
            if (const CtaWalk walk = along(stride)) return walk;
            stride *= count_of(access, stride);
        }
        return {};
    }

    /// Whether a column's lines are still there when the next column wants them: it is short, and its rows do not share
    /// a few sets. (768 rows of 201,028 bytes: 30 ms in order, 59 along the rows.)
    bool stays_in_caches(const Access& access, std::int64_t step) {
        constexpr std::uint64_t way = 1 << 16, most_lines = 1024; // a sixteenth of 1 MB in 16 ways
        const std::int64_t row = std::abs(pitch_of(access));
        if (access.piece >= line || row == 0) return false;
        const std::uint64_t rows = count_of(access, 1) * static_cast<std::uint64_t>(std::abs(step) / row);
        const std::uint64_t shared = std::gcd(static_cast<std::uint64_t>(row), way) / line; // sets apart
        return rows * std::max<std::uint64_t>(shared, 1) <= most_lines;
    }

    /// From one piece of a CTA to its next.
    std::int64_t pitch_of(const Access& access) {
        return distance(access.first, 0, static_cast<std::uint32_t>(access.piece / access.first.bytes)).value_or(0);
    }

    /// Columns that need not end where a CTA does: each begins where a CTA is not as far from the one before as in the
    /// first. Column 2n begins at most one CTA before twice where column n does.
    CtaWalk uneven_columns(const Access& access, std::int64_t step) {
        constexpr std::uint64_t least_length = 3, most_columns = 4096;
        const auto begins = [&](std::uint64_t cta) {
            if (cta >= ctas_) return cta == ctas_;
            const std::optional<std::int64_t> before = distance(access.first, cta - 1),
                                              at = distance(access.first, cta);
            return !before || !at || *at - *before != step;
        };
        std::uint64_t begin = count_of(access, 1), columns = 1;
        if (begin < least_length || begin >= ctas_ || !is_beside(access, begin, step)) return {};
        for (; columns < most_columns; columns *= 2) {
            if (begins(2 * begin - 1))
                begin = 2 * begin - 1;
            else if (begins(2 * begin))
                begin = 2 * begin;
            else
                break;
        }
        return columns >= least_count ? CtaWalk{begin, columns} : CtaWalk{};
    }

    /// A CTA that begins in the first one's rows, or pieces, and beside them.
    bool is_beside(const Access& access, std::uint64_t cta, std::int64_t step) {
        const std::int64_t reach = std::max(line, access.piece), row = std::abs(pitch_of(access));
        const std::optional<std::int64_t> from_first = distance(access.first, cta);
        if (row == 0 || !from_first) return false;
        const std::int64_t behind = std::abs(*from_first) % row, beside = std::min(behind, row - behind);
        return beside != 0 && beside <= reach && std::abs(*from_first) <= std::abs(step) + reach;
    }

    translator::AddressFinder finder_;
    const std::array<std::uint32_t, 3>&grid_, &block_;
    const std::uint64_t ctas_;
    const std::uint32_t threads_;
    std::vector<Access> accesses_;
};

} // namespace

CtaWalk choose_cta_walk(const translator::AddressProgram& program, std::span<const std::uint8_t> parameters,
                        const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block) {
    return program.steps.empty() ? CtaWalk{} : WalkFinder(program, parameters, grid, block).find();
}

} // namespace ptarmigan::runtime
