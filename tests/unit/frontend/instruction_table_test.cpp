// SPDX-License-Identifier: Apache-2.0
#include "frontend/isa/form_pattern.h"
#include "frontend/isa/special_registers.h"
#include "tests/unit/frontend/load.h"

#include <set>

using namespace ptarmigan;
using namespace ptarmigan::ptx;

TEST_CASE("instruction table: every row decodes without a fault") {
    CHECK(FormTable::get().faults() == std::vector<std::string>{});
    CHECK(all_forms().size() > 400);
}

TEST_CASE("instruction table: names are unique and ids are positions") {
    std::set<std::string_view> names;
    std::size_t position = 0;
    for (const FormInfo& info : all_forms()) {
        CHECK(names.insert(info.name).second);
        CHECK(static_cast<std::size_t>(info.id) == position++);
        CHECK(&form_info(info.id) == &info);
        CHECK(info.lowered == info.unsupported_reason.empty());
        CHECK_FALSE(info.section.empty());
    }
}

TEST_CASE("instruction table: a row with a result has a destination and no other has") {
    for (const FormInfo& info : all_forms()) {
        INFO(info.name);
        bool has_destination = false;
        for (const OperandInfo& operand : info.operands)
            has_destination = has_destination || operand.is_destination;
        const bool from_memory = !info.operands.empty() && info.operands[0].constraint == "address";
        if (info.shape == ShapeRule::none)
            CHECK_FALSE((has_destination && info.operands.size() == 1));
        if (info.shape != ShapeRule::none && !from_memory) CHECK(has_destination);
    }
}

TEST_CASE("instruction table: what a row says arrives in the decoded form") {
    const FormInfo& info = form_info(FormId::mul_wide);
    CHECK(info.opcode == "mul");
    CHECK(info.chapter == "integer_arithmetic");
    CHECK(info.section == "9.7.1.3");
    CHECK(info.shape == ShapeRule::multiply_wide);
    REQUIRE(info.operands.size() == 3);
    CHECK(info.operands[0].is_destination);
    CHECK(info.operands[0].constraint == "wide(.type)");
    CHECK_FALSE(info.operands[1].is_destination);
    CHECK(form_info(FormId::shfl_sync).operands[1].is_destination); // d{|p}
    CHECK(form_info(FormId::shfl_sync).operands[1].optional);
}

TEST_CASE("special registers: names to numbers and back") {
    CHECK(find_special_register("%tid").id == SpecialRegister::tid);
    CHECK(find_special_register("%envreg31").number == 31);
    CHECK_FALSE(find_special_register("%envreg32").found);
    CHECK_FALSE(find_special_register("%envreg01").found);
    CHECK_FALSE(find_special_register("%r1").found);
    CHECK(special_register_text(SpecialRegister::ctaid, 2) == "%ctaid.z");
    CHECK(special_register_text(SpecialRegister::pm_64, 3) == "%pm3_64");
    CHECK(special_register_text(SpecialRegister::clock64, 0) == "%clock64");
}

TEST_CASE("instruction table: which results round") {
    for (FormId id : {FormId::add_f32, FormId::fma_f64, FormId::mad_f32_legacy, FormId::div_approx, FormId::sqrt_approx,
                      FormId::rcp_approx_f64, FormId::mul_bf16, FormId::fma_f32_mixed, FormId::sub_f32x2})
        CHECK(form_info(id).rounds);
    for (FormId id : {FormId::add_int, FormId::mad_lo, FormId::neg_f32, FormId::min_f64, FormId::copysign, FormId::mov})
        CHECK(!form_info(id).rounds);
    // It says nothing about effects.
    for (const FormInfo& info : all_forms()) {
        CHECK(!any(info.effects, Effects::rounds));
        if (info.rounds) CHECK(info.effects == Effects::pure);
    }
}
