// SPDX-License-Identifier: Apache-2.0
// Rules of branches, barriers and what lanes of a warp do together.
#include "frontend/sass/combined_atomics.h"
#include "frontend/sass/lifter.h"
#include "frontend/sass/slow_ways.h"

#include <algorithm>

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

bool is_in(const std::vector<std::uint32_t>& offsets, const Instruction& inst) {
    return std::binary_search(offsets.begin(), offsets.end(), inst.address);
}

/// The source's collective that `inst` is; null: it is none.
const CodeFacts::Collective* find_collective(const CodeFacts& facts, const Instruction& inst) {
    const auto found =
        std::lower_bound(facts.collectives.begin(), facts.collectives.end(), inst.address,
                         [](const CodeFacts::Collective& c, std::uint32_t address) { return c.offset < address; });
    return found != facts.collectives.end() && found->offset == inst.address ? &*found : nullptr;
}

} // namespace

/// A predicate that is true where the condition and the instruction's guard are.
std::string Lifter::with_guard(const Instruction& inst, const Condition& also) {
    const std::string both = as_register(also);
    if (is_unguarded(inst)) return both;
    const std::string combined = predicate_temporary();
    emit("and.pred " + combined + ", " + both + ", " + as_register(guard_condition()));
    return combined;
}

void Lifter::branch(const Instruction& inst) {
    const Block& block = blocks_[current_block_];
    // A loop of a warp whose lanes are elected in turn: each does what it is to do by itself, and once.
    if (inst.has("ANY") && (!inst.has("U") || !lone_lane_in_loop())) refuse_here();
    if (inst.has("DIV") || inst.has("CONV")) {   // lanes wait for each other at what follows
        if (inst.operands[1].kind != Kind::none) // sm_75 does not say whose: the collective's mask does
            come_together(read(inst.operands[1]).text);
        if (!block.falls_through) emit("bra " + way_to(block.successors.front()));
        return;
    }
    const bool is_uniform = inst.form->id == FormId::bra_uniform;
    if (is_uniform && (inst.operands[0].index != true_predicate || inst.operands[0].negated)) refuse_here();
    jump_under(inst, condition(inst.operands[is_uniform ? 1 : 0]));
}

/// To the block's first successor, for the lanes of the condition and the guard.
void Lifter::jump_under(const Instruction& inst, const Condition& also) {
    const Block& block = blocks_[current_block_];
    if (also.name.empty() && !also.value) return;
    const std::string jump = "bra " + way_to(block.successors.front());
    if (!also.name.empty()) {
        const std::string both = with_guard(inst, also);
        if (writes_) text_ += "\t@" + both + " " + jump + ";\n";
    } else if (block.falls_through) {
        emit_guarded(jump);
    } else {
        emit(jump);
    }
}

void Lifter::branch_indexed(const Instruction& inst) {
    const Block& block = blocks_[current_block_];
    const Operand& place = inst.operands[1];
    if (inst.operands[0].index != true_predicate || inst.operands[0].negated || !is_unguarded(inst)) refuse_here();
    const Value where = read_index(inst.form->id == FormId::brxu ? uniform_base + place.index : place.index);
    // The register holds a distance from `value`: one comparison for each place that it may lead to.
    for (std::size_t i = 0; i < block.successors.size(); ++i) {
        const unsigned successor = block.successors[i];
        if (i + 1 == block.successors.size()) {
            emit("bra " + way_to(successor));
            break;
        }
        const std::string same = predicate_temporary();
        const auto distance = std::uint32_t(std::int64_t(blocks_[successor].begin) - place.value);
        emit("setp.eq.u32 " + same + ", " + where.text + ", " + std::to_string(distance));
        if (writes_) text_ += "\t@" + same + " bra " + way_to(successor) + ";\n";
    }
}

/// Where lanes that went different ways meet.
void Lifter::reconverge(const Instruction&) {
    collective_mask_.clear();
    lanes_here_.clear();
    pairs_.reset(active_mask_bit);
    pairs_.reset(met_mask_bit);
}

void Lifter::exit(const Instruction& inst) {
    const Condition also = condition(inst.operands[0]);
    if (inst.has("PREEMPTED") || inst.has("KEEPREFCOUNT")) refuse_here();
    lanes_here_.clear();
    if (also.name.empty() && !also.value) return;
    if (also.name.empty()) {
        emit_guarded("exit");
        return;
    }
    const std::string both = with_guard(inst, also);
    if (writes_) text_ += "\t@" + both + " exit;\n";
}

/// The result is in all that the function writes: one is the result's register, and nobody reads the others.
void Lifter::call_known(const KnownCall& known) {
    const std::string result = temporary(), number = std::to_string(known.predicate);
    emit(std::string(known.statement) + result + ", " +
         (known.is_division ? "%fchk_a" + number + ", %fchk_b" + number : in_register(read_index(known.argument))));
    for (const std::uint8_t index : known.results) write_index(index, value_of(result));
}

void Lifter::call(const Instruction& inst) {
    if (const auto known = known_calls_.find(inst.address); known != known_calls_.end()) {
        call_known(known->second);
        return;
    }
    const Condition also = condition(inst.operands[0]);
    if (ends_block(inst)) {
        jump_under(inst, also);
        return;
    }
    if (!also.name.empty() || !also.value) refuse_here("a condition");
    call_provided(std::uint64_t(inst.operands[1].value), {});
}

/// To the one place that may have called, else to where the register says.
void Lifter::ret(const Instruction& inst) {
    const Block& block = blocks_[current_block_];
    const std::size_t callers = contexts_[block.context].callers.size();
    const Condition also = condition(inst.operands[0]);
    if (callers == 1) {
        jump_under(inst, also);
        return;
    }
    if (also.name.empty() && !also.value) return;
    const std::string chosen = block.falls_through ? with_guard(inst, also) : std::string();
    const Operand& to = inst.operands[1];
    jump_by_register(read_index(to.index).text, to.value, callers, chosen);
    if (chosen.empty())
        emit("trap");
    else if (writes_)
        text_ += "\t@" + chosen + " trap;\n";
}

/// Of the lanes of a predicate, or all, to that of the block's first successors whose distance from `base` `where` is.
void Lifter::jump_by_register(const std::string& where, std::int64_t base, std::size_t count,
                              const std::string& chosen) {
    for (std::size_t i = 0; i < count; ++i) {
        const unsigned successor = blocks_[current_block_].successors[i];
        const std::string same = predicate_temporary();
        const auto distance = std::uint32_t(std::int64_t(blocks_[successor].begin) - base);
        if (chosen.empty())
            emit("setp.eq.u32 " + same + ", " + where + ", " + std::to_string(distance));
        else
            emit("setp.eq.and.u32 " + same + ", " + where + ", " + std::to_string(distance) + ", " + chosen);
        if (writes_) text_ += "\t@" + same + " bra " + way_to(successor) + ";\n";
    }
}

void Lifter::trap(const Instruction& inst) {
    emit_guarded(inst.has("TRAP") ? "trap" : "brkpt");
}

/// The lanes that `inst` is done by together. The file names the register that holds a mask; it names none where the
/// source has all lanes, and where those that met before are the ones. Lanes that divided at BRA.DIV are those of the
/// collective behind it, not of others that ptxas put between two of their own.
std::string Lifter::mask(const Instruction& inst) {
    const CodeFacts::Collective* found = find_collective(facts_, inst);
    if (found != nullptr && found->mask && inst.architecture < 80) return in_register(read_index(*found->mask));
    if (found != nullptr && found->is_of_all && !is_behind_division(inst))
        return pairs_[met_mask_bit] ? "%met_mask" : "0xffffffff";
    return collective_mask_.empty() ? std::string("0xffffffff") : collective_mask_;
}

/// Whether a block begins with `inst`, where lanes come to that divided at BRA.DIV, or with another one like it just
/// before (the lower half of a 64-bit shuffle).
bool Lifter::is_behind_division(const Instruction& inst) const {
    const Instruction& first = code_[blocks_[current_block_].begin / 16];
    return first.form->id == inst.form->id && inst.address - first.address <= 3 * 16;
}

void Lifter::barrier(const Instruction& inst) {
    const Operand &number = inst.operands[0], &threads = inst.operands[1];
    const std::string chosen = as_register(condition(inst.operands[2]));
    const auto wait = [&](const std::string& id, const std::string& count, const std::string& lanes) {
        const bool is_plain = number.kind != Kind::reg && count.empty();
        std::string statement;
        if (inst.has("SYNC")) {
            statement = (is_plain ? "bar.sync " : "barrier.sync ") + id + count;
        } else if (inst.has("ARV")) {
            if (count.empty()) refuse_here();
            statement = "barrier.arrive " + id + count;
        } else if (inst.has("RED.POPC")) {
            statement = "barrier.red.popc.u32 %barrier_result, " + id + count + ", " + chosen;
        } else if (inst.has("RED.AND") || inst.has("RED.OR")) {
            statement = std::string("barrier.red.") + (inst.has("RED.AND") ? "and" : "or") +
                        ".pred %barrier_predicate, " + id + count + ", " + chosen;
        } else {
            refuse_here();
        }
        if (lanes.empty())
            emit_guarded(statement);
        else if (writes_)
            text_ += "\t@" + lanes + " " + statement + ";\n";
    };
    if (number.kind != Kind::reg) {
        const std::string count = threads.kind == Kind::reg ? word_at(threads.index)
                                  : threads.value != 0      ? std::to_string(threads.value)
                                                            : std::string();
        wait(std::to_string(number.value), count.empty() ? count : ", " + count, {});
        return;
    }
    const Value both = read_index(number.index);
    const std::string id = temporary();
    emit("and.b32 " + id + ", " + both.text + ", 15");
    if (threads.kind != Kind::reg) {
        wait(id, threads.value != 0 ? ", " + std::to_string(threads.value) : "", {});
        return;
    }
    // The number and, above it, the count of threads, 0 for all, in one register.
    const std::string count = temporary(), some = predicate_temporary(), all = predicate_temporary();
    const std::string lanes = as_register(guard_condition());
    emit("shr.u32 " + count + ", " + both.text + ", 16");
    emit("setp.ne.and.u32 " + some + ", " + count + ", 0, " + lanes);
    emit("setp.eq.and.u32 " + all + ", " + count + ", 0, " + lanes);
    wait(id, ", " + count, some);
    if (!inst.has("ARV")) wait(id, {}, all);
}

void Lifter::barrier_result(const Instruction& inst) {
    if (!inst.has("RESULT")) refuse_here();
    write(inst.operands[0], value_of("%barrier_result"));
    write_predicate(inst.operands[1], "%barrier_predicate");
}

void Lifter::shuffle(const Instruction& inst) {
    const char* mode = inst.has("IDX") ? "idx" : inst.has("UP") ? "up" : inst.has("DOWN") ? "down" : "bfly";
    const auto source = [&](const Operand& operand) {
        return operand.kind == Kind::immediate ? std::to_string(operand.value) : read_index(index_of(operand)).text;
    };
    const Operand& p = inst.operands[0];
    if (inst.has("IDX") && inst.operands[3].kind == Kind::reg &&
        lone_lanes_.count(read_index(index_of(inst.operands[3])).number) != 0) {
        write(inst.operands[1], read(inst.operands[2]));
        write_predicate(p, true);
        return;
    }
    const std::string value = in_register(read(inst.operands[2])), b = source(inst.operands[3]),
                      c = source(inst.operands[4]);
    const std::string result = temporary(), valid = predicate_temporary();
    emit_guarded(std::string("shfl.sync.") + mode + ".b32 " + result + (p.index == true_predicate ? "" : "|" + valid) +
                 ", " + value + ", " + b + ", " + c + ", " + mask(inst));
    write(inst.operands[1], value_of(result));
    if (p.index != true_predicate) write_predicate(p, valid);
}

/// Code of sm_75 goes round a loop of its own until all lanes are here that a uniform branch is to take along: VOTE.ANY
/// R and VOTEU.ANY UR (at -O0 VOTE.ANY of another register), LOP3 (who is only in the second of them), BRA.U. A lane by
/// itself, the answer to both, always goes.
bool Lifter::is_gathering(const Instruction& inst) const {
    const Operand& d = inst.operands[0];
    const Block& block = blocks_[current_block_];
    const Instruction& last = code_[block.end / instruction_size - 1];
    if (inst.architecture >= 80 || !inst.has("ANY") || last.form->rule != "branch" || !last.has("U")) return false;
    for (std::uint32_t at = inst.address + instruction_size; at < block.end; at += instruction_size) {
        const Instruction& next = code_[at / instruction_size];
        if (next.form->id != FormId::lop3) continue;
        const Operand &a = next.operands[2], &b = next.operands[3], &c = next.operands[4];
        const std::int64_t function = next.operands[5].value; // 0xc: in b only, 0x30: in a only
        return next.operands[1].index == zero_register && c.kind == Kind::reg && c.index == zero_register &&
               a.kind == Kind::reg && (b.kind == Kind::uniform || b.kind == Kind::reg) &&
               (function == 0x0c || function == 0x30) &&
               ((d.kind == a.kind && d.index == a.index) || (d.kind == b.kind && d.index == b.index));
    }
    return false;
}

void Lifter::vote(const Instruction& inst) {
    const Operand &d = inst.operands[0], &p = inst.operands[1];
    const Condition source = condition(inst.operands[2]);
    const bool has_result = d.index != (d.kind == Kind::uniform ? zero_uniform : zero_register);
    if (has_result && source.name.empty() && source.value && is_gathering(inst)) {
        const std::string lane = temporary(), bit = temporary();
        emit("mov.u32 " + lane + ", %laneid");
        emit("shl.b32 " + bit + ", 1, " + lane);
        write(d, value_of(bit));
        return;
    }
    if (has_result && is_combined(inst)) {
        const std::string lane = temporary(), bit = temporary();
        emit("mov.u32 " + lane + ", %laneid");
        emit("shl.b32 " + bit + ", 1, " + lane);
        const Value alone = value_of(bit);
        lone_masks_[alone.number] = lane;
        write(d, alone);
        return;
    }
    if (has_result) {
        const bool asks_all = source.name.empty() && source.value, asks_here = asks_all && is_unguarded(inst);
        const std::string result = asks_here ? lanes_here() : temporary();
        if (asks_all && !asks_here)
            emit_guarded("activemask.b32 " + result);
        else if (!asks_all)
            emit_guarded("vote.sync.ballot.b32 " + result + ", " + as_register(source) + ", " + mask(inst));
        if (p.index != true_predicate) refuse_here("two results");
        if (asks_here) {
            come_together(result);
            if (!is_in(facts_.internal_collectives, inst)) meet(result);
        }
        write(d, value_of(result));
        return;
    }
    if (p.index == true_predicate) return;
    // The compiler's own: it asks the lanes that happen to be here, and any of them could be here alone. So it is where
    // a predicate that all lanes have alike becomes a uniform one (carries, flags of divisions), which .nv.info does
    // not list: the source's votes leave predicates.
    const bool is_move = p.kind == Kind::uniform_predicate && !is_by_hand_ && find_collective(facts_, inst) == nullptr;
    if (!inst.has("UNI") && (is_move || is_in(facts_.internal_collectives, inst))) {
        write_predicate(p, as_register(source));
        return;
    }
    const std::string result = predicate_temporary();
    emit_guarded(std::string("vote.sync.") +
                 (inst.has("ALL")   ? "all"
                  : inst.has("ANY") ? "any"
                                    : "uni") +
                 ".pred " + result + ", " + as_register(source) + ", " + mask(inst));
    write_predicate(p, result);
}

void Lifter::match(const Instruction& inst) {
    const bool is_wide = inst.has("U64");
    // Do the lanes of BRA.DIV's mask have that one mask? The source says that they do.
    if (is_in(facts_.internal_collectives, inst)) {
        if (!inst.has("ANY") || !ends_in_division()) refuse_here("among the lanes that are here");
        write(inst.operands[1], constant(0xffffffff));
        return;
    }
    const std::string value = is_wide ? wide_text(read_pair(inst.operands[2])) : in_register(read(inst.operands[2]));
    const std::string result = temporary(), all = predicate_temporary(), type = is_wide ? ".b64 " : ".b32 ";
    if (inst.has("ANY")) {
        emit_guarded("match.any.sync" + type + result + ", " + value + ", " + mask(inst));
        write(inst.operands[1], value_of(result));
        return;
    }
    emit_guarded("match.all.sync" + type + result + "|" + all + ", " + value + ", " + mask(inst));
    write(inst.operands[1], value_of(result));
    write_predicate(inst.operands[0], all);
}

/// `bar.warp.sync` of the source is one where the lanes are together on a GPU anyhow. Here they may not be.
void Lifter::no_operation(const Instruction& inst) {
    const CodeFacts::Collective* found = find_collective(facts_, inst);
    if (found == nullptr) return;
    if (!found->is_of_all && !found->mask) refuse_here("where lanes meet, not known which");
    const unsigned mask = found->mask.value_or(0) + (found->is_uniform ? uniform_base : 0);
    emit_guarded("bar.warp.sync " + (found->is_of_all ? std::string("0xffffffff") : read_index(mask).text));
}

bool Lifter::ends_in_division() const {
    const Instruction& last = code_[blocks_[current_block_].end / 16 - 1];
    return last.form->rule == "branch" && (last.has("DIV") || last.has("CONV"));
}

/// Whether VOTE.ANY of PT, which asks which lanes are here, comes later in the block, before they meet others.
bool Lifter::is_followed_by_vote_of_all(const Instruction& inst) const {
    const std::uint32_t end = std::min(blocks_[current_block_].end, inst.address + 16 * combination_limit);
    for (std::uint32_t at = inst.address + 16; at < end; at += 16) {
        const Instruction& next = code_[at / 16];
        if (next.form->rule == "reconverge" || next.form->rule == "warpsync") return false;
        if (next.form->rule == "vote" && next.has("ANY") && next.operands[2].index == true_predicate &&
            !next.operands[2].negated)
            return true;
    }
    return false;
}

bool Lifter::is_read_behind(std::uint32_t from, const Operand& operand) {
    enum class Found { read, written, nothing };
    const auto look = [&](std::uint32_t begin, std::uint32_t end) {
        const Instruction* written_under = nullptr; // what wrote it under a condition that holds as before
        for (std::uint32_t at = begin; at < end; at += 16) {
            const Instruction& inst = code_[at / 16];
            const bool is_same = written_under != nullptr && inst.guard == written_under->guard &&
                                 inst.guard_negated == written_under->guard_negated &&
                                 inst.guard_uniform == written_under->guard_uniform;
            if (search_steps_ == 0 || (!is_same && reads(inst, operand))) return Found::read;
            --search_steps_;
            if (overwrites(inst, operand)) return Found::written;
            Instruction unguarded = inst;
            unguarded.guard = true_predicate;
            unguarded.guard_negated = false;
            if (overwrites(unguarded, operand)) written_under = &inst;
            if (written_under == nullptr) continue;
            Operand guard;
            guard.kind = written_under->guard_uniform ? Kind::uniform_predicate : Kind::predicate;
            guard.index = written_under->guard;
            if (inst.form->rule == "r2p" || overwrites(unguarded, guard)) written_under = nullptr;
        }
        return Found::nothing;
    };
    const Block& here = blocks_[current_block_];
    if (const Found found = look(from, here.end); found != Found::nothing) return found == Found::read;
    std::vector<unsigned> work = here.successors;
    std::set<unsigned> seen(work.begin(), work.end());
    while (!work.empty()) {
        const Block& next = blocks_[work.back()];
        work.pop_back();
        const Found found = look(next.begin, next.end);
        if (found == Found::read) return true;
        if (found == Found::written) continue;
        for (const unsigned successor : next.successors)
            if (seen.insert(successor).second) work.push_back(successor);
    }
    return false;
}

bool Lifter::is_combined(const Instruction& inst) {
    auto found = combined_.find(current_block_);
    if (found == combined_.end()) {
        const Block& block = blocks_[current_block_];
        found = combined_
                    .emplace(current_block_, find_combined_atomics(code_, block.begin, block.end,
                                                                   [&](std::uint32_t from, const Operand& operand) {
                                                                       return is_read_behind(from, operand);
                                                                   }))
                    .first;
    }
    return found->second.count(inst.address) != 0;
}

void Lifter::redux(const Instruction& inst) {
    const bool is_signed = inst.has("S32");
    const std::string type =
        inst.has("SUM") || inst.has("MIN") || inst.has("MAX") ? (is_signed ? ".s32 " : ".u32 ") : ".b32 ";
    const char* operation = inst.has("SUM")   ? "add"
                            : inst.has("MIN") ? "min"
                            : inst.has("MAX") ? "max"
                            : inst.has("OR")  ? "or"
                            : inst.has("XOR") ? "xor"
                                              : "and";
    // A constant is its own minimum, maximum, conjunction and disjunction, whoever is here; nobody need wait for
    // anybody.
    const Value source = read(inst.operands[1]);
    if (source.constant && !inst.has("SUM") && !inst.has("XOR")) {
        write(inst.operands[0], source);
        return;
    }
    // The lanes that a collective's mask names, which each of them has: they come together at BRA.DIV.
    if (is_combined(inst) || (inst.has("OR") && is_unguarded(inst) && is_mask_of_division(inst))) {
        write(inst.operands[0], source);
        return;
    }
    // Before one lane adds for all: of those that are here, as the vote that chooses it says.
    if (collective_mask_.empty() && is_unguarded(inst) && is_followed_by_vote_of_all(inst)) come_together(lanes_here());
    const std::string result = temporary();
    emit_guarded(std::string("redux.sync.") + operation + type + result + ", " + in_register(source) + ", " +
                 mask(inst));
    write(inst.operands[0], value_of(result));
}

/// Whether the uniform register that `inst` writes says who divides at this block's BRA.DIV or BRA.CONV.
bool Lifter::is_mask_of_division(const Instruction& inst) const {
    const Instruction& last = code_[blocks_[current_block_].end / 16 - 1];
    if (last.form->rule != "branch" || (!last.has("DIV") && !last.has("CONV")) ||
        last.operands[1].kind != Kind::uniform || last.operands[1].index != inst.operands[0].index)
        return false;
    for (std::uint32_t at = inst.address + 16; at < last.address; at += 16)
        for (const Operand& operand : code_[at / 16].operands)
            if ((operand.kind == Kind::uniform && operand.index == inst.operands[0].index) ||
                operand.uniform == inst.operands[0].index)
                return false;
    return true;
}

/// Whether the predicate that `inst` writes is asked by nothing but this block's BRA.DIV or BRA.CONV, which here do not
/// ask.
bool Lifter::is_guard_of_division(const Instruction& inst) {
    const Instruction& last = code_[blocks_[current_block_].end / 16 - 1];
    const Operand& predicate = inst.operands[0];
    if (last.form->rule != "branch" || (!last.has("DIV") && !last.has("CONV")) || last.guard != predicate.index ||
        last.guard_uniform)
        return false;
    for (std::uint32_t at = inst.address + 16; at < last.address; at += 16)
        if (reads(code_[at / 16], predicate) || overwrites(code_[at / 16], predicate)) return false;
    return !is_read_behind(last.address + 16, predicate);
}

void Lifter::elect(const Instruction& inst) {
    const Operand &p = inst.operands[0], &leader = inst.operands[1], &among = inst.operands[2];
    if (among.index != true_predicate || among.negated || inst.has("IGNOREKILL")) refuse_here();
    if (lone_lane_in_loop()) {
        if (leader.index != zero_uniform) refuse_here();
        write_predicate(p, true);
        return;
    }
    const std::string lane = temporary(), chosen = predicate_temporary();
    emit_guarded("elect.sync " + lane + "|" + chosen + ", " + mask(inst));
    write(leader, value_of(lane));
    write_predicate(p, chosen);
    if (is_unguarded(inst)) elected_ = chosen;
}

void Lifter::warpsync(const Instruction& inst) {
    const Operand &also = inst.operands[0], &among = inst.operands[1];
    if (also.index != true_predicate || also.negated) refuse_here();
    // The compiler's own, behind ways that may not have met: a GPU waits for nobody who waits elsewhere (behind a loop,
    // for those that return from a function later). The source's are listed, or COLLECTIVE.
    if (inst.form->id == FormId::warpsync_all && !inst.has("COLLECTIVE") && !is_by_hand_ &&
        find_collective(facts_, inst) == nullptr) {
        reconverge(inst); // what follows is of all lanes
        return;
    }
    lanes_here_.clear();
    const std::string copy = temporary();
    emit("mov.b32 " + copy + ", " + (inst.has("ALL") ? std::string("0xffffffff") : read(among).text));
    // Of a slow way: what follows waits for the same lanes, of which those on the fast way meet no WARPSYNC.
    const std::size_t next = inst.address / 16 + 1;
    const bool is_of_next = is_unguarded(inst) && next < code_.size() && is_collective(code_[next]) &&
                            find_collective(facts_, inst) == nullptr;
    if (!is_of_next) emit_guarded("bar.warp.sync " + copy);
    come_together(copy);
    meet(copy);
}

/// The lanes that are together here. Within a block a GPU's stay so, and ptxas counts on that: one instruction adds
/// what they have, the next one chooses who stores it. Two questions might have two answers.
std::string Lifter::lanes_here() {
    if (lanes_here_.empty()) {
        lanes_here_ = temporary();
        emit("activemask.b32 " + lanes_here_);
    }
    return lanes_here_;
}

/// From here to where these lanes meet others again they are the ones that do things together.
void Lifter::come_together(const std::string& lanes) {
    emit("mov.b32 %active_mask, " + lanes);
    collective_mask_ = "%active_mask";
    pairs_.set(active_mask_bit);
}

/// What the source's collectives without a mask in a register count on.
void Lifter::meet(const std::string& lanes) {
    emit("mov.b32 %met_mask, " + lanes);
    pairs_.set(met_mask_bit);
}

void Lifter::nanosleep(const Instruction& inst) {
    const Operand& time = inst.operands[1];
    emit_guarded("nanosleep.u32 " + (time.kind == Kind::immediate ? std::to_string(time.value) : read(time).text));
}

} // namespace ptarmigan::sass
