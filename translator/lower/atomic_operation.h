// SPDX-License-Identifier: Apache-2.0
// What an atom or red instruction computes, apart from how it reaches memory.
#pragma once

#include "translator/lower/lane_math.h"

namespace ptarmigan::translator::lower {

struct AtomicOperation {
    enum class Kind : std::uint8_t { add, min, max, bit_and, bit_or, bit_xor, inc, dec, exch, cas };
    /// Who adds floating-point numbers. A multiprocessor, in shared memory, keeps f32 subnormals (manual 9.7.13.5) and
    /// quiets signalling NaNs; the L2 cache, in global memory, flushes the ones and keeps those of f64.
    enum class Adder : std::uint8_t { multiprocessor, cache, by_address };

    Kind kind = Kind::add;
    ScalarType type = ScalarType::u32;
    Adder adder = Adder::multiprocessor;

    bool is_float() const { return ptx::is_float(type) || ptx::type_class(type) == ptx::TypeClass::packed; }
    unsigned bits() const { return ptx::bit_size(type); }
    /// Integer operations that may be gathered over a warp before one access to memory.
    bool is_associative() const;
    /// Bits of the element that changes nothing; associative kinds only.
    std::uint64_t identity() const;
};

/// Reads the operation off the instruction. `space` decides who adds.
AtomicOperation atomic_operation(const Instruction& inst, ptx::StateSpace space);

/// The new contents of memory. All values are integers of operation.bits(), scalars or vectors; `c` is cas's new value,
/// `is_shared` (i1) is asked for only with Adder::by_address.
Value* combine(WarpEmitter& e, const AtomicOperation& operation, Value* old, Value* b, Value* c, Value* is_shared);

/// Reduction of a vector with an associative operation, and its exclusive prefixes (lane 0 gets the identity).
Value* reduce_lanes(WarpEmitter& e, const AtomicOperation& operation, Value* vector);
Value* exclusive_prefixes(WarpEmitter& e, const AtomicOperation& operation, Value* vector);

} // namespace ptarmigan::translator::lower
