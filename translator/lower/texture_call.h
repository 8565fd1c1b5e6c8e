// SPDX-License-Identifier: Apache-2.0
// What texture and surface instructions share: the call to the runtime's texture service, one for all lanes of a step.
#pragma once

#include "translator/lower/call_buffer.h"

namespace ptarmigan::translator::lower {

/// An abi::TextureCall on the stack. Setters store one value per lane of the step.
class TextureCallBuffer : private CallBuffer {
public:
    TextureCallBuffer(WarpEmitter& e, const ptx::Instruction& inst, abi::TextureOperation operation);

    /// A word that all lanes share.
    void set(unsigned offset, std::uint32_t value) { store_number(offset, value); }
    /// 32-bit lanes (floats as their bits) at word array `offset`, element `index` of it.
    void store(unsigned offset, unsigned index, llvm::Value* lanes);
    /// The elements of a list operand, or the operand itself, at consecutive arrays; at most `most`, those before
    /// `first` left out.
    void store_list(unsigned offset, const ptx::Operand& list, unsigned most, unsigned first = 0);
    /// The texture or surface object.
    void set_handle(const ptx::Operand& operand);
    /// Calls the service if any lane is active.
    void run();
    /// <W x i32>: word `index` of the lanes' data.
    llvm::Value* data(unsigned index);
};

/// The geometry word of the instruction.
abi::TextureGeometry geometry_of(WarpEmitter& e, const ptx::Instruction& inst);

} // namespace ptarmigan::translator::lower
