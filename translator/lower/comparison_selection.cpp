// SPDX-License-Identifier: Apache-2.0
// Comparison and selection (manual 9.7.6).
#include "translator/lower/comparison.h"

namespace ptarmigan::translator::lower {

namespace {

llvm::CmpInst::Predicate integer_predicate(Word op, bool is_signed) {
    using P = llvm::CmpInst;
    switch (op) {
    case Word::eq: return P::ICMP_EQ;
    case Word::ne: return P::ICMP_NE;
    case Word::lt: return is_signed ? P::ICMP_SLT : P::ICMP_ULT;
    case Word::le: return is_signed ? P::ICMP_SLE : P::ICMP_ULE;
    case Word::gt: return is_signed ? P::ICMP_SGT : P::ICMP_UGT;
    case Word::ge: return is_signed ? P::ICMP_SGE : P::ICMP_UGE;
    case Word::lo: return P::ICMP_ULT;
    case Word::ls: return P::ICMP_ULE;
    case Word::hi: return P::ICMP_UGT;
    case Word::hs: return P::ICMP_UGE;
    default: return P::BAD_ICMP_PREDICATE;
    }
}

llvm::CmpInst::Predicate float_predicate(Word op) {
    using P = llvm::CmpInst;
    switch (op) {
    case Word::eq: return P::FCMP_OEQ;
    case Word::ne: return P::FCMP_ONE;
    case Word::lt: return P::FCMP_OLT;
    case Word::le: return P::FCMP_OLE;
    case Word::gt: return P::FCMP_OGT;
    case Word::ge: return P::FCMP_OGE;
    case Word::equ: return P::FCMP_UEQ;
    case Word::neu: return P::FCMP_UNE;
    case Word::ltu: return P::FCMP_ULT;
    case Word::leu: return P::FCMP_ULE;
    case Word::gtu: return P::FCMP_UGT;
    case Word::geu: return P::FCMP_UGE;
    case Word::num: return P::FCMP_ORD;
    case Word::nan: return P::FCMP_UNO;
    default: return P::BAD_FCMP_PREDICATE;
    }
}

} // namespace

Word comparison_of(const Instruction& inst) {
    return inst.one_of({Word::eq, Word::ne, Word::lt, Word::le, Word::gt, Word::ge, Word::lo, Word::ls, Word::hi,
                        Word::hs, Word::equ, Word::neu, Word::ltu, Word::leu, Word::gtu, Word::geu, Word::num,
                        Word::nan});
}

Value* compare(WarpEmitter& e, const Instruction& inst, Value* a, Value* b, ScalarType type) {
    Ir& ir = e.ir();
    Word op = comparison_of(inst);
    llvm::CmpInst::Predicate predicate;
    if (a->getType()->isFPOrFPVectorTy()) {
        predicate = float_predicate(op);
        if (inst.has(Word::ftz)) {
            a = flush_subnormal(ir, a);
            b = flush_subnormal(ir, b);
        }
        // Half lanes compare as floats, which is exact and which every target can do.
        if (!a->getType()->getScalarType()->isDoubleTy()) {
            a = widen_to_float(ir, a);
            b = widen_to_float(ir, b);
        }
        if (predicate != llvm::CmpInst::BAD_FCMP_PREDICATE) return ir.CreateFCmp(predicate, a, b);
    } else {
        predicate = integer_predicate(op, ptx::is_signed(type));
        if (predicate != llvm::CmpInst::BAD_ICMP_PREDICATE) return ir.CreateICmp(predicate, a, b);
    }
    e.unsupported("internal: the comparison does not apply to the type");
}

Value* combine(Ir& ir, const Instruction& inst, Value* truth, Value* c) {
    switch (inst.one_of({Word::and_, Word::or_, Word::xor_})) {
    case Word::and_: return ir.CreateAnd(truth, c);
    case Word::or_: return ir.CreateOr(truth, c);
    case Word::xor_: return ir.CreateXor(truth, c);
    default: return truth;
    }
}

bool is_written(const ptx::Operand& operand) {
    return operand.kind != ptx::Operand::Kind::none && operand.kind != ptx::Operand::Kind::sink;
}

void write_predicates(WarpEmitter& e, const Instruction& inst, const LaneValue& p, const LaneValue& q) {
    auto combined = [&](const LaneValue& truth) {
        if (inst[Role::c].kind == ptx::Operand::Kind::none) return truth;
        return e.apply({truth, e.read(inst[Role::c])}, [&](Ir& ir, Values v) { return combine(ir, inst, v[0], v[1]); });
    };
    // Both are computed before either is written: p or q may be the register that c reads.
    LaneValue first = combined(p);
    LaneValue second = is_written(inst[Role::q]) ? combined(q) : LaneValue{};
    e.write(inst[Role::p], first);
    if (second.base) e.write(inst[Role::q], second);
}

Value* truth_value(Ir& ir, Value* truth, llvm::Type* result) {
    llvm::Type* type = typed(result, truth);
    if (type->isIntOrIntVectorTy()) return ir.CreateSExt(truth, type);
    return ir.CreateSelect(truth, llvm::ConstantFP::get(type, 1.0), llvm::ConstantFP::get(type, 0.0));
}

void setp(WarpEmitter& e, const Instruction& inst) {
    LaneValue truth = e.apply({e.read(inst[Role::a]), e.read(inst[Role::b])},
                              [&](Ir&, Values v) { return compare(e, inst, v[0], v[1], inst.type()); });
    LaneValue complement = truth;
    if (is_written(inst[Role::q])) complement = e.apply({truth}, [](Ir& ir, Values v) { return ir.CreateNot(v[0]); });
    write_predicates(e, inst, truth, complement);
}

void set(WarpEmitter& e, const Instruction& inst) {
    llvm::Type* result = e.type(inst.types[0]);
    auto build = [&](Ir& ir, Values v) {
        Value* truth = compare(e, inst, v[0], v[1], inst.types[1]);
        if (v.size() > 2) truth = combine(ir, inst, truth, v[2]);
        return truth_value(ir, truth, result);
    };
    if (inst[Role::c].kind == ptx::Operand::Kind::none)
        e.map(inst, {Role::a, Role::b}, build);
    else
        e.map(inst, {Role::a, Role::b, Role::c}, build);
}

void selp(WarpEmitter& e, const Instruction& inst) {
    e.map(inst, {Role::a, Role::b, Role::c}, [](Ir& ir, Values v) { return ir.CreateSelect(v[2], v[0], v[1]); });
}

void slct(WarpEmitter& e, const Instruction& inst) {
    bool ftz = inst.has(Word::ftz);
    e.map(inst, {Role::a, Role::b, Role::c}, [=](Ir& ir, Values v) {
        Value* c = v[2];
        Value* first;
        if (c->getType()->isFPOrFPVectorTy()) {
            if (ftz) c = flush_subnormal(ir, c);
            first = ir.CreateFCmpOGE(c, real(c, 0));
        } else {
            first = ir.CreateICmpSGE(c, integer(c, 0));
        }
        return ir.CreateSelect(first, v[0], v[1]);
    });
}

} // namespace ptarmigan::translator::lower
