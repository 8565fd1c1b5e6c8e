// SPDX-License-Identifier: Apache-2.0
#include "translator/lower/call_buffer.h"

#include "translator/lower/lane_math.h"

#include <cstring>

namespace ptarmigan::translator::lower {

namespace {

llvm::Type* words_of(WarpEmitter& e, std::size_t bytes) {
    return llvm::ArrayType::get(e.ir().getInt64Ty(), bytes / 8);
}

llvm::Align element_alignment(llvm::Type* type, unsigned alignment) {
    return llvm::Align(alignment ? alignment : type->getScalarSizeInBits() / 8);
}

} // namespace

CallBuffer::CallBuffer(WarpEmitter& e, std::size_t bytes, const char* name)
    : CallBuffer(e, e.entry_alloca(words_of(e, bytes), name)) {}

PassingCallBuffer::PassingCallBuffer(WarpEmitter& e, std::size_t bytes, unsigned alignment)
    : CallBuffer(e, e.take_lane_slot(words_of(e, bytes))) {
    buffer_->setAlignment(llvm::Align(alignment));
}

llvm::Value* CallBuffer::place(std::size_t offset) {
    return e_.ir().CreateConstInBoundsGEP1_64(e_.ir().getInt8Ty(), buffer_, offset);
}

void CallBuffer::store(std::size_t offset, llvm::Value* value) {
    e_.ir().CreateStore(value, place(offset));
}

void CallBuffer::store_number(std::size_t offset, std::uint64_t number) {
    store(offset, e_.ir().getInt32(std::uint32_t(number)));
}

void CallBuffer::store_form(std::size_t offset, const ptx::MatrixForm& form) {
    std::uint64_t words[2];
    static_assert(sizeof words == sizeof form);
    std::memcpy(words, &form, sizeof words);
    for (unsigned i = 0; i < 2; ++i) store(offset + 8 * i, e_.ir().getInt64(words[i]));
}

void CallBuffer::store_lanes(std::size_t offset, llvm::Value* lanes, unsigned alignment) {
    e_.ir().CreateAlignedStore(lanes, place(offset), element_alignment(lanes->getType(), alignment));
}

llvm::Value* CallBuffer::load_lanes(std::size_t offset, llvm::Type* scalar, unsigned alignment) {
    return e_.ir().CreateAlignedLoad(e_.lanes_type(scalar), place(offset), element_alignment(scalar, alignment));
}

llvm::Value* CallBuffer::bits_of(const ptx::Operand& operand, unsigned bits) {
    Ir& ir = e_.ir();
    return ir.CreateZExtOrTrunc(to_bits(ir, e_.lanes(operand)), e_.lanes_type(ir.getIntNTy(bits)));
}

void CallBuffer::call_always(unsigned service) {
    e_.call_service(service, e_.ir().getVoidTy(), {e_.cta_context(), e_.step_index(), buffer_});
}

void CallBuffer::call(unsigned service) {
    if (e_.all_active())
        call_always(service);
    else
        e_.if_then(e_.any(e_.active()), [&] { call_always(service); });
}

} // namespace ptarmigan::translator::lower
