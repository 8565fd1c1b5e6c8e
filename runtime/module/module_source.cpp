// SPDX-License-Identifier: Apache-2.0
// Loading of PTX text, and the log that the driver would give for it.
#include "runtime/module/module_source.h"

#include "frontend/isa/directives.h"
#include "frontend/link/unit_lines.h"
#include "frontend/parse/address_size.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/threads.h"
#include "runtime/device/device.h"
#include "runtime/module/kernel_usage.h"
#include "runtime/module/module_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>

namespace ptarmigan::runtime {
namespace {

/// The first thing in the text that is neither blank nor a comment.
std::string_view first_word(std::string_view text) {
    for (;;) {
        const std::size_t start = text.find_first_not_of(" \t\r\n\v\f");
        if (start == std::string_view::npos) return {};
        text.remove_prefix(start);
        const bool line = text.rfind("//", 0) == 0, block = text.rfind("/*", 0) == 0;
        if (!line && !block) return text;
        const std::size_t end = line ? text.find('\n') : text.find("*/", 2);
        if (end == std::string_view::npos) return {};
        text.remove_prefix(end + (line ? 1 : 2));
    }
}

std::string driver_log(const ptx::Diagnostics& diagnostics) {
    std::string log;
    for (const ptx::Diagnostic& diagnostic : diagnostics.list()) {
        const bool error = diagnostic.severity == ptx::Severity::error;
        log += "ptxas application ptx input, line " + std::to_string(diagnostic.location.line) +
               (error ? "; error   : " : "; warning : ") + diagnostic.text + "\n";
    }
    if (diagnostics.has_errors()) log += "ptxas fatal   : Ptx assembly aborted due to errors";
    return log;
}

/// Bytes of PTX from which on time and memory count more than errors at load: bound, bodies take some 15 times the
/// text, each megabyte takes 15 ms of CPU time, and of large modules few kernels are launched.
constexpr std::size_t large_text = 1u << 20;
/// Bytes of PTX that are worth a thread: 3 ms.
constexpr std::size_t text_per_thread = 1u << 18;

/// Binds all bodies, those of large texts on several threads without keeping them. Errors are then among the loader's.
std::vector<BodyUsage> check_bodies(ptx::ModuleLoader& loader) {
    const ptx::Module& module = loader.module();
    std::vector<BodyUsage> usage(module.functions.size());
    const std::size_t worth = loader.text().size() / text_per_thread;
    const auto threads = static_cast<unsigned>(std::min<std::size_t>(worth, Device::get().workers()));
    loader.check_bodies([&](ptx::FunctionId id, const ptx::Body& body) { usage[id] = usage_of_body(module, body); },
                        [&](const std::function<void()>& work) { run_on_threads(threads, work); });
    return usage;
}

Status check_header(const ptx::Module& module, std::string_view text, TextUse use, std::string& log) {
    if (ptx::declares_32_bit_addresses(text)) {
        log = "ptxas fatal   :  32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported on "
              "sm_90 or higher architectures.";
        return Status::invalid_ptx;
    }
    if (use == TextUse::substitute || env_flag(Env::accept_newer_ptx)) return Status::success;
    if (const std::string problem = unsupported_version(module.version); !problem.empty()) {
        log = "ptxas application ptx input, line 1; fatal   : " + problem;
        return Status::unsupported_ptx_version;
    }
    const unsigned device = Device::get().compute_capability();
    const bool exact = module.target.suffix == 'a';
    const bool family = module.target.suffix == 'f'; // those of its major number, from it on
    if (module.target.sm > device || (exact && module.target.sm != device) ||
        (family && module.target.sm / 10 != device / 10)) {
        log = "ptxas fatal   : PTX for .target sm_" + std::to_string(module.target.sm) +
              (module.target.suffix ? std::string(1, module.target.suffix) : std::string()) +
              " cannot be used on a device of sm_" + std::to_string(device);
        return Status::invalid_ptx;
    }
    return Status::success;
}

/// The driver's lines for what is larger than it allows; kernels only if the `usage` of all bodies is known. A pool of
/// constants is never bound late.
std::string too_large(const ptx::Module& module, const std::vector<BodyUsage>& usage) {
    const FindBodyUsage find = [&](ptx::FunctionId id) -> const BodyUsage& { return usage[id]; };
    std::string lines = excess_of_constants(module);
    for (ptx::FunctionId id = 0; id < usage.size(); ++id) {
        const ptx::Function& function = module.functions[id];
        if (!function.is_entry || function.is_declaration) continue;
        const std::string line = excess_of(usage_of(module, id, find), function.name);
        if (!line.empty()) lines += (lines.empty() ? "" : "\n") + line;
    }
    return lines;
}

/// The first function of a module that a body, else an initialiser uses though nothing defines it, as far as `usage` of
/// the bodies is known; else one that is not even .extern.
std::optional<UnresolvedFunction> find_unresolved(const ptx::Module& module, const std::vector<BodyUsage>& usage) {
    const auto lacks = [&](ptx::FunctionId id) { return is_unresolved(module.functions[id]); };
    for (const BodyUsage& body : usage)
        for (const BodyUsage::Mention& mention : body.mentions)
            if (mention.is_function && lacks(mention.id)) return UnresolvedFunction{mention.id, mention.by_address};
    for (const ptx::Variable& variable : module.variables)
        for (const ptx::Relocation& relocation : variable.relocations)
            if (relocation.is_function && lacks(relocation.symbol)) return UnresolvedFunction{relocation.symbol, true};
    for (ptx::FunctionId id = 0; id < module.functions.size(); ++id)
        if (lacks(id) && module.functions[id].linkage != ptx::Linkage::external) return UnresolvedFunction{id, false};
    return {};
}

/// ptxas' line for a text of a whole program that lacks a function; empty if it lacks none.
std::string unresolved_function(const ptx::Module& module, const std::vector<BodyUsage>& usage) {
    const auto function = find_unresolved(module, usage);
    return function ? unresolved_function_line(module, *function) : std::string();
}

void log_loaded(const ModuleSource& source, std::size_t bytes, std::chrono::steady_clock::time_point start) {
    const ptx::Module& module = source.module();
    log(LogLevel::info, fmt::format("module {}: PTX {}.{} for sm_{}, {} bytes, {} kernels; loaded in {}", source.name(),
                                    module.version.major, module.version.minor, module.target.sm, bytes,
                                    source.kernels().size(), elapsed(start)));
}

/// Names the kernels' code in the cache, so that what is there needs no lifting: all that their text depends on.
TextHash hash_of(const sass::MachineCode& code) {
    const TextHash image = hash_text(code.image());
    return hash_text(fmt::format("machine code {:016x} {:016x} {}", image.low, image.high, sass::lifter_id()));
}

} // namespace

std::string unsupported_version(ptx::Version version) {
    constexpr ptx::Version newest = ptx::newest_version;
    if (version <= newest || env_flag(Env::accept_newer_ptx)) return {};
    return "Unsupported .version " + std::to_string(version.major) + "." + std::to_string(version.minor) +
           "; current version is '" + std::to_string(newest.major) + "." + std::to_string(newest.minor) + "'";
}

Status ModuleSource::load(std::string ptx, std::string name, std::shared_ptr<ModuleSource>& source, std::string& log,
                          BodyCheck check, TextUse use, std::shared_ptr<const sass::MachineCode> machine_code) {
    log.clear();
    const auto start = std::chrono::steady_clock::now();
    if (first_word(ptx).rfind(".version", 0) != 0) {
        log = unknown_format;
        set_error_detail(name + ": neither PTX nor a binary that is known");
        return Status::invalid_image;
    }
    std::shared_ptr<ModuleSource> result(new ModuleSource);
    result->name_ = name;
    result->hash_ = machine_code ? hash_of(*machine_code) : hash_text(ptx);
    result->machine_code_ = std::move(machine_code);
    ptx::ModuleLoader::Options options;
    std::optional<std::string> known_log;
    const bool is_large = ptx.size() >= large_text;
    if (check != BodyCheck::at_first_use) known_log = recall_valid_text(result->hash_);
    result->checks_when_got_ = check == BodyCheck::at_load_or_got && is_large && !known_log;
    const bool checks_bodies = check != BodyCheck::at_first_use && !known_log && !result->checks_when_got_;
    options.bind_all_bodies = checks_bodies && !is_large; // and kept
    result->launch_loader_.loader = ptx::ModuleLoader::load(std::move(ptx), std::move(name), options);
    // A newer version may use what this frontend takes for an error: the version is the better
    // answer then.
    const ptx::Module& module = result->launch_loader_.loader->module();
    if (const Status status = check_header(module, result->launch_loader_.loader->text(), use, log);
        status != Status::success) {
        set_error_detail(result->name_ + ": " + log);
        return status;
    }
    std::vector<BodyUsage> usage;
    if (checks_bodies) usage = check_bodies(*result->launch_loader_.loader);
    log = known_log ? *known_log : driver_log(result->launch_loader_.loader->diagnostics());
    if (!result->launch_loader_.loader->ok()) {
        set_error_detail(result->launch_loader_.loader->diagnostics().render_all());
        return Status::invalid_ptx;
    }
    // Of machine code the limit is not for kernels' own constants, which are tables here.
    if (const std::string excess = result->machine_code_ ? std::string() : too_large(module, usage); !excess.empty()) {
        log = excess;
        set_error_detail(result->name_ + ": " + log);
        return Status::invalid_ptx;
    }
    if (checks_bodies || result->checks_when_got_) {
        const std::string unresolved = unresolved_function(module, usage);
        if (unresolved.empty() && checks_bodies) remember_valid_text(result->hash_, log);
        if (!unresolved.empty() && use != TextUse::link_input) {
            log = unresolved;
            set_error_detail(result->name_ + ": " + log);
            return Status::invalid_ptx;
        }
    }
    result->add_kernels();
    result->const_bytes_ = static_cast<std::uint32_t>(result->machine_code_ ? result->machine_code_->constant_bytes()
                                                                            : constant_bytes(module));
    if (log_enabled(LogLevel::info)) log_loaded(*result, result->launch_loader_.loader->text().size(), start);
    source = std::move(result);
    return Status::success;
}

std::unique_ptr<ptx::ModuleLoader> ModuleSource::lift(const sass::CubinKernel& kernel) const {
    const auto start = std::chrono::steady_clock::now();
    std::string text, why;
    if (!machine_code_->lift(kernel, text, why)) {
        const unsigned architecture = machine_code_->architecture();
        throw RefusedMachineCode(fmt::format(
            "kernel {}: its machine code (sm_{}) can't be lifted: {}{}", kernel.name, architecture, why,
            architecture >= 90
                ? " (with PTARMIGAN_DEVICE=a100 libraries take their code for sm_80, of which more is known)"
                : ""));
    }
    const std::size_t bytes = text.size();
    auto loader = ptx::ModuleLoader::load(std::move(text), name_);
    if (!loader->ok()) throw ptx::DiagnosticError(loader->diagnostics().render_all());
    // Code names variables by their numbers, and those of the module are what a launch hands over.
    const std::vector<ptx::Variable>&own = loader->module().variables, &shared = module().variables;
    const bool agree =
        std::equal(own.begin(), own.end(), shared.begin(), shared.end(), [](const auto& a, const auto& b) {
            return a.name == b.name && a.size == b.size && a.space == b.space;
        });
    if (!agree) throw std::runtime_error("the lifted kernel has other variables than its module");
    if (log_enabled(LogLevel::info))
        log(LogLevel::info, fmt::format("kernel {}: machine code of sm_{} lifted to {} bytes of PTX in {}", kernel.name,
                                        machine_code_->architecture(), bytes, elapsed(start)));
    return loader;
}

SharedLoader& ModuleSource::background_loader(BackgroundOrder order) {
    const bool ahead = order == BackgroundOrder::soon;
    SharedLoader& shared = ahead ? ahead_loader_ : better_loader_;
    std::call_once(ahead ? ahead_once_ : better_once_,
                   [&] { shared.loader = ptx::ModuleLoader::load(std::string(launch_loader_.loader->text()), name_); });
    return shared;
}

const ptx::Module& ModuleSource::module() const {
    return launch_loader_.loader->module();
}

std::string ModuleSource::place_of(std::uint32_t line) const {
    std::string text = name_ + " PTX line " + std::to_string(line);
    if (const auto origin = ptx::find_unit_line(launch_loader_.loader->text(), line))
        text += " (" + origin->unit + " PTX line " + std::to_string(origin->line) + ")";
    return text;
}

void ModuleSource::add_kernels() {
    const std::vector<ptx::Function>& functions = module().functions;
    const auto is_kernel = [](const ptx::Function& function) { return function.is_entry && !function.is_declaration; };
    const auto count = static_cast<std::size_t>(std::count_if(functions.begin(), functions.end(), is_kernel));
    kernels_.reserve(count);
    kernels_by_name_.reserve(count);
    for (ptx::FunctionId id = 0; id < functions.size(); ++id) {
        if (!is_kernel(functions[id])) continue;
        kernels_.push_back(std::make_unique<Kernel>(*this, id, static_cast<std::uint32_t>(kernels_.size())));
        kernels_by_name_.emplace(functions[id].name, kernels_.back().get());
    }
}

Kernel* ModuleSource::find_kernel(std::string_view name) const {
    const auto found = kernels_by_name_.find(name);
    return found == kernels_by_name_.end() ? nullptr : found->second;
}

} // namespace ptarmigan::runtime
