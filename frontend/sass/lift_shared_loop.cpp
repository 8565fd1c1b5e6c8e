// SPDX-License-Identifier: Apache-2.0
// The loop that ptxas makes of an atomic operation on shared memory for which there is no instruction: load, operate,
// swap if unchanged, again if it was not. It becomes that operation.
#include "frontend/sass/lifter.h"

namespace ptarmigan::sass {

struct Lifter::SharedLoop {
    const Instruction *load = nullptr, *operation = nullptr, *swap = nullptr, *branch = nullptr;
    const Instruction* upper = nullptr; ///< of an operation in two halves
    bool is_wide = false;
    bool tells = false; ///< the swap says by a predicate whether it succeeded

    const Operand& old() const { return load->operands[0]; }
    const Operand& place() const { return load->operands[1]; }
    unsigned result() const { return swap->operands[3].index; } ///< register of what is stored
    bool is_old(const Operand& operand) const {
        return operand.kind == Operand::Kind::reg && operand.index == old().index && !operand.negated;
    }
    bool changes(unsigned index) const {
        for (const Operand* written : {&old(), &operation->operands[0], tells ? &old() : &swap->operands[0]})
            if (index != zero_register && (index == written->index || (is_wide && index == written->index + 1u)))
                return true;
        return false;
    }
    bool changes(const Operand& term) const {
        return term.kind == Operand::Kind::reg && (changes(term.index) || (is_wide && changes(term.index + 1u)));
    }
    /// That of two operands which is not the old value; null if none or both are.
    const Operand* term_of(const Operand& a, const Operand& b) const {
        const auto is_plain = [&](const Operand& operand) { return is_old(operand) && !operand.absolute; };
        if (is_plain(a) == is_plain(b)) return nullptr;
        const Operand& term = is_plain(a) ? b : a;
        return changes(term) ? nullptr : &term;
    }
    bool asks_for_success(std::span<const Instruction* const> tests) const;
};

/// What follows the swap asks whether it succeeded, and the branch goes by that.
bool Lifter::SharedLoop::asks_for_success(std::span<const Instruction* const> tests) const {
    const Operand& success = swap->operands[0];
    if (tests.size() != (tells ? 0u : is_wide ? 2u : 1u)) return false;
    if (tells) return success.index == branch->guard && !branch->guard_uniform;
    const Instruction& test = *tests[0];
    if (test.form->id != FormId::isetp || !test.has("EQ") || test.operands[2].index != success.index ||
        test.operands[3].kind != Operand::Kind::immediate || test.operands[3].value != 1)
        return false;
    if (!is_wide) return test.operands[0].index == branch->guard;
    const Instruction& second = *tests[1];
    return second.form->id == FormId::isetp && second.has("EX") && second.has("EQ") &&
           second.operands[2].index == success.index + 1 && second.operands[3].index == zero_register &&
           second.operands[0].index == branch->guard;
}

std::optional<Lifter::SharedLoop> Lifter::find_shared_loop(const Block& block) const {
    if (block.end - block.begin < 4 * 16 || block.end - block.begin > 8 * 16) return std::nullopt;
    std::vector<const Instruction*> steps;
    for (std::uint32_t at = block.begin; at < block.end; at += 16) {
        const Instruction& inst = code_[at / 16];
        if (inst.form->rule != "nothing") steps.push_back(&inst);
    }
    if (steps.size() < 5) return std::nullopt;
    std::size_t swap_at = 0;
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i]->form->id == FormId::atoms_cas || steps[i]->form->id == FormId::atoms_cast) swap_at = i;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i)
        if (!is_unguarded(*steps[i])) return std::nullopt;
    SharedLoop loop{.load = steps[0], .operation = steps[1], .branch = steps.back()};
    loop.is_wide = loop.load->has("64");
    const Instruction& branch = *loop.branch;
    if (loop.load->form->id != FormId::lds || swap_at < 2 || swap_at > 3 || branch.form->rule != "branch" ||
        branch.guard == true_predicate || !branch.guard_negated ||
        branch.operands[branch.operand_count - 1].value != std::int64_t(block.begin))
        return std::nullopt;
    if (swap_at == 3) loop.upper = steps[2];
    loop.swap = steps[swap_at];
    const Instruction& swap = *loop.swap;
    const Operand &place = loop.place(), &to = swap.operands[1];
    if (!swap.has("CAST.SPIN") || swap.has("64") != loop.is_wide || swap.operands[2].index != loop.old().index ||
        place.index != to.index || place.uniform != to.uniform || place.value != to.value || place.scale != to.scale)
        return std::nullopt;
    loop.tells = swap.form->id == FormId::atoms_cast;
    if (!loop.tells && swap.operands[0].index != swap.operands[3].index) return std::nullopt;
    const auto behind_swap = std::span<const Instruction* const>(steps).subspan(swap_at + 1);
    if (behind_swap.empty() || !loop.asks_for_success(behind_swap.first(behind_swap.size() - 1))) return std::nullopt;
    if (loop.changes(place.index) || loop.operation->operands[0].index != loop.result() ||
        loop.result() == zero_register || loop.old().index == zero_register)
        return std::nullopt;
    return loop;
}

/// What is added to a 64-bit integer by R' = R + t with its carry, then the upper half by IADD3.X or IMAD.X.
std::string Lifter::term_of_halves(const SharedLoop& loop) {
    const Instruction &lower = *loop.operation, &upper = *loop.upper;
    if (lower.operands[1].index == true_predicate || lower.operands[2].index != true_predicate) return {};
    // The one of them that is neither zero nor the old value, which is once among them.
    const auto find_term = [&](std::span<const Operand* const> sources, unsigned old, const Operand*& term) {
        unsigned olds = 0;
        for (const Operand* source : sources) {
            if (source->negated) return false;
            if (source->kind == Operand::Kind::reg && source->index == old && !source->inverted) {
                ++olds;
            } else if (source->inverted || !is_zero_register(*source)) {
                if (term != nullptr) return false;
                term = source;
            }
        }
        return olds == 1;
    };
    const Operand *low = nullptr, *high = nullptr;
    const Operand* lowers[] = {&lower.operands[3], &lower.operands[4], &lower.operands[5]};
    if (!find_term(lowers, loop.old().index, low) || low == nullptr || upper.operands[0].index != loop.result() + 1u)
        return {};
    const bool is_sum = upper.form->id == FormId::iadd3 && upper.has("X");
    const bool is_product = upper.form->id == FormId::imad && upper.has("X");
    if (!is_sum && !is_product) return {};
    const Operand& carry = upper.operands[is_sum ? 6 : 5];
    if (carry.negated || carry.index != lower.operands[1].index) return {};
    if (is_sum && !(upper.operands[7].index == true_predicate && upper.operands[7].negated)) return {};
    if (upper.operands[1].index != true_predicate) return {};
    std::vector<const Operand*> uppers;
    if (is_sum) {
        if (upper.operands[2].index != true_predicate) return {};
        for (unsigned i = 3; i < 6; ++i) uppers.push_back(&upper.operands[i]);
    } else {
        const Operand &left = upper.operands[2], &right = upper.operands[3];
        const bool is_one = right.kind == Operand::Kind::immediate && right.value == 1;
        if (!is_one && !is_zero_register(left)) return {};
        if (is_one) uppers.push_back(&left);
        uppers.push_back(&upper.operands[4]);
    }
    if (!find_term(uppers, loop.old().index + 1u, high) || (high != nullptr && high->inverted)) return {};
    for (const Operand* source : {low, high})
        if (source != nullptr && source->kind == Operand::Kind::reg && loop.changes(source->index)) return {};
    return wide_text(join(read(*low), high == nullptr ? constant(0) : read(*high)));
}

bool Lifter::lift_shared_loop(const Block& block) {
    const std::optional<SharedLoop> found = find_shared_loop(block);
    if (!found) return false;
    const SharedLoop& loop = *found;
    const Instruction& operation = *loop.operation;
    const FormId form = operation.form->id;
    current_ = loop.load;
    lifted_ = std::span(code_).subspan(block.begin / 16, (block.end - block.begin) / 16);
    std::string type, term, kept_nan;
    if (loop.upper) {
        if (loop.is_wide && form == FormId::iadd3 && !operation.has("X")) term = term_of_halves(loop);
        type = ".u64";
    } else if (form == FormId::iadd_wide && loop.is_wide && !operation.has("X")) {
        const Operand* added = loop.term_of(operation.operands[2], operation.operands[3]);
        if (added && operation.operands[1].index == true_predicate) term = read_wide(*added);
        type = ".u64";
    } else if (form == (loop.is_wide ? FormId::dadd : FormId::fadd) && operation.modifier_count == 0) {
        const Operand* added = loop.term_of(operation.operands[1], operation.operands[2]);
        if (!added) return false;
        term = loop.is_wide ? read_double(*added) : read_float(*added);
        type = loop.is_wide ? ".f64" : ".f32";
        // Of two NaNs DADD keeps the second, PTX's operation the old value.
        const bool is_number =
            added->kind == Operand::Kind::immediate && (std::uint32_t(added->value) & 0x7fffffff) <= 0x7ff00000;
        if (loop.is_wide && added == &operation.operands[2] && !is_number) {
            kept_nan = wide_temporary();
            emit("mov.f64 " + kept_nan + ", " + term);
            term = kept_nan;
        }
    }
    if (term.empty()) return false;
    const std::string before = loop.is_wide ? wide_temporary() : temporary();
    const std::string where = address(loop.place(), ".shared");
    const std::string sum = "atom.shared.add" + type + " " + before + ", " + where + ", " + term;
    if (kept_nan.empty()) {
        emit(sum);
    } else {
        const std::string is_nan = predicate_temporary(), quiet = wide_temporary();
        emit("setp.nan.f64 " + is_nan + ", " + kept_nan + ", " + kept_nan);
        emit("or.b64 " + quiet + ", " + kept_nan + ", 0x8000000000000");
        emit("@!" + is_nan + " " + sum);
        emit("@" + is_nan + " atom.shared.exch.b64 " + before + ", " + where + ", " + quiet);
    }
    leave_shared_loop(loop, before);
    return true;
}

/// What the loop leaves behind.
void Lifter::leave_shared_loop(const SharedLoop& loop, const std::string& before) {
    if (loop.is_wide)
        write_pair(loop.old(), name_wide(before));
    else
        write(loop.old(), value_of(before));
    const Operand success = loop.swap->operands[0];
    if (!loop.tells && loop.is_wide)
        write_pair(success, join(constant(1), constant(0)));
    else if (!loop.tells)
        write(success, constant(1));
    Operand done;
    done.kind = Operand::Kind::predicate;
    done.index = loop.branch->guard;
    write_predicate(done, true);
}

} // namespace ptarmigan::sass
