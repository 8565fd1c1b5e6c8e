// SPDX-License-Identifier: Apache-2.0
// A kernel's code: its own section and those of the functions that it calls (-G, -rdc), laid out in one space of byte
// offsets. The kernel is at its beginning, functions behind the largest kernel of the module: a function's address is
// one number for all of them, as tables of functions in memory need.
#include "frontend/sass/lifter.h"

#include <algorithm>
#include <iterator>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

/// Relocations of an operand: halves of an address, and the target of CALL.ABS (of sm_80, of sm_90).
constexpr std::uint32_t low_half_type = 56, high_half_type = 57, call_types[] = {58, 75};

} // namespace

std::optional<std::uint64_t> Lifter::code_address(const CubinSymbol& symbol, std::int64_t addend) const {
    if (is_left_to_runtime(symbol)) return addend == 0 ? provided_address(symbol.name) : std::nullopt;
    return function_address(cubin_, bases_, symbol, addend);
}

std::string Lifter::place(std::uint32_t address) const {
    for (const auto& [section, base] : bases_)
        if (section != kernel_.text && address >= base && address - base < cubin_.sections[section].bytes.size())
            return hexadecimal(address - base) + " of " + std::string(cubin_.sections[section].name);
    return hexadecimal(address);
}

/// Sections of functions whose addresses stand in variables or constants.
std::set<std::size_t> Lifter::stored_functions() const {
    std::set<std::size_t> result;
    for (const CubinSection& section : cubin_.sections) {
        if (section.name != ".nv.global.init" && section.name.substr(0, 12) != ".nv.constant") continue;
        for (const CubinRelocation& relocation : section.relocations) {
            const CubinSymbol& symbol = cubin_.symbols[relocation.symbol];
            if (!is_left_to_runtime(symbol) && code_address(symbol, relocation.addend)) result.insert(symbol.section);
        }
    }
    return result;
}

/// Decodes a section, whose instructions then are known by their places in the space.
void Lifter::decode_section(std::size_t index) {
    const CubinSection& section = cubin_.sections[index];
    const std::uint32_t base = bases_.at(index);
    const std::size_t count = section.bytes.size() / instruction_size, first = base / instruction_size;
    if (code_.size() < first + count) {
        code_.resize(first + count);
        is_known_.resize(first + count);
    }
    section_ends_.insert(std::uint32_t(base + count * instruction_size));
    for (std::size_t i = 0; i < count; ++i) {
        Code code;
        for (unsigned byte = 0; byte < 8; ++byte) {
            code.low |= std::uint64_t(section.bytes[16 * i + byte]) << 8 * byte;
            code.high |= std::uint64_t(section.bytes[16 * i + 8 + byte]) << 8 * byte;
        }
        Instruction& inst = code_[first + i];
        is_known_[first + i] = decode(code, std::uint32_t(base + 16 * i), inst, cubin_.architecture);
        if (!is_known_[first + i]) inst.operand_count = 0;
    }
    for (const CubinRelocation& relocation : section.relocations) {
        if (relocation.offset / instruction_size >= count) continue;
        const auto at = std::uint32_t(base + relocation.offset / instruction_size * instruction_size);
        Instruction& inst = code_[at / instruction_size];
        const auto address = code_address(cubin_.symbols[relocation.symbol], relocation.addend);
        if (address && inst.form != nullptr && is_known_[at / instruction_size] && relocated_.count(at) == 0) {
            Operand& source = inst.operands[1];
            if (inst.form->rule == "mov" && source.kind == Kind::immediate && source.value == 0 &&
                (relocation.type == low_half_type || relocation.type == high_half_type)) {
                source.value = std::int64_t(relocation.type == low_half_type ? *address & 0xffffffff : *address >> 32);
                continue;
            }
            if (inst.form->id == FormId::call_abs &&
                (relocation.type == call_types[0] || relocation.type == call_types[1]) && source.value == 0) {
                source.value = std::int64_t(*address);
                continue;
            }
        }
        const bool is_first = relocated_.emplace(at, &relocation).second;
        if (!is_first) relocated_[at] = nullptr;
    }
    const auto add_facts = [&](const CodeFacts& facts) {
        for (CodeFacts::BranchTargets entry : facts.branch_targets) {
            entry.branch += base;
            for (std::uint32_t& target : entry.targets) target += base;
            facts_.branch_targets.push_back(std::move(entry));
        }
        for (const std::uint32_t offset : facts.internal_collectives)
            facts_.internal_collectives.push_back(offset + base);
        for (CodeFacts::Collective collective : facts.collectives) {
            collective.offset += base;
            facts_.collectives.push_back(collective);
        }
    };
    if (index == kernel_.text) add_facts(kernel_.facts);
    for (const CubinFunctions& functions : cubin_.functions)
        if (functions.text == index) add_facts(functions.facts);
}

/// The kernel's section and all that it leads to.
void Lifter::decode_sections() {
    bases_ = plan_.bases;
    bases_[kernel_.text] = 0;
    std::set<std::size_t> seen{kernel_.text};
    std::vector<std::size_t> work{kernel_.text};
    bool adds_stored = false;
    while (!work.empty()) {
        const std::size_t index = work.back();
        work.pop_back();
        decode_section(index);
        const auto add = [&](std::size_t section) {
            if (seen.insert(section).second) work.push_back(section);
        };
        for (const CubinRelocation& relocation : cubin_.sections[index].relocations) {
            const CubinSymbol& symbol = cubin_.symbols[relocation.symbol];
            if (!is_left_to_runtime(symbol) && code_address(symbol, relocation.addend)) add(symbol.section);
        }
        const std::size_t first = bases_.at(index) / instruction_size,
                          end = first + cubin_.sections[index].bytes.size() / instruction_size;
        for (std::size_t i = first; i < end && !adds_stored; ++i)
            adds_stored = code_[i].form != nullptr &&
                          (code_[i].form->rule == "call_indexed" || code_[i].form->rule == "call_absolute");
        if (adds_stored)
            for (const std::size_t section : stored_functions()) add(section);
    }
    std::sort(facts_.internal_collectives.begin(), facts_.internal_collectives.end());
    std::sort(facts_.collectives.begin(), facts_.collectives.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    for (const Instruction& inst : code_)
        for (unsigned i = 0; i < inst.operand_count; ++i)
            if (inst.operands[i].kind == Kind::immediate) addresses_.push_back(std::uint32_t(inst.operands[i].value));
    std::sort(addresses_.begin(), addresses_.end());
    find_pointed_functions(seen);
}

/// Functions whose addresses stand in bank 2, in variables or among the code's immediate operands, where anything is
/// called through a register.
void Lifter::find_pointed_functions(const std::set<std::size_t>& sections) {
    if (std::none_of(code_.begin(), code_.end(), [](const Instruction& inst) {
            return inst.form != nullptr && (inst.form->rule == "call_indexed" || inst.form->rule == "call_absolute");
        }))
        return;
    std::set<std::uint64_t> words(addresses_.begin(), addresses_.end());
    for (const std::string& name : {".nv.constant2." + std::string(kernel_.name), std::string(".nv.global.init")}) {
        const CubinSection* section = cubin_.find_section(name);
        if (section == nullptr) continue;
        for (std::size_t at = 0; at + 8 <= section->bytes.size(); at += 8) {
            std::uint64_t word = 0;
            for (unsigned i = 0; i < 8; ++i) word |= std::uint64_t(section->bytes[at + i]) << 8 * i;
            words.insert(word);
        }
    }
    for (const CubinSection& section : cubin_.sections) {
        if (section.name != ".nv.global.init" && section.name.substr(0, 12) != ".nv.constant") continue;
        for (const CubinRelocation& relocation : section.relocations)
            if (const auto address = code_address(cubin_.symbols[relocation.symbol], relocation.addend))
                words.insert(*address);
    }
    for (const CubinSymbol& symbol : cubin_.symbols) {
        if (symbol.type != function_symbol || sections.count(symbol.section) == 0) continue;
        const auto address = code_address(symbol, 0);
        if (address && *address != 0 && *address % instruction_size == 0 && words.count(*address) != 0)
            pointed_functions_.push_back(std::uint32_t(*address));
    }
    std::sort(pointed_functions_.begin(), pointed_functions_.end());
    pointed_functions_.erase(std::unique(pointed_functions_.begin(), pointed_functions_.end()),
                             pointed_functions_.end());
    // What CALL.ABS may lead to: functions that are not a part of the kernel's own section.
    const std::size_t own = cubin_.sections[kernel_.text].bytes.size();
    std::copy_if(pointed_functions_.begin(), pointed_functions_.end(), std::back_inserter(absolute_functions_),
                 [&](std::uint32_t address) { return address >= own; });
}

} // namespace ptarmigan::sass
