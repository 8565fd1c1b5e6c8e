// SPDX-License-Identifier: Apache-2.0
// Calls of CUDA's device runtime (kernels that launch kernels): each lane calls one service with the function's number.
#include "translator/kernel_abi.h"
#include "translator/lower/calls.h"
#include "translator/lower/lane_math.h"

#include <fmt/format.h>

namespace ptarmigan::translator::lower {

using llvm::Value;

void device_runtime_call(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function,
                         ptx::DeviceRuntime which) {
    Ir& ir = e.ir();
    const unsigned result_bytes = function.returns.empty() ? 4 : unsigned(function.returns[0].size);
    if (function.returns.size() > 1 || (result_bytes != 4 && result_bytes != 8))
        e.unsupported(fmt::format("{} with such a result", function.name));
    llvm::SmallVector<LaneArray, 8> arguments;
    for (unsigned i = 0; i < function.parameters.size(); ++i) arguments.push_back(call_argument(e, inst, function, i));
    llvm::Type* word = ir.getInt64Ty();
    llvm::AllocaInst* words = e.entry_alloca(word, "arguments", ir.getInt32(unsigned(arguments.size()) + 1));
    llvm::Type* result = ir.getIntNTy(result_bytes * 8);
    LaneArray results(e, llvm::Constant::getNullValue(e.lanes_type(result)));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        for (unsigned i = 0; i < arguments.size(); ++i) {
            Value* argument = arguments[i].get(lane);
            argument = ir.CreateBitCast(argument, ir.getIntNTy(argument->getType()->getScalarSizeInBits()));
            ir.CreateStore(ir.CreateZExtOrTrunc(argument, word), ir.CreateConstInBoundsGEP1_64(word, words, i));
        }
        Value* answer =
            e.call_service(offsetof(abi::Services, device_runtime), word,
                           {e.cta_context(), e.step_index(), lane, ir.getInt32(std::uint32_t(which)), words});
        results.set(lane, ir.CreateTrunc(answer, result));
    });
    write_call_result(e, inst, results.vector());
}

} // namespace ptarmigan::translator::lower
