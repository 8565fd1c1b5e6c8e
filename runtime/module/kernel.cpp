// SPDX-License-Identifier: Apache-2.0
// What is known of a kernel before and after it is compiled, its attributes, and its code per block
// shape.
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/repeated_error.h"
#include "runtime/base/schedule.h"
#include "runtime/context/refused_launch.h"
#include "runtime/device/device.h"
#include "runtime/module/kernel_usage.h"
#include "runtime/module/late_functions.h"
#include "runtime/module/module_notes.h"
#include "runtime/module/module_source.h"
#include "runtime/module/process_target.h"
#include "runtime/module/translator_library.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace ptarmigan::runtime {
namespace {

/// CUfunction_attribute.
enum FunctionAttribute : int {
    max_threads_per_block = 0,
    shared_size = 1,
    const_size = 2,
    local_size = 3,
    register_count = 4,
    ptx_version = 5,
    binary_version = 6,
    cache_mode_ca = 7,
    max_dynamic_shared_size = 8,
    shared_carveout = 9,
    cluster_size_must_be_set = 10,
    required_cluster_width = 11,
    required_cluster_height = 12,
    required_cluster_depth = 13,
    non_portable_cluster_size = 14,
    cluster_scheduling = 15,
    device_node_update_supported = 16, // CUDA 13.5 has this and the next
    shared_memory_mode = 17,
};

/// CUsharedMemoryMode, which wins over max_dynamic_shared_size. No device here has the oversized configurations (3, 4).
enum SharedMemoryMode : int { default_mode = 0, portable_mode = 1, non_portable_mode = 2, last_mode = 4 };

constexpr int default_shared_limit = 49152;

/// Of machine code, by what it is lifted to: for decisions that are taken before that.
constexpr unsigned statements_per_instruction = 2;

std::uint32_t product(const std::array<std::uint32_t, 3>& extents) {
    return extents[0] * extents[1] * extents[2];
}

/// There are no registers to count; this keeps occupancy answers plausible and lets 1024 threads
/// run.
std::uint32_t invented_registers(std::uint32_t ptx_registers) {
    return std::clamp<std::uint32_t>((ptx_registers / 4 + 7) / 8 * 8, 16, 64);
}

/// What .maxntid allows. The driver does not count .reqntid in; launches look at it themselves.
std::uint32_t max_threads_of(const ptx::EntryLimits& limits) {
    if (limits.max_ntid[0] == 0) return 1024;
    std::uint32_t threads = 1;
    for (const std::uint32_t extent : limits.max_ntid) threads *= std::max<std::uint32_t>(extent, 1);
    return std::min<std::uint32_t>(threads, 1024);
}

/// Options that the environment sets, for every kernel of the process.
translator::CompileOptions options_from_environment() {
    translator::CompileOptions options;
    options.target = process_target();
    options.lane_width = static_cast<unsigned>(env_number(Env::lanes).value_or(options.lane_width));
    const std::string divergence = env_text(Env::divergence), barriers = env_text(Env::barriers);
    if (divergence == "masks") options.divergence = translator::DivergenceForm::masks;
    if (divergence == "pcs") options.divergence = translator::DivergenceForm::program_counters;
    if (barriers == "regions") options.barriers = translator::BarrierForm::regions;
    if (barriers == "fibers") options.barriers = translator::BarrierForm::fibers;
    if (barriers == "turns") options.barriers = translator::BarrierForm::turns;
    if (env_text(Env::optimization) == "least") options.optimization = translator::Optimization::least;
    options.random_schedule = Schedule::of_process().random;
    if (env_text(Env::waits) == "all") options.waiting_loops = translator::WaitingLoops::all;
    options.checked_memory = env_text(Env::check) == "memory";
    if (env_text(Env::approx) == "fast") options.approximation = translator::Approximation::fast;
    return options;
}

/// Compiled well at once. With shared memory, which means barriers and loops over what is between them, 80 statements
/// take as long as 1,000 others (CuPy's sums: 90 to 160 ms on AVX2).
bool is_small(const KernelFacts& facts) {
    return facts.statements <= small_kernel_statements && facts.static_shared == 0;
}

const translator::CompileOptions& process_options() {
    static const auto& options = *new translator::CompileOptions(options_from_environment()); // for exit handlers too
    return options;
}

} // namespace

Kernel::Kernel(ModuleSource& source, ptx::FunctionId id, std::uint32_t index)
    : source_(source), id_(id), index_(index), parameters_(ptx::parameter_layout(function())) {
    if (source.machine_code() != nullptr) machine_code_ = source.machine_code()->find_kernel(name());
    attributes_[max_dynamic_shared_size] = -1;
    attributes_[shared_carveout] = -1;
    const ptx::EntryLimits& limits = function().limits;
    for (unsigned i = 0; i < 3; ++i)
        attributes_[required_cluster_width + i] = static_cast<int>(limits.required_cluster[i]);
}

const ptx::Function& Kernel::function() const {
    return source_.module().functions[id_];
}

const std::string& Kernel::name() const {
    return function().name;
}

std::size_t Kernel::given_parameters() const {
    return parameters_.offsets.size() - (machine_code_ == nullptr ? 0 : machine_code_->hidden_parameters);
}

bool Kernel::has_own_blocks() const {
    return function().limits.blocks_are_clusters || (machine_code_ != nullptr && machine_code_->is_tile);
}

Status Kernel::fill_hidden_parameters(std::span<std::uint8_t> block) {
    if (given_parameters() == parameters_.offsets.size()) return Status::success;
    HostCode::Function* fill = nullptr;
    {
        const std::lock_guard lock(mutex_);
        std::string why;
        if (host_code_ == nullptr) {
            const sass::CubinSection* object = source_.machine_code()->cubin().find_section(".nv.host");
            host_code_ = HostCode::load(object == nullptr ? std::span<const std::uint8_t>() : object->bytes, why);
        }
        fill = host_code_ == nullptr ? nullptr : host_code_->find(name());
        if (fill == nullptr) {
            set_error_detail("kernel " + name() + ": the host code that makes its tensor maps: " +
                             (why.empty() ? "there is none for it" : why));
            return Status::not_supported;
        }
    }
    // As they lie in the constant bank, which begins at a multiple of 64.
    constexpr std::size_t bank_alignment = 64;
    const std::vector<sass::KernelParameter>& in_bank = machine_code_->parameters;
    std::vector<std::uint8_t> bank(2 * bank_alignment + in_bank.back().offset + in_bank.back().size);
    std::uint8_t* place = bank.data();
    while ((reinterpret_cast<std::uintptr_t>(place) - machine_code_->parameter_base) % bank_alignment != 0) ++place;
    const auto copy = [&](std::size_t from, std::size_t to, bool into_bank) {
        for (std::size_t i = from; i < to; ++i) {
            std::uint8_t *here = block.data() + parameters_.offsets[i], *there = place + in_bank[i].offset;
            std::memcpy(into_bank ? there : here, into_bank ? here : there, in_bank[i].size);
        }
    };
    copy(0, given_parameters(), true);
    if (fill(nullptr, nullptr, nullptr, place) != 0) return Status::invalid_value;
    copy(given_parameters(), in_bank.size(), false);
    return Status::success;
}

Status Kernel::parameter(std::size_t index, std::size_t& offset, std::size_t& size) const {
    if (index >= given_parameters()) return Status::invalid_value;
    offset = parameters_.offsets[index];
    size = function().parameters[index].size;
    return Status::success;
}

/// Throws ptx::DiagnosticError for a body that does not bind, and what lifting throws.
KernelUsage Kernel::usage() const {
    if (machine_code_ != nullptr) {
        const std::unique_ptr<ptx::ModuleLoader> loader = source_.lift(*machine_code_);
        return usage_of(*loader, loader->module().find_function(name()).value());
    }
    const std::lock_guard lock(source_.loader_mutex());
    return usage_of(source_.loader(), id_);
}

/// What the file says, so that nothing need be lifted for it.
static KernelUsage usage_of(const sass::MachineCode& code, const sass::CubinKernel& kernel) {
    constexpr std::uint32_t least_alignment = 16; // as lifted
    const std::uint64_t alignment = std::max(kernel.shared_alignment, least_alignment);
    KernelUsage usage;
    usage.shared = (kernel.shared_size + alignment - 1) / alignment * alignment;
    usage.local = kernel.stack_size;
    usage.registers = kernel.registers;
    usage.statements = code.count_instructions(kernel) * statements_per_instruction;
    return usage;
}

/// Under mutex_.
Status Kernel::find_facts() {
    if (machine_code_ != nullptr) {
        const KernelUsage usage = usage_of(*source_.machine_code(), *machine_code_);
        if (const std::string excess = excess_of(usage, name()); !excess.empty()) {
            set_error_detail(excess);
            return Status::invalid_ptx;
        }
        facts_.static_shared = static_cast<std::uint32_t>(usage.shared);
        facts_.local = static_cast<std::uint32_t>(usage.local);
        facts_.registers = std::max(usage.registers, 16u);
        facts_.statements = usage.statements;
        facts_.max_threads = max_threads_of(function().limits);
        facts_noted_ = true; // not worth one
        return Status::success;
    }
    if (const auto noted = recall_facts(source_.text_hash(), name())) {
        facts_ = *noted;
        facts_.max_threads = max_threads_of(function().limits);
        facts_noted_ = true;
        return Status::success;
    }
    KernelUsage usage;
    try {
        usage = this->usage();
    } catch (const ptx::DiagnosticError& error) {
        set_error_detail(error.what());
        return Status::invalid_ptx;
    }
    if (usage.unresolved) {
        set_error_detail("kernel " + name() + ": " + unresolved_function_line(source_.module(), *usage.unresolved));
        return Status::invalid_ptx;
    }
    if (const std::string excess = excess_of(usage, name()); !excess.empty()) {
        set_error_detail(excess);
        return Status::invalid_ptx;
    }
    facts_.static_shared = static_cast<std::uint32_t>(usage.shared);
    facts_.local = static_cast<std::uint32_t>(usage.local);
    facts_.registers = invented_registers(usage.registers);
    if (const std::uint32_t limit = function().limits.max_registers; limit != 0)
        facts_.registers = std::min(facts_.registers, std::max(limit, 16u));
    facts_.statements = usage.statements;
    facts_.max_threads = max_threads_of(function().limits);
    return Status::success;
}

Status Kernel::check_cooperative() {
    std::lock_guard lock(mutex_);
    if (!asks_driver_) {
        const std::vector<ptx::Function>& functions = source_.module().functions;
        asks_driver_ = std::any_of(functions.begin(), functions.end(), asks_driver);
        if (*asks_driver_) { // the module does: look for the kernel
            try {
                asks_driver_ = usage().asks_driver;
            } catch (const ptx::DiagnosticError& error) {
                asks_driver_.reset();
                set_error_detail(error.what());
                return Status::invalid_ptx;
            } catch (const std::exception&) { // machine code that can't be lifted: the launch will say so
                asks_driver_ = false;
            }
        }
    }
    if (!*asks_driver_) return Status::success;
    set_error_detail("kernel " + name() + ": calls the device runtime, which a cooperative grid may not");
    return Status::not_permitted;
}

Status Kernel::facts(const KernelFacts*& facts) {
    std::lock_guard lock(mutex_);
    if (!facts_known_) {
        if (const Status status = find_facts(); status != Status::success) return status;
        facts_known_ = true;
    }
    facts = &facts_;
    return Status::success;
}

Status Kernel::check() {
    if (!source_.checks_when_got()) return Status::success;
    const KernelFacts* facts = nullptr;
    const Status status = this->facts(facts);
    // A program may get thousands of kernels and launch one; bound, bodies take some 15 times the text.
    std::lock_guard loader_lock(source_.loader_mutex());
    source_.loader().forget_bodies();
    return status;
}

std::uint32_t Kernel::max_dynamic_shared(const KernelFacts& facts) const {
    const int set = attributes_[max_dynamic_shared_size], mode = attributes_[shared_memory_mode];
    if (set >= 0 && mode == default_mode) return static_cast<std::uint32_t>(set);
    const int limit = mode >= non_portable_mode ? max_static_shared() : default_shared_limit;
    const int left = limit - static_cast<int>(facts.static_shared);
    return left > 0 ? static_cast<std::uint32_t>(left) : 0;
}

Status Kernel::attribute(int id, int& value) {
    if (id < 0 || id >= static_cast<int>(attributes_.size())) return Status::invalid_value;
    const KernelFacts* facts = nullptr;
    if (const Status status = this->facts(facts); status != Status::success) return status;
    const ptx::Target& target = source_.module().target;
    switch (id) {
    case max_threads_per_block: value = static_cast<int>(facts->max_threads); break;
    case shared_size: value = static_cast<int>(facts->static_shared); break;
    case const_size: value = static_cast<int>(source_.const_bytes()); break;
    case local_size: value = static_cast<int>(facts->local); break;
    case register_count: value = static_cast<int>(facts->registers); break;
    case ptx_version: value = static_cast<int>(target.sm); break;
    case binary_version: value = static_cast<int>(Device::get().compute_capability()); break;
    case cache_mode_ca: value = 0; break;
    case max_dynamic_shared_size: value = static_cast<int>(max_dynamic_shared(*facts)); break;
    case cluster_size_must_be_set: value = function().limits.explicit_cluster; break;
    case device_node_update_supported: value = 0; break; // graphs' nodes are not changed by kernels
    default: value = attributes_[static_cast<std::size_t>(id)]; break;
    }
    return Status::success;
}

Status Kernel::set_attribute(int id, int value) {
    const KernelFacts* facts = nullptr;
    if (const Status status = this->facts(facts); status != Status::success) return status;
    switch (id) {
    case max_dynamic_shared_size:
        if (value < 0 || value > max_static_shared() - static_cast<int>(facts->static_shared))
            return Status::invalid_value;
        break;
    case shared_carveout:
        if (value < -1 || value > 100) return Status::invalid_value;
        break;
    case required_cluster_width:
    case required_cluster_height:
    case required_cluster_depth:
        if (value < 0 || product(function().limits.required_cluster) != 0) return Status::invalid_value;
        break;
    case non_portable_cluster_size:
        if (value != 0 && value != 1) return Status::invalid_value;
        break;
    case cluster_scheduling:
        if (value < 0 || value > 2) return Status::invalid_value;
        break;
    case shared_memory_mode:
        if (value < default_mode || value > last_mode) return Status::invalid_value;
        break;
    default: return Status::invalid_value;
    }
    std::lock_guard lock(mutex_);
    attributes_[static_cast<std::size_t>(id)] = value;
    return Status::success;
}

void Kernel::set_code(std::shared_ptr<const LoadedKernel> code) {
    std::lock_guard lock(mutex_);
    fixed_code_ = std::move(code);
}

KernelRequest Kernel::request(SharedLoader& shared, const translator::BlockShape& shape,
                              const translator::CompileOptions& options, std::optional<BackgroundOrder> order) const {
    KernelRequest request{*shared.loader, shared.mutex, source_.text_hash(), name(), shape, options, false, order, {}};
    if (machine_code_ != nullptr) request.make_loader = [this] { return source_.lift(*machine_code_); };
    return request;
}

/// Under mutex_. Throws what the cache throws.
Kernel::Variant Kernel::make_variant(const translator::BlockShape& shape, const translator::CompileOptions& options,
                                     std::uint64_t threads) {
    KernelCache& cache = KernelCache::process_cache();
    KernelRequest good = request(source_.launch_loader(), shape, options);
    // Kernels are launched in the order of the text, more or less.
    const bool calls_late = may_call_late(source_.module());
    const auto compile_behind = [&] {
        if (options.lane_width == 0 && !calls_late) source_.likely_kernels().compile_behind(source_, index_);
    };
    using Mode = TierSetting::Mode;
    const Mode mode = TierSetting::of_process().mode;
    // Steps of few lanes would be too many to be alive at once, and who goes next is to be the same in each run.
    const bool keeps_width =
        options.cooperative || options.barriers == translator::BarrierForm::fibers || options.random_schedule;
    bool good_only = mode == Mode::best || keeps_width || is_quick(options);
    if (mode == Mode::automatic) {
        source_.likely_kernels().note_launch(source_, index_);
        if (auto code = cache.find(good)) {
            if (code == ahead_) compile_behind();
            return {{std::move(code), nullptr}};
        }
        good_only = good_only || is_small(facts_) || threads >= longest_quick_threads;
        if (good_only) compile_behind();
    }
    if (good_only) return {{cache.get(good), nullptr}};
    KernelRequest quick = good;
    quick.options = quick_options(options);
    // Of such a library few kernels are launched and few functions called, and good code for one of them would hold up
    // the grid that calls it for tens of seconds.
    if (mode == Mode::quick || (mode == Mode::automatic && calls_late)) return {{cache.get(quick), nullptr}};

    const auto make = [source = source_.weak_from_this(), kernel = this, shape,
                       options](std::optional<BackgroundOrder> order) {
        const std::shared_ptr<ModuleSource> alive = source.lock();
        if (!alive) return std::shared_ptr<const LoadedKernel>();
        return kernel->get_for(order, shape, options);
    };
    auto tiered = std::make_shared<TieredCode>(name(), facts_.statements, make);
    if (mode == Mode::swap) {
        tiered->make_now();
        return {{cache.get(quick), std::move(tiered)}, true};
    }
    auto code = cache.find(quick);
    const bool is_hot = recall_hot(source_.text_hash(), name());
    if (is_hot && !code) return {{cache.get(good), nullptr}};
    if (is_hot || threads >= long_grid_threads) tiered->ask(TieredCode::Urgency::high);
    // An earlier process left it: what runs again and again, each time too shortly, is to become good code at last.
    else if (code && code != ahead_)
        tiered->ask(TieredCode::Urgency::some);
    if (!code || code == ahead_) compile_behind();
    if (!code) code = cache.get(quick);
    return {{std::move(code), std::move(tiered)}};
}

std::shared_ptr<const LoadedKernel> Kernel::get_for(std::optional<BackgroundOrder> order,
                                                    const translator::BlockShape& shape,
                                                    const translator::CompileOptions& options) const {
    const bool has_own = machine_code_ != nullptr; // a loader for each miss
    SharedLoader& shared = order && !has_own ? source_.background_loader(*order) : source_.launch_loader();
    auto code = KernelCache::process_cache().get(request(shared, shape, options, order));
    note_late_caller(source_, name(), shape, options, code);
    if (!order || has_own) return code;
    const std::lock_guard lock(shared.mutex); // a body takes many times its text
    shared.loader->forget_bodies();
    return code;
}

bool Kernel::compile_ahead() {
    const ptx::EntryLimits& limits = function().limits;
    const auto& ntid = limits.required_ntid[0] != 0 ? limits.required_ntid : limits.max_ntid;
    const KernelFacts* facts = nullptr;
    if (ntid[0] == 0 || required_cluster()[0] != 0 || this->facts(facts) != Status::success) return false;
    translator::BlockShape shape;
    for (unsigned i = 0; i < 3; ++i) shape.ntid[i] = std::max<std::uint32_t>(ntid[i], 1);
    translator::CompileOptions options = process_options();
    options.small_grid = true;
    if (!is_small(*facts)) options = quick_options(options);
    try {
        auto code = get_for(BackgroundOrder::soon, shape, options);
        const std::lock_guard lock(mutex_);
        if (variants_.empty()) ahead_ = std::move(code);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

/// Under mutex_. Its machine code can't be lifted.
Status Kernel::refuse(std::string_view why) {
    if (refusal_.empty()) {
        refusal_ = why;
        std::string obstacle;
        if (Kernel* kernel = source_.ptx_beside().stand_in(*this, facts_, obstacle)) {
            log_once("beside " + name(), refusal_ + "; the PTX for sm_" +
                                             std::to_string(kernel->source().module().target.sm) +
                                             " beside it is taken, which a GPU would not do");
            ptx_beside_.store(kernel, std::memory_order_release);
        }
        if (!obstacle.empty()) refusal_ += "; the PTX beside it can't take its place: " + obstacle;
    }
    if (ptx_beside() != nullptr) return Status::not_supported;
    set_repeated_error_detail(refusal_);
    note_refused_launch();
    return Status::not_supported;
}

Status Kernel::code(const translator::BlockShape& shape, bool small_grid, bool cooperative, bool late_copies,
                    KernelCode& code, bool aligned_parameters, std::uint64_t threads) {
    std::lock_guard lock(mutex_);
    if (fixed_code_) {
        code = {fixed_code_, nullptr};
        return Status::success;
    }
    const VariantKey key{shape.ntid, shape.cluster, small_grid, cooperative, late_copies, aligned_parameters};
    if (const auto found = variants_.find(key); found != variants_.end()) {
        Variant& variant = found->second;
        if (variant.code.tiered && variant.code.tiered->has_good()) {
            const bool swaps = TierSetting::of_process().mode == TierSetting::Mode::swap;
            variant.begins_quick = swaps && !variant.begins_quick;
            if (!swaps) variant.code = {variant.code.tiered->good(), nullptr};
            if (swaps && !variant.begins_quick) {
                code = {variant.code.tiered->good(), nullptr};
                return Status::success;
            }
        }
        code = variant.code;
        return Status::success;
    }
    if (!refusal_.empty()) return refuse(refusal_);
    translator::CompileOptions options = process_options();
    options.small_grid = small_grid;
    options.late_copies = late_copies;
    options.aligned_parameters = aligned_parameters;
    options.cooperative = cooperative;
    Variant made;
    try {
        made = make_variant(shape, options, threads);
    } catch (const RefusedMachineCode& error) {
        return refuse(error.what());
    } catch (const translator::UnsupportedError& error) {
        set_repeated_error_detail(error.what());
        return Status::not_supported;
    } catch (const ptx::DiagnosticError& error) {
        set_repeated_error_detail(error.what());
        return Status::invalid_ptx;
    } catch (const MissingTranslator& error) {
        set_repeated_error_detail("kernel " + name() + ": " + error.what());
        return Status::jit_compiler_not_found;
    } catch (const std::exception& error) { // of our own: nothing is wrong with the program
        set_repeated_error_detail("kernel " + name() + ": internal error: " + error.what());
        return Status::unknown;
    }
    code = made.code;
    note_late_caller(source_, name(), shape, options, code.code);
    if (options.divergence == translator::DivergenceForm::masks && code.code->properties.spins &&
        code.code->properties.uses_fibers && code.code->properties.lane_width > 1)
        log_once("masks " + name(), "kernel " + name() +
                                        ": PTARMIGAN_DIVERGENCE=masks does not apply, its threads wait for "
                                        "each other: it runs with program counters");
    variants_.emplace(key, std::move(made));
    ahead_ = nullptr;
    // Not in facts(): a program may ask for the attributes of thousands of kernels and launch one.
    if (facts_known_ && !facts_noted_) {
        remember_facts(source_.text_hash(), name(), facts_);
        facts_noted_ = true;
    }
    return Status::success;
}

void Kernel::note_quick_run(TieredCode& tiered, std::uint64_t nanoseconds) const {
    if (tiered.add_run_time(nanoseconds)) remember_hot(source_.text_hash(), name());
}

} // namespace ptarmigan::runtime
