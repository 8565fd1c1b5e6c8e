// SPDX-License-Identifier: Apache-2.0
// Texts of a lifted module and of its kernels: variables, then kernels.
#include "frontend/sass/lift.h"
#include "frontend/sass/lifter.h"
#include "frontend/sass/module_plan.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ptarmigan::sass {
namespace {

/// The variable that stands for a section of variables.
std::string_view variable_of(std::string_view section) {
    if (section == ".nv.global") return "sass_global";
    if (section == ".nv.global.init") return "sass_global_init";
    if (section == constants_section) return "sass_constants";
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

constexpr std::uint32_t whole_address = 2, generic_address = 4, kernel_address = 35; ///< relocations of 64 bits

/// The text of an address that a variable holds, where it is known: what stands there already is added.
std::optional<std::string> address_text(const Cubin& cubin, const ModulePlan& plan, const CubinRelocation& relocation,
                                        std::uint64_t word) {
    if (relocation.offset % 8 != 0) return {};
    if (relocation.type == kernel_address) {
        const CubinKernel* kernel = kernel_of(cubin, relocation);
        if (kernel == nullptr || word != 0) return {};
        return std::string(kernel->name);
    }
    if (relocation.type != whole_address && relocation.type != generic_address) return {};
    const CubinSymbol& symbol = cubin.symbols[relocation.symbol];
    if (symbol.section == 0 || symbol.section >= cubin.sections.size()) return {};
    const std::uint64_t addend = std::uint64_t(relocation.addend) + word;
    if (const auto function = function_address(cubin, plan.bases, symbol, std::int64_t(addend)))
        return std::to_string(*function);
    const CubinSection& home = cubin.sections[symbol.section];
    const std::uint64_t offset = symbol.value + addend;
    // Of constants only as generic addresses have them: others count from the bank's beginning.
    const bool is_constant = home.name == constants_section && relocation.type == generic_address;
    if ((home.name != ".nv.global" && home.name != ".nv.global.init" && !is_constant) || offset > home.size ||
        home.size == 0)
        return {};
    return "generic(" + std::string(variable_of(home.name)) + ")+" + std::to_string(offset);
}

std::string initialiser(const std::vector<std::string>& values) {
    if (values.empty()) return {};
    std::string text = " = {";
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (i) text += i % 32 == 0 ? ",\n" : ",";
        text += values[i];
    }
    return text + "}";
}

/// Without the zeros at the end.
std::vector<std::string> bytes_of(std::span<const std::uint8_t> bytes) {
    const auto last = std::find_if(bytes.rbegin(), bytes.rend(), [](std::uint8_t byte) { return byte != 0; });
    std::vector<std::string> values;
    for (auto byte = bytes.begin(); byte != bytes.end() - (last - bytes.rbegin()); ++byte)
        values.push_back(std::to_string(*byte));
    return values;
}

std::string declaration_of(const Cubin& cubin, const CubinSection& section) {
    const bool is_constant = section.name == ".nv.constant3";
    const bool has_addresses = !section.relocations.empty();
    return std::string(is_constant ? ".const" : ".global") +
           (!is_constant && is_managed(cubin, section) ? " .attribute(.managed)" : "") + " .align " +
           std::to_string(std::max<std::uint64_t>(section.alignment, 16)) + (has_addresses ? " .u64 " : " .b8 ") +
           std::string(variable_of(section.name)) + "[" +
           std::to_string(has_addresses ? (section.size + 7) / 8 : section.size) + "]";
}

/// Adds a declaration with values to `text`, and one without to `plain`.
void declare_variable(const Cubin& cubin, const ModulePlan& plan, const CubinSection& section, std::string& text,
                      std::string& plain) {
    const bool has_addresses = !section.relocations.empty();
    const std::uint64_t words = (section.size + 7) / 8;
    const std::string declaration = declaration_of(cubin, section);
    std::vector<std::string> values;
    if (has_addresses) {
        std::vector<std::uint64_t> bits(words);
        for (std::size_t at = 0; at < section.bytes.size(); ++at)
            bits[at / 8] |= std::uint64_t(section.bytes[at]) << 8 * (at % 8);
        for (const std::uint64_t word : bits) values.push_back(hexadecimal(word));
        for (const CubinRelocation& relocation : section.relocations) {
            const std::size_t index = relocation.offset / 8;
            const auto address = index < words ? address_text(cubin, plan, relocation, bits[index]) : std::nullopt;
            if (!address || values[index] != hexadecimal(bits[index]))
                throw Unliftable("variables that hold addresses");
            values[index] = *address;
        }
    } else {
        values = bytes_of(section.bytes);
    }
    text += ".visible " + declaration + initialiser(values) + ";\n";
    plain += ".visible " + declaration + ";\n";
}

/// The variable of the kernels' tables in bank 2.
void declare_tables(const Cubin& cubin, const ModulePlan& plan, std::string& text, std::string& plain) {
    if (plan.table_bytes == 0) return;
    std::vector<std::uint8_t> bytes(plan.table_bytes);
    for (const auto& [section, place] : plan.tables)
        std::copy(cubin.sections[section].bytes.begin(), cubin.sections[section].bytes.end(), bytes.begin() + place);
    const std::string declaration =
        ".const .align 16 .b8 " + std::string(tables_variable) + "[" + std::to_string(plan.table_bytes) + "]";
    text += declaration + initialiser(bytes_of(bytes)) + ";\n";
    plain += declaration + ";\n";
}

/// Prototypes of the kernels whose addresses variables hold or code names: a kernel's address tells its number among
/// the module's functions, so it has to be the same in all texts.
void declare_kernels(const Cubin& cubin, const ModulePlan& plan, std::string& text) {
    std::set<const CubinKernel*> declared;
    for (const CubinSection& section : cubin.sections) {
        const bool is_variable = !variable_of(section.name).empty();
        for (const CubinRelocation& relocation : section.relocations) {
            const bool names_kernel = is_variable
                                          ? relocation.type == kernel_address
                                          : relocation.type == kernel_low_half || relocation.type == kernel_high_half;
            const CubinKernel* kernel = names_kernel ? kernel_of(cubin, relocation) : nullptr;
            if (kernel != nullptr && declared.insert(kernel).second)
                text += ".visible .entry " + std::string(kernel->name) + "(" +
                        Lifter(cubin, plan, *kernel).parameter_list() + ");\n";
        }
    }
}

void declare_variables(const Cubin& cubin, const ModulePlan& plan, std::string& text, std::string& plain) {
    std::string kernels;
    declare_kernels(cubin, plan, kernels);
    text += kernels;
    plain += kernels;
    std::vector<const CubinSection*> sections;
    bool have_addresses = false;
    for (const std::string_view name :
         {std::string_view(".nv.global"), std::string_view(".nv.global.init"), constants_section}) {
        const CubinSection* section = cubin.find_section(name);
        if (section == nullptr || section->size == 0) continue;
        sections.push_back(section);
        have_addresses = have_addresses || !section->relocations.empty();
    }
    if (have_addresses) // each of any, its own too
        for (const CubinSection* section : sections) text += ".extern " + declaration_of(cubin, *section) + ";\n";
    for (const CubinSection* section : sections) declare_variable(cubin, plan, *section, text, plain);
    declare_tables(cubin, plan, text, plain);
}

} // namespace

bool lifts_architecture(unsigned architecture) {
    return family_of(architecture) < std::size(families);
}

MachineCode::~MachineCode() = default;

unsigned MachineCode::shared_start() const {
    return cubin_.architecture >= 90 ? system_shared : 0;
}

std::shared_ptr<MachineCode> MachineCode::read(std::string image, unsigned& architecture, std::string& error) {
    const std::shared_ptr<MachineCode> code(new MachineCode);
    code->image_ = std::move(image);
    architecture = 0;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(code->image_.data());
    if (!read_cubin({bytes, code->image_.size()}, code->cubin_, error)) return nullptr;
    architecture = code->cubin_.architecture;
    if (!lifts_architecture(architecture)) {
        error = "machine code of sm_" + std::to_string(architecture) + " can't be lifted (sm_75 to sm_121 can)";
        return nullptr;
    }
    return code->declare(error) ? code : nullptr;
}

/// All that is not lifted. False with the reason in `error`.
bool MachineCode::declare(std::string& error) {
    plan_ = std::make_unique<const ModulePlan>(cubin_);
    functions_ = Lifter::provided_declarations(cubin_);
    std::string with_values;
    try {
        declare_variables(cubin_, *plan_, with_values, variables_);
    } catch (const Unliftable& problem) {
        error = problem.what();
        return false;
    }
    for (const CubinSymbol& symbol : cubin_.symbols) {
        if (symbol.type != 1 || symbol.section >= cubin_.sections.size()) continue;
        const CubinSection& section = cubin_.sections[symbol.section];
        const std::string_view variable = variable_of(section.name);
        if (variable.empty() || symbol.value > section.size || symbol.size > section.size - symbol.value) continue;
        aliases_.push_back({std::string(symbol.name), std::string(variable), symbol.value, symbol.size,
                            (symbol.other & managed_flag) != 0});
    }
    declarations_ = head(false, with_values);
    for (const CubinKernel& kernel : cubin_.kernels) {
        kernels_.emplace(kernel.name, &kernel);
        declarations_ +=
            entry(kernel, Lifter(cubin_, *plan_, kernel).parameter_list(), "\tthe body is lifted when it is needed;\n");
    }
    return true;
}

const CubinKernel* MachineCode::find_kernel(std::string_view name) const {
    const auto found = kernels_.find(name);
    return found == kernels_.end() ? nullptr : found->second;
}

std::uint64_t MachineCode::constant_bytes() const {
    const CubinSection* constants = cubin_.find_section(".nv.constant3");
    return constants == nullptr ? 0 : constants->size;
}

std::uint32_t MachineCode::count_instructions(const CubinKernel& kernel) const {
    const std::span<const std::uint8_t> bytes = cubin_.sections[kernel.text].bytes;
    std::uint32_t count = 0;
    for (std::size_t at = 0; at + instruction_size <= bytes.size(); at += instruction_size) {
        const Form* form = find_form((bytes[at] | bytes[at + 1] << 8) & 0xfff, cubin_.architecture);
        count += form == nullptr || form->id != FormId::nop;
    }
    return count;
}

/// What stands before the kernels.
std::string MachineCode::head(bool is_warpgroup_code, const std::string& variables) const {
    // Forms of the newest version are free to use; none is of a newer architecture than the code's. `debug`: what
    // ptxas folds and fuses it has folded and fused.
    const bool is_new = cubin_.architecture >= 100 || cubin_.architecture == 89 ||
                        std::any_of(cubin_.kernels.begin(), cubin_.kernels.end(),
                                    [](const CubinKernel& kernel) { return kernel.blocks_are_clusters; });
    return std::string(".version ") + (is_new ? "9.0" : "8.5") + "\n.target sm_" + std::to_string(cubin_.architecture) +
           (is_warpgroup_code ? "a" : "") +
           ", debug\n.address_size 64\n.extern .shared .align 16 .b8 sass_dynamic_shared[];\n" + functions_ + variables;
}

std::string MachineCode::entry(const CubinKernel& kernel, const std::string& parameters,
                               const std::string& body) const {
    const auto dimensions = [](const std::uint32_t* of) {
        return std::to_string(of[0]) + ", " + std::to_string(of[1]) + ", " + std::to_string(of[2]) + "\n";
    };
    std::string text = ".visible .entry " + std::string(kernel.name) + "(" + parameters + ")\n";
    if (kernel.required_threads[0] != 0)
        text += ".reqntid " + dimensions(kernel.required_threads);
    else if (kernel.max_threads != 0)
        text += ".maxntid " + std::to_string(kernel.max_threads) + ", 1, 1\n";
    // The cubin's own number: occupancy follows from it.
    if (kernel.registers != 0) text += ".maxnreg " + std::to_string(kernel.registers) + "\n";
    if (kernel.cluster[0] != 0)
        text += ".reqnctapercluster " + dimensions(kernel.cluster);
    else if (kernel.has_clusters)
        text += ".explicitcluster\n";
    if (kernel.blocks_are_clusters) text += ".blocksareclusters\n";
    return text + "{\n" + body + "}\n";
}

namespace {

bool is_warpgroup_code(const std::string& text) {
    return text.find("\twgmma.") != text.npos;
}

} // namespace

bool MachineCode::lift(const CubinKernel& kernel, std::string& text, std::string& why) const {
    lifted_kernels_.fetch_add(1, std::memory_order_relaxed);
    Lifter lifter(cubin_, *plan_, kernel);
    try {
        const std::string body = lifter.lift();
        text = head(is_warpgroup_code(body), variables_) + entry(kernel, lifter.parameter_list(), body);
        return true;
    } catch (const Unliftable& problem) {
        why = problem.what();
        return false;
    }
}

std::string MachineCode::lift_all(std::vector<RefusedKernel>& refused) const {
    std::string entries;
    for (const CubinKernel& kernel : cubin_.kernels) {
        lifted_kernels_.fetch_add(1, std::memory_order_relaxed);
        Lifter lifter(cubin_, *plan_, kernel);
        std::string body = "\ttrap;\n\tret;\n";
        try {
            body = lifter.lift();
        } catch (const Unliftable& problem) {
            refused.push_back({std::string(kernel.name), problem.what()});
        }
        entries += entry(kernel, lifter.parameter_list(), body);
    }
    std::string variables, plain;
    declare_variables(cubin_, *plan_, variables, plain);
    return head(is_warpgroup_code(entries), variables) + entries;
}

bool lift_cubin(std::span<const std::uint8_t> image, LiftedModule& module, std::string& error) {
    module = LiftedModule{};
    const auto code = MachineCode::read({image.begin(), image.end()}, module.architecture, error);
    if (code) module.text = code->lift_all(module.refused);
    return code != nullptr;
}

} // namespace ptarmigan::sass
