// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix (manual 9.7.14.5.15 to 17). Lane 8 m + i has the address of row i of matrix m, 16
// bytes; lane 4 g + t has elements 2 t and 2 t + 1 of row g of each. So a register of a whole warp is a matrix' eight
// rows behind each other, and the transposed form a permutation of its halfwords. Narrow steps hand the addresses on by
// shuffles; each lane moves its own words then. The forms of 8, 6 and 4 bits move element by element at any width.
#include "translator/lower/matrix_rows.h"

#include "translator/lower/access_mark.h"
#include "translator/lower/collective_call.h"
#include "translator/lower/lane_access.h"
#include "translator/lower/lane_array.h"
#include "translator/lower/lane_math.h"
#include "translator/lower/lane_pointers.h"
#include "translator/lower/memory_access.h"

#include <llvm/IR/MDBuilder.h>

namespace ptarmigan::translator::lower {

using ptx::Operand;
using ptx::StateSpace;

namespace {

constexpr unsigned rows = 8, row_bytes = 16, row_lanes = 4;

unsigned matrix_count(const Instruction& inst) {
    const Word number = inst.one_of({Word::x1, Word::x2, Word::x4});
    return number == Word::x4 ? 4 : number == Word::x2 ? 2 : 1;
}

/// <W x i32>: the lanes' numbers in the warp.
Value* warp_lanes(WarpEmitter& e) {
    Ir& ir = e.ir();
    if (whole_warp(e)) return lane_numbers(e);
    return ir.CreateAdd(e.splat(ir.CreateAnd(e.first_thread(), ir.getInt32(abi::warp_size - 1))), lane_numbers(e));
}

/// Narrow steps: the value (an integer) that lane from[l] of the warp holds, for each lane l. Steps of one lane
/// exchange words, see Services::lane_collective.
Value* of_lanes(WarpEmitter& e, Value* value, Value* from) {
    constexpr std::uint32_t by_index = 3, all_lanes = 31, word_bits = 32;
    Ir& ir = e.ir();
    const auto exchange = [&](Value* part) {
        CollectiveCallBuffer call(e, abi::Collective::shfl, by_index);
        call.set_source(part);
        call.set_b(from);
        call.set_c(e.splat(ir.getInt32(all_lanes)));
        call.run();
        return call.result(part->getType()->getScalarType());
    };
    if (e.width() > 1 || value->getType()->getScalarSizeInBits() <= word_bits) return exchange(value);
    Value* shift = llvm::ConstantInt::get(value->getType(), word_bits);
    llvm::Type* words = e.lanes_type(ir.getInt32Ty());
    Value* low = exchange(ir.CreateTrunc(value, words));
    Value* high = exchange(ir.CreateTrunc(ir.CreateLShr(value, shift), words));
    return ir.CreateOr(ir.CreateZExt(low, value->getType()),
                       ir.CreateShl(ir.CreateZExt(high, value->getType()), shift));
}

/// A matrix (<32 x i32>, eight rows) with rows and columns exchanged.
Value* transposed(Ir& ir, Value* matrix) {
    auto* halves = llvm::FixedVectorType::get(ir.getInt16Ty(), rows * rows);
    llvm::SmallVector<int, rows * rows> order;
    for (unsigned i = 0; i < rows * rows; ++i) order.push_back(int(i % rows * rows + i / rows));
    return ir.CreateBitCast(ir.CreateShuffleVector(ir.CreateBitCast(matrix, halves), order), matrix->getType());
}

LaneAddress row_addresses(WarpEmitter& e, const Instruction& inst) {
    const StateSpace space = inst.space == StateSpace::none ? StateSpace::generic : inst.space;
    LaneAddress address = e.address(inst[Role::a], space);
    address.space = space;
    return address;
}

/// Where the row of lane `lane` begins.
Value* row_pointer(WarpEmitter& e, const LaneAddress& address, Value* addresses, unsigned lane) {
    Ir& ir = e.ir();
    const LaneValue& value = address.address;
    const bool is_constant = !address.guard && (value.is_uniform() || (value.is_affine() && !value.stride));
    if (!is_constant) return pointer(e, ir.CreateExtractElement(addresses, std::uint64_t(lane)));
    const std::int64_t distance = value.is_uniform() ? 0 : (*value.shape.offsets)[lane];
    return ir.CreateConstGEP1_64(ir.getInt8Ty(), pointer(e, value.base), std::uint64_t(distance));
}

/// i1: all lanes of the warp execute the instruction; null: known to be so.
Value* is_whole(WarpEmitter& e) {
    Ir& ir = e.ir();
    if (whole_warp(e)) return e.all_active() ? nullptr : ir.CreateICmpEQ(e.active_bits(), ir.getInt64(0xffffffffu));
    CollectiveCallBuffer call(e, abi::Collective::vote_ballot, 0);
    call.set_source(ir.CreateZExt(e.active(), e.lanes_type(ir.getInt32Ty())));
    call.run();
    return e.any(ir.CreateICmpEQ(call.result(ir.getInt32Ty()), e.splat(ir.getInt32(0xffffffffu))));
}

/// What `body` gives where all lanes of the warp are there. Otherwise the instruction does nothing, as on a GPU, and
/// its results, which keep what they were there, are zeros.
ValueList if_whole(WarpEmitter& e, llvm::function_ref<ValueList()> body) {
    Value* condition = is_whole(e);
    if (!condition) return body();
    Ir& ir = e.ir();
    llvm::BasicBlock *whole = e.new_block("warp.whole"), *done = e.new_block("warp.done"),
                     *before = ir.GetInsertBlock();
    ir.CreateCondBr(condition, whole, done, llvm::MDBuilder(e.context()).createBranchWeights(2000, 1));
    ir.SetInsertPoint(whole);
    ValueList values = body();
    whole = ir.GetInsertBlock();
    ir.CreateBr(done);
    ir.SetInsertPoint(done);
    for (Value*& value : values) {
        llvm::PHINode* phi = ir.CreatePHI(value->getType(), 2);
        phi->addIncoming(value, whole);
        phi->addIncoming(llvm::Constant::getNullValue(value->getType()), before);
        value = phi;
    }
    return values;
}

/// An illegal instruction, as on an H100, where the generic address of a row that counts is not in the CTA's own shared
/// memory: global, local, parameters, constants, or another CTA's of the cluster.
void check_rows(WarpEmitter& e, const Instruction& inst, const LaneAddress& address) {
    if (address.space != StateSpace::generic) return;
    Ir& ir = e.ir();
    Operand zero;
    zero.kind = Operand::Kind::address;
    zero.base = Operand::Base::none;
    zero.type = ptx::ScalarType::u64;
    Value* window = e.broadcast(e.address(zero, StateSpace::shared).address);
    Value* rank =
        ir.CreateZExt(e.context_field(ir.getInt32Ty(), offsetof(abi::CtaContext, cluster_ctarank), "cluster_ctarank"),
                      ir.getInt64Ty());
    Value* offset = ir.CreateSub(e.broadcast(address.address), window);
    Value* wrong = ir.CreateICmpNE(ir.CreateLShr(offset, e.splat(ir.getInt64(abi::cluster_rank_bit))), e.splat(rank));
    if (Value* counted = addressing_lanes(e, inst)) wrong = ir.CreateAnd(wrong, counted);
    if (!e.all_active()) wrong = ir.CreateSelect(e.active(), wrong, llvm::Constant::getNullValue(wrong->getType()));
    e.if_then(
        e.any(ir.CreateFreeze(wrong)),
        [&] { e.trap(e.to_bits(ir.CreateFreeze(wrong)), std::uint32_t(abi::Fault::illegal_instruction)); }, false);
}

/// Access of one word of a lane's, or of a halfword of a transposed matrix.
MemoryAccess lane_access(WarpEmitter& e, Value* addresses, StateSpace space, unsigned bytes) {
    MemoryAccess access;
    access.address.address = LaneValue::varying(addresses);
    access.address.space = space;
    access.element = e.ir().getIntNTy(bytes * 8);
    access.bytes = bytes;
    return access;
}

/// Where each lane's part of matrix `m` is: its word, or half `half` of it where the matrix is transposed.
Value* part_addresses(WarpEmitter& e, Value* addresses, unsigned m, bool is_transposed, unsigned half) {
    Ir& ir = e.ir();
    const auto number = [&](std::uint64_t value) { return e.splat(ir.getInt32(std::uint32_t(value))); };
    Value* lane = warp_lanes(e);
    Value* g = ir.CreateLShr(lane, number(2));
    Value* t = ir.CreateAnd(lane, number(3));
    Value *row = g, *offset = ir.CreateShl(t, number(2));
    if (is_transposed) {
        row = ir.CreateAdd(ir.CreateShl(t, number(1)), number(half));
        offset = ir.CreateShl(g, number(1));
    }
    Value* begin = of_lanes(e, addresses, ir.CreateAdd(row, number(rows * m)));
    return ir.CreateAdd(begin, ir.CreateZExt(offset, begin->getType()));
}

ValueList load_rows(WarpEmitter& e, const LaneAddress& address, unsigned count, bool is_transposed) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(address.address);
    auto* type = llvm::FixedVectorType::get(ir.getInt32Ty(), row_lanes);
    ValueList result;
    for (unsigned m = 0; m < count; ++m) {
        llvm::SmallVector<Value*, 8> parts;
        for (unsigned row = 0; row < rows; ++row) {
            const unsigned lane = rows * m + row;
            Value* at = row_pointer(e, address, addresses, lane);
            const AccessMark mark(e, of_lane(lane, row_bytes));
            llvm::LoadInst* load = ir.CreateAlignedLoad(type, at, llvm::Align(row_bytes));
            tag_space(e, load, address.space);
            parts.push_back(load);
        }
        Value* matrix = join_lanes(ir, parts);
        result.push_back(is_transposed ? transposed(ir, matrix) : matrix);
    }
    return result;
}

/// The same in less code.
ValueList load_rows_in_loop(WarpEmitter& e, const LaneAddress& address, unsigned count, bool is_transposed) {
    Ir& ir = e.ir();
    auto* type = llvm::FixedVectorType::get(ir.getInt32Ty(), row_lanes);
    auto* matrix_type = llvm::FixedVectorType::get(ir.getInt32Ty(), rows * row_lanes);
    const LaneArray addresses(e, e.broadcast(address.address));
    llvm::AllocaInst* matrices = e.take_lane_slot(llvm::ArrayType::get(matrix_type, count));
    e.for_each_lane(ir.getInt64((std::uint64_t{1} << rows * count) - 1), [&](Value* lane) {
        const AccessMark mark(e, note_lane(e, lane));
        llvm::LoadInst* load = ir.CreateAlignedLoad(type, pointer(e, addresses.get(lane)), llvm::Align(row_bytes));
        tag_space(e, load, address.space);
        ir.CreateAlignedStore(load, ir.CreateGEP(type, matrices, lane), llvm::Align(row_bytes));
    });
    ValueList result;
    for (unsigned m = 0; m < count; ++m) {
        Value* matrix = ir.CreateLoad(matrix_type, ir.CreateConstGEP1_64(matrix_type, matrices, m));
        result.push_back(is_transposed ? transposed(ir, matrix) : matrix);
    }
    e.return_lane_slot(matrices);
    return result;
}

ValueList load_words(WarpEmitter& e, const LaneAddress& address, unsigned count, bool is_transposed) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(address.address);
    ValueList result;
    for (unsigned m = 0; m < count; ++m) {
        const auto load = [&](unsigned half, unsigned bytes) {
            Value* at = part_addresses(e, addresses, m, is_transposed, half);
            return e.broadcast(load_lanes(e, lane_access(e, at, address.space, bytes))[0]);
        };
        if (is_transposed) {
            Value* low = load(0, 2);
            result.push_back(pack_halves(ir, low, load(1, 2)));
        } else {
            result.push_back(load(0, 4));
        }
    }
    return result;
}

void store_rows(WarpEmitter& e, const LaneAddress& address, llvm::ArrayRef<Value*> matrices, bool is_transposed) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(address.address);
    for (unsigned m = 0; m < matrices.size(); ++m) {
        Value* matrix = is_transposed ? transposed(ir, matrices[m]) : matrices[m];
        // Where rows coincide the first one stays, as on an H100.
        for (unsigned row = rows; row-- > 0;) {
            const unsigned lane = rows * m + row;
            Value* at = row_pointer(e, address, addresses, lane);
            Value* part = cut_lanes(ir, matrix, row_lanes * row, row_lanes);
            const AccessMark mark(e, of_lane(lane, row_bytes));
            tag_space(e, ir.CreateAlignedStore(part, at, llvm::Align(row_bytes)), address.space);
        }
    }
}

void store_words(WarpEmitter& e, const LaneAddress& address, llvm::ArrayRef<Value*> matrices, bool is_transposed) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(address.address);
    for (unsigned m = 0; m < matrices.size(); ++m) {
        const auto store = [&](unsigned half, unsigned bytes, Value* value) {
            Value* at = part_addresses(e, addresses, m, is_transposed, half);
            store_lanes(e, lane_access(e, at, address.space, bytes), {LaneValue::varying(value)});
        };
        if (is_transposed) {
            const auto [low, high] = unpack_halves(ir, matrices[m], ir.getInt16Ty());
            store(0, 2, low);
            store(1, 2, high);
        } else {
            store(0, 4, matrices[m]);
        }
    }
}

/// transposed() of a narrow step's words. Half j of the result is column g of row 2 t + j: half g % 2 of lane
/// 4 (2 t + j) + g / 2.
Value* transposed_words(WarpEmitter& e, Value* source) {
    Ir& ir = e.ir();
    const auto number = [&](std::uint32_t value) { return e.splat(ir.getInt32(value)); };
    Value* lane = warp_lanes(e);
    Value* g = ir.CreateLShr(lane, number(2));
    Value* first = ir.CreateAdd(ir.CreateShl(ir.CreateAnd(lane, number(3)), number(3)), ir.CreateLShr(g, number(1)));
    Value* shift = ir.CreateShl(ir.CreateAnd(g, number(1)), number(4));
    Value* halves[2];
    for (unsigned j = 0; j < 2; ++j) {
        Value* word = of_lanes(e, source, ir.CreateAdd(first, number(4 * j)));
        halves[j] = ir.CreateAnd(ir.CreateLShr(word, shift), number(0xffff));
    }
    return ir.CreateOr(halves[0], ir.CreateShl(halves[1], number(16)));
}

/// Forms of elements of a byte. Lane 4 g + t has four elements in each register; which those are, the shape says:
/// m8n16 elements 4 t to 4 t + 3 of row g; m16n16 columns g (first register) and g + 8 of rows 4 t to 4 t + 3; m16n8,
/// whose rows are stored as columns, row 2 t and 2 t + 1 of column g, then of column g + 8.
struct ByteForm {
    unsigned matrices, rows, registers; ///< rows: that addresses are given for; registers: of a matrix
    unsigned bits;                      ///< of an element in memory: 8, 6 or 4, from the row's first bit on
    bool is_store;

    explicit ByteForm(const Instruction& inst)
        : matrices(matrix_count(inst)), rows(inst.has(Word::m16n16) ? 16 : 8), registers(rows / 8),
          bits(inst.has(Word::b6x16_p32)   ? 6
               : inst.has(Word::b4x16_p64) ? 4
                                           : 8),
          is_store(inst.has(Word::m16n8)) {}
    bool is_transposed() const { return is_store || rows == 16; }
};

/// The value that lane from[l] of the warp has.
Value* of_warp(WarpEmitter& e, Value* value, Value* from, llvm::function_ref<unsigned(unsigned)> from_lane) {
    if (!whole_warp(e)) return of_lanes(e, value, from);
    llvm::SmallVector<int, 32> order;
    for (unsigned lane = 0; lane < abi::warp_size; ++lane) order.push_back(int(from_lane(lane)));
    return e.ir().CreateShuffleVector(value, order);
}

/// Where an element of a lane's is: the address of its first byte, and the bits below it there.
struct ElementPlace {
    Value *address, *shift;
};

ElementPlace element_place(WarpEmitter& e, Value* addresses, const ByteForm& form, unsigned m, unsigned reg,
                           unsigned element) {
    Ir& ir = e.ir();
    const auto number = [&](std::uint64_t value) { return e.splat(ir.getInt32(std::uint32_t(value))); };
    Value* lane = warp_lanes(e);
    Value *g = ir.CreateLShr(lane, number(2)), *t = ir.CreateAnd(lane, number(3));
    Value *row = g, *column = ir.CreateAdd(ir.CreateShl(t, number(2)), number(element));
    const auto row_of = [&](unsigned l) {
        if (form.is_store) return 2 * (l % 4) + element % 2;
        return form.is_transposed() ? 4 * (l % 4) + element : l / 4;
    };
    if (form.is_store) {
        row = ir.CreateAdd(ir.CreateShl(t, number(1)), number(element % 2));
        column = ir.CreateAdd(g, number(element / 2 * 8));
    } else if (form.is_transposed()) {
        row = column;
        column = ir.CreateAdd(g, number(8 * reg));
    }
    Value* begin = of_warp(e, addresses, ir.CreateAdd(row, number(form.rows * m)),
                           [&](unsigned l) { return form.rows * m + row_of(l); });
    Value* bit = ir.CreateMul(column, number(form.bits));
    return {ir.CreateAdd(begin, ir.CreateZExt(ir.CreateLShr(bit, number(3)), begin->getType())),
            ir.CreateAnd(bit, number(7))};
}

ValueList load_bytes(WarpEmitter& e, const LaneAddress& address, const ByteForm& form) {
    Ir& ir = e.ir();
    const auto number = [&](std::uint32_t value) { return e.splat(ir.getInt32(value)); };
    Value* addresses = e.broadcast(address.address);
    const auto load = [&](Value* at) {
        Value* byte = e.broadcast(load_lanes(e, lane_access(e, at, address.space, 1))[0]);
        return ir.CreateZExtOrTrunc(byte, e.lanes_type(ir.getInt32Ty()));
    };
    ValueList result;
    for (unsigned m = 0; m < form.matrices; ++m)
        for (unsigned reg = 0; reg < form.registers; ++reg) {
            Value* word = number(0);
            for (unsigned element = 0; element < 4; ++element) {
                const ElementPlace place = element_place(e, addresses, form, m, reg, element);
                Value* value = load(place.address);
                if (form.bits == 6) { // may lie in two bytes; padding follows the last one
                    Value* next = ir.CreateAdd(place.address, llvm::ConstantInt::get(place.address->getType(), 1));
                    value = ir.CreateOr(value, ir.CreateShl(load(next), number(8)));
                }
                value = ir.CreateAnd(ir.CreateLShr(value, place.shift), number((1u << form.bits) - 1));
                word = ir.CreateOr(word, ir.CreateShl(value, number(8 * element)));
            }
            result.push_back(word);
        }
    return result;
}

void store_bytes(WarpEmitter& e, const LaneAddress& address, const ByteForm& form, llvm::ArrayRef<Value*> words) {
    Ir& ir = e.ir();
    Value* addresses = e.broadcast(address.address);
    for (unsigned m = 0; m < form.matrices; ++m)
        for (unsigned element = 0; element < 4; ++element) {
            Value* at = element_place(e, addresses, form, m, 0, element).address;
            Value* byte = ir.CreateTrunc(ir.CreateLShr(words[m], e.splat(ir.getInt32(8 * element))),
                                         e.lanes_type(ir.getInt8Ty()));
            store_lanes(e, lane_access(e, at, address.space, 1), {LaneValue::varying(byte)});
        }
}

Value* word_of(WarpEmitter& e, const Operand& operand) {
    Ir& ir = e.ir();
    if (operand.kind == Operand::Kind::sink) return llvm::Constant::getNullValue(e.lanes_type(ir.getInt32Ty()));
    return ir.CreateZExtOrTrunc(to_bits(ir, e.lanes(operand)), e.lanes_type(ir.getInt32Ty()));
}

void write_word(WarpEmitter& e, const Operand& operand, Value* word) {
    if (operand.kind != Operand::Kind::reg) return;
    llvm::Type* type = e.type(operand.type);
    if (type->isFloatingPointTy()) word = e.ir().CreateBitCast(word, e.lanes_type(type));
    e.write(operand, LaneValue::varying(word));
}

} // namespace

Value* addressing_lanes(WarpEmitter& e, const Instruction& inst) {
    const std::string_view opcode = ptx::form_info(inst.form).opcode;
    if (opcode != "ldmatrix" && opcode != "stmatrix") return nullptr;
    const unsigned count = matrix_count(inst) * ByteForm(inst).rows;
    return count == abi::warp_size ? nullptr : e.ir().CreateICmpULT(warp_lanes(e), e.splat(e.ir().getInt32(count)));
}

void ldmatrix(WarpEmitter& e, const Instruction& inst) {
    const LaneAddress address = row_addresses(e, inst);
    const auto load = !whole_warp(e) ? load_words : goes_in_loops(e) ? load_rows_in_loop : load_rows;
    const ValueList matrices = if_whole(e, [&] {
        check_rows(e, inst, address);
        return load(e, address, matrix_count(inst), inst.has(Word::trans));
    });
    for (unsigned m = 0; m < matrices.size(); ++m) write_word(e, e.element(inst[Role::d], m), matrices[m]);
}

void stmatrix(WarpEmitter& e, const Instruction& inst) {
    const LaneAddress address = row_addresses(e, inst);
    const auto store = whole_warp(e) ? store_rows : store_words;
    ValueList matrices;
    for (unsigned m = 0; m < matrix_count(inst); ++m) matrices.push_back(word_of(e, e.element(inst[Role::b], m)));
    if_whole(e, [&]() -> ValueList {
        check_rows(e, inst, address);
        store(e, address, matrices, inst.has(Word::trans));
        return {};
    });
}

void ldmatrix_b8(WarpEmitter& e, const Instruction& inst) {
    const LaneAddress address = row_addresses(e, inst);
    const ValueList words = if_whole(e, [&] { return load_bytes(e, address, ByteForm(inst)); });
    for (unsigned i = 0; i < words.size(); ++i) write_word(e, e.element(inst[Role::d], i), words[i]);
}

void stmatrix_b8(WarpEmitter& e, const Instruction& inst) {
    const LaneAddress address = row_addresses(e, inst);
    ValueList words;
    for (unsigned m = 0; m < matrix_count(inst); ++m) words.push_back(word_of(e, e.element(inst[Role::b], m)));
    if_whole(e, [&]() -> ValueList {
        store_bytes(e, address, ByteForm(inst), words);
        return {};
    });
}

void movmatrix(WarpEmitter& e, const Instruction& inst) {
    Value* source = word_of(e, inst[Role::a]);
    const ValueList result = if_whole(
        e, [&]() -> ValueList { return {whole_warp(e) ? transposed(e.ir(), source) : transposed_words(e, source)}; });
    write_word(e, inst[Role::d], result[0]);
}

} // namespace ptarmigan::translator::lower
