// SPDX-License-Identifier: Apache-2.0
// Where memory accesses go, as far as their addresses tell, and which of them may meet.
#pragma once

#include "translator/analysis/arithmetic/linear_sums.h"

#include <map>
#include <tuple>
#include <unordered_map>

namespace ptarmigan::translator {

/// The place of one access: an object and a distance from it.
struct MemoryPlace {
    enum class Root : std::uint8_t {
        unknown,
        parameter, ///< what a kernel parameter points to; `id` tells its place in the parameters
        variable,  ///< a variable; `id` tells scope and index
        loaded,    ///< what a pointer at a known place of memory points to; `id` numbers those places
    };
    Root root = Root::unknown;
    std::uint64_t id = 0;
    std::optional<LinearSum>
        distance; ///< from the root; from nothing where that is unknown, or went on from round to round
    ptx::StateSpace space = ptx::StateSpace::generic;
    std::uint32_t bytes = 0;
};

enum class Overlap : std::uint8_t {
    never,
    maybe,
    same_object, ///< and not at places that are known to be apart
    same_place,  ///< for one thread in one iteration
};

/// What different kernel parameters and variables point to is taken to be different memory: this is for questions of
/// speed and of progress, where a wrong answer costs no result.
class MemoryPlaces {
public:
    explicit MemoryPlaces(const FunctionGraph& graph) : graph_(graph), sums_(graph) {}

    /// Of an instruction of the graph with a memory operand in role `a`; unknown otherwise.
    const MemoryPlace& of(const ptx::Instruction& inst) const;
    Overlap overlap(const MemoryPlace& a, const MemoryPlace& b) const;
    const LinearSums& sums() const { return sums_; }

private:
    using Root = MemoryPlace::Root;
    struct Base {
        Root root = Root::unknown;
        std::uint64_t id = 0;
        bool operator==(const Base&) const = default;
    };
    MemoryPlace place_of(const ptx::Instruction& inst, unsigned loads_left) const;
    void see_through_copies(LinearSum& sum) const;
    Base take_base(LinearSum& sum, unsigned loads_left, unsigned& phis_left) const;
    std::uint64_t period_of(const LinearSum& sum, unsigned pointers) const;
    std::uint64_t granule(ValueId value, unsigned steps_left) const;
    Base base_of(ValueId value, unsigned loads_left, unsigned& phis_left) const;

    const FunctionGraph& graph_;
    const LinearSums sums_;
    /// Places that pointers were loaded from: root, its id, distance.
    mutable std::map<std::tuple<Root, std::uint64_t, std::int64_t>, std::uint64_t> pointers_;
    mutable std::unordered_map<const ptx::Instruction*, MemoryPlace> known_;
};

} // namespace ptarmigan::translator
