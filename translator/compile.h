// SPDX-License-Identifier: Apache-2.0
// The translator's only public face: one kernel of a bound module, for one block shape, to machine code.
// No LLVM type appears here. The library behind it (libptarmigan-translator.so) is loaded by the runtime on
// a cache miss only, through `ptarmigan_translator_entry`.
#pragma once

#include "translator/address_program.h"
#include "translator/launch_work.h"

#include <array>
#include <atomic>
#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptarmigan::ptx {
struct Module;
class ModuleLoader;
} // namespace ptarmigan::ptx

namespace ptarmigan::translator {

enum class DivergenceForm : std::uint8_t { automatic, masks, program_counters };
/// `automatic` lets steps take turns in loops where that pays (analysis/plan_turns.h), `regions` nowhere, `turns` at
/// each round of every loop that can, for tests.
enum class BarrierForm : std::uint8_t { automatic, regions, fibers, turns };
/// Loops that wait for other threads: those that analysis finds (analysis/spin_loops.h), or every one that may end by
/// what it reads of memory that others may write.
enum class WaitingLoops : std::uint8_t { found, all };
enum class Approximation : std::uint8_t { exact, fast };
/// `least`: only the passes that right code needs, and LLVM's quickest code generation.
enum class Optimization : std::uint8_t { full, least };

/// The form in which a kernel is compiled: whatever may be chosen without changing what it computes. Launches work with
/// every form; programs whose threads race may show different outcomes. Part of the cache's key, printed by logs.
struct CompileForm {
    unsigned lane_width = 0; ///< lanes per step: 0 = automatic, else 1, 4, 8, 16 or 32
    DivergenceForm divergence = DivergenceForm::automatic;
    BarrierForm barriers = BarrierForm::automatic;
    Optimization optimization = Optimization::full;
    auto operator<=>(const CompileForm&) const = default;
};
/// "lanes 16, program counters, least optimization": what is not automatic; "automatic" where all is.
std::string describe(const CompileForm& form);

/// The CPU to compile for, chosen by feature bits, never by host name.
struct TargetCpu {
    enum class Architecture : std::uint8_t { x86_64, aarch64 } architecture = Architecture::x86_64;
    std::string cpu;      ///< LLVM CPU name: "x86-64-v3", "sapphirerapids", "neoverse-n1"
    std::string features; ///< LLVM feature string with what CPUID lacks taken away
    bool avx512 = false;  ///< F, BW, DQ, VL
    /// Gathers and scatters that take as long as single accesses and more (AMD), or none at all.
    bool has_slow_gathers() const { return !avx512 || cpu.rfind("znver", 0) == 0; }
    /// Stable text for cache keys.
    std::string key() const { return cpu + "|" + features; }
};
TargetCpu host_target();
/// "host", "x86-64-v3", "x86-64-v4", "sapphirerapids", "aarch64"; throws std::invalid_argument otherwise.
TargetCpu named_target(const std::string& name);
/// True if `host` (of host_target()) has every instruction that code for `target` (of named_target()) may contain.
bool can_run(const TargetCpu& host, const TargetCpu& target);

struct CompileOptions : CompileForm {
    TargetCpu target;
    Approximation approximation = Approximation::exact;
    WaitingLoops waiting_loops = WaitingLoops::found;
    bool small_grid = false; ///< the launch guarantees nctaid.c * ntid.c <= 2^31 - 1 for every component c
    /// All CTAs of the grid are alive at once, and each must get its turns whatever the others wait for.
    bool cooperative = false;
    bool random_schedule =
        false; ///< threads may be overtaken wherever others can notice, by chance (CtaContext::schedule_seed)
    bool aligned_parameters = true; ///< the launch guarantees KernelProperties::alignment_demands
    /// The launch may do asynchronous copies later than at once: threads' writes that such copies may miss are noted.
    bool late_copies = false;
    /// Accesses of global and generic memory ask first whether a kernel may make them (Services::check_access).
    bool checked_memory = false;
};

/// What a kernel is compiled for.
struct BlockShape {
    std::array<std::uint32_t, 3> ntid{1, 1, 1};
    std::array<std::uint32_t, 3> cluster{1, 1, 1};
};

/// Whose memory access an instruction of the code makes, so that a fault can be put down to a lane: see fault_lanes.h.
struct AccessForm {
    enum class Kind : std::uint8_t {
        elements, ///< of consecutive elements, the i-th for lanes[i]
        gather,   ///< an x86 gather or scatter, its i-th element for lanes[i]
        lanes,    ///< of one place, for all of `lanes`
        noted,    ///< for the lane in CtaContext::noted_lane, or the one that is lanes[0] behind it
    };
    static constexpr std::uint8_t no_lane = 0xff; ///< an element that no lane asked for

    Kind kind = Kind::lanes;
    std::uint8_t element_bytes = 0; ///< of one element; lanes: at most accessed, 0 = any number
    std::vector<std::uint8_t> lanes;
    auto operator<=>(const AccessForm&) const = default;
};

/// One place in code and the PTX line that it came from; sorted by offset.
struct LineEntry {
    std::uint32_t offset, line;
    std::uint16_t access = 0; ///< 1 + index into KernelProperties::accesses; 0: none
};

/// Position-independent machine code: load at a page boundary, apply `relocations`, done. See jit/image.h.
struct KernelImage {
    std::vector<std::uint8_t> bytes; ///< code and constants, with their relative layout
    std::uint32_t entry_offset = 0;
    std::uint32_t code_size = 0; ///< bytes [0, code_size) are executable, the rest read-only data
    struct Relocation {
        std::uint32_t offset;
        std::uint32_t import;
        std::uint64_t addend;
    };
    std::vector<Relocation> relocations; ///< 64-bit absolute; import = 0xffffffff: image base + addend,
                                         ///< else address of abi::import_names[import] + addend
    std::vector<LineEntry> lines;
    std::uint32_t stack_bytes = 0;   ///< of the host's stack, one frame of every function together
    std::uint32_t largest_frame = 0; ///< of one function
};

/// What a launch must see to: (byte `offset` of the parameter block + residue) & mask is zero.
struct AlignmentDemand {
    std::uint32_t offset = 0;
    std::uint8_t mask = 0, residue = 0;
};

/// Facts about a compiled kernel that the launcher needs.
struct KernelProperties {
    bool uses_fibers = false;      ///< entry is abi::RunStep, else abi::RunCta
    bool gives_turns = false;      ///< abi::RunCta that calls yield() where the CTA waits or may: on a fiber of its own
    std::uint32_t lane_width = 32; ///< lanes per step
    std::uint32_t step_count = 0;  ///< steps per CTA for this block shape
    std::uint32_t frame_size = 0;  ///< bytes per step in CtaContext::frames
    std::uint32_t cta_frame_size = 0; ///< bytes in front of the step frames (64-byte multiple), shared by the CTA
    std::uint32_t static_shared = 0;
    std::uint32_t reserved_shared = 0;   ///< bytes of the system's, behind all others at a multiple of 128
    std::uint32_t local_bytes = 0;       ///< per thread, of the deepest chain of calls without recursion
    std::uint32_t interleaved_bytes = 0; ///< per thread, of local memory that is interleaved by lane
    bool unbounded_stack = false;        ///< recursion or alloca: use the context's stack limit
    std::uint32_t stack_scale = 1;       ///< local memory for each byte of that limit
    bool spins = false;                  ///< has loops that wait on memory
    bool could_spin = false;             ///< does not, but would with WaitingLoops::all
    std::uint32_t streamed_bytes = 0;    ///< that a thread may store past the caches: plan_streaming.h
    bool continues_in_y =
        false;                ///< CTAs that are neighbours in y use neighbouring memory, those in x do not: cta_order.h
    AddressProgram addresses; ///< of a thread, to choose the order of CTAs by; empty: they run in theirs
    std::uint32_t ctas_in_row = 1; ///< that may run in one call, CtaContext::ctas_in_row: cta_order.h
    /// Where one is not met, a kernel compiled without CompileOptions::aligned_parameters must run instead: an access
    /// that follows from these parameters would be misaligned.
    std::vector<AlignmentDemand> alignment_demands;
    std::vector<AccessForm> accesses; ///< that LineEntry::access speaks of
    LaunchWork work;                  ///< of a thread; of code of least optimisation only
};

struct CompiledKernel {
    KernelImage image;
    KernelProperties properties;
    CompileForm form; ///< that it was compiled in
};

/// How far a compilation has come. Others may look while it runs, and when it has crashed.
struct CompileProgress {
    enum class Stage : std::uint8_t { analysis, emission, optimization, code_generation, linking };
    std::string kernel;   ///< its name, for tests that make a compilation fail (jit/enter_stage.cpp)
    unsigned attempt = 1; ///< the first, in the form that was asked for, or a later one; for the same tests
    std::atomic<Stage> stage{Stage::analysis};
    std::atomic<unsigned> lane_width{0}; ///< that was chosen; 0: not yet
    std::atomic<bool> whole_warp{true};  ///< lanes may count on a warp being one step
    std::atomic<unsigned> statements{0}; ///< of the kernel and what it calls, so far; 0: not known yet
};
/// "code generation".
const char* name_of(CompileProgress::Stage stage);

/// Stage times in microseconds, for `ptarmigan dump --times` and bench/compile_time.
struct CompileTimes {
    double graph = 0, shapes = 0, emit = 0, passes = 0, codegen = 0, link = 0;
};

/// Raised for a kernel that uses a form without a lowering, or a construct that can't be compiled.
/// what() is "file:line:col: error: text" and names the form and its manual section.
class UnsupportedError : public std::exception {
public:
    explicit UnsupportedError(std::string text) : text_(std::move(text)) {}
    const char* what() const noexcept override { return text_.c_str(); }

private:
    std::string text_;
};

/// Compiles `kernel` (an entry of the loader's module). Thread-safe for distinct loaders; one loader is used by one
/// thread at a time. Throws UnsupportedError, or ptx::DiagnosticError for a body that does not bind.
/// Runs on a thread of its own with a large stack. compile_here() and dump_here() run on the caller's, which wants
/// `stack_bytes`: LLVM recurses deeply on large functions.
CompiledKernel compile(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                       const CompileOptions& options, CompileTimes* times = nullptr);
CompiledKernel compile_here(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                            const CompileOptions& options, CompileTimes* times, CompileProgress* progress);
inline constexpr std::size_t stack_bytes = std::size_t(256) << 20; ///< reserved, touched only as far as needed

/// Text of an intermediate stage: "cfg", "ssa", "shapes", "plan", "llvm", "llvm-opt", "asm".
std::string dump(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                 const CompileOptions& options, const std::string& stage);
std::string dump_here(ptx::ModuleLoader& loader, const std::string& kernel, const BlockShape& shape,
                      const CompileOptions& options, const std::string& stage, CompileProgress* progress);

struct FaultPlace;
/// See fault_lanes.h.
std::uint64_t faulting_lanes(const AccessForm& form, const FaultPlace& place);

/// What dlsym finds in the translator library.
struct TranslatorApi {
    std::uint32_t abi_version;
    decltype(&translator::compile_here) compile;
    decltype(&translator::dump_here) dump;
    decltype(&translator::faulting_lanes) faulting_lanes;
};
extern "C" const TranslatorApi* ptarmigan_translator_entry();

} // namespace ptarmigan::translator
