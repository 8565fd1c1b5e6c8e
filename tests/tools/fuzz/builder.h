// SPDX-License-Identifier: Apache-2.0
// Writes one random program: instructions.cpp and memory.cpp make statements, control_flow.cpp the ways between them, frame.cpp what
// stands around.
#pragma once

#include "tests/tools/fuzz/generator.h"
#include "tests/tools/fuzz/statement_writer.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fuzz {

inline std::string text_of(unsigned number) { return std::to_string(number); }

/// What is known of the threads that come to a statement.
struct Situation {
    unsigned depth = 0;      ///< of structures around it
    bool together = false;   ///< all threads of the CTA are here
    std::string members;     ///< the register that names the lanes of the warp that are here; empty: nobody knows
    bool may_convert = true; ///< no branch stands between here and the function's begin, so that nothing is made conditional
    Situation inside() const { return {depth + 1, together, members, false}; }
    Situation apart() const { return {depth + 1, false, "", false}; }
};

/// An expression draws at most once, or has its draws in one list or one after another: in which order the operands of + and
/// arguments are evaluated differs between compilers and CPUs, and a seed means the same program everywhere.
class Builder {
public:
    Builder(std::uint32_t seed, Flavour flavour, const RowChooser& rows, Version version, Target target, const std::set<unsigned>& without);
    Program run();

private:
    static constexpr unsigned most_depth = 3, local_bytes = 64, functions = 3;

    /// Memory that a thread may use at will: its own, or read-only.
    enum class Region : std::uint8_t { input, scratch, shared, local, table, parameters };

    void line(const std::string& text) { text_ += text + "\n"; }
    std::string label(const char* kind) { return std::string("$") + kind + text_of(labels_++); }
    bool one_in(unsigned n) { return random_.below(n) == 0; }
    bool portable() const { return flavour_ == Flavour::portable; }
    /// "@" and a predicate of `taken`, or "@!" and that.
    std::string guarded_by(const std::string& taken) { return (one_in(2) ? "@" : "@!") + taken; }
    std::string guard() { return one_in(6) ? guarded_by(predicate()) + " " : std::string(); }
    std::string predicate() { return writer_.any_register(ScalarType::pred); }
    std::string word() { return writer_.any_register(ScalarType::u32); }
    std::string wide() { return writer_.any_register(ScalarType::u64); }

    // --- instructions.cpp -------------------------------------------------------------------------
    void value(const Situation& here, Use use);
    void carries();
    void collective(const Situation& here);
    void barrier();
    void handover();
    void cluster();
    void fence();
    void hint();
    void policy();
    bool wanted_value(const Head& head, bool conditional) const;
    void settle_nan(const Head& head);

    // --- memory.cpp -------------------------------------------------------------------------------
    /// Makes an address of `bytes` aligned bytes in the region and returns what stands between the brackets. `generic`: after cvta.
    std::string address(Region region, unsigned bytes, bool generic);
    std::string offset_in(Region region, unsigned bytes);
    static const char* space_of(Region region);
    bool reachable(Region region) const { return !in_function_ || (region != Region::shared && region != Region::parameters); }
    Region region_for(const Head& head, bool writes, bool ordered);
    void memory();
    void atomic();
    void addresses();
    void copy();
    void stack();
    void exchange();

    // --- control_flow.cpp -------------------------------------------------------------------------
    std::string condition(bool uniform);
    void conditional(const Situation& here);
    void loop(const Situation& here);
    void tangle(const Situation& here);
    void choice(const Situation& here);
    void split(const Situation& here);
    void leave();
    void call();
    void statement(const Situation& here);
    void structure(const Situation& here);
    void block(unsigned count, const Situation& here);

    // --- frame.cpp --------------------------------------------------------------------------------
    static std::string declarations(const Registers& registers, unsigned local);
    std::string initial(const Registers& registers);
    std::string entry_head();
    std::string entry_tail() const;
    void function(unsigned number);
    std::string module_head() const;
    static std::string argument_list();

    Flavour flavour_;
    const RowChooser& rows_;
    Version version_;
    Target target_;
    const std::set<unsigned>& without_;
    std::uint64_t seed_;
    Random random_;
    StatementWriter writer_;
    std::string text_, functions_;
    Program program_;
    std::map<std::string, unsigned> common_places_; ///< operation and type -> where in the common memory
    unsigned labels_ = 0, masks_ = 0, counters_ = 0;
    bool may_leave_ = false, in_function_ = false, has_functions_ = false, full_warps_ = true, inside_call_ = false;
    unsigned most_statements_ = 0;
};

} // namespace fuzz
