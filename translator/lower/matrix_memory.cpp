// SPDX-License-Identifier: Apache-2.0
// wmma.load and wmma.store (manual 9.7.14.4.3 and 4): each lane moves the elements of its registers. Along a line of
// the matrix they are accesses of a register, across it of single elements. Lanes are at constant distances but for the
// stride between lines, so memory_access finds the rows.
#include "frontend/ptx/matrix_fragments.h"
#include "translator/lower/alignment_check.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/memory_access.h"

#include <deque>

namespace ptarmigan::translator::lower {

using ptx::MatrixFragment;
using ptx::MatrixOperand;
using ptx::Operand;
using ptx::StateSpace;

namespace {

class MatrixMover {
public:
    MatrixMover(WarpEmitter& e, const Instruction& inst)
        : e_(e), inst_(inst), operand_(operand_of(inst)), fragment_(ptx::moved_form(inst), operand_),
          bits_(ptx::bit_size(fragment_.type())) {
        space_ = inst.space == StateSpace::none ? StateSpace::generic : inst.space;
        address_ = e.address(inst[Role::a], space_);
        // Rows of A, C and D and columns of B are lines.
        along_ = inst.has(operand_ == MatrixOperand::b ? Word::col : Word::row);
        const unsigned line_elements = along_ ? fragment_.line_elements() : fragment_.lines();
        const Operand& stride = inst[Role::stride];
        const LaneValue elements =
            stride.kind == Operand::Kind::none ? LaneValue::uniform(e.ir().getInt32(line_elements)) : e.read(stride);
        // An H100 counts in what a lane accesses; the manual asks for multiples of more. Shared addresses have 32 bits.
        const unsigned unit = unit_bits() / bits_;
        stride_ = e.apply({elements}, [&](Ir& ir, Values v) {
            const bool wraps = space_ == StateSpace::shared;
            Value* units = unit == 1 ? v[0]
                           : wraps   ? ir.CreateAShr(v[0], integer(v[0], llvm::Log2_32(unit)))
                                     : ir.CreateLShr(v[0], integer(v[0], llvm::Log2_32(unit)));
            Value* wide = resize(ir, units, 64, wraps);
            return ir.CreateMul(wide, integer(wide, unit_bits() / 8));
        });
        check_alignment(e, address_, unit_bits() / 8, ptx::form_info(inst.form).shape == ptx::ShapeRule::none);
    }

    void load(const Operand& registers) {
        llvm::SmallVector<LaneValue, 8> words;
        while (words.size() < fragment_.distinct_registers()) {
            if (moves_pairs())
                for (const LaneValue& word : load_lanes(e_, access(words.size(), 0))) words.push_back(word);
            else
                words.push_back(load_register(words.size()));
        }
        for (unsigned r = 0; r < fragment_.registers(); ++r) {
            const Operand& element = e_.element(registers, r);
            if (element.kind != Operand::Kind::reg) continue;
            Value* lanes = e_.broadcast(words[r % words.size()]);
            llvm::Type* type = e_.type(element.type);
            if (type->isFloatingPointTy()) lanes = e_.ir().CreateBitCast(lanes, e_.lanes_type(type));
            e_.write(element, LaneValue::varying(lanes));
        }
    }

    void store(const Operand& registers) {
        Ir& ir = e_.ir();
        llvm::SmallVector<LaneValue, 2> words;
        for (unsigned r = 0; r < fragment_.distinct_registers(); ++r) {
            Value* lanes = to_bits(ir, e_.lanes(e_.element(registers, r)));
            lanes = ir.CreateZExtOrTrunc(lanes, e_.lanes_type(ir.getIntNTy(fragment_.register_bits())));
            words.push_back(LaneValue::varying(lanes));
            if (moves_pairs()) {
                if (words.size() < 2) continue;
                store_access(access(r - 1, 0), words);
            } else {
                store_register(r, lanes);
            }
            words.clear();
        }
    }

private:
    static MatrixOperand operand_of(const Instruction& inst) {
        return inst.has(Word::a) ? MatrixOperand::a : inst.has(Word::b) ? MatrixOperand::b : MatrixOperand::c;
    }
    /// The elements of a register lie behind each other in memory.
    bool is_contiguous() const {
        return fragment_.register_elements() == 1 || (along_ == (fragment_.order() != MatrixFragment::Order::crossed));
    }
    /// What a lane of an H100 accesses at once: two registers of a pair too.
    unsigned unit_bits() const { return std::max(8u, moves_pairs() && bits_ == 32 ? 2 * bits_ : access_bits()); }
    unsigned access_bits() const { return is_contiguous() ? fragment_.register_bits() : bits_; }

    /// Two registers of a lane that lie side by side go together.
    bool moves_pairs() const { return along_ && fragment_.order() == MatrixFragment::Order::pairs; }

    void store_access(const MemoryAccess& access, llvm::ArrayRef<LaneValue> values) {
        if (space_ != StateSpace::shared)
            e_.note_write(e_.broadcast(access.address.address), access.bytes * access.count);
        store_lanes(e_, access, values);
    }

    void store_register(unsigned r, Value* lanes) {
        Ir& ir = e_.ir();
        const unsigned bits = access_bits(), accesses = fragment_.register_bits() / bits;
        for (unsigned i = 0; i < accesses; ++i) {
            Value* part = i ? ir.CreateLShr(lanes, integer(lanes, i * bits)) : lanes;
            part = ir.CreateTrunc(part, e_.lanes_type(ir.getIntNTy(bits)));
            store_access(access(r, i), {LaneValue::varying(part)});
        }
    }

    LaneValue load_register(unsigned r) {
        const unsigned bits = access_bits(), accesses = fragment_.register_bits() / bits;
        llvm::SmallVector<LaneValue, 4> parts;
        for (unsigned i = 0; i < accesses; ++i) parts.push_back(load_lanes(e_, access(r, i))[0]);
        if (accesses == 1) return parts[0];
        Ir& ir = e_.ir();
        llvm::Type* type = e_.lanes_type(ir.getIntNTy(fragment_.register_bits()));
        Value* word = llvm::Constant::getNullValue(type);
        for (unsigned i = 0; i < accesses; ++i) {
            Value* part = ir.CreateZExt(e_.broadcast(parts[i]), type);
            word = ir.CreateOr(word, i ? ir.CreateShl(part, integer(part, i * bits)) : part);
        }
        return LaneValue::varying(word);
    }

    /// Access `number` of a register. The distances live as long as the mover.
    MemoryAccess access(unsigned r, unsigned number) {
        Ir& ir = e_.ir();
        LaneOffsets &offsets = distances_.emplace_back(), &steps = distances_.emplace_back();
        for (unsigned lane = 0; lane < abi::warp_size; ++lane) {
            const MatrixFragment::Place at = fragment_.place(lane, r, number);
            offsets.push_back(std::int64_t(along_ ? at.element : at.line) * bits_ / 8);
            steps.push_back(along_ ? at.line : at.element);
        }
        MemoryAccess result;
        result.element = ir.getIntNTy(access_bits());
        result.bytes = access_bits() / 8;
        result.count = moves_pairs() ? 2 : 1;
        result.element_aligned = bits_ == 64; // all that is asked of doubles
        result.address.space = space_;
        const LaneValue& base = address_.address;
        if (whole_warp(e_) && base.is_uniform() && stride_.is_uniform()) {
            Value* begin = ir.CreateAdd(base.base, ir.CreateMul(stride_.base, ir.getInt64(std::uint64_t(steps[0]))));
            begin = ir.CreateAdd(begin, ir.getInt64(std::uint64_t(offsets[0])));
            for (LaneOffsets* numbers : {&offsets, &steps})
                for (std::size_t lane = numbers->size(); lane-- > 0;) (*numbers)[lane] -= (*numbers)[0];
            LaneValue& address = result.address.address;
            address.base = begin;
            address.shape = {Shape::Level::affine, &offsets, &steps};
            address.stride = stride_.base;
            return result;
        }
        Value* lanes = e_.broadcast(base);
        Value* step = ir.CreateMul(e_.broadcast(stride_), of_step(steps));
        lanes = ir.CreateAdd(lanes, ir.CreateAdd(of_step(offsets), step));
        result.address.address = LaneValue::varying(lanes);
        return result;
    }

    Value* constants(const LaneOffsets& numbers, unsigned first) {
        llvm::SmallVector<llvm::Constant*, 32> lanes;
        for (unsigned lane = first; lane < first + e_.width(); ++lane)
            lanes.push_back(e_.ir().getInt64(std::uint64_t(numbers[lane])));
        return llvm::ConstantVector::get(lanes);
    }
    /// The numbers, by lane of the warp, that the step's lanes have.
    Value* of_step(const LaneOffsets& numbers) {
        Ir& ir = e_.ir();
        Value *first = ir.CreateAnd(e_.first_thread(), ir.getInt32(abi::warp_size - 1)),
              *result = constants(numbers, 0);
        for (unsigned lane = e_.width(); lane < abi::warp_size; lane += e_.width())
            result = ir.CreateSelect(ir.CreateICmpEQ(first, ir.getInt32(lane)), constants(numbers, lane), result);
        return result;
    }

    WarpEmitter& e_;
    const Instruction& inst_;
    const MatrixOperand operand_;
    const MatrixFragment fragment_;
    const unsigned bits_; ///< of an element
    bool along_ = false;  ///< lines lie in memory as they are
    StateSpace space_{};
    LaneAddress address_;
    LaneValue stride_; ///< bytes between what lies in memory as lines
    std::deque<LaneOffsets> distances_;
};

} // namespace

void wmma_load(WarpEmitter& e, const Instruction& inst) {
    MatrixMover(e, inst).load(inst[Role::d]);
}

void wmma_store(WarpEmitter& e, const Instruction& inst) {
    MatrixMover(e, inst).store(inst[Role::b]);
}

} // namespace ptarmigan::translator::lower
