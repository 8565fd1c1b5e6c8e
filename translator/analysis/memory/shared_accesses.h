// SPDX-License-Identifier: Apache-2.0
// Accesses to memory that the CTA's threads share, and whether those of two threads in different steps may meet.
#pragma once

#include "translator/analysis/arithmetic/thread_sums.h"
#include "translator/analysis/arithmetic/value_ranges.h"

namespace ptarmigan::translator {

/// Of two accesses, by threads of different steps.
enum class Encounter : std::uint8_t {
    never,
    maybe,
    likely ///< the addresses are known, or known but for one number that the threads have in common
};

/// What the functions do that a kernel calls for real.
struct CalledFunctions {
    bool share = false; ///< some read or write shared memory
    bool meet = false;  ///< in some the CTA's threads wait at a barrier
};

struct SharedAccess {
    BlockId block = no_block;
    std::size_t index = 0; ///< in the block
    bool reads = false, writes = false, is_atomic = false;
    bool is_anywhere = false; ///< may come to any place of shared memory: a called function, a matrix of unknown size
    bool is_global = false;   ///< or of generic memory that nobody knows
    std::uint32_t bytes = 0;
    std::optional<std::uint32_t> variable; ///< that the address is inside of, as far as it tells
};

/// Compares addresses thread by thread where the block shape fixes them, else by what is known of them. On demand; as
/// linear_sums.h says, integers are taken not to wrap. Needs shapes for `width` lanes a step; the graph must stay as it
/// is.
class SharedAccesses {
public:
    SharedAccesses(const FunctionGraph& graph, const BlockShape& block, unsigned width, const CalledFunctions& called);

    /// In the order of blocks and instructions. Plain and volatile loads and stores, atomics, cp.async; what moves
    /// under an mbarrier is not among them. Generic addresses are of shared memory where they are computed from a
    /// .shared variable.
    const std::vector<SharedAccess>& all() const { return all_; }

    /// Does a thread come to the word of `first` that a thread of another step comes to in `second`, later and before
    /// the CTA meets? `passed`: the blocks entered between, in which values may have become others. Of global memory
    /// only what is known to meet counts: pointers may be to one array, but mostly are not.
    Encounter encounter(const SharedAccess& first, const SharedAccess& second, const std::vector<bool>& passed);

    /// Both are at one address, which is a number of each thread that is not known.
    bool have_one_address(const SharedAccess& a, const SharedAccess& b);

private:
    struct Known {
        ThreadSum address;
        ThreadSet set;
    };
    struct Span {
        std::int64_t low = 0, high = 0;
        bool bounded = true;
    };
    const Known& known(const SharedAccess& access);
    std::optional<std::uint32_t> variable_of(const ptx::Operand& address) const;
    std::optional<std::uint32_t> variable_of(ValueId value, unsigned& phis_left) const;
    bool are_apart(const SharedAccess& first, const SharedAccess& second) const;
    bool is_settled(const LinearSum::Term& term, const std::vector<bool>& passed) const;
    Span span_of(const LinearSum::Term& term, std::int64_t factor);
    bool facts_keep_apart(const Known& first, const Known& second, std::uint32_t first_bytes,
                          std::uint32_t second_bytes, const LinearSum::Term& term, std::int64_t factor,
                          const std::vector<bool>& passed);

    const FunctionGraph& graph_;
    const BlockShape& block_;
    const unsigned width_;
    ThreadSums sums_;
    std::vector<SharedAccess> all_;
    std::map<std::pair<BlockId, std::size_t>, Known> known_;
    std::vector<Interval> ranges_; ///< when first asked
};

} // namespace ptarmigan::translator
