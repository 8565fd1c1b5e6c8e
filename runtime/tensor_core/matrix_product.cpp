// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/matrix_product.h"

#include "runtime/base/env.h"
#include "runtime/tensor_core/scale_groups.h"
#include "runtime/tensor_core/vector_code.h"

namespace ptarmigan::runtime::tensor_core {

bool can_run(Code code) {
    return code == Code::portable || can_run_vectors(code);
}

Code best_code() {
    static const Code best = [] {
        Code last = Code::portable;
        for (const Code code : codes)
            if (can_run(code)) last = code;
        return last;
    }();
    return best;
}

namespace {

/// There may be vector code for such products.
bool is_known_to_vectors(const MatrixProduct& product) {
    if (product.unit == Unit::scaled) return product.scales == 1;
    return product.c_halvings == 0;
}

} // namespace

Multiply multiplier(Code code, const MatrixProduct& product, Accuracy accuracy) {
    if (code == Code::amx) code = Code::avx512;
    if (product.unit == Unit::scaled_groups && code != Code::portable) return multiply_scale_groups;
    if (!is_known_to_vectors(product)) return multiply_portably;
    const Multiply found = code == Code::portable ? nullptr : vector_multiplier(code, product, accuracy);
    return found ? found : multiply_portably;
}

void multiply(const MatrixProduct& product, const void* a, const void* b, const void* c, void* d,
              const std::uint8_t* selected, const Scales& scales) {
    const Multiplier multiplier(product);
    multiplier(a, b, c, d, selected, scales);
}

Accuracy wanted_accuracy() {
    static const Accuracy accuracy = env_text(Env::mma) == "fast" ? Accuracy::fast : Accuracy::exact;
    return accuracy;
}

Multiplier::Multiplier(const MatrixProduct& product)
    : product_(product), code_(multiplier(best_code(), product, wanted_accuracy())) {}

void Multiplier::operator()(const void* a, const void* b, const void* c, void* d, const std::uint8_t* selected,
                            const Scales& scales) const {
    code_(product_, {a, b, c, d, selected, scales});
}

} // namespace ptarmigan::runtime::tensor_core
