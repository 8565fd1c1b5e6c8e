// SPDX-License-Identifier: Apache-2.0
// `ptarmigan dump`: any stage between PTX text and machine code, as text.
#include "frontend/module_loader.h"
#include "frontend/parse/lexer.h"
#include "frontend/sass/cubin.h"
#include "frontend/sass/instruction.h"
#include "frontend/sass/lift.h"
#include "runtime/base/env.h"
#include "runtime/module/compilation.h"
#include "runtime/module/fatbin.h"
#include "runtime/module/kernel_cache.h"
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/dimensions.h"
#include "tools/ptarmigan/linked_input.h"
#include "tools/ptarmigan/program_texts.h"
#include "translator/any_cluster.h"
#include "translator/compile.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace ptarmigan::tool {
namespace {

struct DumpOptions {
    std::vector<std::string> paths;
    std::string path; ///< what messages call the text
    std::string stage = "module", kernel, target = "host", divergence = "auto", barriers = "auto";
    std::string waits = "auto", approximation = "exact", optimization = "full", check = "none", block = "256",
                cluster = "1";
    unsigned lanes = 0;
    bool small_grid = false, cooperative = false, late_copies = false, random_schedule = false,
         checked_alignment = false, times = false;
};

int dump_tokens(const std::string& text, const std::string& path) {
    ptx::SourceBuffer source(text, path);
    ptx::Diagnostics diagnostics(source, 20);
    ptx::Lexer lexer(source.text(), diagnostics);
    for (ptx::Token token = lexer.next(); token.kind != ptx::TokenKind::end; token = lexer.next())
        std::printf("%u:%u %d %.*s\n", token.location.line, token.location.column, static_cast<int>(token.kind),
                    static_cast<int>(token.text.size()), token.text.data());
    std::fputs(diagnostics.render_all().c_str(), stderr);
    return diagnostics.has_errors() ? exit_failure : exit_success;
}

/// One of a few words to an enumerator in the same order.
template <class Enum>
Enum choose(const std::string& option, const std::string& text, std::initializer_list<const char*> words) {
    int index = 0;
    for (const char* word : words) {
        if (text == word) return static_cast<Enum>(index);
        ++index;
    }
    throw std::invalid_argument(option + ": unknown value " + text);
}

translator::CompileOptions compile_options(const DumpOptions& options) {
    translator::CompileOptions result;
    result.target = translator::named_target(options.target);
    result.lane_width = options.lanes;
    result.divergence =
        choose<translator::DivergenceForm>("--divergence", options.divergence, {"auto", "masks", "pcs"});
    result.barriers =
        choose<translator::BarrierForm>("--barriers", options.barriers, {"auto", "regions", "fibers", "turns"});
    result.waiting_loops = choose<translator::WaitingLoops>("--waits", options.waits, {"auto", "all"});
    result.approximation = choose<translator::Approximation>("--approx", options.approximation, {"exact", "fast"});
    result.optimization = choose<translator::Optimization>("--optimization", options.optimization, {"full", "least"});
    result.checked_memory = choose<bool>("--check", options.check, {"none", "memory"});
    result.small_grid = options.small_grid;
    result.random_schedule = options.random_schedule;
    result.aligned_parameters = !options.checked_alignment;
    result.late_copies = options.late_copies;
    result.cooperative = options.cooperative;
    return result;
}

void print_times(const translator::CompileTimes& times, const translator::CompileForm& form,
                 const translator::CompileProgress& progress) {
    std::fprintf(stderr, "form: %s; %u lanes a step, %u statements\n", describe(form).c_str(),
                 progress.lane_width.load(), progress.statements.load());
    std::fprintf(stderr, "graph %.0f us, shapes %.0f, emit %.0f, passes %.0f, codegen %.0f, link %.0f\n", times.graph,
                 times.shapes, times.emit, times.passes, times.codegen, times.link);
}

/// True of the kernel of that name; of each kernel if there is no name.
bool is_wanted(const ptx::Function& function, const std::string& kernel) {
    return function.is_entry && !function.is_declaration && (kernel.empty() || function.name == kernel);
}

bool has_kernel(const ptx::Module& module, const std::string& kernel) {
    return std::any_of(module.functions.begin(), module.functions.end(),
                       [&](const ptx::Function& function) { return is_wanted(function, kernel); });
}

bool is_machine_code(const std::string& text) {
    return runtime::is_cubin(text.data(), text.size());
}

/// Of a program, library or fat binary, whose texts are what programs would load.
bool holds_texts(const std::string& bytes) {
    const runtime::ImageKind kind = runtime::image_kind(bytes.data(), bytes.size());
    return kind == runtime::ImageKind::container || (kind == runtime::ImageKind::elf && !is_machine_code(bytes));
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// The instructions of a cubin's kernels and functions, as the table reads them.
int dump_instructions(const std::string& image, const DumpOptions& options) {
    sass::Cubin cubin;
    std::string error;
    if (!sass::read_cubin(bytes_of(image), cubin, error)) {
        std::fprintf(stderr, "ptarmigan: %s: %s\n", options.path.c_str(), error.c_str());
        return exit_failure;
    }
    const auto show = [&](const sass::CubinSection& section) {
        std::printf("%.*s:\n", int(section.name.size()), section.name.data());
        for (std::size_t at = 0; at + 16 <= section.bytes.size(); at += 16) {
            sass::Code code;
            for (unsigned i = 0; i < 8; ++i) {
                code.low |= std::uint64_t(section.bytes[at + i]) << 8 * i;
                code.high |= std::uint64_t(section.bytes[at + 8 + i]) << 8 * i;
            }
            sass::Instruction instruction;
            const bool known = sass::decode(code, std::uint32_t(at), instruction, cubin.architecture);
            std::printf("    /*%04zx*/ %s%s;\n", at,
                        known ? sass::disassemble(instruction).c_str() : sass::describe(instruction).c_str(),
                        known ? "" : " (not in the table)");
        }
    };
    bool found = false;
    for (const sass::CubinKernel& kernel : cubin.kernels) {
        if (!options.kernel.empty() && kernel.name != options.kernel) continue;
        show(cubin.sections[kernel.text]);
        found = true;
    }
    for (const sass::CubinFunctions& functions : cubin.functions)
        if (options.kernel.empty()) show(cubin.sections[functions.text]);
    if (!found) std::fprintf(stderr, "ptarmigan: no kernel %s in %s\n", options.kernel.c_str(), options.path.c_str());
    return found ? exit_success : exit_usage;
}

/// Puts the PTX that a cubin is lifted to in its place; of one kernel as launches make it of its code.
int lift(std::string& text, const DumpOptions& options) {
    unsigned architecture = 0;
    std::string error;
    const auto code = sass::MachineCode::read(std::move(text), architecture, error);
    if (!code) {
        std::fprintf(stderr, "ptarmigan: %s: %s\n", options.path.c_str(), error.c_str());
        return exit_failure;
    }
    std::vector<sass::RefusedKernel> refused;
    std::string why;
    if (const sass::CubinKernel* kernel = code->find_kernel(options.kernel); kernel == nullptr)
        text = code->lift_all(refused);
    else if (!code->lift(*kernel, text, why))
        refused.push_back({options.kernel, why});
    for (const sass::RefusedKernel& kernel : refused)
        std::fprintf(stderr, "ptarmigan: kernel %s: its machine code (sm_%u) can't be lifted: %s\n",
                     kernel.kernel.c_str(), architecture, kernel.reason.c_str());
    return why.empty() ? exit_success : exit_failure;
}

/// PTX or a cubin.
int dump_text(std::string text, const DumpOptions& options, const translator::BlockShape& shape) {
    if (options.stage == "sass" && !is_machine_code(text)) {
        std::fprintf(stderr, "ptarmigan: %s is no cubin\n", options.path.c_str());
        return exit_usage;
    }
    if (is_machine_code(text)) {
        if (options.stage == "sass") return dump_instructions(text, options);
        if (const int code = lift(text, options); code != exit_success) return code;
    }
    if (options.stage == "ptx") {
        std::fputs(text.c_str(), stdout);
        return exit_success;
    }
    if (options.stage == "tokens") return dump_tokens(text, options.path);
    auto loader = ptx::ModuleLoader::load(std::move(text), options.path);
    std::fputs(loader->diagnostics().render_all().c_str(), stderr);
    if (!loader->ok()) return exit_failure;
    // A module without kernels is one to show all the same.
    const bool any = options.stage == "module" && options.kernel.empty();
    if (!any && !has_kernel(loader->module(), options.kernel)) {
        std::fprintf(stderr, "ptarmigan: no kernel%s%s in %s\n", options.kernel.empty() ? "" : " ",
                     options.kernel.c_str(), options.path.c_str());
        return options.kernel.empty() ? exit_failure : exit_usage;
    }
    if (options.stage == "module") {
        std::fputs(ptx::print(*loader).c_str(), stdout);
        return exit_success;
    }
    const auto& api = runtime::translator_api(runtime::CacheSettings::from_environment().translator_library);
    auto compile = compile_options(options);
    for (const ptx::Function& function : loader->module().functions) {
        if (!is_wanted(function, options.kernel)) continue;
        translator::CompileProgress progress;
        progress.kernel = function.name;
        std::string shown;
        translator::CompileTimes times;
        try {
            runtime::attempt_compilation(api, progress, [&] {
                shown = api.dump(*loader, function.name, shape, compile, options.stage, &progress);
                if (options.times) api.compile(*loader, function.name, shape, compile, &times, &progress);
            });
        } catch (const runtime::CompilationCrash& crash) {
            throw runtime::CompilationCrash("kernel " + function.name + ": " + crash.what());
        }
        std::fputs(shown.c_str(), stdout);
        if (options.times) print_times(times, compile, progress);
    }
    return exit_success;
}

/// Whether it has the kernel that is asked for, or any.
bool is_asked_for(const ProgramText& text, const std::string& kernel) {
    return has_kernel(ptx::ModuleLoader::load(std::string(text.text), text.name)->module(), kernel);
}

/// Each text of a program or library that has kernels, or the kernel that is asked for.
int dump_texts_of(const DumpOptions& options, const translator::BlockShape& shape) {
    const ProgramTexts found = find_texts({options.path});
    for (const auto& [cause, count] : found.faults)
        std::fprintf(stderr, "ptarmigan: %s: %s\n", options.path.c_str(), cause.c_str());
    int code = exit_failure;
    bool any = false;
    for (const ProgramText& text : found.texts) {
        if (!is_asked_for(text, options.kernel)) continue;
        code = dump_text(text.machine_code ? std::string(text.machine_code->image()) : text.text, options, shape);
        any = true;
        if (code != exit_success) return code;
    }
    if (!any && found.faults.empty())
        std::fprintf(stderr, "ptarmigan: no kernel%s%s in %s\n", options.kernel.empty() ? "" : " ",
                     options.kernel.c_str(), options.path.c_str());
    return code;
}

int dump(DumpOptions& options) {
    translator::BlockShape shape;
    shape.ntid = parse_block(options.block);
    shape.cluster = options.cluster == "any" ? translator::any_cluster : parse_dimensions(options.cluster, "--cluster");
    (void)compile_options(options); // wrong values are errors at every stage
    std::string text;
    if (int code = read_input(options.paths, text, options.path); code != exit_success) return code;
    return holds_texts(text) ? dump_texts_of(options, shape) : dump_text(std::move(text), options, shape);
}

} // namespace

void add_dump_command(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<DumpOptions>();
    auto* command =
        app.add_subcommand("dump", "Show any stage of the translation of PTX, a cubin, or what a program holds");
    command
        ->add_option("files", options->paths,
                     "PTX file, cubin, fat binary, or program or library with some; several PTX files are linked")
        ->required();
    command->add_option("--stage", options->stage, "stage to show")
        ->check(CLI::IsMember(
            {"sass", "ptx", "tokens", "module", "cfg", "ssa", "shapes", "plan", "llvm", "llvm-opt", "asm"}))
        ->capture_default_str()
        ->description("stage to show; sass: a cubin's instructions, ptx: the text that the others begin with");
    command->add_option("--kernel", options->kernel,
                        "only this kernel (default: all); stages tokens and module show the rest too");
    command->add_option("--block", options->block, "block shape X[,Y[,Z]] to compile for")->capture_default_str();
    command
        ->add_option("--target", options->target,
                     "host, x86-64-v3, x86-64-v4, sapphirerapids, aarch64, neoverse-v1 or a64fx")
        ->capture_default_str();
    command->add_option("--lanes", options->lanes, "lanes per SIMD step, 0: automatic")
        ->check(CLI::IsMember({0, 1, 4, 8, 16, 32}))
        ->capture_default_str();
    command->add_option("--divergence", options->divergence, "auto, masks or pcs")->capture_default_str();
    command->add_option("--barriers", options->barriers, "auto, regions, fibers, or turns in every loop")
        ->capture_default_str();
    command->add_option("--waits", options->waits, "loops that wait for memory: auto, or all that may")
        ->capture_default_str();
    command->add_option("--approx", options->approximation, "exact or fast")->capture_default_str();
    command->add_option("--optimization", options->optimization, "full or least")->capture_default_str();
    command->add_option("--check", options->check, "none, or memory: accesses ask whether a kernel may make them")
        ->capture_default_str();
    command
        ->add_option("--cluster", options->cluster,
                     "cluster shape X[,Y[,Z]] to compile for, or any: that of the launch")
        ->capture_default_str();
    command->add_flag("--random-schedule", options->random_schedule, "for PTARMIGAN_SCHEDULE=random:N");
    command->add_flag("--checked-alignment", options->checked_alignment, "parameters may be misaligned");
    command->add_flag("--small-grid", options->small_grid, "global thread numbers fit 31 bits");
    command->add_flag("--cooperative", options->cooperative, "for a cooperative launch");
    command->add_flag("--late-copies", options->late_copies, "for PTARMIGAN_ASYNC other than eager");
    command->add_flag("--times", options->times,
                      "compile, and print the time of each stage on stderr (not with tokens, module)");
    // What a program would be run with is what is shown, unless an option says otherwise.
    for (const runtime::EnvVariable& variable : runtime::env_variables())
        if (CLI::Option* option = command->get_option_no_throw(variable.option)) option->envname(variable.name);
    command->callback([options, &exit_code] { exit_code = dump(*options); });
}

} // namespace ptarmigan::tool
