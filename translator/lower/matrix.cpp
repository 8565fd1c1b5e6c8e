// SPDX-License-Identifier: Apache-2.0
// mma, mma.sp and wmma.mma (manual 9.7.14.4.5, 9.7.14.5.14, 9.7.14.6.3). Loads and stores of matrices are in
// matrix_memory.cpp, ldmatrix and its like in matrix_rows.cpp.
#include "translator/analysis/build/product_groups.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/matrix_call.h"

namespace ptarmigan::translator::lower {

using ptx::MatrixOperand;

void matrix_product(WarpEmitter& e, const Instruction& inst) {
    if (const ProductGroup* group = whole_warp(e) ? e.product_group(inst) : nullptr) {
        if (group->products.front() == &inst) call_matrix_group(e, inst, *group); // the others are done with it
        return;
    }
    MatrixCallBuffer call(e, inst);
    call.set(MatrixOperand::a, inst[Role::a]);
    call.set(MatrixOperand::b, inst[Role::b]);
    call.set(MatrixOperand::c, inst[Role::c]);
    const ptx::Operand& metadata = inst[Role::e];
    if (metadata.kind != ptx::Operand::Kind::none) call.set_metadata(metadata, std::uint32_t(inst[Role::f].value));
    const ptx::Operand& scales = inst[Role::scale_a];
    if (scales.kind != ptx::Operand::Kind::none)
        call.set_scales(scales, inst[Role::ids_a], inst[Role::scale_b], inst[Role::ids_b]);
    call.run();
    call.write(inst[Role::d]);
}

} // namespace ptarmigan::translator::lower
