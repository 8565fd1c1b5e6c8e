// SPDX-License-Identifier: Apache-2.0
// Rules of loads, stores, copies and fences; atomics are in lift_atomics.cpp.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

using Kind = Operand::Kind;

Lifter::Size Lifter::size_of(const Instruction& inst) {
    if (inst.has("U8")) return {1, ".u8"};
    if (inst.has("S8")) return {1, ".s8"};
    if (inst.has("U16")) return {2, ".u16"};
    if (inst.has("S16")) return {2, ".s16"};
    if (inst.has("64")) return {8, ""};
    if (inst.has("128")) return {16, ""};
    return {4, ""};
}

/// The text between the brackets.
std::string Lifter::address(const Operand& operand, std::string_view space) {
    if (space == ".global" || space.empty()) {
        if (!current_->has("E")) refuse_here("an address of 32 bits");
        const bool adds_uniform = operand.uniform != zero_uniform && !operand.is_descriptor;
        if (operand.index == zero_register && !adds_uniform) refuse_here("an absolute address");
        std::string sum;
        if (adds_uniform) sum = wide_text(pair_at(uniform_base + operand.uniform));
        if (operand.index == zero_register) return "[" + sum + plus(operand.value) + "]";
        std::string base;
        if (operand.wide || !adds_uniform)
            base = wide_text(pair_at(operand.index));
        else // .U32: an offset from the uniform pair
            base = wide_text(join(read_index(operand.index), constant(0)));
        add_wide(sum, base);
        if (current_->form->id != FormId::ld || !aligns_maps_ || !has_shifted_parameters())
            return "[" + sum + plus(operand.value) + "]";
        if (operand.value == 0) return "[" + declared_place(sum) + "]";
        const std::string place = wide_temporary();
        emit("add.s64 " + place + ", " + sum + ", " + std::to_string(operand.value));
        return "[" + declared_place(place) + "]";
    }
    const bool is_shared = space == ".shared";
    std::int64_t offset = operand.value;
    std::string sum;
    const auto add = [&](const std::string& term) {
        if (sum.empty()) {
            sum = term;
            return;
        }
        const std::string result = temporary();
        emit("add.s32 " + result + ", " + sum + ", " + term);
        sum = result;
    };
    if (operand.index != zero_register) {
        const Value base = read_index(operand.index);
        if (base.constant) {
            offset += std::int64_t(*base.constant) << operand.scale;
        } else if (operand.scale != 0) {
            const std::string scaled = temporary();
            emit("shl.b32 " + scaled + ", " + base.text + ", " + std::to_string(operand.scale));
            add(scaled);
        } else {
            add(base.text);
        }
    }
    if (operand.uniform != zero_uniform) {
        const Value base = read_index(uniform_base + operand.uniform);
        if (base.constant)
            offset += *base.constant;
        else
            add(base.text);
    }
    // The system has the first kilobyte of shared memory on sm_90.
    if (is_shared && cubin_.architecture >= 90) offset -= system_shared;
    offset = std::int32_t(offset); // addresses of both spaces have 32 bits
    const std::string variable = !is_shared                ? "sass_stack"
                                 : kernel_.shared_size > 0 ? "sass_shared"
                                                           : "sass_dynamic_shared";
    if (!is_shared && stack_ == Stack::growing && sum.empty()) return "[%local_base" + plus(offset) + "]";
    if (sum.empty()) return "[" + variable + plus(offset) + "]";
    if (is_shared) {
        if (!has_ranks_) add("%shared_base");
        return "[" + sum + plus(offset) + "]";
    }
    if (offset != 0) add(std::to_string(offset));
    const std::string wide = wide_temporary(), place = wide_temporary();
    emit("cvt.u64.u32 " + wide + ", " + sum);
    emit("add.s64 " + place + ", %local_base, " + wide);
    return "[" + place + "]";
}

/// .relaxed.gpu and the like, or nothing for weak accesses.
std::string Lifter::memory_order(const Instruction& inst) const {
    if (inst.architecture < 80) switch (inst.code.bits(77, 4)) {
        case 4:
        case 5:
        case 6:
        case 7: return "";
        case 8:
        case 9: return ".relaxed.cta";
        case 10: return ".relaxed.gpu";
        case 11: return ".relaxed.sys";
        case 3: return "nc";
        default: throw Unliftable("an order of memory that is not known");
        }
    switch (inst.code.bits(77, 4)) {
    case 0: return "";
    case 5: return ".relaxed.cta";
    case 7: return ".relaxed.gpu";
    case 10: return ".relaxed.sys";
    case 12: return ".mmio.relaxed.sys";
    case 4: return "nc";
    default: throw Unliftable("an order of memory that is not known");
    }
}

/// Where `loads` is false the registers become zero.
void Lifter::load_value(const Instruction& inst, const std::string& opcode, const Operand& target, const Operand& place,
                        std::string_view space, const Condition& loads) {
    const Size size = size_of(inst);
    const std::string where = address(place, space);
    const unsigned first = index_of(target);
    const bool is_chosen = !loads.name.empty() || !loads.value;
    const std::string chosen = is_chosen ? with_guard(inst, loads) : std::string();
    const auto load = [&](const std::vector<std::string>& results, const std::string& statement) {
        if (!is_chosen) {
            emit_guarded(statement);
            return;
        }
        for (const std::string& result : results) emit((size.bytes == 8 ? "mov.b64 " : "mov.b32 ") + result + ", 0");
        if (writes_) text_ += "\t@" + chosen + " " + statement + ";\n";
    };
    if (size.bytes <= 4) {
        const std::string result = temporary();
        load({result}, opcode + (size.bytes == 4 ? ".b32" : size.narrow) + " " + result + ", " + where);
        write_index(first, value_of(result));
    } else if (size.bytes == 8) {
        const std::string result = wide_temporary();
        load({result}, opcode + ".b64 " + result + ", " + where);
        if (first != zero_register) write_pair(target, name_wide(result));
    } else {
        const std::vector<std::string> results = {temporary(), temporary(), temporary(), temporary()};
        load(results, opcode + ".v4.b32 {" + results[0] + ", " + results[1] + ", " + results[2] + ", " + results[3] +
                          "}, " + where);
        for (unsigned i = 0; i < 4 && first != zero_register; ++i) write_index(first + i, value_of(results[i]));
    }
}

void Lifter::store_value(const Instruction& inst, const std::string& opcode, const Operand& place, unsigned first,
                         std::string_view space) {
    const Size size = size_of(inst);
    const std::string where = address(place, space);
    const auto in_register = [&](unsigned index) {
        const Value value = first == zero_register ? constant(0) : read_index(index);
        if (!value.constant) return value.text;
        const std::string copy = temporary();
        emit("mov.b32 " + copy + ", " + value.text);
        return copy;
    };
    if (size.bytes <= 4) {
        emit_guarded(opcode +
                     (size.bytes == 1   ? ".b8 "
                      : size.bytes == 2 ? ".b16 "
                                        : ".b32 ") +
                     where + ", " + (size.bytes == 2 ? half_of(in_register(first)) : in_register(first)));
    } else if (size.bytes == 8) {
        emit_guarded(opcode + ".b64 " + where + ", " + wide_text(pair_at(first)));
    } else {
        std::string values = in_register(first);
        for (unsigned i = 1; i < 4; ++i) values += ", " + in_register(first + i);
        emit_guarded(opcode + ".v4.b32 " + where + ", {" + values + "}");
    }
}

std::string Lifter::half_of(const std::string& value) {
    const std::string result = "%h" + std::to_string(halves_++);
    emit("cvt.u16.u32 " + result + ", " + value);
    return result;
}

/// Bank 2 in memory, where a register chooses among its constants: an operand of mov.u64.
std::string Lifter::table_place() {
    const CubinSection* section = ModulePlan::table_of(cubin_, kernel_);
    if (section == nullptr || section->bytes.empty()) refuse_here("a table that is not there");
    if (!section->relocations.empty()) refuse_here("a table of addresses");
    const auto found = plan_.tables.find(std::size_t(section - cubin_.sections.data()));
    if (found == plan_.tables.end()) refuse_here("a table of this size");
    return std::string(tables_variable) + plus(found->second);
}

void Lifter::load(const Instruction& inst) {
    const bool is_global = inst.form->id == FormId::ldg || inst.form->id == FormId::ldg_plain;
    const Operand& target = inst.operands[is_global ? 1 : 0];
    if (is_global && inst.operands[0].index != true_predicate) refuse_here();
    const std::string order = memory_order(inst), space = is_global ? ".global" : "";
    const std::string opcode = order == "nc" ? (is_global ? "ld.global.nc" : "ld") : "ld" + order + space;
    load_value(inst, opcode, target, inst.operands[is_global ? 2 : 1], space,
               is_global ? condition(inst.operands[3]) : Condition());
}
/// What stands behind QSPC.L in the atomics of libcu++ is in kernels without local memory, too, where no address comes
/// there: it would fault.
bool Lifter::is_local_fault(const Instruction& inst) {
    if (stack_ == Stack::growing || kernel_.stack_size != 0) return false;
    emit_guarded("trap");
    return true;
}

void Lifter::load_local(const Instruction& inst) {
    if (is_local_fault(inst)) {
        const unsigned first = index_of(inst.operands[0]), bytes = size_of(inst).bytes;
        for (unsigned i = 0; 4 * i < bytes && first != zero_register; ++i) write_index(first + i, constant(0));
        return;
    }
    load_value(inst, "ld.local", inst.operands[0], inst.operands[1], ".local");
}
void Lifter::load_shared(const Instruction& inst) {
    load_value(inst, "ld.shared", inst.operands[0], inst.operands[1], ".shared");
}

void Lifter::store(const Instruction& inst) {
    const std::string order = memory_order(inst), space = inst.form->id == FormId::stg ? ".global" : "";
    if (order == "nc") refuse_here();
    store_value(inst, "st" + order + space, inst.operands[0], index_of(inst.operands[1]), space);
}
void Lifter::store_local(const Instruction& inst) {
    if (is_local_fault(inst)) return;
    store_value(inst, "st.local", inst.operands[0], index_of(inst.operands[1]), ".local");
}
void Lifter::store_shared(const Instruction& inst) {
    store_value(inst, "st.shared", inst.operands[0], index_of(inst.operands[1]), ".shared");
}

/// Where the predicate is false the target becomes zero. With .ZFILL the lower bits of the address say how many bytes
/// at the end do.
void Lifter::copy_to_shared(const Instruction& inst) {
    const Operand &with = inst.operands[2], &source = inst.operands[1];
    const unsigned bytes = inst.has("128") ? 16 : inst.has("64") ? 8 : 4;
    const std::string to = address(inst.operands[0], ".shared");
    std::string from, size;
    if (!inst.has("ZFILL")) {
        from = address(source, ".global");
    } else {
        const std::string place = wide_temporary(), low = wide_temporary(), start = wide_temporary(),
                          missing = temporary();
        Operand base = source;
        base.value = 0;
        from = address(base, ".global");
        size = temporary();
        emit("add.s64 " + place + ", " + from.substr(1, from.size() - 2) + ", " + std::to_string(source.value));
        emit("and.b64 " + low + ", " + place + ", " + std::to_string(bytes - 1));
        emit("sub.s64 " + start + ", " + place + ", " + low);
        emit("cvt.u32.u64 " + missing + ", " + low);
        emit("sub.s32 " + size + ", " + std::to_string(bytes) + ", " + missing);
        from = "[" + start + "]";
    }
    const Condition copies = condition(with);
    if (!copies.name.empty() || !copies.value) {
        const std::string chosen = temporary();
        emit("selp.b32 " + chosen + ", " + (size.empty() ? std::to_string(bytes) : size) + ", 0, " +
             as_register(copies));
        size = chosen;
    }
    emit_guarded(std::string("cp.async.") + (inst.has("BYPASS") ? "cg" : "ca") + ".shared.global " + to + ", " + from +
                 ", " + std::to_string(bytes) + (size.empty() ? "" : ", " + size));
}

void Lifter::commit_copies(const Instruction&) {
    emit_guarded("cp.async.commit_group");
}

/// Waits until a scoreboard has at most a number of open entries and others have none. Only that of the groups of
/// copies says anything: registers wait for their loads by themselves.
void Lifter::wait_copies(const Instruction& inst) {
    constexpr unsigned no_scoreboard = 7;
    // Of copies to shared memory, and of those in bulk from there.
    struct Groups {
        FormId ends;
        unsigned scoreboard_bit;
        const char* wait;
    };
    constexpr Groups kinds[] = {{FormId::ldgdepbar, 110, "cp.async.wait_group "},
                                {FormId::utmacmdflush, 113, "cp.async.bulk.wait_group "}};
    unsigned scoreboards[2] = {no_scoreboard, no_scoreboard};
    for (const Instruction& other : code_)
        for (unsigned kind = 0; kind < 2; ++kind) {
            if (other.form == nullptr || other.form->id != kinds[kind].ends) continue;
            const auto counted_by = unsigned(other.code.bits(kinds[kind].scoreboard_bit, 3));
            unsigned& copies = scoreboards[kind];
            if (kind == 1 && !ends_copies(other)) continue;
            if (counted_by == no_scoreboard || (copies != no_scoreboard && copies != counted_by))
                refuse_here("groups of copies by several scoreboards");
            copies = counted_by;
        }
    const bool names_one = inst.operands[0].value != std::int64_t(no_scoreboard) && inst.has("LE");
    const bool is_shared = scoreboards[0] == scoreboards[1];
    for (unsigned kind = 0; kind < 2; ++kind) {
        const unsigned copies = scoreboards[kind];
        if (copies == no_scoreboard) continue;
        if ((inst.operands[2].value >> copies & 1) != 0)
            emit_guarded(std::string(kinds[kind].wait) + "0");
        else if (names_one && inst.operands[0].value == std::int64_t(copies))
            emit_guarded(kinds[kind].wait + std::to_string(is_shared ? 0 : inst.operands[1].value));
    }
}

/// Which space a generic address is of. G, anything else, holds for constants, too: code compares an address with their
/// window, whose begin is in bank 0.
void Lifter::query_space(const Instruction& inst) {
    const Operand& place = inst.operands[2];
    if (!inst.has("E") || inst.operands[1].index != zero_register) refuse_here();
    const bool by_uniform = place.uniform != zero_uniform;
    if (by_uniform && (!place.wide || place.index != zero_register || place.uniform % 2 != 0)) refuse_here();
    const std::string whole = wide_temporary(), found = predicate_temporary();
    emit("add.s64 " + whole + ", " + wide_text(pair_at(by_uniform ? uniform_base + place.uniform : place.index)) +
         ", " + std::to_string(place.value));
    emit((inst.has("L")   ? "isspacep.local "
          : inst.has("S") ? "isspacep.shared "
          : inst.has("G") ? "isspacep.global "
                          : "isspacep.shared::cluster ") +
         found + ", " + whole);
    if (inst.has("G")) {
        const std::string is_constant = predicate_temporary(), either = predicate_temporary();
        emit("isspacep.const " + is_constant + ", " + whole);
        emit("or.pred " + either + ", " + found + ", " + is_constant);
        write_predicate(inst.operands[0], either);
        return;
    }
    write_predicate(inst.operands[0], found);
}

/// One without a word for its order is none that ptxas writes: the strongest there is. Nor is VC a scope of PTX's (it
/// ends code of -G): all there are.
void Lifter::fence(const Instruction& inst) {
    const char* scope = inst.has("CTA")                     ? ".cta"
                        : inst.has("GPU")                   ? ".gpu"
                        : inst.has("SYS") || inst.has("VC") ? ".sys"
                                                            : nullptr;
    if (scope == nullptr || inst.has("MMIO")) refuse_here();
    finish_together(); // one lane may tell others of what all have done
    emit_guarded(std::string(inst.has("ALL") ? "fence.acq_rel" : "fence.sc") + scope);
}

/// IVALL makes what other multiprocessors wrote visible: the second half of an acquire.
void Lifter::cache_control(const Instruction& inst) {
    // Lines to load, to keep or to give up: hints.
    for (const char* hint : {"PF1", "PF2", "PML2", "DML2", "RML2"})
        if (inst.has(hint) && !inst.has("U") && !inst.has("C") && !inst.has("I")) return;
    if (!inst.has("IVALL") || inst.form->id != FormId::cctl) refuse_here();
    emit_guarded("fence.acq_rel.gpu");
}

} // namespace ptarmigan::sass
