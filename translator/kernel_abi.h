// SPDX-License-Identifier: Apache-2.0
// What generated code and the runtime share: layouts, entry signatures, services. Generated code reads
// these structs at fixed offsets, so every offset that the emitter uses is asserted at the end.
// Change anything here and bump `kernel_abi_version` (kernel_abi_version.h).
#pragma once

#include "translator/async_call.h"
#include "translator/matrix_call.h"
#include "translator/multimem_call.h"
#include "translator/tensor_memory_call.h"

#include <cstddef>
#include <cstdint>

namespace ptarmigan::abi {

inline constexpr unsigned warp_size = 32;
inline constexpr unsigned most_joined_votes = 16; ///< of one Services::lane_collective

/// Shared addresses: rank of the CTA in its cluster << cluster_rank_bit | offset in its memory, as on Hopper.
inline constexpr unsigned cluster_rank_bit = 24;

struct CtaContext;

/// Kinds of a fault, stored in LaunchContext by trap() and by the signal handler.
enum class Fault : std::uint32_t {
    none,
    illegal_address,
    misaligned_address,
    trap,
    assertion,
    stack_overflow,
    invalid_call_target,
    illegal_instruction,
    barrier_deadlock,
    mbarrier_overflow,
};

/// Collectives of a step narrower than the warp, and of lanes that arrive from different places.
enum class Collective : std::uint32_t {
    shfl,
    vote_ballot,
    match_any,
    match_all,
    redux,
    bar_warp,
    activemask,
    elect,
    matrix,    ///< a product: source[0] is the address of the step's MatrixCall
    warpgroup, ///< likewise of its WarpgroupCall
};

/// One call of a collective service. Arrays are indexed by lane of the step; the service reads `source` of all
/// participating lanes of the warp and writes `result` (and `predicate`) for the lanes in `active`.
struct CollectiveCall {
    std::uint32_t kind;        ///< Collective
    std::uint32_t operation;   ///< shfl: 0 up 1 down 2 bfly 3 idx; redux: 0 add 1 min_s 2 max_s 3 min_u 4 max_u 5 and 6
                               ///< or 7 xor, 8 min_f32 9 max_f32, and 2 more for .abs, 4 for .NaN
    std::uint64_t active;      ///< lanes of this step that execute the instruction
    std::uint32_t members[32]; ///< membermask operand per lane
    std::uint64_t source[32];  ///< first operand (shfl: a; vote: predicate 0/1; match: value; redux: value;
                               ///< activemask: WarpEmitter::round_numbers, 0 outside of loops)
    std::uint32_t b[32];       ///< shfl: lane operand
    std::uint32_t c[32];       ///< shfl: clamp/segment operand
    std::uint64_t result[32];
    std::uint32_t predicate[32];
};

/// What a texture or surface instruction does; `detail` of TextureCall is in parentheses.
enum class TextureOperation : std::uint32_t {
    fetch,         ///< tex
    gather,        ///< tld4 (component 0..3)
    query,         ///< txq (TextureQuery), txq.level with the level in `level`
    load,          ///< suld.b (bytes of an element)
    store,         ///< sust.b (bytes of an element)
    store_texel,   ///< sust.p
    reduce,        ///< sured.b (SurfaceReduction)
    reduce_texel,  ///< sured.p (SurfaceReduction)
    query_surface, ///< suq (TextureQuery)
};
enum class TextureGeometry : std::uint32_t { d1, d2, d3, a1d, a2d, cube, acube };
enum class TextureQuery : std::uint32_t { width, height, depth };
enum class SurfaceReduction : std::uint32_t { add, min_u, max_u, min_s, max_s, bit_and, bit_or };
enum class SurfaceBounds : std::uint32_t { trap, clamp, zero };

/// One texture or surface instruction of a step. Arrays are indexed by lane of the step; the service reads those that
/// the operation needs for the lanes in `active` and writes their `data`. Other lanes' data stay as they are.
struct TextureCall {
    /// Bits of `flags`. half_results: data are halves in the low bits; packed_results: two words of two halves;
    /// elements_64: sured on 64 bits.
    static constexpr std::uint32_t integer_coordinates = 1, with_level = 2, with_gradients = 4, with_offset = 8,
                                   with_comparison = 16, half_results = 32, packed_results = 64, elements_64 = 128;
    std::uint32_t operation, geometry, flags, detail;
    std::uint32_t count;  ///< surfaces: elements of the access
    std::uint32_t bounds; ///< surfaces: SurfaceBounds
    std::uint32_t line;   ///< of the PTX text
    std::uint32_t unused;
    std::uint64_t active;
    std::uint64_t also_unused[3]; ///< arrays begin at multiples of 64 bytes: stores that cross lines are not forwarded
    std::uint64_t handle[32];
    std::uint32_t coordinates[4][32]; ///< as the operand has them: layer first
    std::uint32_t level[32];          ///< float, or integer with integer coordinates and queries
    std::uint32_t gradients[6][32];   ///< dpdx x y z, dpdy x y z
    std::uint32_t offset[3][32];
    std::uint32_t comparison[32];
    std::uint32_t data[8][32]; ///< results, or what is stored; 64-bit elements take two words
};

/// What a service does to mbarrier objects (PTX manual 9.7.13.15).
enum class MbarrierOperation : std::uint32_t {
    init, ///< `count`: expected arrivals
    inval,
    expect_tx,   ///< `count`: transactions (bytes)
    complete_tx, ///< likewise
    arrive,      ///< `count`: arrivals
    arrive_drop, ///< likewise
    copy_arrive, ///< cp.async.mbarrier.arrive
    test_wait,   ///< `state`, or its parity in `count`
    try_wait,    ///< likewise, and may wait
};

/// One mbarrier instruction of a step. Arrays are indexed by lane of the step; lanes outside `active` are not looked
/// at.
struct MbarrierCall {
    /// Bits of `flags`. uniform: all lanes use element 0 of `object` and `count`; transactions: arrivals of one whose
    /// `count` are transactions to expect before; parity: waits take a parity; limited: try_wait has a time limit;
    /// no_increment: copy_arrive with .noinc; wants_state: arrivals return their `state`; in_turn: counted lane by
    /// lane; one_answer: waits ask once for all lanes; `state`, `limit` and `complete` have it in element 0.
    static constexpr std::uint32_t uniform = 1, transactions = 2, parity = 4, limited = 8, no_increment = 16,
                                   wants_state = 32, in_turn = 64, one_answer = 128;
    std::uint32_t operation, flags;
    std::uint32_t line;   ///< of the PTX text
    std::uint32_t others; ///< not 0: other lanes of the step can run meanwhile, so the step must not be suspended
    std::uint64_t active;
    std::uint64_t object[32]; ///< generic addresses
    std::uint32_t count[32];
    std::uint64_t state[32];    ///< read by waits, written by arrivals (element 0 if uniform and not in_turn)
    std::uint32_t limit[32];    ///< nanoseconds
    std::uint32_t complete[32]; ///< written by waits: 0 or 1
};

/// What a step does with a counter that others wait for.
enum class GoalEvent : std::uint32_t {
    adds,   ///< is going to add to it, and to wait then
    waits,  ///< has seen another value: yield()
    reaches ///< has seen the goal; returns when the others that wait have looked too, or after a time limit
};

/// In place of a step's number: the CTA as a whole.
inline constexpr std::uint32_t whole_cta = 0xffffffffu;

/// Functions that generated code calls, reached through CtaContext::services, so that images have no imports
/// besides the few of `import_names`. `step` is the index of the step (W lanes) inside the CTA; lane masks are
/// bit masks over the lanes of that step.
struct Services {
    /// Waits at CTA barrier `id` (bar.sync); fiber form only. `threads` is the thread count operand, 0 = whole CTA.
    /// `arriving` = lanes of this step that arrive. kind: 0 sync, 1 arrive, 2 red.popc, 3 red.and, 4 red.or, 5 the
    /// warps of the step's warpgroup wait for each other (`id` and `threads` don't matter). `predicate` = lanes whose
    /// predicate holds. Returns the reduction (popc count, or 0/1).
    std::uint32_t (*barrier)(CtaContext*, std::uint32_t step, std::uint32_t id, std::uint32_t threads,
                             std::uint32_t kind, std::uint64_t arriving, std::uint64_t predicate);
    /// Runs a collective for a step; may suspend the fiber.
    void (*collective)(CtaContext*, std::uint32_t step, CollectiveCall*);
    /// Gives other steps, CTAs and host threads a chance to run (spin loops, nanosleep). Fiber form may switch, and so
    /// may CTAs of regions that give turns: then between steps with the step `whole_cta`. `lanes` of the step come
    /// here, for reports; 0: not known. With `whole_cta` it is the PTX line of the barrier that steps have come to, or
    /// all have passed; 0: none has.
    void (*yield)(CtaContext*, std::uint32_t step, std::uint64_t lanes, std::uint64_t nanoseconds);
    /// Does not return to generated code: records the fault and unwinds the grid. `line` is the PTX line.
    void (*trap)(CtaContext*, std::uint32_t step, std::uint64_t lanes, std::uint32_t fault, std::uint32_t line);
    /// Device printf for one lane: format and argument buffer are generic addresses. Returns vprintf's value.
    std::int32_t (*vprintf)(CtaContext*, const char* format, const void* arguments);
    /// Device heap.
    void* (*device_malloc)(CtaContext*, std::uint64_t size);
    void (*device_free)(CtaContext*, void* pointer, std::uint32_t step, std::uint32_t lane, std::uint32_t line);
    /// __assertfail(message, file, line, function, charSize) by one lane: prints the message. The caller traps with
    /// Fault::assertion once all failing lanes of the step have printed theirs.
    void (*assert_fail)(CtaContext*, std::uint32_t step, std::uint32_t lane, const char* message, const char* file,
                        std::uint32_t line, const char* function, std::uint64_t char_size);
    /// %clock64 / %globaltimer.
    std::uint64_t (*clock)(CtaContext*);
    std::uint64_t (*globaltimer)(CtaContext*);
    /// Does not return: lanes `lanes` access memory at addresses that are not aligned; `address` is the first one's.
    void (*misaligned)(CtaContext*, std::uint32_t step, std::uint64_t lanes, std::uint64_t address,
                       std::uint32_t is_write, std::uint32_t line);
    /// Textures and surfaces; faults (handles that are none, surfaces left) don't return.
    void (*texture)(CtaContext*, std::uint32_t step, TextureCall*);
    /// mbarrier objects; a try_wait may suspend the fiber.
    void (*mbarrier)(CtaContext*, std::uint32_t step, MbarrierCall*);
    /// barrier.cluster: arrives (`wait` 0) or waits for the lanes in `active`; fiber form only. `live` has the lanes of
    /// the step that have not exited as far as the code knows; lanes beyond the block's end do not matter.
    void (*cluster_barrier)(CtaContext*, std::uint32_t step, std::uint32_t wait, std::uint64_t active,
                            std::uint64_t live);
    /// A function of the device runtime for one lane: `function` is a ptx::DeviceRuntime. Arguments in order, each in a
    /// word: numbers zero-extended, structures by their address. Returns the function's result.
    std::uint64_t (*device_runtime)(CtaContext*, std::uint32_t step, std::uint32_t lane, std::uint32_t function,
                                    const std::uint64_t* arguments);
    /// Asynchronous copies (async_call.h); faults don't return. Never suspends.
    void (*async_copy)(CtaContext*, std::uint32_t step, AsyncCall*);
    /// clusterlaunchcontrol.try_cancel: writes 16 bytes to `response` (first ctaid, then 1 or 0: canceled or not) and
    /// completes 16 transactions of `object`; with `all` in every CTA of the cluster. Generic addresses.
    void (*cancel_launch)(CtaContext*, std::uint32_t step, std::uint64_t response, std::uint64_t object,
                          std::uint32_t all, std::uint32_t line);
    /// Does not return: the step's only lane exits, however deep in calls it is. Fiber form, steps of one lane.
    void (*exit_thread)(CtaContext*, std::uint32_t step);
    /// For waits for a counter to have just one value (analysis/counter_goals.h); `event` is a GoalEvent, `lanes` as
    /// for yield(). Fiber form only.
    void (*await_goal)(CtaContext*, std::uint32_t event, std::uint64_t lanes);
    /// The lanes in `lanes` are going to write `bytes` bytes each at generic addresses (indexed by lane), through the
    /// generic proxy: CompileOptions::late_copies.
    void (*note_write)(CtaContext*, const std::uint64_t* addresses, std::uint64_t lanes, std::uint32_t bytes);
    /// Region form: `lanes` of the step go round in a loop that waits, and will again when the other steps have had
    /// their turns. For reports; never suspends.
    void (*note_wait)(CtaContext*, std::uint32_t step, std::uint64_t lanes);
    /// A product of matrices by a step of a whole warp. Never suspends.
    void (*matrix)(CtaContext*, std::uint32_t step, MatrixCall*);
    /// Of steps of one lane: waits until the others of the warp have come as far as they get, and those at lower points
    /// have gone on (runtime/exec/reconvergence.h). `waits`: the point is in a loop that may wait for another lane.
    void (*reconverge)(CtaContext*, std::uint32_t step, std::uint32_t point, std::uint32_t waits);
    /// A warpgroup's matrix instruction, by a step of a whole warp. Never suspends.
    void (*warpgroup)(CtaContext*, std::uint32_t step, WarpgroupCall*);
    /// tcgen05 (tensor_memory_call.h); faults don't return. Allocation may suspend the fiber.
    void (*tensor_memory)(CtaContext*, std::uint32_t step, TensorMemoryCall*);
    /// collective() for a step of one lane: `what` is a Collective (not activemask, matrix or warpgroup) and its
    /// operation, shifted left by 8, `operands` are b and, in the upper word, c. Returns the result in the lower word,
    /// the predicate (0 or 1) in the upper one; of votes with an operation N > 1, bit i of whose source is the lane's
    /// vote in the i-th of N ballots, the address of their N words, valid until the lane's next collective. May suspend
    /// the fiber.
    std::uint64_t (*lane_collective)(CtaContext*, std::uint32_t step, std::uint32_t what, std::uint32_t members,
                                     std::uint64_t source, std::uint64_t operands);
    /// Products of matrices by a step of a whole warp, or moves of their accumulators. Never suspends.
    void (*matrix_group)(CtaContext*, std::uint32_t step, const MatrixGroup*);
    /// multimem_call.h; faults don't return. Never suspends.
    void (*multimem)(CtaContext*, std::uint32_t step, MultimemCall*);
    /// CompileOptions::checked_memory: the lanes in `lanes` are going to access `bytes` bytes each at generic addresses
    /// (indexed by lane). Returns if they may. Never suspends.
    void (*check_access)(CtaContext*, std::uint32_t step, const std::uint64_t* addresses, std::uint64_t lanes,
                         std::uint32_t bytes, std::uint32_t is_write, std::uint32_t line);
};

/// One launch; constant while the grid runs except `fault`.
struct LaunchContext {
    const std::uint8_t* params;     ///< kernel parameter block, laid out as parameter_layout() says
    const std::uint64_t* variables; ///< generic address of module variable i (.global/.const), by VariableId
    const Services* services;
    std::uint32_t nctaid[3];
    std::uint32_t ntid[3];
    std::uint32_t ncluster[3];    ///< cluster dimensions (1,1,1 without clusters)
    std::uint32_t dynamic_shared; ///< bytes of dynamic shared memory
    std::uint32_t shared_size;    ///< static + dynamic bytes
    std::uint32_t fault;          ///< abi::Fault, first one wins; workers stop when set
    std::uint32_t nsmid;          ///< multiprocessors that the device claims
    std::uint32_t params_size;    ///< bytes behind `params`
    std::uint64_t grid_id;
    std::uint32_t async_mode;       ///< AsyncMode: when asynchronous copies are done
    std::uint32_t explicit_cluster; ///< 1: the launch or the kernel names a cluster's dimensions
    void* owner;                    ///< the runtime's launch object; generated code does not touch it
    /// Address of what cooperative_groups counts grid.sync() in: %envreg1 (high word) and %envreg2. 0: not a
    /// cooperative launch.
    std::uint64_t grid_workspace;
};

/// CTAs of a cluster.
constexpr std::uint32_t cluster_size(const LaunchContext& launch) {
    return launch.ncluster[0] * launch.ncluster[1] * launch.ncluster[2];
}

/// CtaContext::local_stride is less: generated code counts on it.
inline constexpr std::uint64_t local_stride_limit = std::uint64_t(1) << 32;

/// One CTA being run by one worker.
struct CtaContext {
    const LaunchContext* launch;
    const std::uint64_t* variables; ///< = launch->variables
    const std::uint8_t* params;     ///< = launch->params
    const Services* services;       ///< = launch->services
    /// Host address of shared address 0. The shared memory of the CTA of rank r in its cluster begins at shared address
    /// r << cluster_rank_bit, so that an address of the CTA's own is one of the cluster's as well.
    std::uint8_t* shared;
    std::uint8_t* local;        ///< local memory of lane 0 of step 0, see local_stride
    std::uint64_t local_stride; ///< bytes of local memory per thread (multiple of 64); thread t: local + t * stride
    std::uint8_t* frames; ///< region form: frame of step s at frames + s * CompiledKernel::frame_size; 64-byte aligned
    std::uint32_t ctaid[3];
    std::uint32_t nctaid[3];
    std::uint32_t ntid[3];
    std::uint32_t step; ///< written by generated code before each step; for fault reports
    std::uint32_t smid; ///< the multiprocessor that it claims to run on: CTAs are dealt out in turn
    std::uint32_t dynamic_shared;
    std::uint32_t shared_size;
    std::uint32_t cluster_ctarank;
    std::uint64_t linear_ctaid;
    void* worker;                     ///< the runtime's worker state; generated code does not touch it
    std::uint64_t shared_window_size; ///< bytes reserved behind `shared`, for the whole cluster
    std::uint64_t local_window_size;  ///< bytes of the whole local arena from `local`
    std::uint32_t noted_lane;         ///< written by loops over lanes before each lane's access; for fault reports
    std::uint32_t schedule_seed;      ///< for the choices of PTARMIGAN_SCHEDULE=random
    std::uint8_t* interleaved;        ///< local memory interleaved by lane: of step s at interleaved + s * lane_width *
                                      ///< KernelProperties::interleaved_bytes; 64-byte aligned
    std::uint32_t streams;            ///< not 0: the grid writes more than caches hold, so stores may go past them
    std::uint32_t params_size;        ///< bytes behind `params`, for isspacep
    /// Where CTAs or steps are fibers: all bits are set by generated code where it does more than go round in a loop
    /// that waits (a barrier or an arrival at one outside of such loops, a write of global memory inside of one), and
    /// taken back by the runtime one by one.
    std::uint32_t worked;
    /// CTAs with this one, next to each other in x, that the entry runs; KernelProperties::ctas_in_row at most. Code
    /// that runs several writes `ctaid` and `linear_ctaid` before each step; they have `smid` in common. 0 is 1.
    std::uint32_t ctas_in_row;
};

/// Region and barrier-free form: runs one whole CTA.
using RunCta = void (*)(CtaContext*);
/// Fiber form: runs step `step` of the CTA from start to exit; suspends only inside services.
using RunStep = void (*)(CtaContext*, std::uint32_t step);

/// Only these external symbols may appear in an image; the loader resolves them (LLVM's library calls).
inline constexpr const char* import_names[] = {"memcpy", "memset", "memmove", "fmodf", "fmod",
                                               "fmaxf",  "fminf",  "fmax",    "fmin"};

#define PTM_ABI_OFFSET(type, member, offset) static_assert(offsetof(type, member) == offset)
PTM_ABI_OFFSET(CtaContext, launch, 0);
PTM_ABI_OFFSET(CtaContext, variables, 8);
PTM_ABI_OFFSET(CtaContext, params, 16);
PTM_ABI_OFFSET(CtaContext, services, 24);
PTM_ABI_OFFSET(CtaContext, shared, 32);
PTM_ABI_OFFSET(CtaContext, local, 40);
PTM_ABI_OFFSET(CtaContext, local_stride, 48);
PTM_ABI_OFFSET(CtaContext, frames, 56);
PTM_ABI_OFFSET(CtaContext, ctaid, 64);
PTM_ABI_OFFSET(CtaContext, nctaid, 76);
PTM_ABI_OFFSET(CtaContext, ntid, 88);
PTM_ABI_OFFSET(CtaContext, step, 100);
PTM_ABI_OFFSET(CtaContext, smid, 104);
PTM_ABI_OFFSET(CtaContext, dynamic_shared, 108);
PTM_ABI_OFFSET(CtaContext, shared_size, 112);
PTM_ABI_OFFSET(CtaContext, cluster_ctarank, 116);
PTM_ABI_OFFSET(CtaContext, linear_ctaid, 120);
PTM_ABI_OFFSET(CtaContext, worker, 128);
PTM_ABI_OFFSET(CtaContext, shared_window_size, 136);
PTM_ABI_OFFSET(CtaContext, local_window_size, 144);
PTM_ABI_OFFSET(CtaContext, noted_lane, 152);
PTM_ABI_OFFSET(CtaContext, interleaved, 160);
PTM_ABI_OFFSET(CtaContext, streams, 168);
PTM_ABI_OFFSET(CtaContext, worked, 176);
PTM_ABI_OFFSET(CtaContext, ctas_in_row, 180);
#undef PTM_ABI_OFFSET

} // namespace ptarmigan::abi
