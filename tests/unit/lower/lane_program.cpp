// SPDX-License-Identifier: Apache-2.0
// See lane_program.h.
#include "lane_program.h"

#include "translator/jit/backend.h"

#include <llvm/IR/LLVMContext.h>

namespace ptarmigan::translator {

using llvm::Value;

LaneEmitter::LaneEmitter(llvm::LLVMContext& context, const LaneProgramOptions& options,
                         const CompileOptions& compile_options, llvm::Function* function)
    : WarpEmitter(context, options.width, compile_options), function_(function), full_(options.full_mask) {
    load_.form = ptx::FormId::ld;
    current_ = &load_;
    ir_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function));
}

Value* LaneEmitter::slot(unsigned argument, unsigned index) {
    return ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), function_->getArg(argument), index * sizeof(LaneSlot));
}

LaneValue LaneEmitter::varying_input(unsigned index, llvm::Type* scalar) {
    if (scalar->isIntegerTy(1)) {
        Value* bytes = ir_.CreateAlignedLoad(lanes_type(ir_.getInt8Ty()), slot(1, index), llvm::Align(64));
        return LaneValue::varying(ir_.CreateTrunc(bytes, lanes_type(scalar)));
    }
    return LaneValue::varying(ir_.CreateAlignedLoad(lanes_type(scalar), slot(1, index), llvm::Align(64)));
}

LaneValue LaneEmitter::uniform_input(unsigned index, llvm::Type* scalar) {
    return LaneValue::uniform(ir_.CreateAlignedLoad(scalar, slot(1, index), llvm::Align(16)));
}

void LaneEmitter::output(unsigned index, const LaneValue& value) {
    Value* lanes = broadcast(value);
    if (scalar_of(lanes->getType())->isIntegerTy(1)) lanes = ir_.CreateZExt(lanes, lanes_type(ir_.getInt8Ty()));
    ir_.CreateAlignedStore(lanes, slot(2, index), llvm::Align(64));
}

Value* LaneEmitter::context_field(llvm::Type* type, unsigned byte_offset, std::string_view name) {
    Value* place = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), function_->getArg(0), byte_offset);
    return ir_.CreateLoad(type, place, llvm::StringRef(name.data(), name.size()));
}

LaneValue LaneEmitter::read(const ptx::Operand& operand) {
    if (operand.kind == ptx::Operand::Kind::imm)
        return LaneValue::uniform(constant_like(type(operand.type), operand.value, ir_.getInt32(0)));
    return registers.at(operand.index);
}

void LaneEmitter::write(const ptx::Operand& destination, const LaneValue& value) {
    if (destination.kind == ptx::Operand::Kind::reg) output(destination.index, value);
}

LaneAddress LaneEmitter::address(const ptx::Operand& operand, ptx::StateSpace space) {
    LaneAddress result = addresses.at(operand.index);
    result.space = space;
    return result;
}

LaneProgram::LaneProgram(const LaneProgramOptions& options, const std::function<void(LaneEmitter&)>& body) {
    CompileOptions compile_options;
    compile_options.target = named_target(options.target);
    llvm::LLVMContext context;
    llvm::Module module("lane program", context);
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         {pointer, pointer, pointer, llvm::Type::getInt64Ty(context)}, false);
    auto* function =
        llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "ptarmigan_kernel", module);
    {
        LaneEmitter emitter(context, options, compile_options, function);
        body(emitter);
        emitter.ir().CreateRetVoid();
    }
    image_ = runtime::LoadedImage::load(build_image(module, compile_options.target, nullptr), "lane program");
}

void LaneProgram::run(abi::CtaContext& context, const std::vector<LaneSlot>& in, std::vector<LaneSlot>& out,
                      std::uint64_t mask) const {
    using Entry = void (*)(abi::CtaContext*, const LaneSlot*, LaneSlot*, std::uint64_t);
    reinterpret_cast<Entry>(const_cast<void*>(image_->entry()))(&context, in.data(), out.data(), mask);
}

ptx::Instruction instruction(ptx::FormId form, std::initializer_list<ptx::Modifier> modifiers, ptx::ScalarType type,
                             std::initializer_list<ptx::Operand> operands) {
    ptx::Instruction inst;
    inst.form = form;
    inst.types[0] = type;
    for (ptx::Modifier modifier : modifiers) inst.modifiers[inst.modifier_count++] = modifier;
    for (const ptx::Operand& operand : operands) inst.operands[inst.operand_count++] = operand;
    return inst;
}

ptx::Operand reg(std::uint32_t index, ptx::ScalarType type) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::reg;
    operand.index = index;
    operand.type = type;
    return operand;
}

ptx::Operand imm(std::uint64_t value, ptx::ScalarType type) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::imm;
    operand.value = value;
    operand.type = type;
    return operand;
}

ptx::Operand at(std::uint32_t index) {
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::address;
    operand.base = ptx::Operand::Base::reg;
    operand.index = index;
    return operand;
}

ptx::Operand none() { return {}; }

} // namespace ptarmigan::translator
