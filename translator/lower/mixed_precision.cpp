// SPDX-License-Identifier: Apache-2.0
// Mixed precision (manual 9.7.5): half operands widened, which is exact, then a float operation.
#include "translator/lower/floating_point.h"

namespace ptarmigan::translator::lower {

void mixed_precision(WarpEmitter& e, const Instruction& inst) {
    FloatOptions options = float_options(inst);
    std::string_view opcode = ptx::form_info(inst.form).opcode;
    if (opcode == "fma") {
        e.map(inst, {Role::a, Role::b, Role::c}, [&](Ir& ir, Values v) {
            Value* operands[] = {widen_to_float(ir, v[0]), widen_to_float(ir, v[1]), v[2]};
            return float_arithmetic(e, FloatOperation::fma, operands, options);
        });
        return;
    }
    FloatOperation operation = opcode == "sub" ? FloatOperation::sub : FloatOperation::add;
    e.map(inst, {Role::a, Role::c}, [&](Ir& ir, Values v) {
        Value* operands[] = {widen_to_float(ir, v[0]), v[1]};
        return float_arithmetic(e, operation, operands, options);
    });
}

} // namespace ptarmigan::translator::lower
