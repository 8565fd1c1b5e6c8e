// SPDX-License-Identifier: Apache-2.0
// Litmus shapes of the PTX memory model (manual, chapter 8): a few threads, a few locations, an outcome that some orderings forbid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace litmus {

/// How strong the accesses and the fences between them are.
enum class Ordering {
    relaxed,          ///< ld.relaxed, st.relaxed, no fences
    release_acquire,  ///< ld.acquire, st.release, no fences
    fence_acq_rel,    ///< relaxed accesses, fence.acq_rel
    fence_sc,         ///< relaxed accesses, fence.sc
    membar,           ///< ld.volatile, st.volatile, membar
    atomics,          ///< atom.or.acquire and atom.exch.release
};
inline constexpr Ordering all_orderings[] = {Ordering::relaxed, Ordering::release_acquire, Ordering::fence_acq_rel,
                                             Ordering::fence_sc, Ordering::membar, Ordering::atomics};
const char* name_of(Ordering ordering);

/// Where the threads of a shape are: lanes of one warp, warps of one CTA, CTAs.
enum class Placement { lanes, warps, ctas };
inline constexpr Placement all_placements[] = {Placement::lanes, Placement::warps, Placement::ctas};
const char* name_of(Placement placement);

struct Operation {
    enum class Kind { write, read, fence } kind;
    unsigned location = 0;
    unsigned value = 0; ///< written; of a read: the number of its result
};

inline constexpr unsigned most_locations = 3, most_results = 4;

/// An outcome: what each result is, and what each location holds in the end; any_value where it does not matter.
struct Outcome {
    static constexpr unsigned any_value = ~0u;
    unsigned results[most_results], locations[most_locations];
};

struct Shape {
    std::string name;
    std::vector<std::vector<Operation>> threads;
    Outcome outcome;
    std::vector<Ordering> forbidden_by;
};
const std::vector<Shape>& shapes();

/// PTX of a kernel k(memory, results, instances, counter): runs the shape `instances` times (a multiple of 1024), each on locations of its
/// own: location i of instance n is word i * instances + n of the memory, result i likewise. `scope` is "cta", "gpu" or "sys".
std::string text_of(const Shape& shape, Ordering ordering, Placement placement, const std::string& scope);
struct Extent {
    unsigned grid, block;
};
Extent extent_of(const Shape& shape, Placement placement);

} // namespace litmus
