// SPDX-License-Identifier: Apache-2.0
// Accuracy::fast for bf16 on CPUs with AVX512_BF16: two products a lane and instruction. Subnormal numbers count as
// zero there, and pairs of products are rounded.
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_avx512.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

struct PairProducts {
    static Lanes::Float add(Lanes::Float lanes, Lanes::Float of_line, Lanes::Float sum) {
        return _mm512_dpbf16_ps(sum, (__m512bh)Lanes::bits(lanes), (__m512bh)Lanes::bits(of_line));
    }
};

} // namespace
} // namespace ptarmigan::runtime::tensor_core

#include "runtime/tensor_core/pair_lanes.h"

namespace ptarmigan::runtime::tensor_core {

Multiply avx512_bf16_multiplier(const MatrixProduct& product) {
    return pair_code(product);
}

MultiplyGroup avx512_bf16_group_multiplier(const MatrixProduct& product) {
    return pair_group_code(product);
}

} // namespace ptarmigan::runtime::tensor_core
