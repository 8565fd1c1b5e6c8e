// SPDX-License-Identifier: Apache-2.0
// What lifting rules work with: the registers' contents as far as they are known, and the statements written so far.
//
// A register of the machine is a .b32 register of PTX. 64-bit values live in pairs of them. The lifter remembers of
// which 64-bit value a register holds a half: where both halves come together again, the value itself is used, so that
// later stages see addresses and doubles whole. At the beginning of a block it is known which pairs hold a value that
// was written as a whole on all ways to there; such pairs have a 64-bit register of their own beside the two.
#pragma once

#include "frontend/sass/cubin.h"
#include "frontend/sass/known_calls.h"
#include "frontend/sass/loop_entries.h"
#include "frontend/sass/module_plan.h"
#include "frontend/sass/opcode_table.h"

#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ptarmigan::sass {

/// Ends the lifting of a kernel; what() says why.
struct Unliftable : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The rounding that the instruction's words name, as PTX writes it.
inline std::string rounding(const Instruction& inst) {
    return inst.has("RM") ? ".rm" : inst.has("RP") ? ".rp" : inst.has("RZ") ? ".rz" : ".rn";
}

/// A 32-bit value: text of a PTX operand, and what is known of it.
struct Value {
    std::string text;
    int wide = -1;        ///< index of the 64-bit value that it is a half of
    bool is_high = false; ///< which
    unsigned number = 0;  ///< equal numbers: equal values; 0: not known
    unsigned sign_of = 0; ///< all bits are the sign of the value with this number
    std::optional<std::uint32_t> constant;
    bool is_window_high = false; ///< the upper half of generic addresses of shared memory
};

/// The register of a value that is_window_high.
inline constexpr std::string_view window_high = "%window_high";
/// The generic address of bank 3's beginning.
inline constexpr std::string_view constant_window = "%constant_window", constants_section = ".nv.constant3";
/// R1 as c[0x0][0x28] gives it, where the stack may grow: the end of a space of places of which the lowest have no
/// memory.
inline constexpr std::uint32_t growing_stack_end = 1 << 24;
inline constexpr unsigned stack_pointer = 1;
/// Bytes of shared memory that the system has on sm_90, where a kernel's begins.
inline constexpr unsigned system_shared = 0x400;

/// What stands behind an address: nothing where it is 0.
inline std::string plus(std::int64_t offset) {
    return offset == 0 ? std::string() : "+" + std::to_string(offset);
}

/// A predicate as an operand: a register, maybe inverted, or a constant.
struct Condition {
    std::string name;  ///< empty: constant
    bool value = true; ///< of a constant
    bool negated = false;
};

/// Registers 0 to 254 are R, those from 256 on UR.
inline constexpr unsigned uniform_base = 256, register_count = uniform_base + uniform_count;

/// What is known at the beginning of a block: of each pair whether its 64-bit register holds its value, whether
/// %active_mask holds the lanes that are together here, whether %met_mask holds those that met last but for a BRA.DIV,
/// and of each register whether it is_window_high, and whether it is a sine's argument in turns, whose own register
/// (%sine5 for R5) holds what was multiplied, as it was (the first bits) or with .ftz.
inline constexpr unsigned active_mask_bit = register_count / 2, met_mask_bit = active_mask_bit + 1,
                          window_high_bits = met_mask_bit + 1, sine_bits = window_high_bits + register_count,
                          flushed_sine_bits = sine_bits + register_count;
using EntryState = std::bitset<flushed_sine_bits + register_count>;

class Lifter {
public:
    struct Block {
        unsigned context = 0;
        std::uint32_t begin = 0, end = 0; ///< byte offsets
        std::vector<unsigned> successors;
        bool falls_through = false; ///< the last successor follows without a branch
    };

    /// All of which must stay.
    Lifter(const Cubin& cubin, const ModulePlan& plan, const CubinKernel& kernel);
    /// Declarations and statements of the body. Throws Unliftable.
    std::string lift();
    std::string parameter_list() const;
    /// Declarations of the functions that the runtime provides and the cubin names, for a module's head.
    static std::string provided_declarations(const Cubin& cubin);

private:
    /// How a parameter is declared in PTX: its offset there is not that in the bank where the bank's alignment is of
    /// the bank's addresses, or above 16.
    struct PlacedParameter {
        std::uint32_t alignment = 1, offset = 0;
        bool is_scalar = false;
    };
    std::vector<PlacedParameter> place_parameters() const; ///< by ordinal

    void rule(const Instruction& inst);
    // --- values ---
    static unsigned index_of(const Operand& operand);
    static std::string register_name(unsigned index);
    bool has_map(const KernelParameter& parameter) const;
    bool has_shifted_parameters() const;
    void find_kind();
    bool is_copy_of_one_lane(const Instruction& inst) const;
    Value read(const Operand& operand); ///< 32 bits, negated or inverted as the operand says
    Value read_plain(const Operand& operand);
    Value read_index(unsigned index);
    /// `text` with the operand's absolute value and sign; `type`: .f32 or .f64.
    std::string with_sign(const Operand& operand, std::string text, const char* type);
    std::string read_float(const Operand& operand);
    void keep_sine_argument(unsigned index, const std::string& argument, bool flushes);
    void forget_sine_argument(unsigned index);
    std::optional<std::pair<std::string, bool>> sine_argument(const Operand& turns); ///< and whether it is flushed
    static unsigned predicate_index(unsigned index, bool uniform) { return index + (uniform ? 8 : 0); }
    std::pair<unsigned, std::string> cube_coordinate(const Value& value) const;
    void use_signs_of_absolutes(Operand& operand, std::uint32_t signs);
    std::string read_double(const Operand& operand);
    int read_pair(const Operand& operand); ///< 64 bits as an integer
    int pair_at(unsigned index);
    std::string read_wide(const Operand& operand);
    void write_wide(const Operand& operand, const std::string& value);
    int join(const Value& low, const Value& high);
    Value constant_word(unsigned bank, std::int64_t offset);
    std::optional<Value> launch_word(std::int64_t offset);
    std::optional<Value> cluster_word(std::int64_t offset);
    std::optional<Value> parameter_word(std::int64_t offset);
    std::optional<Value> address_word(std::int64_t offset);
    Value special_word(const std::string& name);
    /// Of a load or store.
    struct Size {
        unsigned bytes;
        const char* narrow; ///< type of a load of less than a register
    };
    static Size size_of(const Instruction& inst);
    void load_constant_words(const Instruction& inst, const Operand& place, unsigned bytes);
    void load_part_of_word(const Instruction& inst, const Operand& place, const Size& size);
    void load_from_space(const Instruction& inst, const std::string& opcode, const std::string& where,
                         const Size& size);
    std::string place_in_section(const Operand& place, const std::string& base);
    std::string place_in_parameters(const Operand& place, std::string base);
    std::optional<std::uint32_t> constant_bytes(unsigned bank, std::int64_t offset);
    int parameter_pair(std::int64_t offset);
    Value parameter_window(bool of_bank, bool is_high);
    void move_address(const Instruction& inst, const CubinRelocation* relocation);
    std::string variable_place(const CubinSymbol& symbol, std::int64_t addend); ///< as an operand of mov.u64
    static Condition condition(const Operand& operand);
    Condition guard_condition() const; ///< of the current instruction
    void keep_guard(const Instruction& inst);
    void choose_stack();
    bool is_stack_known();
    bool has_recursion() const;
    void check_stack_pointer();
    bool always_branches(const Block& block) const;
    bool names_local_memory() const;
    std::string with_guard(const Instruction& inst, const Condition& also);
    void jump_under(const Instruction& inst, const Condition& also);
    void jump_by_register(const std::string& where, std::int64_t base, std::size_t count, const std::string& chosen);
    std::string as_register(const Condition& condition); ///< a predicate register that has its value
    std::string wide_text(int wide) const { return wide_names_[std::size_t(wide)]; }
    Value low_half(int wide), high_half(int wide);
    Value shared_window_high();

    void write(const Operand& operand, Value value);
    void write_index(unsigned index, Value value);
    void check_is_result(unsigned index);
    void write_pair(const Operand& operand, int wide);
    /// The .b64 register of a pair, which begins at an even index.
    static std::string pair_name(unsigned even);
    /// Puts a 64-bit value there; nothing else is known to be in it any more.
    void keep_pair(unsigned even, int wide);
    void write_predicate(const Operand& operand, const std::string& value); ///< a predicate register's name
    void write_predicate(const Operand& operand, const char* value) { write_predicate(operand, std::string(value)); }
    void write_predicate(const Operand& operand, bool value);

    std::string temporary(); ///< .b32
    /// total += term, 64 bits; an empty total is none.
    void add_wide(std::string& total, const std::string& term);
    /// MNMX's result: min or max, in PTX with these words behind, of a and b, and of c where there is one.
    std::string extreme(const Instruction& inst, const std::string& words, const std::string& a, const std::string& b,
                        const std::string& c = {});
    void write_extreme(const Instruction& inst, const std::string& words, const std::string& a, const std::string& b,
                       const std::string& c = {});
    std::string wide_temporary();      ///< .b64
    std::string predicate_temporary(); ///< .pred
    int name_wide(const std::string& text);
    Value value_of(std::string text);
    Value constant(std::uint32_t bits);

    /// A statement without a guard, "add.s32 %t1, %r2, %r3".
    void emit(const std::string& statement);
    /// A statement that only the threads execute whose guard is true.
    void emit_guarded(const std::string& statement);
    [[noreturn]] void refuse_here(const std::string& why = {});

    // --- blocks ---
    struct Caller {
        unsigned context = 0;
        std::uint32_t call = 0; ///< byte offset of the call
    };
    /// What is executed between a call and its return: the kernel's beginning, else a clone of the callee for a call,
    /// or a callee for all that call it.
    struct Context {
        std::vector<Caller> callers;
        std::vector<unsigned> returns; ///< blocks that end so
        unsigned depth = 0;
    };
    /// Who keeps R1 in the stack.
    enum class Stack : std::uint8_t {
        fixed,   ///< nobody: it is known, or R1 is a register like others
        checked, ///< what it becomes is compared with the stack's beginning
        growing, ///< that, and the stack has what CU_LIMIT_STACK_SIZE adds
    };
    void decode_sections();
    void decode_section(std::size_t index);
    std::set<std::size_t> stored_functions() const;
    void find_pointed_functions(const std::set<std::size_t>& sections);
    std::optional<std::uint64_t> code_address(const CubinSymbol& symbol, std::int64_t addend) const;
    std::string place(std::uint32_t address) const; ///< for messages
    void discover();
    void find_blocks();
    bool ends_block(const Instruction& inst) const;
    bool is_constant(std::uint32_t address) const;
    unsigned context_of_callee(unsigned caller, std::uint32_t call, std::uint32_t target);
    unsigned block_at(unsigned context, std::uint32_t address);
    const Instruction& instruction_at(std::uint32_t address) const;
    void find_successors(unsigned block);
    bool passes_return(const Instruction& call) const;
    void find_known_calls();
    void call_known(const KnownCall& known);
    void lift_block(unsigned block);
    void enter_loop(unsigned block);
    std::string way_to(unsigned block) const;
    void begin_block(const EntryState& state);
    std::string label(unsigned block) const;
    std::string jump_label(std::uint32_t address);

    const Cubin& cubin_;
    const ModulePlan& plan_;
    const CubinKernel& kernel_;
    std::map<std::size_t, std::uint32_t> bases_; ///< of sections of code: where they begin
    std::vector<Instruction> code_;              ///< by address; without a form between sections
    std::vector<bool> is_known_, leaders_;
    std::set<std::uint32_t> section_ends_;
    CodeFacts facts_;
    std::vector<std::uint32_t> addresses_; ///< immediate operands, sorted
    std::vector<std::uint32_t> pointed_functions_, absolute_functions_;
    std::map<std::uint32_t, KnownCall> known_calls_; ///< by place
    std::set<std::uint32_t> known_checks_;           ///< places of the FCHKs of divisions among them
    /// Of instructions with one that has not been applied; null: with several.
    std::map<std::uint32_t, const CubinRelocation*> relocated_;
    bool merges_calls_ = false;
    Stack stack_ = Stack::fixed;
    /// R1 from an instruction on, as a distance from the stack's beginning.
    struct StackPlace {
        std::uint32_t from = 0, place = 0;
    };
    std::vector<std::vector<StackPlace>> stack_places_; ///< by block, as far as known
    std::set<unsigned> changed_contexts_;               ///< with new callers
    std::vector<Context> contexts_;
    std::vector<Block> blocks_;
    LoopEntries loops_;
    std::map<std::pair<unsigned, std::uint32_t>, unsigned> block_ids_;
    std::map<std::pair<unsigned, std::uint32_t>, unsigned> context_ids_;

    // --- state in a block ---
    struct Register {
        int wide = -1;
        bool is_high = false;
        unsigned number = 0;
        unsigned sign_of = 0;
        std::optional<std::uint32_t> constant;
        bool is_window_high = false;
    };
    struct Carry { ///< a predicate that holds the carry of the lower half of a sum
        bool known = false;
        bool is_shift = false; ///< of LEA: a << shift plus b
        unsigned shift = 0;
        Value a, b, c; ///< as read, before negation
        bool negated[3] = {};
        unsigned result = 0, result_number = 0; ///< register of the lower half
        unsigned number = 0;                    ///< where the carry is in two predicates: equal in both
    };
    /// Shared addresses hold the block's rank in the cluster.
    bool has_ranks_ = false;
    /// Asynchronous code that ptxas did not write, or in which it joined the ways of an elected lane and of the others:
    /// a uniform register is the warp's, and what one lane writes the others see.
    bool is_by_hand_ = false;
    bool reads_parameter_window_ = false; ///< the address of the parameters
    bool aligns_maps_ = false;            ///< of tensors among the parameters, for code that may read their address
    std::array<Register, register_count> registers_{};
    std::array<Carry, 16> carries_{};
    EntryState pairs_; ///< whose 64-bit register holds their value
    std::map<std::int64_t, int> parameter_pairs_;
    struct Wide {
        int number = -1;
    };
    std::map<std::string, Wide> variable_pairs_;     ///< addresses in this block
    std::map<unsigned, std::string> sine_arguments_; ///< number of x/2pi to x
    /// Of a register that an instruction under a guard made a sine's argument in turns.
    struct GuardedSine {
        unsigned guard = 0; ///< as predicate_index()
        bool negated = false, flushes = false;
    };
    std::map<unsigned, GuardedSine> guarded_sines_;
    std::set<unsigned> reciprocals_; ///< numbers of what MUFU.RCP gave
    /// Number of a product of one: which, and the other factor.
    std::map<unsigned, std::pair<unsigned, std::string>> reciprocal_products_;
    std::string collective_mask_;
    std::string elected_;    ///< what the block's last ELECT chose, where no branch has been between; else empty
    std::string lanes_here_; ///< lanes_here() of the block, where it has been asked; else empty
    std::string guard_copy_; ///< empty: the guard's own register holds it
    std::map<unsigned, std::set<std::uint32_t>> combined_; ///< by block, see combined_atomics.h
    std::size_t search_steps_ = 20'000'000;                ///< instructions that is_read_behind may still look at
    std::map<unsigned, std::string> lone_masks_; ///< number of a vote's result that is this lane alone, to its number
    std::set<unsigned> lone_lanes_;              ///< numbers of values that are this lane's number
    const Instruction* current_ = nullptr;
    std::span<const Instruction> lifted_; ///< at once: one, or a loop that is one operation here
    unsigned current_block_ = 0;
    unsigned next_number_ = 1;

    std::string text_;
    bool writes_ = true; ///< false while the blocks' entry states are being found
    std::vector<std::string> wide_names_;
    std::map<std::string, int> wide_ids_;
    std::map<int, std::uint64_t> wide_constants_; ///< what 64-bit values are, where that is known
    unsigned temporaries_ = 0, wide_temporaries_ = 0, predicate_temporaries_ = 0;
    unsigned halves_ = 1, quads_ = 0;

    // --- rules ---
    static bool is_unguarded(const Instruction& inst);
    bool upper_half(const Instruction& inst, const Operand& d, std::array<const Operand*, 3> sources, const Operand& in,
                    const Operand& in2, bool has_carries);
    Value sum_of_three(std::span<const Operand* const, 3> sources, std::span<const Value, 3> plain, bool has_carries);
    void write_with_carries(const Instruction& inst, std::span<const Value, 3> plain, const Value& value);
    void add_upper_halves(const Instruction& inst);
    Value kept_copy(const Value& source);
    /// What is known of the carry in a predicate.
    Carry& carry_in(const Operand& predicate) {
        return carries_[predicate.index + (predicate.kind == Operand::Kind::uniform_predicate ? 8u : 0u)];
    }
    void add_shifted(const Instruction& inst);
    void add_shifted_above(const Instruction& inst);
    void finish_pair(unsigned index, const Carry& carry, int wide);
    std::string compare_word(const Instruction& inst);
    void combine(const Instruction& inst, const std::string& result, const Operand& first, const Operand& second,
                 const Operand& with);
    std::string address(const Operand& operand, std::string_view space);
    void load_value(const Instruction& inst, const std::string& opcode, const Operand& target, const Operand& place,
                    std::string_view space, const Condition& loads = {});
    void store_value(const Instruction& inst, const std::string& opcode, const Operand& place, unsigned first,
                     std::string_view space);
    std::string mask(const Instruction& inst);
    bool is_behind_division(const Instruction& inst) const;
    bool is_gathering(const Instruction& inst) const;
    bool is_followed_by_vote_of_all(const Instruction& inst) const;
    bool is_combined(const Instruction& inst);                       ///< see combined_atomics.h
    bool is_read_behind(std::uint32_t from, const Operand& operand); ///< from there on in the current block
    bool ends_in_division() const;                                   ///< the block, in BRA.DIV
    bool is_mask_of_division(const Instruction& inst) const;
    bool is_guard_of_division(const Instruction& inst);
    void come_together(const std::string& lanes);
    std::string lanes_here();
    void meet(const std::string& lanes);
    std::string word_at(unsigned index);
    std::string cluster_address(unsigned index, std::int64_t offset);
    std::string cluster_address(const Operand& place);
    void emit_once(const std::string& statement);
    void finish_together();
    bool ends_copies(const Instruction& inst) const;
    void emit_of_lane(const std::string& statement);
    std::optional<Condition> lone_lane_in_loop() const;
    std::string upper_half_of(const std::string& word);
    std::string bulk_size(const std::string& word);
    std::string tensor_map(const Operand& operand);
    std::string declared_place(const std::string& place);
    std::string coordinates(unsigned first, unsigned rank);
    std::string matrix_description(unsigned index);
    void forget(unsigned index);
    void write_all(unsigned index, const Value& value); ///< of all lanes, whatever the guard is
    std::string table_place();
    bool has_section(std::string_view name) const; ///< of variables, and not an empty one
    /// The number that stands for a provided function's address; none for others.
    /// Whether calls of a function go to what the runtime provides, though the cubin may hold a body.
    bool is_left_to_runtime(const CubinSymbol& symbol) const;
    static std::optional<std::uint64_t> provided_address(std::string_view name);
    /// Calls the function, of the lanes of a predicate if one is given.
    void call_provided(std::uint64_t address, const std::string& chosen);
    std::string read_quad(const Operand& first);
    void write_quad(const Operand& first, const std::string& quad);
    std::string atomic_operand(bool is_integer, unsigned index);
    std::string vector_operands(const Operand& first, unsigned registers, bool is_of_halves);
    struct SharedLoop;
    std::optional<SharedLoop> find_shared_loop(const Block& block) const;
    std::string term_of_halves(const SharedLoop& loop);
    bool lift_shared_loop(const Block& block);
    void leave_shared_loop(const SharedLoop& loop, const std::string& before);
    bool keeps_nan_of_term(const Instruction& inst) const;
    std::string half_of(const std::string& value);
    bool is_local_fault(const Instruction& inst); ///< the lower 16 bits, in a .b16 register
    std::string in_register(const Value& value);
    void multiply_scaled(const Instruction& inst, const char* scale);
    void add_shifted_with_carry(const Instruction& inst);
    void round_to_bfloat(const Instruction& inst);
    std::string signed_but_nans(const Operand& source, const std::string& wide);
    void f2fp_of_bytes(const Instruction& inst, const std::string& words, const std::string& result,
                       const std::string& half);
    std::string read_halves(const Operand& operand, bool bfloat);
    /// The half that the operand chooses, in a .b16 register.
    std::string read_half(const Operand& operand);
    /// A predicate for each half, in order; `with` is combined already.
    std::array<std::string, 2> compare_halves(const Instruction& inst, unsigned first);
    std::string fragment(const Operand& operand, unsigned count, const char* signs = nullptr);
    /// New temporaries for `count` (at most 4) results of one statement.
    std::vector<std::string> result_temporaries(unsigned count);
    void write_results(const Operand& first, const std::vector<std::string>& results);
    std::string object_of(const Value& number);
    Value bound_object(const Instruction& inst, std::size_t operand);
    std::vector<Value> texture_operands(const Instruction& inst, std::size_t inside, std::size_t count);
    void fetch_texels(const std::string& statement, const std::vector<std::string>& texels, const std::string& chosen);
    void add_texels_of_line(std::vector<std::string>& texels, const std::string& y,
                            const std::function<std::vector<std::string>(const std::string& chosen)>& fetch);
    void write_texels(const Instruction& inst, std::size_t mask_operand, const std::vector<std::string>& texels);
    std::string surface_place(const Instruction& inst, std::size_t address, std::size_t object, std::string& shape);
    std::string memory_order(const Instruction& inst) const;
    void done_by_hardware(const Instruction& inst);

public:
#define LIFT_RULE(name) void name(const Instruction& inst)
    LIFT_RULE(mov);
    LIFT_RULE(sel);
    LIFT_RULE(isetp);
    LIFT_RULE(iadd3);
    LIFT_RULE(lea);
    LIFT_RULE(lop3);
    LIFT_RULE(iabs);
    LIFT_RULE(prmt);
    LIFT_RULE(imnmx);
    LIFT_RULE(shf);
    LIFT_RULE(sgxt);
    LIFT_RULE(bmsk);
    LIFT_RULE(plop3);
    LIFT_RULE(imad);
    LIFT_RULE(imad_wide);
    LIFT_RULE(imad_hi);
    LIFT_RULE(idp);
    LIFT_RULE(flo);
    LIFT_RULE(brev);
    LIFT_RULE(popc);
    LIFT_RULE(plop3_sign);
    LIFT_RULE(p2r);
    LIFT_RULE(r2p);
    LIFT_RULE(s2r);
    LIFT_RULE(cs2r);
    LIFT_RULE(viadd);
    LIFT_RULE(vimnmx3);
    LIFT_RULE(viaddmnmx);
    LIFT_RULE(vabsdiff);
    LIFT_RULE(vabsdiff4);
    LIFT_RULE(fsel);
    LIFT_RULE(fmnmx);
    LIFT_RULE(fset);
    LIFT_RULE(fsetp);
    LIFT_RULE(fmul);
    LIFT_RULE(fadd);
    LIFT_RULE(ffma);
    LIFT_RULE(fchk);
    LIFT_RULE(mufu);
    LIFT_RULE(dmul);
    LIFT_RULE(dadd);
    LIFT_RULE(dsetp);
    LIFT_RULE(dfma);
    LIFT_RULE(i2i);
    LIFT_RULE(i2ip);
    LIFT_RULE(f2ip);
    LIFT_RULE(f2i);
    LIFT_RULE(i2f);
    LIFT_RULE(frnd);
    LIFT_RULE(f2f64);
    LIFT_RULE(f2fp);
    LIFT_RULE(f2f);
    LIFT_RULE(hset2);
    LIFT_RULE(hsetp2);
    LIFT_RULE(hadd2);
    LIFT_RULE(hfma2);
    LIFT_RULE(hmnmx2);
    LIFT_RULE(vhmnmx);
    LIFT_RULE(hmul2);
    LIFT_RULE(hmma);
    LIFT_RULE(imma);
    LIFT_RULE(qmma);
    LIFT_RULE(dmma);
    LIFT_RULE(ldsm);
    LIFT_RULE(movm);
    LIFT_RULE(load);
    LIFT_RULE(load_local);
    LIFT_RULE(load_shared);
    LIFT_RULE(store);
    LIFT_RULE(store_local);
    LIFT_RULE(store_shared);
    LIFT_RULE(load_constant);
    LIFT_RULE(atomic);
    LIFT_RULE(reduction);
    LIFT_RULE(compare_and_swap);
    LIFT_RULE(atomic_shared);
    LIFT_RULE(compare_and_swap_shared);
    LIFT_RULE(count_shared);
    LIFT_RULE(copy_to_shared);
    LIFT_RULE(commit_copies);
    LIFT_RULE(wait_copies);
    LIFT_RULE(query_space);
    LIFT_RULE(fence);
    LIFT_RULE(nothing);
    LIFT_RULE(no_operation);
    LIFT_RULE(reconverge);
    LIFT_RULE(cache_control);
    LIFT_RULE(barrier);
    LIFT_RULE(barrier_result);
    LIFT_RULE(shuffle);
    LIFT_RULE(vote);
    LIFT_RULE(match);
    LIFT_RULE(redux);
    LIFT_RULE(elect);
    LIFT_RULE(warpsync);
    LIFT_RULE(nanosleep);
    LIFT_RULE(texture);
    LIFT_RULE(texture_gradients);
    LIFT_RULE(texture_query);
    LIFT_RULE(surface_load);
    LIFT_RULE(surface_store);
    LIFT_RULE(surface_reduce);
    LIFT_RULE(branch);
    LIFT_RULE(branch_indexed);
    LIFT_RULE(exit);
    LIFT_RULE(call);
    LIFT_RULE(call_absolute);
    LIFT_RULE(call_indexed);
    LIFT_RULE(lepc);
    LIFT_RULE(ret);
    LIFT_RULE(trap);
    LIFT_RULE(r2ur);
    LIFT_RULE(add_wide_uniform);
    LIFT_RULE(iadd_wide);
    LIFT_RULE(mov_wide);
    LIFT_RULE(sel_wide);
    LIFT_RULE(pair_of_floats);
    LIFT_RULE(imnmx_wide);
    LIFT_RULE(fmnmx3);
    LIFT_RULE(warpgroup_product);
    LIFT_RULE(warpgroup);
    LIFT_RULE(stsm);
    LIFT_RULE(barrier_exchange);
    LIFT_RULE(barrier_arrive);
    LIFT_RULE(barrier_check);
    LIFT_RULE(barrier_invalidate);
    LIFT_RULE(barrier_arrive_copies);
    LIFT_RULE(store_async);
    LIFT_RULE(bulk_copy);
    LIFT_RULE(bulk_reduction);
    LIFT_RULE(bulk_prefetch);
    LIFT_RULE(bulk_commit);
    LIFT_RULE(tensor_load);
    LIFT_RULE(tensor_store);
    LIFT_RULE(tensor_prefetch);
    LIFT_RULE(tensor_map_control);
    LIFT_RULE(fence_async);
    LIFT_RULE(cluster_arrive);
    LIFT_RULE(cluster_wait);
    LIFT_RULE(set_register_count);
    LIFT_RULE(wait_for_grids);
    LIFT_RULE(launch_dependents);
#undef LIFT_RULE
};

} // namespace ptarmigan::sass
