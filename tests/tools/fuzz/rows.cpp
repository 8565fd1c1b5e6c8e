// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/rows.h"

#include "frontend/isa/form_pattern.h"
#include "frontend/isa/targets.h"
#include "tests/recordings/driver.h"

#include <algorithm>

namespace fuzz {

using namespace ptarmigan::ptx;

namespace {

bool has_role(const FormInfo& info, Role role) {
    return std::any_of(info.operands.begin(), info.operands.end(), [&](const OperandInfo& operand) { return operand.role == role; });
}

bool has_address(const FormInfo& info) {
    const auto operands = FormTable::get().pattern(info.id).operands;
    return std::any_of(operands.begin(), operands.end(), [](const OperandPattern& o) { return o.constraint.kind == Constraint::Kind::address; });
}

std::uint64_t hash_of(std::string_view text) { return recordings::hash_bytes(text.data(), text.size()); }

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return recordings::Random(a ^ b).bits(); }

} // namespace

RowUse use_of(const FormInfo& info, Version version, Target target) {
    const auto with = [&](Effects effects) { return any(info.effects, effects); };
    if (!info.lowered) return {Use::none, "not executed"};
    if (Version{info.ptx_major, info.ptx_minor} > version || !has_target(info.targets, target.sm, target.suffix))
        return {Use::none, "not at this version and target"};
    if (info.chapter == "texture" || info.chapter == "surface") return {Use::none, "textures and surfaces: tests/recordings/textures"};
    if (info.chapter == "matrix" || info.chapter == "warpgroup_matrix") return {Use::none, "matrices of whole warps: tests/recordings/tensor_core"};
    if (info.chapter == "mbarrier" || with(Effects::async)) return {Use::none, "protocols of asynchronous work: tests/recordings/async_programs"};
    if (info.chapter == "async_copy") {
        if (with(Effects::load) && with(Effects::store)) return {Use::copy, ""};
        return with(Effects::fence) ? RowUse{Use::copy, ""} : RowUse{Use::none, "tensor maps: tests/recordings/async_copies"};
    }
    if (with(Effects::may_trap)) return {Use::none, "ends the grid"};
    if (with(Effects::terminator | Effects::call)) return {Use::control, ""};
    if (info.chapter == "stack") return {Use::stack, ""};
    if (with(Effects::volatile_read) && !with(Effects::load)) return {Use::none, "its result is for the machine to choose"};
    if (with(Effects::waits) && with(Effects::barrier)) return {Use::cluster, ""};
    if (with(Effects::barrier)) return {info.opcode == "barrier" && info.syntax.find(".cluster") != std::string_view::npos ? Use::cluster : Use::barrier, ""};
    if (with(Effects::convergent)) return {Use::collective, ""};
    if (with(Effects::atomic)) return {Use::atomic, ""};
    if (with(Effects::load | Effects::store)) return {Use::memory, ""};
    if (with(Effects::fence)) return has_address(info) ? RowUse{Use::none, "tensor maps: tests/recordings/async_copies"} : RowUse{Use::fence, ""};
    if (info.opcode == "setmaxnreg") return {Use::none, "changes nothing that a program sees"};
    if (info.opcode == "discard") return {Use::none, "leaves memory undefined"};
    if (info.opcode == "createpolicy") return info.syntax.find("fractional") != std::string_view::npos ? RowUse{Use::policy, ""} : RowUse{Use::none, "takes what only a host or a range gives"};
    if (info.opcode == "cvta" || info.opcode == "isspacep" || info.opcode == "mapa" || info.opcode == "getctarank") return {Use::address, ""};
    if (has_address(info) || info.shape == ShapeRule::none || with(Effects::waits)) return {Use::hint, ""};
    if (has_role(info, Role::cc_in)) return {Use::carry_next, ""};
    if (has_role(info, Role::cc_out)) return {Use::carry_first, ""};
    return {info.shape == ShapeRule::elementwise || info.shape == ShapeRule::varying ? Use::value : Use::shaped, ""};
}

RowChooser::RowChooser(Version version, Target target, const std::string& filter) {
    const std::regex wanted(filter.empty() ? ".*" : filter);
    std::map<Use, std::vector<Row>> all;
    for (const FormInfo& info : all_forms()) {
        const Use use = use_of(info, version, target).use;
        if (use == Use::none) continue;
        const Row row{info.id, hash_of(info.name), hash_of(info.chapter)};
        all[use].push_back(row);
        if (std::regex_search(info.name.begin(), info.name.end(), wanted)) rows_[use].push_back(row);
    }
    for (auto& [use, rows] : all)
        if (!rows_.contains(use)) rows_[use] = std::move(rows);
}

FormId RowChooser::choose(Use use, recordings::Random& random) const {
    const std::vector<Row>& rows = rows_.at(use);
    // Half of the draws choose a chapter first, so that large ones do not crowd out the others.
    const std::uint64_t draw = random.bits(), by_chapter = draw & 1;
    const auto weight = [&](const Row& row) { return std::pair(by_chapter ? mix(draw, row.chapter_hash) : 0, mix(draw, row.hash)); };
    return std::min_element(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return weight(a) < weight(b); })->id;
}

} // namespace fuzz
