// SPDX-License-Identifier: Apache-2.0
// Accuracy::fast for bf16 on CPUs with FEAT_BF16: two products a lane and instruction (BFDOT). Subnormal numbers count
// as zero there, and sums are rounded to odd.
#include "runtime/tensor_core/vector_product.h"

#include "runtime/tensor_core/lanes_neon_aarch64.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

struct PairProducts {
    static Lanes::Float add(Lanes::Float lanes, Lanes::Float of_line, Lanes::Float sum) {
        return {vbfdotq_f32(sum.low, vreinterpretq_bf16_f32(lanes.low), vreinterpretq_bf16_f32(of_line.low)),
                vbfdotq_f32(sum.high, vreinterpretq_bf16_f32(lanes.high), vreinterpretq_bf16_f32(of_line.high))};
    }
};

} // namespace
} // namespace ptarmigan::runtime::tensor_core

#include "runtime/tensor_core/pair_lanes.h"

namespace ptarmigan::runtime::tensor_core {

Multiply neon_bf16_multiplier(const MatrixProduct& product) {
    return pair_code(product);
}

MultiplyGroup neon_bf16_group_multiplier(const MatrixProduct& product) {
    return pair_group_code(product);
}

} // namespace ptarmigan::runtime::tensor_core
