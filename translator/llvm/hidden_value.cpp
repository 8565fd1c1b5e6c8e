// SPDX-License-Identifier: Apache-2.0
#include "translator/llvm/hidden_value.h"

#include <llvm/IR/InlineAsm.h>

namespace ptarmigan::translator {

using namespace llvm;

/// Inline assembly without a text needs no assembler and has no effect: a copy to the register where the value is.
static Value* copied(IRBuilder<>& ir, Value* value, const char* constraints) {
    Type* type = value->getType();
    return ir.CreateCall(InlineAsm::get(FunctionType::get(type, {type}, false), "", constraints, false), {value});
}

Value* hidden_value(IRBuilder<>& ir, Value* value) {
    Type* type = value->getType();
    const auto bits = unsigned(type->getPrimitiveSizeInBits());
    if (type->isVectorTy() && bits >= 8) return copied(ir, value, "=k,0");
    Type* integer = ir.getIntNTy(bits);
    Type* register_type = bits < 8 ? ir.getInt8Ty() : integer;
    Value* whole = ir.CreateZExt(ir.CreateBitCast(value, integer), register_type);
    return ir.CreateBitCast(ir.CreateTrunc(copied(ir, whole, "=r,0"), integer), type);
}

} // namespace ptarmigan::translator
