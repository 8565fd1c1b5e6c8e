// SPDX-License-Identifier: Apache-2.0
// Accesses to memory that the CTA's threads share, and whether those of two threads in different steps may meet.
#pragma once

#include "translator/analysis/arithmetic/thread_sums.h"
#include "translator/analysis/arithmetic/value_ranges.h"

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>

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

    /// In the order of blocks and instructions. Plain and volatile loads and stores, atomics, cp.async, what bulk
    /// copies of a fixed size to global memory read; what moves under an mbarrier is not among them. Generic addresses
    /// are of shared memory where they are computed from a .shared variable.
    const std::vector<SharedAccess>& all() const { return all_; }
    /// The operand that names the place.
    const ptx::Operand& operand(const SharedAccess& access) const;

    /// Does a thread come to the word of `first` that a thread of another step comes to in `second`, later and before
    /// the CTA meets? `passed`: the blocks entered between, in which values may have become others. Of global memory
    /// only what is known to meet counts: pointers may be to one array, but mostly are not.
    Encounter encounter(const SharedAccess& first, const SharedAccess& second, const std::vector<bool>& passed);

    /// What encounter() looks at of an access: two pairs of the same kinds, with the same difference of their `base`s,
    /// meet alike. In unrolled code there are few kinds.
    struct Kind {
        std::size_t id = 0;
        std::int64_t base = 0;
    };
    /// Not for global memory.
    Kind kind(const SharedAccess& access);
    /// The blocks of which encounter() asks whether they were passed, for accesses of this kind, each once.
    const std::vector<BlockId>& asked_blocks(const Kind& kind) const { return kind_facts_[kind.id].asked_blocks; }
    /// Accesses of two kinds never meet where the difference of their bases is `reach` or more from each multiple of
    /// `period` (from 0 if that is 0), whatever was passed.
    struct Spacing {
        std::int64_t period = 0;
        std::int64_t reach = INT64_MAX; ///< this: they may meet anywhere
    };
    Spacing spacing(std::size_t kind, std::size_t other) const;

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
    bool tells_of_addresses(const LinearSum& fact);
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
    /// Whether plain, atomic or anywhere, global; bytes; variable; terms; numbers from the first one on; threads;
    /// facts.
    using Terms = std::map<LinearSum::Term, std::int64_t>;
    using KindKey =
        std::tuple<unsigned, std::uint32_t, std::optional<std::uint32_t>, Terms, Terms, std::vector<std::int64_t>,
                   std::vector<bool>, std::vector<std::pair<std::int64_t, Terms>>>;
    std::map<KindKey, std::size_t> kinds_;
    struct KindFacts {
        std::vector<BlockId> asked_blocks;
        std::uint64_t divisor = 0;           ///< of the factors of all that is not known; 0: all is known
        std::int64_t spread = INT64_MAX / 8; ///< how far a thread may be from the base, with the bytes; this: anywhere
    };
    std::vector<KindFacts> kind_facts_;                      ///< by kind
    std::optional<std::set<LinearSum::Term>> address_terms_; ///< of all accesses to shared memory
    std::vector<Interval> ranges_;                           ///< when first asked
};

} // namespace ptarmigan::translator
