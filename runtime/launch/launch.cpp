// SPDX-License-Identifier: Apache-2.0
// Checks of a launch, in the driver's order of codes, and the making of a grid.
#include "runtime/launch/launch.h"

#include "frontend/sass/lift.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/schedule.h"
#include "runtime/base/tuning.h"
#include "runtime/context/context.h"
#include "runtime/device/device.h"
#include "runtime/launch/grid.h"
#include "runtime/launch/kernel_services.h"
#include "runtime/launch/occupancy.h"
#include "runtime/launch/waiting_grids.h"
#include "runtime/memory/address_space.h"
#include "runtime/module/module.h"
#include "runtime/stream/stream.h"
#include "translator/any_cluster.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace ptarmigan::runtime {
namespace {

std::uint64_t volume(const std::array<std::uint32_t, 3>& extents) {
    return std::uint64_t{extents[0]} * extents[1] * extents[2];
}

/// What a launch means: kernels that have the shape of their blocks (.blocksareclusters, CUDA Tile) are launched with
/// blocks of one thread for it, and with clusters for blocks where they name those.
LaunchConfig meant_config(const Kernel& kernel, LaunchConfig config) {
    if (!kernel.has_own_blocks()) return config;
    const ptx::EntryLimits& limits = kernel.function().limits;
    const bool is_given = volume(config.block) != 1;
    for (unsigned i = 0; i < 3; ++i) {
        if (!is_given) config.block[i] = std::max<std::uint32_t>(limits.required_ntid[i], 1);
        const std::uint64_t blocks = std::max<std::uint32_t>(limits.required_cluster[i], 1);
        if (limits.blocks_are_clusters)
            config.grid[i] = static_cast<std::uint32_t>(std::min<std::uint64_t>(config.grid[i] * blocks, 0xffffffffu));
    }
    return config;
}

Status check_extents(const LaunchConfig& config) {
    constexpr std::array<std::uint32_t, 3> block_limit{1024, 1024, 64};
    constexpr std::array<std::uint32_t, 3> grid_limit{2147483647, 65535, 65535};
    for (unsigned i = 0; i < 3; ++i) {
        if (config.block[i] == 0 || config.block[i] > block_limit[i]) return Status::invalid_value;
        if (config.grid[i] == 0 || config.grid[i] > grid_limit[i]) return Status::invalid_value;
    }
    return volume(config.block) > 1024 ? Status::invalid_value : Status::success;
}

/// The block's shape against .maxntid and .reqntid.
Status check_block(const Kernel& kernel, const KernelFacts& facts, const LaunchConfig& config) {
    const ptx::EntryLimits& limits = kernel.function().limits;
    if (volume(config.block) > facts.max_threads) return Status::invalid_value;
    if (limits.required_ntid[0] == 0) return Status::success;
    for (unsigned i = 0; i < 3; ++i)
        if (config.block[i] != std::max<std::uint32_t>(limits.required_ntid[i], 1)) return Status::invalid_value;
    return Status::success;
}

/// Resolves the cluster's dimensions: the launch's, or the kernel's own.
Status check_cluster(const Kernel& kernel, const LaunchConfig& config, std::array<std::uint32_t, 3>& cluster) {
    const ptx::EntryLimits& limits = kernel.function().limits;
    std::array<std::uint32_t, 3> compiled = kernel.required_cluster();
    if (compiled[0] != 0)
        for (std::uint32_t& extent : compiled) extent = std::max<std::uint32_t>(extent, 1);
    cluster = config.has_cluster ? config.cluster : compiled;
    if (!config.has_cluster && compiled[0] == 0) {
        cluster = {1, 1, 1};
        return limits.explicit_cluster ? Status::invalid_cluster_size : Status::success;
    }
    const std::uint64_t size = volume(cluster);
    if (limits.max_cluster_rank != 0 && size > limits.max_cluster_rank) return Status::invalid_cluster_size;
    if (size == 0 || size > 16 || (size > 8 && !kernel.non_portable_cluster())) return Status::invalid_cluster_size;
    if (config.has_cluster && compiled[0] != 0 && cluster != compiled) return Status::invalid_cluster_size;
    for (unsigned i = 0; i < 3; ++i)
        if (config.grid[i] % cluster[i] != 0) return Status::invalid_cluster_size;
    return Status::success;
}

/// What code is compiled for: the shape that a kernel always has. Libraries launch one kernel with several (cuDNN's
/// convolutions), for which one code does; alone in its cluster, a CTA runs as without.
std::array<std::uint32_t, 3> cluster_of_code(const Kernel& kernel, const std::array<std::uint32_t, 3>& cluster) {
    return volume(cluster) == 1 || kernel.required_cluster()[0] != 0 ? cluster : translator::any_cluster;
}

/// CU_LAUNCH_PARAM_*: END 0, BUFFER_POINTER 1, BUFFER_SIZE 2.
Status read_extra(void* const* extra, const void*& buffer, std::size_t& size) {
    for (unsigned entries = 0; entries < 16; ++entries, extra += 2) {
        switch (reinterpret_cast<std::uintptr_t>(extra[0])) {
        case 0: return buffer ? Status::success : Status::invalid_value;
        case 1: buffer = extra[1]; break;
        case 2:
            if (!extra[1]) return Status::invalid_value;
            size = *static_cast<const std::size_t*>(extra[1]);
            break;
        default: return Status::invalid_value;
        }
    }
    return Status::invalid_value;
}

/// Fills the parameter block in the kernel's layout.
Status pack_parameters(const Kernel& kernel, void* const* parameters, void* const* extra,
                       std::vector<std::uint8_t>& block) {
    const ptx::ParameterLayout& layout = kernel.parameters();
    if (parameters && extra) return Status::invalid_value;
    block.assign(std::max<std::size_t>(layout.size, 16), 0);
    if (layout.offsets.empty()) return Status::success;
    if (extra) {
        const void* buffer = nullptr;
        std::size_t size = 0;
        if (const Status status = read_extra(extra, buffer, size); status != Status::success) return status;
        // The driver takes a buffer that is too small and reads past its end; zeros are read here.
        std::memcpy(block.data(), buffer, std::min<std::size_t>(size, layout.size));
        return Status::success;
    }
    if (!parameters) return Status::invalid_value;
    const std::vector<ptx::Variable>& variables = kernel.function().parameters;
    for (std::size_t i = 0; i < kernel.given_parameters(); ++i) {
        if (!parameters[i]) return Status::invalid_value;
        std::memcpy(block.data() + layout.offsets[i], parameters[i], variables[i].size);
    }
    return Status::success;
}

/// Kernels reach the memory of all devices, since all is the process's. Where one is handed an address of a peer's that
/// its device has no access to, that is said: a GPU would end the context as soon as it is used.
void tell_of_peer_memory(const Kernel& kernel, const Context& context, const std::vector<std::uint8_t>& parameters) {
    if (Device::count() < 2) return;
    AddressSpace& space = AddressSpace::get();
    std::uintptr_t word = 0;
    for (std::size_t at = 0; at + sizeof word <= parameters.size(); at += sizeof word) {
        std::memcpy(&word, &parameters[at], sizeof word);
        if (!space.in_reservation(word)) continue;
        const KnownRange range = space.range(word, 1, context.device());
        if (!range.known || (range.reached && range.access != 0)) continue;
        log_once(
            "peer " + kernel.name(),
            "kernel " + kernel.name() + " on device " + std::to_string(context.device()) +
                " is handed memory of another device that it has no access to (cuCtxEnablePeerAccess, "
                "cuMemSetAccess, cuMemPoolSetAccess): it works here, and a GPU ends with error 700 where it is used");
    }
}

/// The multiprocessors that a grid's CTAs claim to run on.
SmRange range_of(const LaunchConfig& config) {
    return config.multiprocessors.count ? config.multiprocessors : SmRange{0, Device::get().multiprocessors()};
}

Status check_cooperative(Kernel& kernel, const LaunchConfig& config) {
    int per_sm = 0;
    Status status = kernel.check_cooperative();
    if (status != Status::success) return status;
    status = occupancy_blocks(kernel, static_cast<int>(volume(config.block)), config.dynamic_shared, per_sm);
    if (status != Status::success) return status;
    const std::uint64_t most = static_cast<std::uint64_t>(per_sm) * range_of(config).count;
    return volume(config.grid) > most ? Status::cooperative_launch_too_large : Status::success;
}

/// All component products fit 31 bits, so that index arithmetic in 32 bits can't wrap.
bool is_small_grid(const LaunchConfig& config) {
    for (unsigned i = 0; i < 3; ++i)
        if (std::uint64_t{config.grid[i]} * config.block[i] > 0x7fffffffu) return false;
    return true;
}

/// CTAs per draw of a grid whose CTAs wait for nobody and took `cost` ns each last time (0: unknown).
std::uint64_t independent_chunk(const Grid& grid, unsigned workers, std::uint64_t threads, std::uint64_t cost) {
    if (cost != 0 && cost * grid.cta_count < tuning::undivided_grid_ns) return (grid.cta_count + workers - 1) / workers;
    if (threads > tuning::small_cta_threads) return 1;
    const std::uint64_t large = grid.cta_count / (workers * tuning::large_grid_draws);
    return std::min(large, tuning::large_grid_chunk);
}

/// True if the grid's streaming stores write so much that no cache would keep it for the next reader.
bool writes_past_caches(const Grid& grid, const LoadedKernel& code) {
    const std::uint32_t* block = grid.launch.ntid;
    const std::uint64_t threads = grid.cta_count * grid.cluster_size * block[0] * block[1] * block[2];
    const std::uint64_t bytes = code.properties.streamed_bytes;
    return bytes != 0 && threads >= tuning::least_streamed_bytes / bytes;
}

/// Those of the host's workers that a part of the multiprocessors has: its share, and one at least.
unsigned workers_of(const SmRange& range) {
    const Device& device = Device::get();
    const std::uint64_t share = std::uint64_t{device.workers()} * range.count / device.multiprocessors();
    return static_cast<unsigned>(std::max<std::uint64_t>(share, 1));
}

void choose_workers(Grid& grid, std::uint64_t threads, bool waits) {
    const unsigned workers = workers_of(grid.multiprocessors);
    static const auto forced = env_number(Env::chunk);
    grid.max_workers = grid.cta_count < workers ? static_cast<unsigned>(grid.cta_count) : workers;
    if (Schedule::of_process().random) grid.max_workers = 1;
    if (grid.cooperative || Schedule::of_process().random) return; // one at a time, see Worker::run_resident_ctas()
    if (grid.tiered) return;                                       // good code may take over between any two CTAs
    if (forced && *forced > 0) {
        grid.chunk = *forced;
        return;
    }
    if (threads <= tuning::small_cta_threads) {
        const std::uint64_t fair = grid.cta_count / (workers * tuning::chunks_per_worker);
        grid.chunk = std::clamp<std::uint64_t>(fair, 1, tuning::small_cta_chunk);
    }
    // CTAs that wait for lower ones must not stand behind hundreds of them.
    if (waits) return;
    const std::uint64_t cost = grid.cta_cost ? grid.cta_cost->load(std::memory_order_relaxed) : 0;
    grid.chunk = std::max(grid.chunk, independent_chunk(grid, workers, threads, cost));
}

/// Host stack for one flow of control of a kernel. Recursion goes as deep as the stack limit allows: every level takes
/// at least `smallest_level` of a thread's local memory, or none at all and then nothing but the stack's end stops it.
std::size_t stack_needed(const LoadedKernel& code, std::size_t stack_limit) {
    constexpr std::size_t smallest_level = 16, page = 4096;
    std::size_t bytes = tuning::service_stack + code.stack_bytes;
    if (code.properties.unbounded_stack)
        bytes += std::min(stack_limit / smallest_level * code.largest_frame, tuning::deepest_fiber_stack);
    const std::size_t least = code.properties.unbounded_stack ? tuning::deep_fiber_stack : tuning::fiber_stack;
    return std::max(least, (bytes + page - 1) / page * page);
}

/// Quick code whose threads wait for each other, in steps so narrow that not all that may have to live at once can.
bool needs_wider_steps(const Grid& grid, const LoadedKernel& quick) {
    const translator::KernelProperties& properties = quick.properties;
    constexpr std::uint64_t most_steps = 16384;
    return properties.spins && properties.uses_fibers &&
           grid.cta_count * grid.cluster_size * properties.step_count > most_steps;
}

/// Quick code whose steps meet at collectives runs a fiber for each of them, which takes some four times as long as
/// other quick code (thrust's sorts: 4 to 5 ns for a statement of a thread).
bool runs_fibers_for_long(const Grid& grid, const LoadedKernel& quick) {
    constexpr std::uint64_t weight = 4;
    const std::uint64_t block = std::uint64_t{quick.properties.step_count} * quick.properties.lane_width;
    return quick.properties.uses_fibers && grid.cta_count * grid.cluster_size * block * weight >= longest_quick_threads;
}

/// Quick code whose loops, counted, keep a CTA for twice as long as good code takes to make: nothing takes over within
/// one. CTAs that may wait for each other all begin before one ends.
bool has_long_ctas(const Grid& grid, const LaunchConfig& config, const KernelCode& code) {
    constexpr std::uint64_t statements_per_ns = 1,
                            lanes_side_by_side = 4; // of wide steps, vectors without optimisation
    const translator::KernelProperties& properties = code.code->properties;
    const std::uint64_t statements = translator::statements_of_thread(properties.work, grid.params, config.grid);
    std::uint64_t threads = volume(config.block) * grid.cluster_size;
    threads = std::max<std::uint64_t>(properties.lane_width > 1 ? threads / lanes_side_by_side : threads, 1);
    if (properties.spins) threads *= std::max<std::uint64_t>(grid.cta_count / Device::get().workers(), 1);
    return statements / statements_per_ns > 2 * code.tiered->good_ns() / threads;
}

/// The code that the grid begins with, and whether better code may take over.
void choose_tier(Grid& grid, const LaunchConfig& config, KernelCode code) {
    const bool automatic = TierSetting::of_process().mode == TierSetting::Mode::automatic;
    if (code.tiered && (needs_wider_steps(grid, *code.code) ||
                        (automatic && (runs_fibers_for_long(grid, *code.code) || has_long_ctas(grid, config, code))))) {
        if (const auto good = code.tiered->make_now(); good && meets_demands(grid, *good)) code = {good, nullptr};
    }
    grid.code = std::move(code.code);
    grid.tiered = std::move(code.tiered);
    grid.swap_at = TierSetting::of_process().swap_at;
}

std::chrono::nanoseconds hang_limit() {
    static const double seconds = env_seconds(Env::hang_timeout).value_or(0);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>{seconds});
}

std::atomic<std::uint64_t> next_grid_id{1};

/// Where parameters lie at multiples of more than a vector's memory does; so do tensor maps, whatever their declaration
/// says. Of a map the first half may be a parameter, and the whole is read.
const std::uint8_t* aligned_parameters(std::vector<std::uint8_t>& params, std::size_t alignment) {
    constexpr std::size_t map_alignment = 64, half_map = 64;
    const std::size_t size = params.size();
    const bool may_have_maps = size >= half_map;
    if (may_have_maps) alignment = std::max(alignment, map_alignment);
    if (!may_have_maps && reinterpret_cast<std::uintptr_t>(params.data()) % alignment == 0) return params.data();
    params.resize(size + alignment + half_map);
    const std::size_t offset = -reinterpret_cast<std::uintptr_t>(params.data()) % alignment;
    std::memmove(params.data() + offset, params.data(), size);
    return params.data() + offset;
}

/// Read at each launch.
void set_async_mode(Grid& grid) {
    if (!env_is_set(Env::async)) return;
    const std::string text = env_text(Env::async);
    constexpr std::string_view random = "random:";
    if (text == "late") grid.launch.async_mode = static_cast<std::uint32_t>(abi::AsyncMode::late);
    if (!text.starts_with(random)) return;
    grid.launch.async_mode = static_cast<std::uint32_t>(abi::AsyncMode::random);
    grid.async_seed = std::strtoull(text.c_str() + random.size(), nullptr, 10);
}

/// Where it is worth a look. The code that a grid begins with tells; what may take over does the same.
CtaWalk walk_of(const Grid& grid, const LaunchConfig& config) {
    constexpr std::uint64_t least_threads = 1 << 18;
    const bool waits = grid.cooperative || grid.cluster_size > 1 || grid.code->properties.spins;
    if (waits || grid.in_pairs || volume(config.grid) * volume(config.block) < least_threads) return {};
    return choose_cta_walk(grid.code->properties.addresses, {grid.launch.params, grid.launch.params_size}, config.grid,
                           config.block);
}

void fill_launch_context(Grid& grid, const LaunchConfig& config, const std::array<std::uint32_t, 3>& cluster,
                         bool is_explicit, std::size_t parameter_alignment) {
    abi::LaunchContext& launch = grid.launch;
    launch.params_size = static_cast<std::uint32_t>(grid.params.size());
    launch.params = aligned_parameters(grid.params, parameter_alignment);
    launch.variables = grid.module->variables();
    launch.services = &kernel_services();
    launch.nsmid = Device::get().multiprocessors();
    for (unsigned i = 0; i < 3; ++i) {
        launch.nctaid[i] = config.grid[i];
        launch.ntid[i] = config.block[i];
        launch.ncluster[i] = cluster[i];
    }
    launch.explicit_cluster = is_explicit;
    launch.dynamic_shared = config.dynamic_shared;
    launch.shared_size = grid.code->properties.static_shared + config.dynamic_shared;
    grid.in_pairs = grid.code->properties.continues_in_y && config.grid[1] > 1;
    grid.walk = walk_of(grid, config);
    launch.grid_id = next_grid_id.fetch_add(1, std::memory_order_relaxed);
    launch.owner = &grid;
    if (config.cooperative) launch.grid_workspace = reinterpret_cast<std::uintptr_t>(&grid.workspace);
}

} // namespace

bool meets_demands(const Grid& grid, const LoadedKernel& code) {
    for (const translator::AlignmentDemand& demand : code.properties.alignment_demands) {
        if (demand.offset >= grid.params.size() || ((grid.params[demand.offset] + demand.residue) & demand.mask) != 0)
            return false;
    }
    return true;
}

GridCode prepare_code(const Grid& grid, std::shared_ptr<const LoadedKernel> code) {
    const translator::KernelProperties& properties = code->properties;
    std::size_t stack_limit = 0;
    if (properties.unbounded_stack) static_cast<void>(grid.context->limit(Limit::stack_size, stack_limit));
    GridCode prepared;
    CtaNeeds& needs = prepared.needs;
    needs.shared = grid.launch.shared_size;
    if (const sass::MachineCode* machine_code = grid.module ? grid.module->source().machine_code() : nullptr)
        needs.shared_start = machine_code->shared_start();
    if (properties.reserved_shared) needs.shared = (needs.shared + 127) / 128 * 128 + properties.reserved_shared;
    constexpr std::size_t most = abi::local_stride_limit - 64;
    const std::size_t least = properties.local_bytes + stack_limit;
    const std::size_t wanted = properties.local_bytes + stack_limit * properties.stack_scale;
    needs.local_stride = (std::max(least, std::min(wanted, most)) + 63) / 64 * 64;
    needs.interleaved = properties.interleaved_bytes;
    needs.threads = std::size_t{properties.step_count} * properties.lane_width;
    needs.cta_frame = properties.cta_frame_size;
    needs.frames = std::size_t{properties.step_count} * properties.frame_size;
    prepared.fiber_stack = stack_needed(*code, stack_limit);
    prepared.needs_own_stack = properties.unbounded_stack || prepared.fiber_stack > tuning::fiber_stack;
    prepared.streams = writes_past_caches(grid, *code);
    prepared.code = std::move(code);
    return prepared;
}

/// Of what is meant.
static Status check_config(Kernel& kernel, const LaunchConfig& config) {
    Status status = check_extents(config);
    const KernelFacts* facts = nullptr;
    if (status != Status::success || (status = kernel.facts(facts)) != Status::success ||
        (status = check_block(kernel, *facts, config)) != Status::success)
        return status;
    return config.dynamic_shared > kernel.max_dynamic_shared(*facts) ? Status::invalid_value : Status::success;
}

Status check_launch(Kernel& kernel, const LaunchConfig& config) {
    return check_config(kernel, meant_config(kernel, config));
}

Status pack_launch_parameters(const Kernel& kernel, void* const* parameters, void* const* extra,
                              std::vector<std::uint8_t>& block) {
    return pack_parameters(kernel, parameters, extra, block);
}

bool renew_grid(const std::shared_ptr<Grid>& shared) {
    Grid& grid = *shared;
    if (shared.use_count() > 1) return false;
    // use_count() is a relaxed look: pairs with the release in which the last other owner let the grid go.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (grid.stopped() || grid.children || grid.cooperative || grid.good) return false;
    if (grid.tiered && grid.tiered->has_good()) return false;
    if (static_cast<abi::AsyncMode>(grid.launch.async_mode) != abi::AsyncMode::eager) return false;
    grid.next_cta.store(0, std::memory_order_relaxed);
    grid.next_worker.store(0, std::memory_order_relaxed);
    grid.progress.store(0, std::memory_order_relaxed);
    grid.late_helpers = grid.held_helpers = 0;
    grid.left_helpers.store(0, std::memory_order_relaxed);
    grid.spare_cpu.store(Grid::SpareCpu::not_wanted, std::memory_order_relaxed);
    grid.helpers.reopen();
    grid.chunk = 1;
    choose_workers(grid,
                   std::uint64_t{grid.launch.ntid[0]} * grid.launch.ntid[1] * grid.launch.ntid[2] * grid.cluster_size,
                   grid.code->properties.spins);
    grid.launch.grid_id = next_grid_id.fetch_add(1, std::memory_order_relaxed);
    return true;
}

/// The function whose code runs: where a kernel of machine code can't be lifted, that of the PTX beside it.
static Status find_code(Function& given, const translator::BlockShape& shape, const LaunchConfig& config,
                        const Grid& grid, Function*& runs, KernelCode& code) {
    const bool late_copies = grid.launch.async_mode != static_cast<std::uint32_t>(abi::AsyncMode::eager);
    const std::uint64_t threads = volume(config.grid) * volume(config.block);
    const auto find = [&](bool aligned) {
        return runs->kernel().code(shape, is_small_grid(config), grid.cooperative, late_copies, code, aligned, threads);
    };
    const auto take_ptx_beside = [&](Kernel& kernel) {
        std::shared_ptr<Function> function;
        const Status status = given.module().function_beside(kernel, function);
        if (status == Status::success) runs = function.get(); // its module keeps it
        return status;
    };
    runs = &given;
    Kernel* beside = given.kernel().ptx_beside();
    Status status = beside == nullptr ? find(true) : Status::not_supported;
    if (status == Status::not_supported && (beside = given.kernel().ptx_beside()) != nullptr) {
        status = take_ptx_beside(*beside);
        if (status == Status::success) status = find(true);
    }
    // Parameters that would make an access misaligned: code that checks, because it may not come to that access.
    if (status == Status::success && !meets_demands(grid, *code.code)) status = find(false);
    return status;
}

Status make_grid(Function& function, const LaunchConfig& given, Context& context, void* const* parameters,
                 void* const* extra, std::shared_ptr<Grid>& made) {
    Kernel& kernel = function.kernel();
    const LaunchConfig config = meant_config(kernel, given);
    const auto failed = [](Status status) { return status != Status::success; };
    Status status = context.status();
    if (failed(status) || failed(status = check_config(kernel, config))) return status;
    auto grid = std::make_shared<Grid>();
    if (failed(status = pack_parameters(kernel, parameters, extra, grid->params)) ||
        failed(status = kernel.fill_hidden_parameters(grid->params)))
        return status;
    tell_of_peer_memory(kernel, context, grid->params);
    std::array<std::uint32_t, 3> cluster{};
    if (failed(status = check_cluster(kernel, config, cluster))) return status;
    if (config.cooperative && failed(status = check_cooperative(kernel, config))) return status;

    // Only a cooperative grid of several CTAs needs all of them to get turns.
    grid->cooperative = config.cooperative && volume(config.grid) > 1;
    const translator::BlockShape shape{config.block, cluster_of_code(kernel, cluster)};
    set_async_mode(*grid);
    KernelCode code;
    Function* runs = nullptr;
    if (failed(status = find_code(function, shape, config, *grid, runs, code))) return status;
    install_fault_handlers();
    grid->module = runs->module().keep();
    grid->context = &context;
    grid->cta_cost = runs->kernel().cta_cost();
    grid->cluster_size = static_cast<std::uint32_t>(volume(cluster));
    grid->cta_count = volume(config.grid) / grid->cluster_size;
    grid->kernel = &runs->kernel();
    choose_tier(*grid, config, std::move(code));
    grid->hang_limit = hang_limit();
    grid->multiprocessors = range_of(config);
    fill_launch_context(*grid, config, cluster, config.has_cluster || kernel.required_cluster()[0] != 0,
                        kernel.parameters().alignment);
    static_cast<GridCode&>(*grid) = prepare_code(*grid, grid->code);
    choose_workers(*grid, volume(config.block) * grid->cluster_size, grid->code->properties.spins);
    const bool waits = grid->cooperative || grid->code->properties.spins || Schedule::of_process().random;
    if (!waits) grid->queue = &WaitingGrids::of_device(context.device());
    made = std::move(grid);
    return Status::success;
}

Status launch(Function& function, const LaunchConfig& given, Stream& stream, void* const* parameters,
              void* const* extra) {
    LaunchConfig config = given;
    if (stream.green()) config.multiprocessors = stream.green()->range();
    std::shared_ptr<StreamRecorder> recorder;
    Status status = stream.begin_work(recorder);
    if (status != Status::success) return status;
    if (recorder) return recorder->kernel(function, config, parameters, extra);
    std::shared_ptr<Grid> grid;
    status = make_grid(function, config, stream.context(), parameters, extra, grid);
    if (status == Status::success) status = function.module().bind_references();
    if (status != Status::success) return status;
    function.mark_used();
    grid->priority = config.priority.value_or(stream.priority());
    stream.submit([grid] { run_grid(grid); }, Stream::Start::elsewhere);
    static const bool blocking = env_flag(Env::launch_blocking);
    return blocking ? stream.synchronize() : Status::success;
}

} // namespace ptarmigan::runtime
