// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor_core/form_product.h"

namespace ptarmigan::runtime::tensor_core {
namespace {

using ptx::MatrixType;

Unit unit_of(const ptx::MatrixForm& form) {
    using Opcode = ptx::MatrixOpcode;
    if (form.kind == ptx::MatrixKind::mixed) return Unit::fused;
    if (form.kind == ptx::MatrixKind::scaled_mixed) return Unit::scaled;
    if (form.kind == ptx::MatrixKind::scaled_e2m1) return Unit::scaled_groups;
    const bool is_wmma = form.opcode == Opcode::wmma,
               is_wgmma = form.opcode == Opcode::wgmma || form.opcode == Opcode::wgmma_sp;
    switch (form.a) {
    case MatrixType::f64: return Unit::chain_f64;
    case MatrixType::tf32: return is_wmma ? Unit::two_fused : Unit::fused;
    case MatrixType::e4m3:
    case MatrixType::e5m2: return is_wgmma ? Unit::fused_fp8 : Unit::fp8_by_f16;
    case MatrixType::f16: return !is_wmma && form.m == 8 ? Unit::scalar_f16 : Unit::fused;
    case MatrixType::bf16: return Unit::fused;
    case MatrixType::b1: return form.bits_and ? Unit::bits_and : Unit::bits_xor;
    default: return Unit::integer;
    }
}

} // namespace

MatrixProduct product_of(const ptx::MatrixForm& form) {
    MatrixProduct product{};
    product.a = form.a;
    product.b = form.b;
    product.c = form.c;
    product.d = form.d;
    product.unit = unit_of(form);
    product.m = form.m;
    product.n = form.n;
    product.k = form.k;
    product.sparse = ptx::is_sparse(form.opcode);
    product.saturate = form.satfinite;
    product.negate_product = form.negate;
    product.rounding = form.rounding;
    product.scales = form.scales;
    product.scale = form.scale_ue4m3 ? ScaleFormat::ue4m3 : ScaleFormat::ue8m0;
    return product;
}

} // namespace ptarmigan::runtime::tensor_core
