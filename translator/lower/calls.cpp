// SPDX-License-Identifier: Apache-2.0
// Functions that the runtime provides to device code: vprintf, malloc, free, __assertfail. See calls.h.
#include "translator/lower/calls.h"

#include "frontend/ptx/provided_functions.h"
#include "translator/kernel_abi.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/memory_access.h"

#include <fmt/format.h>

namespace ptarmigan::translator::lower {

namespace {

MemoryAccess parameter_place(WarpEmitter& e, const ptx::Operand& operand, ScalarType type) {
    MemoryAccess access;
    access.address = e.address(operand, ptx::StateSpace::param);
    access.element = e.type(type);
    access.bytes = ptx::byte_size(type);
    return access;
}

bool is_variable(const ptx::Operand& operand) {
    return operand.kind == ptx::Operand::Kind::variable || operand.kind == ptx::Operand::Kind::address;
}

} // namespace

LaneArray call_argument(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function, unsigned index) {
    const ptx::Operand& list = inst[Role::a];
    if (index >= list.count || index >= function.parameters.size())
        e.unsupported(fmt::format("too few arguments for {}", function.name));
    const ptx::Variable& parameter = function.parameters[index];
    ptx::Operand operand = e.element(list, index);
    if (is_variable(operand) && parameter.size != ptx::byte_size(parameter.type))
        return {e, e.broadcast(e.address(operand, ptx::StateSpace::param).address)};
    operand.type = parameter.type;
    if (is_variable(operand)) return {e, e.broadcast(load_lanes(e, parameter_place(e, operand, operand.type)).front())};
    return {e, e.lanes(operand)};
}

void write_call_result(WarpEmitter& e, const ptx::Instruction& inst, Value* lanes) {
    const ptx::Operand& list = inst[Role::d];
    if (list.kind == ptx::Operand::Kind::none || list.count == 0) return;
    const ptx::Operand& target = e.element(list, 0);
    if (!is_variable(target)) {
        e.write(target, LaneValue::varying(lanes));
        return;
    }
    bool wide = lanes->getType()->getScalarSizeInBits() == 64;
    store_lanes(e, parameter_place(e, target, wide ? ScalarType::b64 : ScalarType::b32), LaneValue::varying(lanes));
}

namespace {

Value* line_of(WarpEmitter& e, const ptx::Instruction& inst) {
    return e.ir().getInt32(inst.location.line);
}

void call_vprintf(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function) {
    Ir& ir = e.ir();
    LaneArray format = call_argument(e, inst, function, 0), arguments = call_argument(e, inst, function, 1);
    LaneArray results(e, llvm::Constant::getNullValue(e.lanes_type(ir.getInt32Ty())));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        results.set(lane,
                    e.call_service(offsetof(abi::Services, vprintf), ir.getInt32Ty(),
                                   {e.cta_context(), pointer(e, format.get(lane)), pointer(e, arguments.get(lane))}));
    });
    write_call_result(e, inst, results.vector());
}

void call_malloc(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function) {
    Ir& ir = e.ir();
    LaneArray size = call_argument(e, inst, function, 0);
    LaneArray results(e, llvm::Constant::getNullValue(e.lanes_type(ir.getInt64Ty())));
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        Value* block =
            e.call_service(offsetof(abi::Services, device_malloc), ir.getPtrTy(), {e.cta_context(), size.get(lane)});
        results.set(lane, ir.CreatePtrToInt(block, ir.getInt64Ty()));
    });
    write_call_result(e, inst, results.vector());
}

void call_free(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function) {
    Ir& ir = e.ir();
    LaneArray block = call_argument(e, inst, function, 0);
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        e.call_service(offsetof(abi::Services, device_free), ir.getVoidTy(),
                       {e.cta_context(), pointer(e, block.get(lane)), e.step_index(), lane, line_of(e, inst)});
    });
}

/// __assertfail(message, file, line, function, character size): each lane prints its message, then the kernel ends.
void call_assert_fail(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function) {
    Ir& ir = e.ir();
    LaneArray message = call_argument(e, inst, function, 0), file = call_argument(e, inst, function, 1);
    LaneArray line = call_argument(e, inst, function, 2), name = call_argument(e, inst, function, 3);
    LaneArray character_size = call_argument(e, inst, function, 4);
    e.for_each_lane(e.active_bits(), [&](Value* lane) {
        e.call_service(offsetof(abi::Services, assert_fail), ir.getVoidTy(),
                       {e.cta_context(), e.step_index(), lane, pointer(e, message.get(lane)),
                        pointer(e, file.get(lane)), line.get(lane), pointer(e, name.get(lane)),
                        character_size.get(lane)});
    });
    auto end_kernel = [&] { e.trap(e.active_bits(), std::uint32_t(abi::Fault::assertion)); };
    if (e.all_active())
        end_kernel();
    else
        e.if_then(e.any(e.active()), end_kernel, false);
}

struct RuntimeFunction {
    std::string_view name;
    void (*lower)(WarpEmitter&, const ptx::Instruction&, const ptx::Function&);
};

constexpr RuntimeFunction runtime_functions[] = {
    {"vprintf", call_vprintf},
    {"malloc", call_malloc},
    {"free", call_free},
    {"__assertfail", call_assert_fail},
};

static_assert(std::size(runtime_functions) == std::size(ptx::provided_functions) &&
                  std::all_of(std::begin(runtime_functions), std::end(runtime_functions),
                              [](const RuntimeFunction& f) { return ptx::is_provided_function(f.name); }),
              "the linker must know what is provided");

} // namespace

void runtime_call(WarpEmitter& e, const ptx::Instruction& inst, const ptx::Function& function) {
    for (const RuntimeFunction& known : runtime_functions) {
        if (known.name != function.name) continue;
        known.lower(e, inst, function);
        return;
    }
    if (auto which = ptx::device_runtime_function(function.name)) return device_runtime_call(e, inst, function, *which);
    e.unsupported(fmt::format("call of {}, which has no body in this module", function.name));
}

} // namespace ptarmigan::translator::lower
