// SPDX-License-Identifier: Apache-2.0
// The text of a lifted module: variables, then kernels.
#include "frontend/sass/lift.h"
#include "frontend/sass/lifter.h"

#include <algorithm>
#include <optional>

namespace ptarmigan::sass {
namespace {

/// The variable that stands for a section of variables.
std::string_view variable_of(std::string_view section) {
    if (section == ".nv.global") return "sass_global";
    if (section == ".nv.global.init") return "sass_global_init";
    if (section == ".nv.constant3") return "sass_constants";
    return {};
}

constexpr std::uint8_t managed_flag = 0x04; ///< of a symbol's st_other

/// Whether one of its variables is managed: all of the section are then, which code can't tell.
bool is_managed(const Cubin& cubin, const CubinSection& section) {
    return std::any_of(cubin.symbols.begin(), cubin.symbols.end(), [&](const CubinSymbol& symbol) {
        return symbol.type == 1 && (symbol.other & managed_flag) != 0 && symbol.section < cubin.sections.size() &&
               &cubin.sections[symbol.section] == &section;
    });
}

/// The text of an address that a variable holds, where it is known: what stands there already is added.
std::optional<std::string> address_text(const Cubin& cubin, const CubinRelocation& relocation, std::uint64_t word) {
    constexpr std::uint32_t whole_address = 2;
    if (relocation.type != whole_address || relocation.offset % 8 != 0) return {};
    const CubinSymbol& symbol = cubin.symbols[relocation.symbol];
    if (symbol.section == 0 || symbol.section >= cubin.sections.size()) return {};
    const std::uint64_t addend = std::uint64_t(relocation.addend) + word;
    if (const auto function = function_address(cubin, function_bases(cubin), symbol, std::int64_t(addend)))
        return std::to_string(*function);
    const CubinSection& home = cubin.sections[symbol.section];
    const std::uint64_t offset = symbol.value + addend;
    if ((home.name != ".nv.global" && home.name != ".nv.global.init") || offset > home.size) return {};
    return "generic(" + std::string(variable_of(home.name)) + ")+" + std::to_string(offset);
}

void declare_variable(const Cubin& cubin, const CubinSection& section, std::string& text) {
    if (section.size == 0) return;
    const bool is_constant = section.name == ".nv.constant3";
    const bool has_addresses = !section.relocations.empty();
    const std::uint64_t words = (section.size + 7) / 8;
    const std::string declaration = std::string(is_constant ? ".const" : ".global") +
                                    (!is_constant && is_managed(cubin, section) ? " .attribute(.managed)" : "") +
                                    " .align " + std::to_string(std::max<std::uint64_t>(section.alignment, 16)) +
                                    (has_addresses ? " .u64 " : " .b8 ") + std::string(variable_of(section.name)) +
                                    "[" + std::to_string(has_addresses ? words : section.size) + "]";
    if (has_addresses) text += ".extern " + declaration + ";\n"; // it may hold addresses of its own
    text += ".visible " + declaration;
    std::vector<std::string> values;
    if (has_addresses) {
        std::vector<std::uint64_t> bits(words);
        for (std::size_t at = 0; at < section.bytes.size(); ++at)
            bits[at / 8] |= std::uint64_t(section.bytes[at]) << 8 * (at % 8);
        for (const std::uint64_t word : bits) values.push_back(hexadecimal(word));
        for (const CubinRelocation& relocation : section.relocations) {
            const std::size_t index = relocation.offset / 8;
            const auto address = index < words ? address_text(cubin, relocation, bits[index]) : std::nullopt;
            if (!address || values[index] != hexadecimal(bits[index]))
                throw Unliftable("variables that hold addresses");
            values[index] = *address;
        }
    } else {
        const auto last =
            std::find_if(section.bytes.rbegin(), section.bytes.rend(), [](std::uint8_t byte) { return byte != 0; });
        for (auto byte = section.bytes.begin(); byte != section.bytes.end() - (last - section.bytes.rbegin()); ++byte)
            values.push_back(std::to_string(*byte));
    }
    if (!values.empty()) {
        text += " = {";
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (i) text += i % 32 == 0 ? ",\n" : ",";
            text += values[i];
        }
        text += "}";
    }
    text += ";\n";
}

} // namespace

bool lifts_architecture(unsigned architecture) {
    return architecture >= 80 && architecture <= 90;
}

bool lift_cubin(std::span<const std::uint8_t> image, LiftedModule& module, std::string& error) {
    module = LiftedModule{};
    Cubin cubin;
    if (!read_cubin(image, cubin, error)) return false;
    module.architecture = cubin.architecture;
    module.shared_start = cubin.architecture >= 90 ? system_shared : 0;
    if (!lifts_architecture(cubin.architecture)) {
        error = "machine code of sm_" + std::to_string(cubin.architecture) + " can't be lifted (sm_80 to sm_90 can)";
        return false;
    }
    std::string& text = module.text;
    // Forms of the newest version are free to use; none is of a newer architecture than the code's.
    const std::string target = ".version 8.5\n.target sm_" + std::to_string(cubin.architecture);
    text = target + "\n.address_size 64\n";
    text += ".extern .shared .align 16 .b8 sass_dynamic_shared[];\n";
    text += Lifter::provided_declarations(cubin);
    // Whose addresses others hold first.
    for (const std::string_view name : {".nv.global", ".nv.global.init", ".nv.constant3"}) {
        const CubinSection* section = cubin.find_section(name);
        if (section == nullptr) continue;
        try {
            declare_variable(cubin, *section, text);
        } catch (const Unliftable& problem) {
            error = problem.what();
            return false;
        }
    }
    for (const CubinSymbol& symbol : cubin.symbols) {
        if (symbol.type != 1 || symbol.section >= cubin.sections.size()) continue;
        const CubinSection& section = cubin.sections[symbol.section];
        const std::string_view variable = variable_of(section.name);
        if (variable.empty() || symbol.value > section.size || symbol.size > section.size - symbol.value) continue;
        module.aliases.push_back({std::string(symbol.name), std::string(variable), symbol.value, symbol.size,
                                  (symbol.other & managed_flag) != 0});
    }
    for (const CubinKernel& kernel : cubin.kernels) {
        Lifter lifter(cubin, kernel);
        std::string head;
        if (kernel.required_threads[0] != 0)
            head += ".reqntid " + std::to_string(kernel.required_threads[0]) + ", " +
                    std::to_string(kernel.required_threads[1]) + ", " + std::to_string(kernel.required_threads[2]) +
                    "\n";
        else if (kernel.max_threads != 0)
            head += ".maxntid " + std::to_string(kernel.max_threads) + ", 1, 1\n";
        // The cubin's own number: occupancy follows from it.
        if (kernel.registers != 0) head += ".maxnreg " + std::to_string(kernel.registers) + "\n";
        std::string body = "\ttrap;\n\tret;\n";
        try {
            body = lifter.lift();
            text += lifter.table();
        } catch (const Unliftable& problem) {
            module.refused.push_back({std::string(kernel.name), problem.what()});
        }
        if (kernel.cluster[0] != 0)
            head += ".reqnctapercluster " + std::to_string(kernel.cluster[0]) + ", " +
                    std::to_string(kernel.cluster[1]) + ", " + std::to_string(kernel.cluster[2]) + "\n";
        else if (kernel.has_clusters)
            head += ".explicitcluster\n";
        text += ".visible .entry " + std::string(kernel.name) + "(" + lifter.parameter_list() + ")\n" + head + "{\n" +
                body + "}\n";
    }
    if (text.find("\twgmma.") != text.npos) text.insert(target.size(), "a");
    return true;
}

} // namespace ptarmigan::sass
