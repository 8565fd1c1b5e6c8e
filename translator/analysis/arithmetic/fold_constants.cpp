// SPDX-License-Identifier: Apache-2.0
// Integer forms worth folding: those that address arithmetic and bounds checks are made of once %ntid is a constant.
#include "translator/analysis/build/build_ssa.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"

#include <algorithm>
#include <bit>
#include <map>

namespace ptarmigan::translator {
namespace {

using ptx::FormId;
using ptx::Modifier;
using ptx::ScalarType;
using Sources = std::vector<std::uint64_t>;
using Result = std::optional<std::uint64_t>;

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t(1) << bits) - 1);
}

std::int64_t sign_extend(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? std::int64_t(value) : std::int64_t(value << (64 - bits)) >> (64 - bits);
}

/// As a 64-bit number with the sign that the type says.
std::uint64_t extend(std::uint64_t value, ScalarType type) {
    unsigned bits = ptx::bit_size(type);
    return ptx::is_signed(type) ? std::uint64_t(sign_extend(value, bits)) : low_bits(value, bits);
}

bool less(std::uint64_t a, std::uint64_t b, ScalarType type) {
    return ptx::is_signed(type) ? std::int64_t(extend(a, type)) < std::int64_t(extend(b, type))
                                : extend(a, type) < extend(b, type);
}

Result divide(const ptx::Instruction& inst, const Sources& s, bool remainder) {
    std::uint64_t a = extend(s[0], inst.type()), b = extend(s[1], inst.type());
    if (b == 0) return std::nullopt;
    if (!ptx::is_signed(inst.type())) return remainder ? a % b : a / b;
    if (std::int64_t(b) == -1) return remainder ? 0 : std::uint64_t(0) - a;
    return remainder ? std::uint64_t(std::int64_t(a) % std::int64_t(b))
                     : std::uint64_t(std::int64_t(a) / std::int64_t(b));
}

Result compare(const ptx::Instruction& inst, const Sources& s) {
    ScalarType type = inst.type();
    bool lt = less(s[0], s[1], type), eq = extend(s[0], type) == extend(s[1], type);
    bool unsigned_lt = low_bits(s[0], ptx::bit_size(type)) < low_bits(s[1], ptx::bit_size(type));
    switch (inst.one_of({Modifier::eq, Modifier::ne, Modifier::lt, Modifier::le, Modifier::gt, Modifier::ge,
                         Modifier::lo, Modifier::ls, Modifier::hi, Modifier::hs})) {
    case Modifier::eq: return eq;
    case Modifier::ne: return !eq;
    case Modifier::lt: return lt;
    case Modifier::le: return lt || eq;
    case Modifier::gt: return !lt && !eq;
    case Modifier::ge: return !lt;
    case Modifier::lo: return unsigned_lt;
    case Modifier::ls: return unsigned_lt || eq;
    case Modifier::hi: return !unsigned_lt && !eq;
    case Modifier::hs: return !unsigned_lt;
    default: return std::nullopt;
    }
}

Result shift_right(const ptx::Instruction& inst, const Sources& s) {
    unsigned bits = ptx::bit_size(inst.type());
    std::uint64_t by = std::min<std::uint64_t>(s[1], bits);
    if (ptx::is_signed(inst.type()))
        return std::uint64_t(std::int64_t(extend(s[0], inst.type())) >> std::min<std::uint64_t>(by, bits - 1));
    return by == bits ? 0 : low_bits(s[0], bits) >> by;
}

Result shift_left(const ptx::Instruction& inst, const Sources& s) {
    return s[1] >= ptx::bit_size(inst.type()) ? 0 : s[0] << s[1];
}

std::uint64_t high_product(std::uint64_t a, std::uint64_t b, ScalarType type) {
    const unsigned bits = ptx::bit_size(type);
    if (bits < 64) return (extend(a, type) * extend(b, type)) >> bits;
    if (ptx::is_signed(type)) return std::uint64_t((__int128(std::int64_t(a)) * std::int64_t(b)) >> 64);
    return std::uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
}

Result reverse_bits(const ptx::Instruction& inst, const Sources& s) {
    std::uint64_t reversed = 0;
    const unsigned bits = ptx::bit_size(inst.type());
    for (unsigned i = 0; i < bits; ++i) reversed |= (s[0] >> i & 1) << (bits - 1 - i);
    return reversed;
}

Result leading_zeros(const ptx::Instruction& inst, const Sources& s) {
    const unsigned bits = ptx::bit_size(inst.type());
    return std::uint64_t(std::countl_zero(low_bits(s[0], bits))) - (64 - bits);
}

/// Position or length of a bit field, `bits` or more being alike: eight bits count, but all of fields of 64 (recorded
/// on an H200).
unsigned field_number(std::uint64_t number, unsigned bits) {
    return unsigned(std::min<std::uint64_t>(bits == 64 ? low_bits(number, 32) : number & 255, bits));
}

Result extract_field(const ptx::Instruction& inst, const Sources& s) {
    const unsigned bits = ptx::bit_size(inst.type());
    const unsigned position = field_number(s[1], bits), length = field_number(s[2], bits);
    if (length == 0) return 0;
    const unsigned end = std::min(position + length, bits); // what lies above the number is its sign
    if (ptx::is_signed(inst.type())) return std::uint64_t(sign_extend(s[0], end) >> std::min(position, 63u));
    return position == bits ? 0 : low_bits(s[0], end) >> position;
}

Result insert_field(const ptx::Instruction& inst, const Sources& s) {
    const unsigned bits = ptx::bit_size(inst.type());
    const unsigned position = field_number(s[2], bits), length = field_number(s[3], bits);
    if (position == bits) return s[1];
    const std::uint64_t mask = low_bits(~std::uint64_t(0), length) << position;
    return (s[0] << position & mask) | (s[1] & ~mask);
}

Result logic_of_three(const ptx::Instruction&, const Sources& s) {
    std::uint64_t result = 0;
    for (unsigned i = 0; i < 8; ++i)
        if (s[3] >> i & 1) result |= (i & 4 ? s[0] : ~s[0]) & (i & 2 ? s[1] : ~s[1]) & (i & 1 ? s[2] : ~s[2]);
    return result;
}

Result funnel_shift(const ptx::Instruction& inst, const Sources& s) {
    const std::uint64_t both = low_bits(s[0], 32) | s[1] << 32;
    const std::uint64_t by = inst.has(Modifier::clamp) ? std::min<std::uint64_t>(s[2], 32) : s[2] & 31;
    return inst.has(Modifier::l) ? (both << by) >> 32 : both >> by;
}

using Fold = Result (*)(const ptx::Instruction&, const Sources&);

Result product(const ptx::Instruction& inst, const Sources& s) {
    return extend(s[0], inst.type()) * extend(s[1], inst.type());
}
Result product_sum(const ptx::Instruction& inst, const Sources& s) {
    return *product(inst, s) + s[2];
}
Result converted(const ptx::Instruction& inst, const Sources& s) {
    return extend(s[0], inst.types[1]);
}

const std::map<FormId, Fold>& folds() {
    static const auto& table = *new std::map<FormId, Fold>{
        // never destroyed: kernels may be compiled at exit
        {FormId::mov, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0]; }},
        {FormId::add_int, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0] + s[1]; }},
        {FormId::sub_int, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0] - s[1]; }},
        {FormId::neg_int, [](const ptx::Instruction&, const Sources& s) -> Result { return 0 - s[0]; }},
        {FormId::mul_lo, product},
        {FormId::mul_wide, product},
        {FormId::mul_hi,
         [](const ptx::Instruction& i, const Sources& s) -> Result { return high_product(s[0], s[1], i.type()); }},
        {FormId::mad_lo, product_sum},
        {FormId::mad_wide, product_sum},
        {FormId::div_int, [](const ptx::Instruction& i, const Sources& s) { return divide(i, s, false); }},
        {FormId::rem_int, [](const ptx::Instruction& i, const Sources& s) { return divide(i, s, true); }},
        {FormId::min_int,
         [](const ptx::Instruction& i, const Sources& s) -> Result {
             return less(s[0], s[1], i.type()) ? s[0] : s[1];
         }},
        {FormId::max_int,
         [](const ptx::Instruction& i, const Sources& s) -> Result {
             return less(s[0], s[1], i.type()) ? s[1] : s[0];
         }},
        {FormId::and_bits, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0] & s[1]; }},
        {FormId::or_bits, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0] | s[1]; }},
        {FormId::xor_bits, [](const ptx::Instruction&, const Sources& s) -> Result { return s[0] ^ s[1]; }},
        {FormId::not_bits, [](const ptx::Instruction&, const Sources& s) -> Result { return ~s[0]; }},
        {FormId::shl, shift_left},
        {FormId::lop3, logic_of_three},
        {FormId::shr, shift_right},
        {FormId::shf, funnel_shift},
        {FormId::brev, reverse_bits},
        {FormId::popc, [](const ptx::Instruction&, const Sources& s) -> Result { return std::popcount(s[0]); }},
        {FormId::clz, leading_zeros},
        {FormId::bfe, extract_field},
        {FormId::bfi, insert_field},
        {FormId::setp_bits, compare},
        {FormId::setp_signed, compare},
        {FormId::setp_unsigned, compare},
        {FormId::selp, [](const ptx::Instruction&, const Sources& s) -> Result { return s[2] & 1 ? s[0] : s[1]; }},
        {FormId::cvt_same_8, converted},
        {FormId::cvt_same_16, converted},
        {FormId::cvt_same_32, converted},
        {FormId::cvt_same_64, converted},
        {FormId::cvt_widen_16, converted},
        {FormId::cvt_widen_32, converted},
        {FormId::cvt_widen_64, converted},
        {FormId::cvt_narrow_8, converted},
        {FormId::cvt_narrow_16, converted},
        {FormId::cvt_narrow_32, converted},
    };
    return table;
}

} // namespace

std::optional<std::uint64_t> fold_constant(const ptx::Instruction& inst, const std::vector<std::uint64_t>& sources) {
    auto found = folds().find(inst.form);
    if (found == folds().end() || ptx::bit_size(inst.operands[0].type) > 64) return std::nullopt;
    Result result = found->second(inst, sources);
    return result ? Result(low_bits(*result, ptx::bit_size(inst.operands[0].type))) : result;
}

std::optional<std::uint64_t> constant_special(const ptx::Operand& operand, const BlockShape& shape) {
    using enum ptx::SpecialRegister;
    auto component = [&](const std::array<std::uint32_t, 3>& v) -> Result {
        if (operand.component >= 3 || v[operand.component] == 0) return std::nullopt;
        return v[operand.component];
    };
    std::uint32_t threads = shape.ntid[0] * shape.ntid[1] * shape.ntid[2];
    std::uint32_t ctas = shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
    switch (ptx::SpecialRegister(operand.index)) {
    case ntid: return component(shape.ntid);
    case tid:
    case cluster_ctaid: {
        // The only index there is.
        const auto& extent = ptx::SpecialRegister(operand.index) == tid ? shape.ntid : shape.cluster;
        if (operand.component < 3 && extent[operand.component] == 1) return 0;
        return std::nullopt;
    }
    case warpid:
        if (threads <= 32) return 0;
        return std::nullopt;
    case laneid:
        if (threads == 1) return 0;
        return std::nullopt;
    case cluster_nctaid: return component(shape.cluster);
    case cluster_nctarank:
        if (ctas == 0) return std::nullopt; // any_cluster
        return ctas;
    case cluster_ctarank:
        if (ctas == 1) return 0;
        return std::nullopt;
    default: return std::nullopt;
    }
}

} // namespace ptarmigan::translator
