// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_memory/instruction_descriptor.h"

namespace ptarmigan::runtime {

using abi::TensorMemoryCall;
using Kind = abi::TensorMemoryKind;
using tensor_core::Format;

namespace {

bool is_scaled(Kind kind) {
    return kind >= Kind::mxf8f6f4;
}
bool is_e2m1(Kind kind) {
    return kind == Kind::mxf4 || kind == Kind::mxf4nvf4;
}

/// Types of the mixed kinds; f64 stands for none.
Format mixed_format(unsigned code) {
    switch (code) {
    case 0: return Format::e4m3;
    case 1: return Format::e5m2;
    case 3: return Format::e2m3;
    case 4: return Format::e3m2;
    case 5: return Format::e2m1_in_byte;
    default: return Format::f64;
    }
}

Format format_of(Kind kind, unsigned code) {
    switch (kind) {
    case Kind::f16: return code == 0 ? Format::f16 : code == 1 ? Format::bf16 : Format::f64;
    case Kind::tf32: return code == 2 ? Format::tf32 : Format::f64;
    case Kind::i8: return code == 0 ? Format::u8 : code == 1 ? Format::s8 : Format::f64;
    case Kind::f8f6f4:
    case Kind::mxf8f6f4: return mixed_format(code);
    default: return code == 1 ? Format::e2m1 : Format::f64;
    }
}

/// N of table 39.
bool is_n_right(const InstructionDescriptor& descriptor, Kind kind, std::uint32_t flags) {
    const unsigned n = descriptor.n;
    if ((flags & TensorMemoryCall::weight_stationary) != 0)
        return n == 64 || n == 128 || (n == 256 && (flags & TensorMemoryCall::sparse) == 0);
    const bool pair = (flags & TensorMemoryCall::pair) != 0;
    unsigned step = pair ? 16 : 8;
    if (kind == Kind::i8) step = pair ? 32 : n > 32 ? 16 : 8;
    return n >= step && n <= 256 && n % step == 0;
}

bool is_m_right(unsigned m, Kind kind, std::uint32_t flags) {
    if ((flags & TensorMemoryCall::weight_stationary) != 0) return m == 32 || m == 64 || m == 128;
    if ((flags & TensorMemoryCall::pair) != 0)
        return m == 256 || (m == 128 && !(is_scaled(kind) && (flags & TensorMemoryCall::sparse) != 0));
    return m == 128 || (m == 64 && !is_scaled(kind));
}

} // namespace

unsigned shared_bits(Format format) {
    switch (format) {
    case Format::tf32: return 32;
    case Format::f16:
    case Format::bf16: return 16;
    case Format::e2m1: return 4;
    default: return 8;
    }
}

const char* InstructionDescriptor::read_types(std::uint32_t bits, Kind kind) {
    a = format_of(kind, bits >> 7 & 7);
    b = format_of(kind, bits >> 10 & (is_e2m1(kind) ? 3 : 7));
    if (a == Format::f64 || b == Format::f64) return "an instruction descriptor has a type that its .kind lacks";
    if (scales_) {
        d = Format::f32;
        scale = (bits >> 23 & 1) != 0 ? tensor_core::ScaleFormat::ue8m0 : tensor_core::ScaleFormat::ue4m3;
        if (scale == tensor_core::ScaleFormat::ue4m3 && kind != Kind::mxf4nvf4)
            return "scales of .ue4m3 need .kind::mxf4nvf4";
        return nullptr;
    }
    switch (bits >> 4 & 3) {
    case 0: d = Format::f16; break;
    case 1: d = Format::f32; break;
    case 2: d = Format::s32; break;
    default: return "an instruction descriptor has a type of D that there is not";
    }
    if ((d == Format::s32) != (kind == Kind::i8) || (d == Format::f16 && kind == Kind::tf32))
        return "an instruction descriptor has a type of D that its .kind lacks";
    if (d == Format::f16 && kind == Kind::f16 && (a != Format::f16 || b != Format::f16))
        return "a D of .f16 needs A and B of .f16";
    return nullptr;
}

const char* InstructionDescriptor::check(std::uint32_t bits, Kind kind, std::uint32_t flags, unsigned scales) {
    const bool is_sparse = (flags & TensorMemoryCall::sparse) != 0;
    if (((bits >> 2 & 1) != 0) != is_sparse)
        return "an instruction descriptor says sparse and its instruction does not, or the other way round";
    if (!is_m_right(m, kind, flags)) return "an instruction descriptor has an M that its instruction lacks";
    if (!is_n_right(*this, kind, flags)) return "an instruction descriptor has an N that its instruction lacks";
    if ((flags & TensorMemoryCall::shifted_a) != 0 && m < 128) return ".ashift needs an M of 128 or 256";
    if (kind == Kind::i8 && (negates_a || negates_b)) return "integers are not negated";
    if (saturates && kind != Kind::i8) return "only integers are saturated";
    if (transposes_a && (flags & TensorMemoryCall::a_in_tensor_memory) != 0)
        return "a matrix A in tensor memory is not transposed";
    if (is_e2m1(kind) && (transposes_a || transposes_b)) return "matrices of .kind::mxf4 are not transposed";
    if ((transposes_a && a >= Format::e3m2) || (transposes_b && b >= Format::e3m2))
        return "matrices of 4 and 6 bits are not transposed";
    if (sparsity_selector != 0 && kind != Kind::f16 && kind != Kind::tf32)
        return "a sparsity selector that is not 0 needs .kind::f16 or .kind::tf32";
    if (scales == 0) return nullptr;
    if (is_e2m1(kind) && (bits >> 31 & 1) != 0) return "K = 96 (sm_103a) is not supported";
    if (scales == 2 && scale == tensor_core::ScaleFormat::ue4m3) return "scales of .ue4m3 are for 16 elements each";
    if ((scales == 2 && (scale_a_id % 2 != 0 || scale_b_id % 2 != 0)) ||
        (scales == 4 && (scale_a_id != 0 || scale_b_id != 0)))
        return "an instruction descriptor has a scale factor's ID that its instruction lacks";
    return nullptr;
}

InstructionDescriptor::InstructionDescriptor(std::uint32_t bits, Kind kind, std::uint32_t flags, unsigned scales)
    : scales_(scales != 0) {
    negates_a = (bits >> 13 & 1) != 0;
    negates_b = (bits >> 14 & 1) != 0;
    transposes_a = (bits >> 15 & 1) != 0;
    transposes_b = (bits >> 16 & 1) != 0;
    n = (bits >> 17 & 0x3f) << 3;
    if (scales_) {
        scale_b_id = bits >> 4 & 3;
        scale_a_id = bits >> 29 & 3;
        m = (bits >> 27 & 3) << 7;
    } else {
        sparsity_selector = bits & 3;
        saturates = (bits >> 3 & 1) != 0;
        m = (bits >> 24 & 0x1f) << 4;
    }
    fault = read_types(bits, kind);
    if (fault) return;
    k = 256 / shared_bits(a) * ((flags & TensorMemoryCall::sparse) != 0 ? 2 : 1);
    fault = check(bits, kind, flags, scales);
}

} // namespace ptarmigan::runtime
