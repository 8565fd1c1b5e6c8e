// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reference/interpreter.h"

#include "frontend/isa/special_registers.h"
#include "frontend/module_loader.h"
#include "tests/tools/fuzz/reference/block.h"

namespace fuzz::reference {

using namespace ptarmigan::ptx;

std::string known_forms() {
    std::string pattern;
    for (const FormInfo& info : all_forms())
        if (knows(info.id)) pattern += (pattern.empty() ? "^(" : "|") + std::string(info.name);
    return pattern + ")$";
}

std::vector<unsigned char> interpret(const Program& program, const std::vector<std::uint64_t>& input, std::size_t memory_bytes) {
    const auto loader = ModuleLoader::load(program.text, "program.ptx");
    const auto kernel = loader->module().find_function("k");
    if (!loader->ok() || !kernel) throw std::runtime_error("the front end refuses it");
    std::vector<unsigned char> memory(memory_bytes);
    std::vector<std::uint64_t> readable = input;
    Memory global;
    global.add(input_address, reinterpret_cast<unsigned char*>(readable.data()), 8 * readable.size());
    global.add(memory_address, memory.data(), memory.size());
    Launch launch{*loader, *kernel, program, global, {}, {}, constant_address};
    std::uint64_t globals_end = variable_address;
    std::vector<std::vector<unsigned char>> variables(loader->module().variables.size());
    for (std::size_t i = 0; i < variables.size(); ++i) {
        const Variable& variable = loader->module().variables[i];
        variables[i] = std::vector<unsigned char>(variable.init.begin(), variable.init.end());
        variables[i].resize(variable.size);
        std::uint64_t& at = variable.space == StateSpace::constant ? launch.constants_end : globals_end;
        at = (at + 255) / 256 * 256;
        launch.variables.push_back(at);
        global.add(at, variables[i].data(), variables[i].size());
        at += variable.size;
    }
    const std::vector<std::uint64_t> block = input_words(parameter_bytes, 11);
    const std::uint64_t addresses[] = {input_address, memory_address, memory_address + max_threads * output_bytes};
    const ParameterLayout layout = parameter_layout(loader->module().functions[*kernel]);
    launch.parameters.resize(layout.size);
    for (unsigned i = 0; i < 3; ++i) std::memcpy(launch.parameters.data() + layout.offsets[i], &addresses[i], 8);
    std::memcpy(launch.parameters.data() + layout.offsets[3], block.data(), parameter_bytes);
    global.add(parameter_address, launch.parameters.data(), launch.parameters.size());
    for (unsigned cta = 0; cta < program.grid; ++cta) Block(launch, cta).run();
    return memory;
}

} // namespace fuzz::reference
