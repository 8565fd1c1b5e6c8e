// SPDX-License-Identifier: Apache-2.0
// No code is generated for AArch64: rows move and reductions go by the portable code.
#include "runtime/copy_engine/reduction_code.h"
#include "runtime/copy_engine/row_code.h"

namespace ptarmigan::runtime {

RowVectors row_vectors() {
    return RowVectors::none;
}
const RowCode* row_code(const RowShape&, RowVectors) {
    return nullptr;
}
ReduceRun reduce_run_generated(BulkReduction, TensorType) {
    return nullptr;
}

} // namespace ptarmigan::runtime
