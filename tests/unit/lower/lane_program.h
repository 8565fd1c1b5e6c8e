// SPDX-License-Identifier: Apache-2.0
// Runs handlers without PTX: an emit context whose registers and addresses a test makes by hand, compiled by the real
// back end and called in this process. So tests can force any shape, mask, width and target.
#pragma once

#include "runtime/code/image_loader.h"
#include "translator/compile.h"
#include "translator/emit/warp_emitter.h"
#include "translator/kernel_abi.h"

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace ptarmigan::translator {

/// One slot of the input or output of a lane program: up to 32 values of up to 16 bytes, densely packed.
struct alignas(64) LaneSlot {
    std::array<std::uint8_t, 512> bytes{};

    template <typename T> T get(unsigned lane) const {
        T value;
        std::memcpy(&value, bytes.data() + lane * sizeof(T), sizeof(T));
        return value;
    }
    template <typename T> void set(unsigned lane, T value) {
        std::memcpy(bytes.data() + lane * sizeof(T), &value, sizeof(T));
    }
};

struct LaneProgramOptions {
    unsigned width = 32;
    bool full_mask = true;      ///< the emitter knows at compile time that all lanes are active
    std::string target = "host";
};

class LaneEmitter final : public WarpEmitter {
public:
    LaneEmitter(llvm::LLVMContext& context, const LaneProgramOptions& options, const CompileOptions& compile_options,
                llvm::Function* function);

    /// Input slot as varying lanes, or its lane 0 as a uniform value.
    LaneValue varying_input(unsigned slot, llvm::Type* scalar);
    LaneValue uniform_input(unsigned slot, llvm::Type* scalar);
    void output(unsigned slot, const LaneValue& value);

    std::map<std::uint32_t, LaneValue> registers;    ///< what reading register n gives
    std::map<std::uint32_t, LaneAddress> addresses;  ///< what address operand with index n gives
    std::vector<ptx::Operand> pool;
    llvm::Value* holds = nullptr;                    ///< guard_holds of any guard
    llvm::Value* correction = nullptr;
    llvm::DebugLoc marked;                           ///< location of what is marked as some lane's access

    bool fiber_form() const override { return false; }
    llvm::Value* cta_context() override { return function_->getArg(0); }
    llvm::Value* step_index() override { return ir_.getInt32(0); }
    llvm::Value* first_thread() override { return ir_.getInt32(0); }
    std::uint64_t frame_bytes() const override { return 0; }
    llvm::Value* local_begin() override { unsupported("local memory"); }
    llvm::Value* frame_begin() override { unsupported("local memory"); }
    bool stack_goes_up() const override { return false; }
    llvm::Value* whole_local_address(llvm::Value* address) override { return address; }
    llvm::Value* context_field(llvm::Type* type, unsigned byte_offset, std::string_view name) override;
    LaneValue read(const ptx::Operand& operand) override;
    const ptx::Operand& element(const ptx::Operand& operand, unsigned index) override {
        return operand.has_elements() ? pool.at(operand.first + index) : operand;
    }
    /// Register n goes to output slot n.
    void write(const ptx::Operand& destination, const LaneValue& value) override;
    llvm::Value* active() override { return full_ ? splat(ir_.getTrue()) : from_bits(function_->getArg(3)); }
    bool all_active() override { return full_; }
    llvm::Value* others_can_run() override { return ir_.getFalse(); }
    std::uint32_t cluster_size() const override { return 1; }
    llvm::Value* live_bits() override { return ir_.getInt64(~0ull); }
    llvm::Value* existing_bits() override { return ir_.getInt64((std::uint64_t{1} << width_) - 1); }
    bool meets_whole_warp() const override { return false; }
    bool has_unknown_operand() const override { return false; }
    bool hides_stored_value() const override { return false; }
    LaneAddress address(const ptx::Operand& operand, ptx::StateSpace space) override;
    llvm::Value* call_builtin(std::string_view, llvm::Type*, Values) override { unsupported("builtin"); }
    llvm::Value* guard_correction(ValueId) override { return correction; }
    llvm::Value* guard_holds(ValueId) override { return holds; }
    const ptx::Module& source() const override { return module_; }
    bool may_be_neighbours(const ptx::Operand&) override { return true; }
    bool may_stream() const override { return false; }
    SharedEdges shared_edges() const override { return {}; }
    llvm::DebugLoc access_location(const AccessForm&) override { return marked; }
    void note_write(llvm::Value*, unsigned) override {}

private:
    llvm::Value* slot(unsigned argument, unsigned index);

    llvm::Function* function_;
    ptx::Module module_; ///< empty: `source` of what has no text
    ptx::Instruction load_; ///< what is at hand where nothing is emitted through a handler
    bool full_;
};

/// Code that `body` emitted, ready to be called.
class LaneProgram {
public:
    LaneProgram(const LaneProgramOptions& options, const std::function<void(LaneEmitter&)>& body);
    void run(abi::CtaContext& context, const std::vector<LaneSlot>& in, std::vector<LaneSlot>& out,
             std::uint64_t mask = ~0ull) const;

private:
    std::unique_ptr<runtime::LoadedImage> image_;
};

/// An instruction of `form` with operands in the order of its row.
ptx::Instruction instruction(ptx::FormId form, std::initializer_list<ptx::Modifier> modifiers, ptx::ScalarType type,
                             std::initializer_list<ptx::Operand> operands);
ptx::Operand reg(std::uint32_t index, ptx::ScalarType type);
ptx::Operand imm(std::uint64_t value, ptx::ScalarType type);
ptx::Operand at(std::uint32_t index);
ptx::Operand none();

} // namespace ptarmigan::translator
