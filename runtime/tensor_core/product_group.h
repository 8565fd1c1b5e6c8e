// SPDX-License-Identifier: Apache-2.0
// Products of one form that a kernel makes together: chains of them, whose accumulators and operands are each brought
// into the engine's layout once.
#pragma once

#include "runtime/tensor_core/matrix_product.h"
#include "runtime/tensor_core/product_code.h"
#include "translator/matrix_call.h"

#include <cstddef>

namespace ptarmigan::runtime::tensor_core {

/// `a`, `b`: a_count and b_count matrices as multiply() takes them, behind each other; `accumulators`: matrices of C's
/// type, which is D's. Each of the chains replaces accumulator `d` by accumulator `c` plus its products, one after the
/// other; chains are done in order.
struct ProductGroup {
    const void *a, *b;
    void* accumulators;
    unsigned a_count, b_count;
    const abi::MatrixStep* steps;
    const abi::MatrixChain* chains;
    unsigned chain_count;
};

using MultiplyGroup = void (*)(const MatrixProduct&, const ProductGroup&);

/// What multiplies groups of such products, dense ones with C and D of one type; null: nothing but one after the other
/// does. `code`: as for multiplier(), amx where that can run.
MultiplyGroup group_multiplier(Code code, const MatrixProduct& product, Accuracy accuracy);

/// As group_multiplier(), or one by one, by the best code of this CPU and as accurate as PTARMIGAN_MMA says; chosen
/// once.
class GroupMultiplier {
public:
    explicit GroupMultiplier(const MatrixProduct& product);
    void operator()(const ProductGroup& group) const;

private:
    MatrixProduct product_;
    MultiplyGroup code_;
    Multiply single_;
};

/// As multiplier() for each product of a group.
void multiply_one_by_one(Multiply multiply, const MatrixProduct& product, const ProductGroup& group);

/// Bytes of a matrix.
std::size_t bytes_of_a(const MatrixProduct& product);
std::size_t bytes_of_b(const MatrixProduct& product);
std::size_t bytes_of_accumulator(const MatrixProduct& product);

/// The calling thread's memory for a group's matrices in the engine's layout, at least `bytes`, from an address on that
/// is a multiple of 64. Held until the thread ends; what was in it may be gone after the next call. `place`: 0 for
/// dense matrices, 1 for packed ones, 2 for those whose elements are parted.
std::uint8_t* group_memory(unsigned place, std::size_t bytes);

} // namespace ptarmigan::runtime::tensor_core
