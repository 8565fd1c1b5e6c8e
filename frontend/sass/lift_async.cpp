// SPDX-License-Identifier: Apache-2.0
// Rules of sm_90's asynchronous proxy: mbarrier objects, copies in bulk and of tensors; and of clusters.
//
// A shared address of this code holds the rank of its block from bit 24 on, as one of PTX does; it differs from that by
// the system's kilobyte. The word of an mbarrier object is the one that the translator keeps (mbarrier_word.h).
#include "frontend/sass/combined_atomics.h"
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {
namespace {

using Kind = Operand::Kind;

/// The word of the row among `words`, or null.
const char* word_of(const Instruction& inst, std::initializer_list<const char*> words) {
    for (const char* word : words)
        if (inst.has(word)) return word;
    return nullptr;
}

/// ADD and the like in PTX.
std::string reduction_of(const Instruction& inst) {
    const char* word = word_of(inst, {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"});
    std::string result;
    for (; word != nullptr && *word != 0; ++word) result += char(*word + 32);
    return result;
}

bool is_bitwise(const std::string& operation) {
    return operation == "and" || operation == "or" || operation == "xor";
}

unsigned rank_of(const Instruction& inst) {
    const char* word = word_of(inst, {"1D", "2D", "3D", "4D", "5D"});
    return word == nullptr ? 0 : unsigned(*word - '0');
}

} // namespace

/// A register or a number as an operand of 32 bits.
std::string Lifter::word_at(unsigned index) {
    return in_register(read_index(index));
}

/// The shared address that a register holds, of whichever block of the cluster, between brackets.
std::string Lifter::cluster_address(unsigned index, std::int64_t offset) {
    return "[" + word_at(index) + plus(offset - std::int64_t(system_shared)) + "]";
}

/// Of an mbarrier object of any block.
std::string Lifter::cluster_address(const Operand& place) {
    const unsigned uniform =
        place.uniform == zero_uniform ? unsigned(zero_register) : uniform_base + unsigned(place.uniform);
    if (place.index == zero_register) return cluster_address(uniform, place.value);
    if (uniform == zero_register) return cluster_address(place.index, place.value);
    const std::string sum = temporary();
    emit("add.s32 " + sum + ", " + read_index(place.index).text + ", " + read_index(uniform).text);
    return "[" + sum + plus(place.value - std::int64_t(system_shared)) + "]";
}

/// What a uniform instruction does, the warp does once. ptxas writes a loop around it in which each lane is elected in
/// turn, or knows that one lane is here, or that doing it again changes nothing: there each lane does it for itself. Of
/// `if (elect) copy` it leaves ELECT and takes the branch away: all lanes come to the copy, which is the elected one's.
void Lifter::emit_once(const std::string& statement) {
    if (is_by_hand_) {
        finish_together();
        const std::string here = lanes_here(), below = temporary(), lowest = temporary(), own = temporary(),
                          leads = predicate_temporary();
        emit("sub.s32 " + below + ", 0, " + here);
        emit("and.b32 " + lowest + ", " + here + ", " + below);
        emit("mov.u32 " + own + ", %lanemask_eq");
        emit("setp.eq.s32 " + leads + ", " + lowest + ", " + own);
        Condition leader;
        leader.name = leads;
        const std::string both = with_guard(*current_, leader);
        if (writes_) text_ += "\t@" + both + " " + statement + ";\n";
        return;
    }
    emit_of_lane(statement);
}

/// Before what one lane does or announces for all in code whose uniform instructions are the warp's. Such code has no
/// barrier of the warp between the stores of all lanes and the copy that reads them, or the arrival that says that they
/// are done: a GPU's lanes issue each instruction together. Here one lane may be ahead of the others.
/// Who is here is asked anew: of an answer from before a barrier of the block it is not known that they are all (see
/// meets_in_part()).
void Lifter::finish_together() {
    if (!is_by_hand_) return;
    lanes_here_.clear();
    emit("bar.warp.sync " + lanes_here());
}

/// What a uniform instruction does for the lane whose turn it is.
void Lifter::emit_of_lane(const std::string& statement) {
    if (const auto lane = lone_lane_in_loop(); lane) {
        const std::string both = with_guard(*current_, *lane);
        if (writes_) text_ += "\t@" + both + " " + statement + ";\n";
        return;
    }
    if (!elected_.empty() && is_unguarded(*current_)) {
        if (writes_) text_ += "\t@" + elected_ + " " + statement + ";\n";
        return;
    }
    emit_guarded(statement);
}

/// Where the block is a loop that goes on while lanes are left whose turn it was not, by ELECT or, lanes with one value
/// together, by R2UR: which lanes take part.
std::optional<Condition> Lifter::lone_lane_in_loop() const {
    const Block& block = blocks_[current_block_];
    const Instruction& last = code_[block.end / instruction_size - 1];
    if (last.form == nullptr || last.form->id != FormId::bra || !last.has("ANY") || last.guard_negated) return {};
    for (std::uint32_t at = block.begin; at < block.end; at += instruction_size) {
        const Instruction& inst = code_[at / instruction_size];
        if (inst.guard != last.guard || inst.guard_negated) continue;
        if (inst.form->id == FormId::elect) return condition(inst.operands[0]);
        if (inst.form->rule == "r2ur" && inst.operands[0].index != true_predicate) {
            Condition lone;
            lone.name = "%lone";
            return lone;
        }
    }
    return {};
}

// --- mbarrier objects ---

/// mbarrier.init, as the word that it writes.
void Lifter::barrier_exchange(const Instruction& inst) {
    const std::string where = address(inst.operands[1], ".shared"), word = wide_text(read_pair(inst.operands[2]));
    if (inst.operands[0].index == zero_uniform) {
        emit_of_lane("st.shared.b64 " + where + ", " + word);
        return;
    }
    const std::string old = wide_temporary();
    emit_guarded("atom.shared.exch.b64 " + old + ", " + where + ", " + word);
    write_pair(inst.operands[0], name_wide(old));
}

/// .RED: at an object of any block of the cluster, without a state. A1T0: one arrival; ART0: as many as the register
/// says; none: an arrival, and the register's bytes are expected; A0TR, A0TX: the bytes only, expected or there.
void Lifter::barrier_arrive(const Instruction& inst) {
    const bool anywhere = inst.has("RED");
    const Operand& count = inst.operands[2];
    if (inst.has("TMASK")) refuse_here();
    finish_together();
    if (inst.has("A0TR") || inst.has("A0TX")) {
        if (!anywhere || inst.has("OPTOUT")) refuse_here();
        emit_guarded(std::string(inst.has("A0TR") ? "mbarrier.expect_tx" : "mbarrier.complete_tx") +
                     ".relaxed.cluster.shared::cluster.b64 " + cluster_address(inst.operands[1]) + ", " +
                     in_register(read(count)));
        return;
    }
    if (inst.has("A0T1")) { // the first half of cp.async.mbarrier.arrive, whose second ARRIVES is
        const std::uint32_t next = inst.address + instruction_size;
        if (next >= blocks_[current_block_].end) refuse_here();
        const Instruction& second = code_[next / instruction_size];
        const Operand &here = inst.operands[1], &there = second.operands[0];
        if (second.form->id != FormId::arrives || !second.has("TRANSCNT") || here.index != there.index ||
            here.uniform != there.uniform || here.value != there.value || inst.guard != second.guard ||
            inst.guard_negated != second.guard_negated)
            refuse_here();
        return;
    }
    std::string text = inst.has("OPTOUT") ? "mbarrier.arrive_drop" : "mbarrier.arrive";
    const bool expects = !inst.has("A1T0") && !inst.has("ART0");
    if (expects) text += ".expect_tx";
    const std::string amount = inst.has("A1T0") ? std::string() : ", " + in_register(read(count));
    if (anywhere) {
        emit_guarded(text + ".release.cluster.shared::cluster.b64 _, " + cluster_address(inst.operands[1]) + amount);
        return;
    }
    const std::string state = wide_temporary();
    emit_guarded(text + ".shared.b64 " + state + ", " + address(inst.operands[1], ".shared") + amount);
    if (inst.operands[0].index != zero_register) write_pair(inst.operands[0], name_wide(state));
}

/// Whether a phase is over, of which the upper bit of the register (of a state's upper half) is the parity.
void Lifter::barrier_check(const Instruction& inst) {
    const std::string where = address(inst.operands[1], ".shared");
    const Value state = read(inst.operands[2]);
    std::string parity;
    if (state.constant) {
        parity = std::to_string(*state.constant >> 31);
    } else {
        parity = temporary();
        emit("shr.u32 " + parity + ", " + state.text + ", 31");
    }
    const std::string complete = predicate_temporary();
    emit_guarded(std::string(inst.has("TRYWAIT") ? "mbarrier.try_wait" : "mbarrier.test_wait") + ".parity.shared.b64 " +
                 complete + ", " + where + ", " + parity);
    // Where what follows is done once for a warp its lanes must not come apart by asking at different times.
    if (is_by_hand_ && inst.operands[1].index == zero_register) {
        Condition mine;
        mine.name = complete;
        const std::string here = lanes_here(), own = with_guard(inst, mine), of_warp = predicate_temporary();
        emit("vote.sync.any.pred " + of_warp + ", " + own + ", " + here);
        write_predicate(inst.operands[0], of_warp);
        return;
    }
    write_predicate(inst.operands[0], complete);
}

void Lifter::barrier_invalidate(const Instruction& inst) {
    if (inst.has("IVALL")) return; // what caches hold of objects that were made invalid
    emit_guarded("mbarrier.inval.shared.b64 " + address(inst.operands[0], ".shared"));
}

void Lifter::barrier_arrive_copies(const Instruction& inst) {
    emit_guarded(std::string("cp.async.mbarrier.arrive") + (inst.has("ARVCNT") ? ".noinc" : "") + ".shared.b64 " +
                 address(inst.operands[0], ".shared"));
}

// --- stores and copies that an mbarrier object counts ---

/// The pair is the address of what is written and that of the object.
void Lifter::store_async(const Instruction& inst) {
    const Operand& place = inst.operands[0];
    const unsigned first = index_of(inst.operands[1]);
    if (!place.wide || place.uniform != zero_uniform || place.index == zero_register || place.index % 2 != 0)
        refuse_here();
    const std::string to = cluster_address(place.index, place.value), object = cluster_address(place.index + 1u, 0);
    const bool is_wide = inst.has("64");
    const std::string value = is_wide ? wide_text(pair_at(first)) : word_at(first);
    if (inst.form->id == FormId::redas) {
        const std::string operation = reduction_of(inst);
        if (is_wide && operation != "add") refuse_here();
        emit_guarded("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + operation +
                     (is_bitwise(operation) ? ".b32 "
                      : inst.has("S32")     ? ".s32 "
                      : is_wide             ? ".u64 "
                                            : ".u32 ") +
                     to + ", " + value + ", " + object);
        return;
    }
    std::string values = value;
    if (inst.has("128")) {
        if (first == zero_register) refuse_here();
        for (unsigned i = 1; i < 4; ++i) values += ", " + word_at(first + i);
        values = "{" + values + "}";
    }
    emit_guarded(std::string("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes") +
                 (inst.has("128") ? ".v4.b32 "
                  : is_wide       ? ".b64 "
                                  : ".b32 ") +
                 to + ", " + values + ", " + object);
}

/// The upper half of a word, in a .b16 register.
std::string Lifter::upper_half_of(const std::string& word) {
    const std::string high = temporary();
    emit("shr.u32 " + high + ", " + word + ", 16");
    return half_of(high);
}

/// Bytes of a copy in bulk: the lower half of a word says how many times 16.
std::string Lifter::bulk_size(const std::string& word) {
    const std::string low = temporary(), size = temporary();
    emit("and.b32 " + low + ", " + word + ", 0xffff");
    emit("shl.b32 " + size + ", " + low + ", 4");
    return size;
}

namespace {

/// The register behind another of an operand in consecutive uniform registers.
unsigned behind(const Operand& first, unsigned distance) {
    return uniform_base + first.index + distance;
}

} // namespace

void Lifter::bulk_copy(const Instruction& inst) {
    const Operand &target = inst.operands[0], &source = inst.operands[1];
    const bool to_shared = inst.code.bit(73), from_shared = inst.code.bit(74);
    const std::string word = word_at(index_of(inst.operands[2])), size = bulk_size(word);
    if (!to_shared) {
        if (!from_shared || inst.has("MULTICAST")) refuse_here();
        emit_once("cp.async.bulk.global.shared::cta.bulk_group [" + wide_text(read_pair(target)) + "], " +
                  cluster_address(index_of(source), 0) + ", " + size);
        return;
    }
    const std::string to = cluster_address(index_of(target), 0), object = cluster_address(behind(target, 1), 0);
    std::string text = "cp.async.bulk.shared::cluster.";
    if (from_shared) {
        if (inst.has("MULTICAST")) refuse_here();
        emit_once(text + "shared::cta.mbarrier::complete_tx::bytes " + to + ", " +
                  cluster_address(index_of(source), 0) + ", " + size + ", " + object);
        return;
    }
    const bool several = inst.has("MULTICAST");
    const std::string mask = several ? ", " + upper_half_of(word) : std::string();
    emit_once(text + "global.mbarrier::complete_tx::bytes" + (several ? ".multicast::cluster " : " ") + to + ", [" +
              wide_text(read_pair(source)) + "], " + size + ", " + object + mask);
}

void Lifter::bulk_reduction(const Instruction& inst) {
    const Operand &target = inst.operands[0], &source = inst.operands[1];
    const std::string size = bulk_size(word_at(index_of(inst.operands[2]))), operation = reduction_of(inst);
    const std::string from = cluster_address(index_of(source), 0);
    const bool is_wide = inst.has("U64") || inst.has("S64"), is_signed = inst.has("S32") || inst.has("S64");
    std::string type;
    if (inst.has("F32.FTZ.RN")) refuse_here();
    if (inst.has("F16.RN") || inst.has("BF16.RN"))
        type = std::string(operation == "add" ? ".noftz" : "") + (inst.has("F16.RN") ? ".f16" : ".bf16");
    else if (inst.has("F32.RN") || inst.has("F64.RN"))
        type = inst.has("F32.RN") ? ".f32" : ".f64";
    else
        type = std::string(is_bitwise(operation) ? ".b" : is_signed ? ".s" : ".u") + (is_wide ? "64" : "32");
    if (operation == "add" && type == ".s64") type = ".u64"; // PTX has no other name for it
    if (inst.code.bit(73)) {
        emit_once("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." + operation + type +
                  " " + cluster_address(index_of(target), 0) + ", " + from + ", " + size + ", " +
                  cluster_address(behind(target, 1), 0));
        return;
    }
    emit_once("cp.reduce.async.bulk.global.shared::cta.bulk_group." + operation + type + " [" +
              wide_text(read_pair(target)) + "], " + from + ", " + size);
}

/// A hint.
void Lifter::bulk_prefetch(const Instruction&) {}
void Lifter::tensor_prefetch(const Instruction&) {}

/// Whether UTMACMDFLUSH ends a group of copies, and not what UTMACCTL.IV before it began (fence.proxy.tensormap).
bool Lifter::ends_copies(const Instruction& inst) const {
    const std::size_t at = inst.address / instruction_size;
    return at == 0 || code_[at - 1].form == nullptr || code_[at - 1].form->id != FormId::utmacctl;
}

void Lifter::bulk_commit(const Instruction& inst) {
    if (!ends_copies(inst)) return;
    emit_guarded("cp.async.bulk.commit_group");
}

// --- copies of tensors ---

/// The address of a tensor's map.
std::string Lifter::tensor_map(const Operand& operand) {
    const std::string place = wide_text(read_pair(operand));
    return has_shifted_parameters() && reads_parameter_window_ ? declared_place(place) : place;
}

/// An address that among the parameters is one of the bank: the parameters that are declared may lie elsewhere.
std::string Lifter::declared_place(const std::string& place) {
    reads_parameter_window_ = true;
    const std::vector<PlacedParameter> placed = place_parameters();
    const std::string inside = wide_temporary();
    emit("sub.s64 " + inside + ", " + place + ", %parameter_window");
    std::int64_t shift = std::int64_t(placed[0].offset) - kernel_.parameters[0].offset;
    const std::int64_t first_shift = shift;
    const KernelParameter& last = kernel_.parameters.back();
    const std::string is_parameter = predicate_temporary();
    emit("setp.lt.u64 " + is_parameter + ", " + inside + ", " + std::to_string(last.offset + last.size));
    std::string chosen = place;
    for (std::size_t i = 1; i < placed.size(); ++i) {
        const std::int64_t from = kernel_.parameters[i].offset, here = std::int64_t(placed[i].offset) - from;
        if (here == shift) continue;
        shift = here;
        const std::string is_behind = predicate_temporary(), both = predicate_temporary(), moved = wide_temporary(),
                          result = wide_temporary();
        emit("setp.ge.u64 " + is_behind + ", " + inside + ", " + std::to_string(from));
        emit("and.pred " + both + ", " + is_behind + ", " + is_parameter);
        emit("add.s64 " + moved + ", " + place + ", " + std::to_string(here - first_shift));
        emit("selp.b64 " + result + ", " + moved + ", " + chosen + ", " + both);
        chosen = result;
    }
    return chosen;
}

/// "{%u4, %u5}", from a register on.
std::string Lifter::coordinates(unsigned first, unsigned rank) {
    std::string text;
    for (unsigned i = 0; i < rank; ++i) text += (i == 0 ? "{" : ", ") + word_at(first + i);
    return text + "}";
}

/// The registers are the target, the object, the coordinates; another one holds the offsets of im2col and, in its upper
/// half, the blocks.
void Lifter::tensor_load(const Instruction& inst) {
    const Operand& target = inst.operands[0];
    const unsigned rank = rank_of(inst);
    const bool several = inst.has("MULTICAST"), by_image = inst.has("IM2COL");
    std::string offsets, mask;
    if (inst.form->id == FormId::utmaldg_multicast) {
        const std::string word = word_at(index_of(inst.operands[2]));
        if (by_image && rank == 3) {
            offsets = ", {" + half_of(word) + "}";
        } else if (by_image && rank == 4) {
            const std::string first = temporary(), second = temporary();
            emit("bfe.u32 " + first + ", " + word + ", 0, 8");
            emit("bfe.u32 " + second + ", " + word + ", 8, 8");
            const std::string low = half_of(first), high = half_of(second);
            offsets = ", {" + low + ", " + high + "}";
        } else if (by_image) {
            std::string list;
            for (unsigned i = 0; i < 3; ++i) {
                const std::string offset = temporary();
                emit("bfe.u32 " + offset + ", " + word + ", " + std::to_string(5 * i) + ", 5");
                list += (i == 0 ? "{" : ", ") + half_of(offset);
            }
            offsets = ", " + list + "}";
        }
        if (several) mask = ", " + upper_half_of(word);
    }
    emit_once("cp.async.bulk.tensor." + std::to_string(rank) + "d.shared::cluster.global." +
              (by_image ? "im2col" : "tile") + ".mbarrier::complete_tx::bytes" +
              (several ? ".multicast::cluster " : " ") + cluster_address(index_of(target), 0) + ", [" +
              tensor_map(inst.operands[1]) + ", " + coordinates(behind(target, 2), rank) + "], " +
              cluster_address(behind(target, 1), 0) + offsets + mask);
}

void Lifter::tensor_store(const Instruction& inst) {
    const Operand& source = inst.operands[0];
    const unsigned rank = rank_of(inst);
    const bool reduces = inst.form->id == FormId::utmaredg;
    emit_once(std::string(reduces ? "cp.reduce" : "cp") + ".async.bulk.tensor." + std::to_string(rank) +
              "d.global.shared::cta." + (reduces ? reduction_of(inst) + "." : std::string()) +
              (inst.has("IM2COL") ? "im2col_no_offs" : "tile") + ".bulk_group [" + tensor_map(inst.operands[1]) + ", " +
              coordinates(behind(source, 1), rank) + "], " + cluster_address(index_of(source), 0));
}

void Lifter::tensor_map_control(const Instruction& inst) {
    if (inst.has("IV"))
        emit_guarded("fence.proxy.tensormap::generic.acquire.sys [" + tensor_map(inst.operands[0]) + "], 128");
}

void Lifter::fence_async(const Instruction& inst) {
    emit_guarded(inst.has("G") ? "fence.proxy.async.global" : "fence.proxy.async");
}

// --- clusters and grids ---

void Lifter::cluster_arrive(const Instruction&) {
    emit_guarded("barrier.cluster.arrive");
}
void Lifter::cluster_wait(const Instruction&) {
    emit_guarded("barrier.cluster.wait");
}

/// Registers are not scarce here: there are always enough.
void Lifter::set_register_count(const Instruction& inst) {
    if (inst.has("TRY_ALLOC")) write_predicate(inst.operands[0], true);
}

void Lifter::wait_for_grids(const Instruction&) {
    emit_guarded("griddepcontrol.wait");
}
void Lifter::launch_dependents(const Instruction&) {
    emit_guarded("griddepcontrol.launch_dependents");
}

} // namespace ptarmigan::sass
