// SPDX-License-Identifier: Apache-2.0
// A .param variable of a call sequence, or a small .local one, becomes one register per piece when every access is an
// ld/st at a constant offset and no two pieces overlap without being the same; pairs of words, of which others access
// one, are two pieces. Otherwise it gets a place in local memory.
#include "translator/analysis/build/flatten.h"
#include "translator/analysis/graph/form_queries.h"
#include "translator/analysis/graph/make_operands.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

namespace ptarmigan::translator {
namespace {

using ptx::Operand;
using ptx::ScalarType;
using ptx::StateSpace;
using ptx::VariableScope;

struct Piece {
    std::uint64_t size = 0;
    ptx::RegisterId reg = ptx::no_id;
};

/// What is known of one storage.
struct Usage {
    bool in_memory = false;                ///< can't be registers
    bool passed = false;                   ///< appears in the list of a real call
    std::map<std::uint64_t, Piece> pieces; ///< by offset
};

bool names_storage(const Operand& operand) {
    return (operand.kind == Operand::Kind::variable ||
            (operand.kind == Operand::Kind::address && operand.base == Operand::Base::variable)) &&
           operand.scope == VariableScope::frame;
}

/// ld or st whose address operand may be a variable at a constant offset. Volatile accesses of .local stay in memory.
bool is_piecewise(const ptx::Instruction& inst) {
    if (inst.space == StateSpace::local) return inst.form == ptx::FormId::ld || inst.form == ptx::FormId::st;
    return (opcode(inst) == "ld" || opcode(inst) == "st") && inst.space == StateSpace::param;
}

/// Registers that one .local variable may become. More would be spilled to the host's stack lane by lane, and every
/// join of control flow has a phi for each.
constexpr std::size_t most_local_pieces = 256;
constexpr std::uint64_t word_size = 4, pair_size = 8;

ScalarType bits_type(std::uint64_t bytes) {
    switch (bytes) {
    case 1: return ScalarType::b8;
    case 2: return ScalarType::b16;
    case 4: return ScalarType::b32;
    case 8: return ScalarType::b64;
    case 16: return ScalarType::b128;
    default: return ScalarType::none;
    }
}

class Promotion {
public:
    explicit Promotion(FlatFunction& flat) : flat_(flat), graph_(flat.graph), usage_(flat.storages.size()) {}

    void run() {
        for (Block& block : graph_.blocks)
            for (GraphInstruction& instruction : block.instructions) collect(instruction);
        decide();
        for (Block& block : graph_.blocks) rewrite_block(block);
    }

private:
    bool promoted(std::uint32_t storage) const { return !usage_[storage].in_memory; }
    void collect(const GraphInstruction& instruction);
    void add_piece(Usage& usage, std::uint64_t offset, std::uint64_t size, std::uint64_t limit);
    static void part_pairs(Usage& usage);
    void decide();
    void rewrite_block(Block& block);
    void rewrite_access(const GraphInstruction& access, std::vector<GraphInstruction>& out);
    void rewrite_pair(const GraphInstruction& access, const Operand& value, const std::array<ptx::RegisterId, 2>& words,
                      std::vector<GraphInstruction>& out);
    void rewrite_operand(Operand& operand);

    FlatFunction& flat_;
    FunctionGraph& graph_;
    std::vector<Usage> usage_;
    std::vector<std::uint32_t> local_of_; ///< storage -> graph.locals
};

void Promotion::add_piece(Usage& usage, std::uint64_t offset, std::uint64_t size, std::uint64_t limit) {
    if (size == 0 || offset > limit || size > limit - offset) {
        usage.in_memory = true;
        return;
    }
    const auto [place, is_new] = usage.pieces.try_emplace(offset, Piece{size});
    const std::uint64_t before = place->second.size;
    if (is_new || before == size) return;
    const bool is_pair_and_word = std::min(before, size) == word_size && std::max(before, size) == pair_size;
    if (!is_pair_and_word) usage.in_memory = true;
    place->second.size = pair_size; // and its first word is accessed, too
    usage.pieces.try_emplace(offset + word_size, Piece{word_size});
}

/// Pairs of words of which a word is accessed otherwise are two pieces.
void Promotion::part_pairs(Usage& usage) {
    for (auto place = usage.pieces.begin(); place != usage.pieces.end(); ++place) {
        const auto [offset, piece] = *place;
        if (piece.size != pair_size) continue;
        const auto next = std::next(place);
        if (next == usage.pieces.end() || next->first != offset + word_size) continue;
        if (next->second.size != word_size && next->second.size != pair_size) continue; // they overlap
        place->second.size = word_size; // what lies behind begins there, and may be a pair itself
        if (next->second.size == pair_size) usage.pieces.try_emplace(offset + 2 * word_size, Piece{word_size});
    }
}

void Promotion::collect(const GraphInstruction& instruction) {
    const ptx::Instruction& inst = instruction.inst;
    for (unsigned i = 0; i < inst.operand_count; ++i) {
        const Operand& operand = inst.operands[i];
        if (operand.has_elements()) {
            for (std::uint32_t e = operand.first; e < operand.first + operand.count; ++e)
                if (names_storage(graph_.pool[e])) usage_[graph_.pool[e].index].passed = true;
            continue;
        }
        if (!names_storage(operand)) continue;
        Usage& usage = usage_[operand.index];
        if (operand.kind != Operand::Kind::address || !is_piecewise(inst)) {
            usage.in_memory = true;
            continue;
        }
        std::uint64_t size = ptx::byte_size(inst.type());
        for (unsigned element = 0; element < inst.vector_size; ++element)
            add_piece(usage, operand.value + element * size, size, flat_.storages[operand.index].size);
    }
}

void Promotion::decide() {
    local_of_.assign(flat_.storages.size(), ptx::no_id);
    std::uint64_t place = 0;
    for (std::uint32_t s = 0; s < flat_.storages.size(); ++s) {
        const Storage& storage = flat_.storages[s];
        Usage& usage = usage_[s];
        if (!storage.is_parameter) part_pairs(usage);
        std::uint64_t end = 0;
        for (auto& [offset, piece] : usage.pieces) {
            if (offset < end) usage.in_memory = true;
            end = offset + piece.size;
        }
        if (!storage.is_parameter && (usage.passed || usage.pieces.size() > most_local_pieces)) usage.in_memory = true;
        if (usage.passed && usage.pieces.empty() && storage.scalar) usage.pieces[0] = Piece{storage.size};
        bool whole = usage.pieces.size() == 1 && usage.pieces.begin()->first == 0 &&
                     usage.pieces.begin()->second.size == storage.size;
        if (usage.passed && !whole) usage.in_memory = true;
        if (promoted(s)) {
            for (auto& [offset, piece] : usage.pieces) {
                piece.reg = std::uint32_t(flat_.registers.size());
                flat_.registers.push_back({storage.name + "+" + std::to_string(offset), bits_type(piece.size)});
            }
            continue;
        }
        FrameVariable variable;
        variable.name = storage.name;
        variable.size = storage.size;
        variable.alignment = storage.alignment;
        place = (place + variable.alignment - 1) / variable.alignment * variable.alignment;
        variable.local_offset = std::uint32_t(place);
        place += variable.size;
        if (place > (std::uint64_t(1) << 30))
            throw UnsupportedError(graph_.module->name + ": error: more than 1 GiB of local memory per thread");
        local_of_[s] = std::uint32_t(graph_.locals.size());
        graph_.locals.push_back(std::move(variable));
    }
    graph_.local_bytes = std::uint32_t((place + 15) / 16 * 16);
}

/// One move per element: the piece register takes the place of memory.
void Promotion::rewrite_access(const GraphInstruction& access, std::vector<GraphInstruction>& out) {
    const ptx::Instruction& inst = access.inst;
    bool is_load = opcode(inst) == "ld";
    const Operand& address = inst[ptx::Role::a];
    const Operand& values = inst[is_load ? ptx::Role::d : ptx::Role::b];
    std::uint64_t size = ptx::byte_size(inst.type());
    for (unsigned element = 0; element < inst.vector_size; ++element) {
        const Operand& value = values.kind == Operand::Kind::vector ? graph_.pool[values.first + element] : values;
        if (value.kind == Operand::Kind::sink) continue;
        const std::uint64_t place = address.value + element * size;
        const auto& pieces = usage_[address.index].pieces;
        if (size == pair_size && pieces.at(place).size == word_size) {
            rewrite_pair(access, value, {pieces.at(place).reg, pieces.at(place + word_size).reg}, out);
            continue;
        }
        GraphInstruction move = access;
        move.inst.form = size == 16 ? ptx::FormId::mov_b128 : ptx::FormId::mov;
        move.inst.operand_count = 2;
        move.inst.modifier_count = 0;
        move.inst.vector_size = 1;
        move.inst.space = StateSpace::none;
        move.inst.operands = {};
        Operand piece;
        piece.kind = Operand::Kind::reg;
        piece.type = inst.type();
        piece.index = pieces.at(place).reg;
        move.inst.operands[0] = is_load ? value : piece;
        move.inst.operands[1] = is_load ? piece : value;
        move.inst.operands[0].type = move.inst.operands[1].type = inst.type();
        out.push_back(std::move(move));
    }
}

/// A pair of which each word is a piece: put together for a load, taken apart for a store.
void Promotion::rewrite_pair(const GraphInstruction& access, const Operand& value,
                             const std::array<ptx::RegisterId, 2>& words, std::vector<GraphInstruction>& out) {
    const bool is_load = opcode(access.inst) == "ld";
    GraphInstruction move = access;
    move.inst.form = is_load ? ptx::FormId::mov_pack : ptx::FormId::mov_unpack;
    move.inst.operand_count = 2;
    move.inst.modifier_count = 0;
    move.inst.vector_size = 1;
    move.inst.space = StateSpace::none;
    move.inst.types = {ScalarType::b64};
    move.inst.operands = {};
    if (value.kind == Operand::Kind::imm) {
        for (unsigned half = 0; half < 2; ++half) {
            move.inst.form = ptx::FormId::mov;
            move.inst.types = {ScalarType::b32};
            move.inst.operands[0] = register_operand(words[half], ScalarType::b32);
            move.inst.operands[1] = constant_operand((value.value >> (32 * half)) & 0xffffffff, ScalarType::b32);
            out.push_back(move);
        }
        return;
    }
    Operand pieces;
    pieces.kind = Operand::Kind::vector;
    pieces.first = std::uint32_t(graph_.pool.size());
    pieces.count = 2;
    for (const ptx::RegisterId word : words) graph_.pool.push_back(register_operand(word, ScalarType::b32));
    Operand whole = value;
    whole.type = pieces.type = ScalarType::b64;
    move.inst.operands[0] = is_load ? whole : pieces;
    move.inst.operands[1] = is_load ? pieces : whole;
    out.push_back(std::move(move));
}

void Promotion::rewrite_operand(Operand& operand) {
    if (!names_storage(operand)) return;
    if (!promoted(operand.index)) {
        operand.index = local_of_[operand.index];
        return;
    }
    Operand piece;
    piece.kind = Operand::Kind::reg;
    const auto& only = *usage_[operand.index].pieces.begin();
    piece.index = only.second.reg;
    piece.type = flat_.registers[piece.index].type;
    operand = piece;
}

void Promotion::rewrite_block(Block& block) {
    std::vector<GraphInstruction> out;
    out.reserve(block.instructions.size());
    for (GraphInstruction& instruction : block.instructions) {
        ptx::Instruction& inst = instruction.inst;
        if (is_piecewise(inst)) {
            const Operand& address = inst[ptx::Role::a];
            bool frame = names_storage(address);
            if (frame && promoted(address.index)) {
                rewrite_access(instruction, out);
                continue;
            }
            // Parameters whose address is taken live in local memory; only a kernel's own have a space of their own.
            bool in_callee = instruction.function != graph_.function;
            if (frame || (address.base == Operand::Base::reg && (in_callee || !graph_.is_entry)))
                inst.space = StateSpace::local;
        }
        for (unsigned i = 0; i < inst.operand_count; ++i) {
            Operand& operand = inst.operands[i];
            rewrite_operand(operand);
            if (operand.has_elements())
                for (std::uint32_t e = operand.first; e < operand.first + operand.count; ++e)
                    rewrite_operand(graph_.pool[e]);
        }
        out.push_back(std::move(instruction));
    }
    block.instructions = std::move(out);
}

} // namespace

void promote_parameters(FlatFunction& flat) {
    Promotion(flat).run();
}

} // namespace ptarmigan::translator
