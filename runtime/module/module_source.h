// SPDX-License-Identifier: Apache-2.0
// A parsed PTX module and what was compiled of it, independent of any context: a CUlibrary is one,
// and every module instance (module.h) refers to one.
#pragma once

#include "frontend/module_loader.h"
#include "frontend/sass/lift.h"
#include "runtime/base/status.h"
#include "runtime/code/host_code.h"
#include "runtime/module/kernel_cache.h"
#include "runtime/module/likely_kernels.h"
#include "runtime/module/ptx_beside.h"
#include "runtime/module/tiers.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace ptarmigan::runtime {

/// What the driver says of bytes that are neither PTX nor a binary.
inline constexpr std::string_view unknown_format = "error   : Binary format for key='0', ident='' is not recognized";

/// The driver's words for a version of PTX that is newer than what it takes; empty if it isn't, or if
/// PTARMIGAN_ACCEPT_NEWER_PTX is set.
std::string unsupported_version(ptx::Version version);

class ModuleSource;
struct KernelUsage;
struct SharedLoader;

/// When the bodies of a text are read, which is when errors in them are reported.
enum class BodyCheck : std::uint8_t {
    at_load,        ///< all of them by ModuleSource::load
    at_load_or_got, ///< as `at_load` for texts below a megabyte, else a kernel's, with what it calls, by Kernel::check
    at_first_use,   ///< a kernel's, with what it calls, when it is launched or its facts are asked for
};

/// What a text is to be used for.
enum class TextUse : std::uint8_t {
    program,    ///< for this device, all there
    link_input, ///< functions may be defined elsewhere
    substitute, ///< for machine code that there is no PTX of: version and target may be newer than the device's
};

/// What is known of a kernel before it is compiled. Made once, then constant.
struct KernelFacts {
    std::uint32_t static_shared = 0; ///< bytes, of the kernel and what it calls
    std::uint32_t local = 0;         ///< bytes per thread
    std::uint32_t registers = 0;     ///< invented: there are none, but occupancy asks
    std::uint32_t max_threads = 1024;
    std::uint32_t statements = 0; ///< of the kernel and what it calls; 0: not known
};

/// What a launch is to run.
struct KernelCode {
    std::shared_ptr<const LoadedKernel> code;
    std::shared_ptr<TieredCode> tiered; ///< null: there will be no better code than `code`
};

/// One kernel of a source. The pointer is stable and lives as long as the source.
class Kernel {
public:
    /// `index`: in ModuleSource::kernels().
    Kernel(ModuleSource& source, ptx::FunctionId id, std::uint32_t index);
    std::uint32_t index() const { return index_; }
    const std::string& name() const;
    ModuleSource& source() const { return source_; }
    const ptx::Function& function() const;
    const ptx::ParameterLayout& parameters() const { return parameters_; }
    /// Those that a launch gives: all but the hidden ones behind them.
    std::size_t given_parameters() const;
    /// Fills the hidden parameters of a block that holds the given ones, by the host code that came with the kernel
    /// (host_code.h); not_supported with the reason in error_detail() where that can't be had.
    Status fill_hidden_parameters(std::span<std::uint8_t> block);
    /// Bytes of parameter `index`; invalid_value past the end.
    Status parameter(std::size_t index, std::size_t& offset, std::size_t& size) const;
    /// Binds the body on first use, unless an earlier process left a note of them. success, or invalid_ptx with the
    /// diagnostics in error_detail().
    Status facts(const KernelFacts*& facts);

    /// For who hands the kernel out: facts(), if the source left that for when a kernel is got.
    Status check();

    /// success, or not_permitted if it may call what a cooperative grid may not; invalid_ptx as facts().
    Status check_cooperative();

    /// CUfunction_attribute `id` (0..15); invalid_value for others.
    Status attribute(int id, int& value);
    /// Only 8 (max dynamic shared), 9 (carveout), 11-15 (cluster attributes) can be set.
    Status set_attribute(int id, int value);
    /// Code for a block shape: compiled, from disk, or kept from an earlier launch; quick or good (tiers.h).
    /// not_supported or invalid_ptx with the reason in error_detail(). With `aligned_parameters` the launch must meet
    /// the code's alignment_demands; with `late_copies` it may do copies later than at once. `threads`: of the grid.
    Status code(const translator::BlockShape& shape, bool small_grid, bool cooperative, bool late_copies,
                KernelCode& code, bool aligned_parameters = true, std::uint64_t threads = 0);
    /// Makes what the first launch will want, if the kernel declares the shape of its blocks. False if not, or if that
    /// failed: the launch will tell. Beside other calls.
    bool compile_ahead();
    /// For grids that ran quick code.
    void note_quick_run(TieredCode& tiered, std::uint64_t nanoseconds) const;
    /// For tests and tools: uses `code` for every shape instead of compiling.
    void set_code(std::shared_ptr<const LoadedKernel> code);

    /// The kernel of PTX that runs in the place of this one, whose machine code can't be lifted; null if there is none,
    /// and until code() has found that out. It is of another source: see Module::function_beside().
    Kernel* ptx_beside() const { return ptx_beside_.load(std::memory_order_acquire); }

    std::uint32_t max_dynamic_shared(const KernelFacts& facts) const;
    /// Where Grid::cta_cost keeps what a CTA of this kernel takes.
    const std::shared_ptr<std::atomic<std::uint32_t>>& cta_cost() const { return cta_cost_; }
    /// Its blocks have one shape, and launches name blocks of one thread for it.
    bool has_own_blocks() const;
    bool non_portable_cluster() const { return attributes_[14] != 0; }
    /// Cluster dimensions that the kernel or its attributes ask for; zeros if none.
    std::array<std::uint32_t, 3> required_cluster() const {
        std::array<std::uint32_t, 3> cluster{};
        for (unsigned i = 0; i < 3; ++i) cluster[i] = static_cast<std::uint32_t>(attributes_[11 + i]);
        return cluster;
    }

private:
    struct Variant {
        KernelCode code;
        bool begins_quick = false; ///< the next launch, of TierSetting::swap
    };

    Status find_facts();
    Status refuse(std::string_view why);
    KernelRequest request(SharedLoader& shared, const translator::BlockShape& shape,
                          const translator::CompileOptions& options,
                          std::optional<BackgroundOrder> order = std::nullopt) const;
    KernelUsage usage() const;
    /// From the cache, or compiled in that turn; none: for a launch.
    std::shared_ptr<const LoadedKernel> get_for(std::optional<BackgroundOrder> order,
                                                const translator::BlockShape& shape,
                                                const translator::CompileOptions& options) const;
    Variant make_variant(const translator::BlockShape& shape, const translator::CompileOptions& options,
                         std::uint64_t threads);

    ModuleSource& source_;
    const ptx::FunctionId id_;
    const std::uint32_t index_;
    const sass::CubinKernel* machine_code_ = nullptr; ///< of the source's; null: the source's text has the body
    ptx::ParameterLayout parameters_;
    std::mutex mutex_; ///< guards what follows; taken before the source's loader mutex
    const std::shared_ptr<std::atomic<std::uint32_t>> cta_cost_ = std::make_shared<std::atomic<std::uint32_t>>(0);
    std::unique_ptr<const HostCode> host_code_;
    bool facts_known_ = false;
    bool facts_noted_ = false; ///< an earlier process or this one left a note of them
    KernelFacts facts_;
    std::optional<bool> asks_driver_;  ///< as KernelUsage; asked for cooperative launches only
    std::array<int, 18> attributes_{}; ///< CUfunction_attribute's, as set; [8] and [9]: -1 = default
    std::string refusal_;              ///< why it can't be lifted, once that has been found out
    std::atomic<Kernel*> ptx_beside_{nullptr};
    std::shared_ptr<const LoadedKernel> fixed_code_;
    using VariantKey = std::tuple<std::array<std::uint32_t, 3>, std::array<std::uint32_t, 3>, bool, bool, bool, bool>;
    std::map<VariantKey, Variant> variants_;
    std::shared_ptr<const LoadedKernel> ahead_; ///< keeps it in the cache until the first launch
};

/// A kernel that holds what can't be lifted.
struct RefusedMachineCode : translator::UnsupportedError {
    using UnsupportedError::UnsupportedError;
};

/// The loader is used by one thread at a time, which holds `mutex`.
struct SharedLoader {
    std::unique_ptr<ptx::ModuleLoader> loader;
    std::mutex mutex;
};

/// Thread-safe.
class ModuleSource : public std::enable_shared_from_this<ModuleSource> {
public:
    /// Parses and binds the declarations. On failure: invalid_ptx, unsupported_ptx_version or
    /// invalid_image (text that does not begin like PTX), and `log` holds the driver's kind of
    /// error log ("ptxas application ptx input, line 3; error   : ..."). On success `log` holds
    /// warnings, mostly nothing. `name` is for messages. Where bodies are checked at load, functions
    /// that nothing defines are load errors too, unless it is the input of a link.
    static Status load(std::string ptx, std::string name, std::shared_ptr<ModuleSource>& source, std::string& log,
                       BodyCheck check = BodyCheck::at_first_use, TextUse use = TextUse::program,
                       std::shared_ptr<const sass::MachineCode> machine_code = nullptr);

    const ptx::Module& module() const;
    const std::string& name() const { return name_; }
    /// A line of the text, for messages: "NAME PTX line 7"; of a linked text the unit's line too.
    std::string place_of(std::uint32_t line) const;
    const std::vector<std::unique_ptr<Kernel>>& kernels() const { return kernels_; }
    /// Null if there is none of that name.
    Kernel* find_kernel(std::string_view name) const;
    std::uint32_t const_bytes() const { return const_bytes_; }
    TextHash text_hash() const { return hash_; }
    /// Null where the text is not made of machine code. Else the text has no bodies: lift() makes them.
    const sass::MachineCode* machine_code() const { return machine_code_.get(); }
    /// A loader of the text of one kernel of machine code, whose variables are this module's. Throws
    /// RefusedMachineCode, or what is wrong with the text. Thread-safe.
    std::unique_ptr<ptx::ModuleLoader> lift(const sass::CubinKernel& kernel) const;
    /// PTX of the image whose machine code this is, for kernels that can't be lifted. Before the first launch.
    void keep_ptx_beside(std::shared_ptr<const PackedPtx> ptx) { ptx_beside_.keep(std::move(ptx)); }
    PtxBeside& ptx_beside() { return ptx_beside_; }
    /// Kernels are checked when they are got.
    bool checks_when_got() const { return checks_when_got_; }

    /// The loader, to be used under loader_mutex() only.
    ptx::ModuleLoader& loader() { return *launch_loader_.loader; }
    std::mutex& loader_mutex() { return launch_loader_.mutex; }
    SharedLoader& launch_loader() { return launch_loader_; }
    /// One of the same text for background work of that kind, made when it is first asked for: a kernel's module takes
    /// its loader for as long as it is emitted, and launches go on meanwhile.
    SharedLoader& background_loader(BackgroundOrder order);
    LikelyKernels& likely_kernels() { return likely_kernels_; }

private:
    ModuleSource() = default;
    void add_kernels();
    std::string name_;
    SharedLoader launch_loader_, ahead_loader_, better_loader_;
    std::once_flag ahead_once_, better_once_;
    TextHash hash_;
    std::vector<std::unique_ptr<Kernel>> kernels_;
    std::unordered_map<std::string_view, Kernel*> kernels_by_name_;
    LikelyKernels likely_kernels_;
    std::shared_ptr<const sass::MachineCode> machine_code_;
    PtxBeside ptx_beside_;
    std::uint32_t const_bytes_ = 0;
    bool checks_when_got_ = false;
};

} // namespace ptarmigan::runtime
