// SPDX-License-Identifier: Apache-2.0
// `ptarmigan run`: launches one kernel of a PTX file, with arguments from the command line.
#include "runtime/base/log.h"
#include "runtime/context/context.h"
#include "runtime/context/current_context.h"
#include "runtime/device/device.h"
#include "runtime/launch/launch.h"
#include "runtime/memory/memory.h"
#include "runtime/module/module.h"
#include "runtime/stream/stream.h"
#include "tools/ptarmigan/argument.h"
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/dimensions.h"
#include "tools/ptarmigan/linked_input.h"

#include <CLI/CLI.hpp>
#include <xxhash.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

namespace ptarmigan::tool {
namespace {

using runtime::Status;

struct RunOptions {
    std::vector<std::string> paths;
    std::string path; ///< what messages call the text
    std::string kernel, grid = "1", block = "1", cluster;
    std::uint32_t shared = 0;
    unsigned repeat = 1;
    bool cooperative = false, times = false;
    std::vector<std::string> arguments, prints, saves;
    std::vector<unsigned> hashes;
};

/// What the launch works on; contexts and modules end with the process.
struct Session {
    std::shared_ptr<runtime::Context> context;
    std::shared_ptr<runtime::Module> module;
    std::shared_ptr<runtime::Function> function;
    std::vector<Argument> arguments;
    std::vector<runtime::DevicePointer> buffers; ///< 0 for plain values
};

/// "CUDA_ERROR_INVALID_VALUE (1): invalid argument"
std::string describe(Status status) {
    const int code = static_cast<int>(status);
#define ERROR(number, name, text)                                                                                      \
    if (code == number) return #name " (" #number "): " text;
#include "runtime/shim/error_names.def"
#undef ERROR
    return "CUDA error " + std::to_string(code);
}

void check(Status status, const std::string& what) {
    if (status == Status::success) return;
    std::string text = what + " failed with " + describe(status);
    // Details of a failed load or compilation have been logged; a fault's report is said here if it
    // was not.
    throw std::runtime_error(text);
}

void load_kernel(Session& session, std::string text, const RunOptions& options) {
    std::string log;
    check(runtime::Device::initialize(), "initialisation");
    session.context = runtime::primary_context();
    check(session.context->retain(), "activating the device");
    runtime::set_current_context(session.context);
    std::shared_ptr<runtime::ModuleSource> source;
    Status status = runtime::ModuleSource::load(std::move(text), options.path, source, log);
    // What is wrong has been logged already, unless errors aren't.
    if (status != Status::success && !log.empty() && !runtime::log_enabled(runtime::LogLevel::error))
        std::fprintf(stderr, "%s%s", log.c_str(), log.back() == '\n' ? "" : "\n");
    check(status, "loading " + options.path);
    check(runtime::Module::create(*session.context, source, session.module), "placing the module's variables");
    std::string name = options.kernel;
    if (name.empty() && session.module->functions().size() == 1)
        name = session.module->functions().front()->kernel().name();
    session.function = session.module->find_function(name);
    if (session.function) return;
    std::string names;
    for (auto& function : session.module->functions()) names += "\n  " + function->kernel().name();
    if (names.empty()) throw std::runtime_error("the module has no kernels (.entry)");
    throw std::invalid_argument(
        (name.empty() ? "which kernel? --kernel is one of" : "no kernel " + name + "; there are") + names);
}

void place_arguments(Session& session, const RunOptions& options) {
    runtime::Kernel& kernel = session.function->kernel();
    std::size_t expected = kernel.parameters().offsets.size();
    if (options.arguments.size() != expected)
        throw std::invalid_argument(kernel.name() + " has " + std::to_string(expected) +
                                    (expected == 1 ? " parameter, " : " parameters, ") +
                                    std::to_string(options.arguments.size()) +
                                    (options.arguments.size() == 1 ? " argument was given" : " arguments were given"));
    for (std::size_t i = 0; i < expected; ++i) {
        Argument argument = parse_argument(options.arguments[i]);
        std::size_t offset = 0, size = 0;
        check(kernel.parameter(i, offset, size), "parameter query");
        std::size_t given = argument.is_buffer ? sizeof(runtime::DevicePointer) : argument.bytes.size();
        if (given != size)
            throw std::invalid_argument("argument " + options.arguments[i] + " has " + std::to_string(given) +
                                        " bytes, parameter " + std::to_string(i) + " has " + std::to_string(size));
        runtime::DevicePointer address = 0;
        if (argument.is_buffer) {
            check(runtime::memory_allocate(*session.context, argument.bytes.size(), address), "allocation");
            std::memcpy(reinterpret_cast<void*>(address), argument.bytes.data(), argument.bytes.size());
        }
        session.buffers.push_back(address);
        session.arguments.push_back(std::move(argument));
    }
}

void launch(Session& session, const RunOptions& options) {
    runtime::LaunchConfig config;
    config.grid = parse_dimensions(options.grid, "--grid");
    config.block = parse_block(options.block);
    if (!options.cluster.empty()) {
        config.cluster = parse_dimensions(options.cluster, "--cluster");
        config.has_cluster = true;
    }
    config.dynamic_shared = options.shared;
    config.cooperative = options.cooperative;
    constexpr int max_dynamic_shared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    if (options.shared > 48 * 1024)
        check(session.function->kernel().set_attribute(max_dynamic_shared, static_cast<int>(options.shared)),
              "raising the limit of dynamic shared memory");

    std::vector<void*> parameters;
    for (std::size_t i = 0; i < session.arguments.size(); ++i)
        parameters.push_back(session.arguments[i].is_buffer ? static_cast<void*>(&session.buffers[i])
                                                            : session.arguments[i].bytes.data());
    runtime::Stream& stream = *session.context->legacy_stream();
    for (unsigned i = 0; i < options.repeat; ++i) {
        auto start = std::chrono::steady_clock::now();
        Status status = runtime::launch(*session.function, config, stream, parameters.data(), nullptr);
        check(status, "the launch");
        check(stream.synchronize(), "the kernel");
        std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
        if (options.times) std::fprintf(stderr, "launch %u: %.1f us\n", i, time.count());
    }
}

/// "IDX[:FIRST[:COUNT]]" or "IDX:PATH": splits off the index and returns the rest.
const Argument& buffer_of(const Session& session, const std::string& text, std::string& rest, std::size_t& index) {
    std::size_t used = 0;
    try {
        index = std::stoul(text, &used);
    } catch (const std::exception&) {
        throw std::invalid_argument("expected an argument's index: " + text);
    }
    if (index >= session.arguments.size() || !session.arguments[index].is_buffer)
        throw std::invalid_argument("argument " + std::to_string(index) + " is no buffer");
    rest = used < text.size() && text[used] == ':' ? text.substr(used + 1) : "";
    return session.arguments[index];
}

const std::uint8_t* contents(const Session& session, std::size_t index) {
    return reinterpret_cast<const std::uint8_t*>(session.buffers[index]);
}

void show_results(const Session& session, const RunOptions& options) {
    std::size_t index = 0;
    std::string rest;
    for (const std::string& print : options.prints) {
        const Argument& buffer = buffer_of(session, print, rest, index);
        std::uint64_t first = 0, count = buffer.count;
        if (!rest.empty()) {
            char* end = nullptr;
            first = std::strtoull(rest.c_str(), &end, 0);
            count = *end == ':' ? std::strtoull(end + 1, &end, 0) : 1;
            if (*end || first > buffer.count || count > buffer.count - first)
                throw std::invalid_argument("--print " + print + ": outside of the buffer");
        }
        for (std::uint64_t i = first; i < first + count; ++i)
            std::printf("%s%s", i == first ? "" : " ",
                        format_element(buffer.type, contents(session, index) + i * buffer.type.size).c_str());
        std::printf("\n");
    }
    for (const std::string& save : options.saves) {
        const Argument& buffer = buffer_of(session, save, rest, index);
        std::ofstream file(rest, std::ios::binary);
        file.write(reinterpret_cast<const char*>(contents(session, index)),
                   static_cast<std::streamsize>(buffer.bytes.size()));
        if (!file.flush()) throw std::runtime_error("cannot write " + rest);
    }
    for (unsigned hashed : options.hashes) {
        const Argument& buffer = buffer_of(session, std::to_string(hashed), rest, index);
        std::printf("%016llx\n",
                    static_cast<unsigned long long>(XXH3_64bits(contents(session, index), buffer.bytes.size())));
    }
}

/// Says what to do with what isn't PTX but looks like something that becomes it or holds it. Returns an exit code.
int refuse_other_files(const std::string& text, const std::string& path) {
    const bool is_source = path.ends_with(".cu") || path.ends_with(".cuh");
    const bool is_program = text.starts_with("\177ELF");
    if (is_source)
        std::fprintf(stderr, "ptarmigan: %s is CUDA C++, not PTX: compile it with `nvcc -ptx`\n", path.c_str());
    else if (is_program)
        std::fprintf(stderr, "ptarmigan: %s is a binary, not PTX: `ptarmigan exec -- PROGRAM` runs programs\n",
                     path.c_str());
    return is_source || is_program ? exit_usage : exit_success;
}

int run(RunOptions& options) {
    parse_block(options.block); // before anything costs time
    std::string text;
    if (int code = read_input(options.paths, text, options.path); code != exit_success) return code;
    if (int code = refuse_other_files(text, options.path); code != exit_success) return code;
    Session session;
    load_kernel(session, std::move(text), options);
    place_arguments(session, options);
    launch(session, options);
    show_results(session, options);
    return exit_success;
}

} // namespace

void add_run_command(CLI::App& app, int& exit_code) {
    auto options = std::make_shared<RunOptions>();
    auto* command = app.add_subcommand("run", "Launch one kernel of a PTX file");
    command->footer("SPEC of --arg, one per kernel parameter in order:\n"
                    "  u8 u16 u32 u64 s8..s64 f16 bf16 f32 f64 b8..b64, then :VALUE    u32:7 "
                    "s32:-1 f32:1.5 b16:0x3c00\n"
                    "  buf:TYPE[COUNT]=zero|iota|const:V|random:SEED|file:PATH         a buffer in "
                    "device memory\n"
                    "Exit status: 0 success, 1 the launch or kernel failed, 2 usage or unreadable file.");
    command->add_option("files", options->paths, "PTX file; several are linked")->required();
    command->add_option("--kernel", options->kernel, "kernel's name (default: the only one)");
    command->add_option("--grid", options->grid, "CTAs X[,Y[,Z]]")->capture_default_str();
    command->add_option("--block", options->block, "threads per CTA X[,Y[,Z]]")->capture_default_str();
    command->add_option("--cluster", options->cluster, "CTAs per cluster X[,Y[,Z]]");
    command->add_option("--shared", options->shared, "bytes of dynamic shared memory")->capture_default_str();
    command->add_flag("--cooperative", options->cooperative, "cooperative launch");
    command->add_option("--arg", options->arguments, "argument SPEC, see below")->allow_extra_args(false);
    command->add_option("--print", options->prints, "print buffer IDX[:FIRST[:COUNT]] afterwards")
        ->allow_extra_args(false);
    command->add_option("--save", options->saves, "write buffer IDX:PATH afterwards")->allow_extra_args(false);
    command->add_option("--hash", options->hashes, "print the XXH3 hash of buffer IDX afterwards")
        ->allow_extra_args(false);
    command->add_option("--repeat", options->repeat, "number of launches")
        ->check(CLI::Range(1u, 1000000000u))
        ->capture_default_str();
    command->add_flag("--times", options->times, "time of each launch on stderr");
    command->callback([options, &exit_code] { exit_code = run(*options); });
}

} // namespace ptarmigan::tool
