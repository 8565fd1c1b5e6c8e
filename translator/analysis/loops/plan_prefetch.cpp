// SPDX-License-Identifier: Apache-2.0
// Measured (2026-11-21, Zen 4, bench/kernels): sparse rows at W = 1 gain 1.25x to 1.3x, 256 to 2048 bytes ahead alike;
// reduce 2.2x by the next warp's piece (by later rounds of its own it loses: their lines fall into few sets of the
// caches); transpose 1.2x by the pieces of the CTA after the next, stencil between nothing and 1.08x from run to run.
// On two Zen 5 cores (2026-11-27, CPU ms, 2, 4 and 8 CTAs ahead): stencil 4.8 to 5.0, 4.0 to 4.1 and 3.6, lbm (nine
// arrays) 4.1 to 4.5, 5.1 and 4.8, fdtd_e (six loads; AVX2) 2.7, 3.0 and -, transpose 5.7 to 6.0, 6.2 and 6.3; a row of
// 256 threads and a tree of sums (cg_apply) 12.1 without, 7.1 two CTAs ahead, 7.5 eight; saxpy 3.2 without, 3.6.
// Histogram (2026-11-22, two cores of an Emerald Rapids): no rounds of its own 84 to 92 ms, 1 round ahead 39 to 47, 2
// 34 to 40, 4 22 to 38, 8 29 to 47, 16 46 to 55; without the next warp's piece some ms more.
#include "translator/analysis/loops/plan_prefetch.h"

#include "frontend/isa/special_registers.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/graph_queries.h"
#include "translator/analysis/loops/loop_strides.h"
#include "translator/analysis/loops/plan_turns.h"
#include "translator/analysis/memory/computed_numbers.h"
#include "translator/analysis/memory/cta_order.h"

#include <algorithm>
#include <set>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using ptx::StateSpace;

constexpr std::int64_t line_bytes = 64;
constexpr std::int64_t bytes_ahead = 512;
/// Where CTAs run in rows, into the first cache. CPU ms on a Zen 5, the kernels' code in a loop of C++, fdtd_e, stencil
/// and lbm: 4,096 bytes into the second cache 1.73 to 1.89, 4.3 to 4.5, 3.2 to 3.3; into the first 1.58 to 1.69, 4.2 to
/// 4.4, 3.1 to 3.5; 3,072 into the first 1.44 to 1.60, 4.2 to 4.6, 3.0 to 3.2; 2,048 1.50 to 1.54, 4.4 to 4.5, 3.0 to
/// 3.1; 1,024 1.8 to 1.9, 4.9 to 6.2, 3.6 to 3.9; none 1.65 to 1.71, 5.8 to 8.0, 2.9 to 4.3.
constexpr std::int64_t bytes_ahead_in_row = 3072;
/// Near strides of loops, in kernels with barriers.
constexpr std::int64_t bytes_ahead_near = 4096;
/// Where lanes are a stride apart that only the launch knows, and that is one element: PyTorch's sums of a matrix and a
/// row, whose loads the CPU's prefetchers follow or not by what else the kernel does. CPU ms of 16M elements on a Zen
/// 5: 20 without, 512 bytes ahead 13, 1,024 9.5, 2,048 8.9, 4,096 8.7; a product 9.7 and 12.7, 6.5, 6.2, 5.6.
constexpr std::uint16_t bytes_ahead_by_stride = 4096;
/// A loop that moves by less than this per round stays in a page long enough for the CPU to see the stream.
constexpr std::int64_t far = 4096;
/// A step that comes by only twice in a page is no stream to the CPU, and the next one asks for its piece. CPU ms of a
/// batch norm of 16M floats on a Zen 5 (cuDNN, 512 threads walk along 64 KB): 13.5 without, 5.5.
constexpr std::int64_t seldom_in_page = 2048;
/// Where lanes go one by one a round is long and ends in a misprediction: nothing of the next one is under way before.
constexpr std::int64_t long_rounds_ahead = 4;
/// Of more loads the CPU has no room for what four CTAs read.
constexpr std::size_t most_pieces_far_ahead = 5;
/// A longer piece of a row is a stream of its own.
constexpr std::int64_t short_row = 256;
/// Of an array of structures, of which a CTA is taken to read all.
constexpr std::int64_t longest_structure = 16;
/// What lies further away is no piece next to a CTA's own.
constexpr std::int64_t longest_cta = 1 << 20;

/// Whatever the program computes: the least integer has no absolute value.
bool is_shorter(std::int64_t distance, std::int64_t limit) {
    return -limit < distance && distance < limit;
}

bool loads_device_memory(const ptx::Instruction& inst) {
    const Operand& address = inst[ptx::Role::a];
    return (inst.form == ptx::FormId::ld || inst.form == ptx::FormId::ld_global_nc) &&
           (inst.space == StateSpace::global || inst.space == StateSpace::generic) &&
           address.kind == Operand::Kind::address && address.base == Operand::Base::reg;
}

bool stores_device_memory(const ptx::Instruction& inst) {
    const Operand& address = inst[ptx::Role::a];
    return inst.form == ptx::FormId::st && !is_strong(inst) &&
           (inst.space == StateSpace::global || inst.space == StateSpace::generic) &&
           address.kind == Operand::Kind::address && address.base == Operand::Base::reg;
}

/// Waits until all that was stored is there for others, too.
bool waits_for_stores(const ptx::Instruction& inst) {
    return inst.form == ptx::FormId::membar || (has_effect(inst, ptx::Effects::fence) && inst.has(ptx::Modifier::sc));
}

class IndexStreams {
public:
    explicit IndexStreams(FunctionGraph& graph) : graph_(graph), strides_(graph) {}

    void run() {
        for (std::uint32_t loop = 0; loop < graph_.forest.loops.size(); ++loop)
            if (graph_.forest.loops[loop].latch != no_block && reads_by_index(loop)) plan(loop);
    }

private:
    /// Some load's address is computed from what the same round has loaded.
    bool reads_by_index(std::uint32_t loop) const {
        const auto& blocks = graph_.forest.loops[loop].blocks;
        return std::any_of(blocks.begin(), blocks.end(), [&](BlockId block) {
            if (graph_.forest.loop_of[block] != loop) return false;
            const auto& instructions = graph_.blocks[block].instructions;
            return std::any_of(instructions.begin(), instructions.end(), [&](const GraphInstruction& instruction) {
                return loads_device_memory(instruction.inst) &&
                       strides_.depends_on_load(instruction.inst[ptx::Role::a].index, loop);
            });
        });
    }

    void plan(std::uint32_t loop) {
        for (BlockId block : graph_.forest.loops[loop].blocks) {
            if (graph_.forest.loop_of[block] != loop) continue;
            asked_.clear();
            for (GraphInstruction& instruction : graph_.blocks[block].instructions)
                if (loads_device_memory(instruction.inst)) plan(instruction, loop);
        }
    }

    void plan(GraphInstruction& instruction, std::uint32_t loop) {
        const Operand& address = instruction.inst[ptx::Role::a];
        std::optional<std::int64_t> stride = strides_.of(address.index, loop);
        if (!stride || *stride == 0 || !is_shorter(*stride, line_bytes) || asked_nearby(address)) return;
        asked_.push_back(&address);
        instruction.prefetch.ahead = std::int32_t(*stride > 0 ? bytes_ahead : -bytes_ahead);
    }

    /// Unrolled loops load one line several times.
    bool asked_nearby(const Operand& address) const {
        return std::any_of(asked_.begin(), asked_.end(), [&](const Operand* earlier) {
            return earlier->index == address.index &&
                   is_shorter(std::int64_t(earlier->value - address.value), line_bytes);
        });
    }

    FunctionGraph& graph_;
    const LoopStrides strides_;
    std::vector<const Operand*> asked_; ///< addresses in the block at hand
};

/// Bytes from the first to the last that the lanes read; 0 if they don't lie together.
std::int64_t piece_of(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const Shape& shape = graph.values[inst[ptx::Role::a].index].shape;
    if (!shape.is_affine() || shape.steps) return 0;
    auto [low, high] = std::minmax_element(shape.offsets->begin(), shape.offsets->end());
    const std::int64_t bytes = std::int64_t(ptx::byte_size(inst.type())) * inst.vector_size;
    return *low == 0 && *high <= std::int64_t(shape.offsets->size() - 1) * bytes ? *high + bytes : 0;
}

/// Bytes from one lane to the next, where each reads a part of a structure of its own that is no longer than a line;
/// else 0.
std::int64_t structure_of(const FunctionGraph& graph, const ptx::Instruction& inst) {
    const Shape& shape = graph.values[inst[ptx::Role::a].index].shape;
    if (!shape.is_affine() || shape.steps || shape.offsets->size() < 2) return 0;
    const LaneOffsets& offsets = *shape.offsets;
    const std::int64_t bytes = offsets[1] - offsets[0];
    for (std::size_t lane = 1; lane < offsets.size(); ++lane)
        if (offsets[lane] - offsets[lane - 1] != bytes) return 0;
    return 0 < bytes && bytes <= longest_structure ? bytes : 0;
}

class Pieces {
public:
    Pieces(FunctionGraph& graph, const BlockShape& shape, unsigned width, bool in_rows)
        : graph_(graph), shape_(shape), width_(width), strides_(graph), in_rows_(in_rows),
          computed_(computed_numbers(graph)) {}

    void run() {
        std::set<std::pair<std::uint32_t, std::uint32_t>> pieces; // by statement: versions of blocks have them again
        for (const Block& block : graph_.blocks) {
            meets_barriers_ = meets_barriers_ || block.ends_with_barrier;
            for (const GraphInstruction& instruction : block.instructions)
                waits_for_stores_ = waits_for_stores_ || waits_for_stores(instruction.inst);
            for (const GraphInstruction& instruction : block.instructions)
                if (loads_device_memory(instruction.inst))
                    pieces.emplace(instruction.inst.location.line, instruction.inst.location.column);
        }
        ctas_ahead_ = meets_barriers_ || pieces.size() > most_pieces_far_ahead || continues_in_y(graph_) ? 2 : 4;
        for (BlockId block = 0; block < graph_.blocks.size(); ++block) {
            row_loads_.clear();
            structures_.clear();
            for (GraphInstruction& instruction : graph_.blocks[block].instructions)
                if (loads_device_memory(instruction.inst))
                    plan(instruction, block, graph_.forest.loop_of[block]);
                else if (waits_for_stores_ && stores_device_memory(instruction.inst))
                    plan_structures(instruction, graph_.forest.loop_of[block]);
        }
    }

private:
    bool is_used_in(BlockId block, ValueId value) const {
        const auto& instructions = graph_.blocks[block].instructions;
        return std::any_of(instructions.begin(), instructions.end(), [&](const GraphInstruction& each) {
            const auto read = uses(graph_, each);
            return std::find(read.begin(), read.end(), value) != read.end();
        });
    }

    /// Only the launch knows whether the lanes read words side by side.
    bool may_be_neighbours(const ptx::Instruction& inst) const {
        const ValueId address = inst[ptx::Role::a].index;
        const Shape& shape = graph_.values[address].shape;
        return shape.is_affine() ? shape.steps != nullptr : shape.is_varying() && computed_[address];
    }

    /// In loops the next warp's piece. Not of lanes a stride apart there, whose loads would ask for a stride of none.
    std::uint16_t ahead_of_neighbours(const ptx::Instruction& inst, std::uint32_t loop) const {
        if (loop == no_loop)
            return meets_barriers_ || shape_.ntid[1] * shape_.ntid[2] == 1 ? bytes_ahead_by_stride : std::uint16_t(0);
        const ValueId address = inst[ptx::Role::a].index;
        const std::optional<std::int64_t> stride = strides_.of(address, loop);
        if (!graph_.values[address].shape.is_varying() || graph_.forest.loops[loop].takes_turns ||
            (stride && is_shorter(*stride, far)))
            return 0;
        return std::uint16_t(width_ * ptx::byte_size(inst.type()) * inst.vector_size);
    }

    void plan(GraphInstruction& instruction, BlockId block, std::uint32_t loop) {
        const ptx::Instruction& inst = instruction.inst;
        if (loop != no_loop && meets_barrier(loop)) return plan_next_round(instruction, block, loop);
        if (in_rows_) return plan_row(instruction, bytes_ahead_in_row);
        if (may_be_neighbours(inst)) instruction.neighbours_ahead = ahead_of_neighbours(inst, loop);
        const std::int64_t piece = piece_of(graph_, inst);
        if (piece == 0) return plan_structures(instruction, loop);
        if (loop == no_loop) {
            const bool is_row = shape_.ntid[1] * shape_.ntid[2] > 1;
            const std::int64_t row = std::int64_t(shape_.ntid[0]) * ptx::byte_size(inst.type()) * inst.vector_size;
            if (is_row ? row <= short_row : meets_barriers_)
                instruction.prefetch.ahead = std::int32_t(ctas_ahead_ * to_next_cta(inst, row));
            else if (!is_row && inst.vector_size > 1)
                instruction.prefetch.ahead = std::int32_t(bytes_ahead_by_stride);
            return;
        }
        std::optional<std::int64_t> stride = strides_.of(inst[ptx::Role::a].index, loop);
        if (stride && is_shorter(*stride, far)) {
            if (meets_barriers_ && *stride > 0 && shape_.ntid[0] * shape_.ntid[1] * shape_.ntid[2] > 32)
                instruction.prefetch.ahead = std::int32_t(bytes_ahead_near);
            else if (!meets_barriers_ && *stride >= seldom_in_page && shape_.ntid[0] > 32)
                instruction.prefetch.ahead = std::int32_t(piece);
            return;
        }
        const LoopInfo& info = graph_.forest.loops[loop];
        if (info.takes_turns) { // the next warp asks for its piece soon, and this one comes back in the next turn
            if (!info.shares_rows) plan_next_turn(instruction, loop);
            return;
        }
        instruction.prefetch.ahead = std::int32_t(piece);
        if (goes_lane_by_lane(graph_, info))
            instruction.second_prefetch = rounds_ahead(instruction, loop, long_rounds_ahead);
    }

    /// Bytes from what a CTA reads to what the next one does: a row of the block's threads, or all that the CTA reads,
    /// if that is more rows than one.
    std::int64_t to_next_cta(const ptx::Instruction& inst, std::int64_t row) const {
        const std::optional<LinearSum> sum = strides_.sums().of(inst[ptx::Role::a], no_loop);
        if (!sum) return row;
        const auto x = sum->terms.find(
            {LinearSum::Term::Kind::special, std::uint32_t(ptx::SpecialRegister::ctaid), /*component=*/0});
        return x != sum->terms.end() && is_shorter(x->second, longest_cta) ? x->second : row;
    }

    /// The first load of a structure asks for all of it.
    void plan_structures(GraphInstruction& instruction, std::uint32_t loop) {
        const ptx::Instruction& inst = instruction.inst;
        const std::int64_t bytes = structure_of(graph_, inst);
        if (bytes == 0 || loop != no_loop || !meets_barriers_ || shape_.ntid[1] * shape_.ntid[2] != 1) return;
        const Operand& place = inst[ptx::Role::a];
        const auto is_part = [&](const Operand* first) {
            return first->index == place.index && is_shorter(std::int64_t(place.value - first->value), bytes);
        };
        if (std::any_of(structures_.begin(), structures_.end(), is_part)) return;
        structures_.push_back(&place);
        instruction.prefetch.ahead =
            std::int32_t(ctas_ahead_ * to_next_cta(inst, bytes * std::int64_t(shape_.ntid[0])));
    }

    /// Where CTAs run in rows, whole lines of memory come by, and those of the rows above have come already: only the
    /// lowest row of several asks.
    void plan_row(GraphInstruction& instruction, std::int64_t ahead) {
        if (!graph_.values[instruction.inst[ptx::Role::a].index].shape.is_affine()) return;
        const std::optional<LinearSum> sum = strides_.sums().of(instruction.inst[ptx::Role::a], no_loop);
        if (!sum) return;
        for (RowLoad& earlier : row_loads_) {
            const std::optional<std::int64_t> below = rows_below(*sum, earlier.sum);
            if (!below) continue;
            if (*below <= 0) return;
            earlier.instruction->prefetch = {};
            earlier = {&instruction, *sum};
            instruction.prefetch.ahead = std::int32_t(ahead);
            return;
        }
        row_loads_.push_back({&instruction, *sum});
        instruction.prefetch.ahead = std::int32_t(ahead);
    }

    /// How many rows of one matrix `a` is below `b`, in about the same column.
    std::optional<std::int64_t> rows_below(const LinearSum& a, const LinearSum& b) const {
        const LinearSum distance = a.plus(b, -1);
        if (!is_shorter(distance.constant, line_bytes) || distance.terms.size() > 1) return std::nullopt;
        if (distance.terms.empty()) return 0;
        const auto [pitch, factor] = *distance.terms.begin();
        const bool is_pitch = std::any_of(a.terms.begin(), a.terms.end(), [&](const auto& term) {
            if (term.first.kind != LinearSum::Term::Kind::product) return false;
            const ptx::Instruction& product = strides_.sums().definition(term.first.id).instruction->inst;
            return pitch.kind == LinearSum::Term::Kind::value &&
                   (is_value(product.operands[1], pitch.id) || is_value(product.operands[2], pitch.id));
        });
        if (!is_pitch) return std::nullopt;
        return factor;
    }
    static bool is_value(const Operand& operand, ValueId value) {
        return operand.kind == Operand::Kind::reg && operand.index == value;
    }

    /// All warps come to the barrier before one goes on: what the next round loads has the time of a whole round to
    /// come.
    void plan_next_round(GraphInstruction& instruction, BlockId block, std::uint32_t loop) {
        const Prefetch prefetch = rounds_ahead(instruction, loop, 1);
        // A factor of a product may be used up in front of a barrier.
        if (prefetch.stride != no_value && !strides_.sums().of(instruction.inst[ptx::Role::a].index, loop) &&
            !is_used_in(block, prefetch.stride))
            return;
        if (prefetch.factor != 0 || !is_shorter(prefetch.ahead, line_bytes)) instruction.prefetch = prefetch;
    }

    /// What this step reads when it has its next turn, if the loop goes on until then: short ones would fetch as much
    /// again of what nobody reads.
    void plan_next_turn(GraphInstruction& instruction, std::uint32_t loop) const {
        if (!strides_.sums().of(instruction.inst[ptx::Role::a].index, loop)) return;
        Prefetch prefetch = rounds_ahead(instruction, loop, graph_.forest.loops[loop].turn_rounds);
        if (!prefetch) return;
        for (BlockId block : graph_.forest.loops[loop].blocks) {
            const Terminator& end = graph_.blocks[block].terminator;
            if (end.kind != Terminator::Kind::branch || end.condition == no_value) continue;
            if (!bound_by(end.condition, loop, prefetch)) continue;
            instruction.prefetch = prefetch;
            return;
        }
    }

    /// A number of the loop's rounds that is compared with one that stays.
    bool bound_by(ValueId condition, std::uint32_t loop, Prefetch& prefetch) const {
        const GraphInstruction* test = strides_.sums().definition(condition).instruction;
        if (!test || !is_comparison(test->inst.form)) return false;
        const Operand &counter = test->inst[ptx::Role::a], &bound = test->inst[ptx::Role::b];
        const bool stays = bound.kind == Operand::Kind::imm ||
                           (bound.kind == Operand::Kind::reg && !strides_.sums().is_inside(bound.index, loop) &&
                            graph_.values[bound.index].shape.is_uniform());
        if (counter.kind != Operand::Kind::reg || !stays) return false;
        const std::optional<LinearSum> sum = strides_.sums().of(counter.index, loop);
        if (!sum) return false;
        for (auto [term, factor] : sum->terms) {
            if (term.kind != LinearSum::Term::Kind::value || !strides_.sums().is_inside(term.id, loop)) continue;
            const Prefetch gain = gain_of(term.id, loop, graph_.forest.loops[loop].turn_rounds);
            if (factor != 1 || graph_.values[term.id].shape.is_varying() || !gain) return false;
            if (gain.factor != 0 && gain.stride != prefetch.stride) return false;
            prefetch.counter = term.id;
            if (bound.kind == Operand::Kind::imm)
                prefetch.bound_constant = std::int64_t(bound.value);
            else
                prefetch.bound = bound.index;
            prefetch.counter_ahead = gain.ahead;
            prefetch.counter_factor = gain.factor;
            return true;
        }
        return false;
    }

    static bool is_comparison(ptx::FormId form) {
        return form == ptx::FormId::setp_bits || form == ptx::FormId::setp_signed || form == ptx::FormId::setp_unsigned;
    }

    /// What the load reads `rounds` rounds later; nothing where that is not known.
    Prefetch rounds_ahead(const GraphInstruction& instruction, std::uint32_t loop, std::int64_t rounds) const {
        return gain_of(instruction.inst[ptx::Role::a].index, loop, rounds);
    }

    Prefetch gain_of(ValueId value, std::uint32_t loop, std::int64_t rounds) const {
        std::optional<LinearSum> gain = strides_.gain_of(value, loop);
        if (!gain || gain->terms.size() > 1) return {};
        gain = LinearSum().plus(*gain, rounds);
        if (!fits(gain->constant)) return {};
        Prefetch prefetch{.ahead = std::int32_t(gain->constant)};
        for (auto [term, factor] : gain->terms) {
            if (term.kind != LinearSum::Term::Kind::value || !graph_.values[term.id].shape.is_uniform() ||
                !fits(factor))
                return {};
            prefetch.factor = std::int32_t(factor);
            prefetch.stride = term.id;
        }
        return prefetch;
    }

    static bool fits(std::int64_t value) { return std::int32_t(value) == value; }

    bool meets_barrier(std::uint32_t loop) const {
        const auto& blocks = graph_.forest.loops[loop].blocks;
        return std::any_of(blocks.begin(), blocks.end(),
                           [&](BlockId block) { return graph_.blocks[block].ends_with_barrier; });
    }

    FunctionGraph& graph_;
    const BlockShape& shape_;
    const unsigned width_;
    const LoopStrides strides_;
    const bool in_rows_;
    const std::vector<bool> computed_; ///< by value
    struct RowLoad {
        GraphInstruction* instruction;
        LinearSum sum;
    };
    std::vector<RowLoad> row_loads_;         ///< of the block at hand, that ask
    std::vector<const Operand*> structures_; ///< of the block at hand, likewise: addresses
    bool meets_barriers_ = false, waits_for_stores_ = false;
    std::int64_t ctas_ahead_ = 2;
};

} // namespace

void plan_prefetch(FunctionGraph& graph, const BlockShape& shape, unsigned width, bool in_rows) {
    if (width > 1)
        Pieces(graph, shape, width, in_rows).run();
    else if (!graph.forest.loops.empty())
        IndexStreams(graph).run();
}

} // namespace ptarmigan::translator
