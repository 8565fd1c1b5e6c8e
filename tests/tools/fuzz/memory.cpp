// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics and copies: in memory of the thread's own, in memory that nobody writes, and sums that commute.
#include "tests/tools/fuzz/builder.h"

#include "frontend/isa/form_pattern.h"

#include <algorithm>

namespace fuzz {
namespace {

struct Layout {
    const char* space;
    const char* base;   ///< 64-bit register; empty: by name only
    const char* symbol; ///< empty: none
    unsigned bytes;
};

constexpr unsigned shared_bytes = 32;

/// Else an address without a space is one of global memory, too.
bool takes_shared(FormId form) {
    for (const WordSlot& slot : FormTable::get().pattern(form).slots)
        for (const Word& word : slot.choices)
            if (space_of(word) == StateSpace::shared) return true;
    return false;
}

/// A store from a floating-point register that is wider than the type, where ptxas converts.
bool stores_part_of_a_float(const std::string& statement, unsigned bytes) {
    const std::size_t at = statement.find(']');
    const std::size_t f = statement.find("%f", at), d = statement.find("%d", at);
    return (f != std::string::npos && bytes < 4) || (d != std::string::npos && bytes < 8);
}

} // namespace

const char* Builder::space_of(Region region) {
    static constexpr const char* names[] = {"global", "global", "shared", "local", "const", "param"};
    return names[static_cast<unsigned>(region)];
}

/// %x0: a multiple of the largest power of two in `bytes`, at most the region's size less `bytes`.
std::string Builder::offset_in(Region region, unsigned bytes) {
    static constexpr unsigned sizes[] = {2048, scratch_bytes, shared_bytes, local_bytes, 256, parameter_bytes};
    const unsigned size = sizes[static_cast<unsigned>(region)], mask = (size - bytes) & ~(bytes - 1);
    static constexpr const char* uniform[] = {"%cta", "%threads"};
    switch (random_.below(4)) {
    case 0: return "and.b32 %x0, " + std::string(uniform[random_.below(2)]) + ", " + text_of(mask) + ";";
    case 1:
        // Lane by lane one after another, as most programs read.
        if (region == Region::input && bytes <= 8) return "mul.lo.u32 %x0, %t, " + text_of(bytes) + ";";
        return "and.b32 %x0, %t, " + text_of(mask) + ";";
    default: return "and.b32 %x0, " + word() + ", " + text_of(mask) + ";";
    }
}

std::string Builder::address(Region region, unsigned bytes, bool generic) {
    static constexpr Layout layouts[] = {{"global", "%in", "", 2048},       {"global", "%scratch", "", scratch_bytes}, {"shared", "", "", shared_bytes},
                                         {"local", "%local", "own", local_bytes}, {"const", "", "table", 256},               {"param", "", "block", parameter_bytes}};
    const Layout& layout = layouts[static_cast<unsigned>(region)];
    const bool fixed = one_in(3);
    const unsigned constant = random_.below(layout.bytes / bytes) * bytes;
    if (fixed && !generic && *layout.symbol != 0 && one_in(2)) return std::string(layout.symbol) + "+" + text_of(constant);
    if (!fixed) line(offset_in(region, bytes));
    // The base in %a0.
    if (region == Region::shared) {
        if (!generic && one_in(2)) { // 32 bits
            if (fixed) return "%own_shared+" + text_of(constant);
            line("add.u32 %x0, %x0, %own_shared;");
            if (one_in(2)) return "%x0";
            line("sub.u32 %x0, %x0, 64;");
            return "%x0+64";
        }
        line("cvt.u64.u32 %a0, %own_shared;");
    } else if (*layout.base != 0 && (*layout.symbol == 0 || one_in(2))) {
        if (fixed && !generic) return std::string(layout.base) + "+" + text_of(constant);
        line(std::string("mov.u64 %a0, ") + layout.base + ";");
    } else {
        line(std::string("mov.u64 %a0, ") + layout.symbol + ";");
    }
    if (!fixed) {
        if (one_in(2)) line("mad.wide.u32 %a0, %x0, 1, %a0;");
        else line("cvt.u64.u32 %a1, %x0; add.s64 %a0, %a1, %a0;");
    }
    if (generic) line(std::string("cvta.") + layout.space + ".u64 %a0, %a0;");
    if (fixed) return "%a0+" + text_of(constant);
    if (one_in(3)) {
        line("add.u64 %a0, %a0, 24;");
        return "%a0+-24";
    }
    return "%a0";
}

/// Where an access with the head's words goes. `ordered`: other than weak, which only global and shared memory take.
Builder::Region Builder::region_for(const Head& head, bool writes, bool ordered) {
    const bool never_written = head.has("nc") || form_info(head.match.form).opcode == "ldu";
    switch (head.match.space) {
    case StateSpace::global: return writes || (!never_written && one_in(2)) ? Region::scratch : Region::input;
    case StateSpace::shared: return Region::shared;
    case StateSpace::local: return Region::local;
    case StateSpace::constant: return Region::table;
    case StateSpace::param: return Region::parameters;
    default: break;
    }
    if (never_written) return Region::input;
    std::vector<Region> regions{Region::scratch};
    if (!takes_shared(head.match.form)) return writes || one_in(2) ? Region::scratch : Region::input;
    if (reachable(Region::shared)) regions.push_back(Region::shared);
    if (!ordered) regions.push_back(Region::local);
    if (!writes) regions.push_back(Region::input);
    if (!writes && !ordered) {
        regions.push_back(Region::table);
        if (reachable(Region::parameters)) regions.push_back(Region::parameters);
    }
    return regions[random_.below(static_cast<unsigned>(regions.size()))];
}

void Builder::memory() {
    const FormId form = rows_.choose(Use::memory, random_);
    const FormInfo& info = form_info(form);
    const bool writes = any(info.effects, Effects::store);
    const auto head = writer_.head(form, [&](const Head& h) {
        if (in_function_ && (h.match.space == StateSpace::shared || h.match.space == StateSpace::param)) return false;
        if (byte_size(h.match.types[0]) * h.match.vector_size > (target_.sm >= 100 && h.match.space == StateSpace::global ? 32u : 16u)) return false;
        if (h.match.space == StateSpace::param && (writes || h.has("param::func"))) return false;
        if (portable() && writes && byte_size(h.match.types[0]) == 1 && h.match.vector_size > 1) return false; // 4
        if (portable() && h.match.vector_size == 8 && byte_size(h.match.types[0]) < 4) return false;           // 7
        return true;
    });
    if (!head) return;
    const bool ordered = any(info.effects, Effects::volatile_read | Effects::fence) || info.name != (writes ? "st" : "ld");
    const unsigned bytes = byte_size(head->match.types[0]) * head->match.vector_size;
    const Region region = region_for(*head, writes, ordered);
    Given given{{Role::a, address(region, bytes, head->match.space == StateSpace::none || head->match.space == StateSpace::generic)},
                {Role::cache_policy, "%policy"}};
    if (portable() && writes && byte_size(head->match.types[0]) == 1) given[Role::b] = word(); // 4
    const std::string condition = guard();
    for (unsigned attempt = 0; attempt < 4; ++attempt) {
        const auto text = writer_.statement(*head, given);
        if (!text || (portable() && writes && stores_part_of_a_float(*text, byte_size(head->match.types[0])))) continue; // 6
        line(condition + *text);
        return;
    }
}

void Builder::atomic() {
    const FormId form = rows_.choose(Use::atomic, random_);
    const FormInfo& info = form_info(form);
    const auto head = writer_.head(form, [&](const Head& h) {
        return (!in_function_ || h.match.space != StateSpace::shared) && byte_size(h.match.types[0]) * h.match.vector_size <= 16;
    });
    if (!head) return;
    const ScalarType type = head->match.types[0];
    static constexpr const char* commuting[] = {"add", "and", "or", "xor", "min", "max"};
    std::string operation;
    for (const char* name : commuting)
        if (head->has(name)) operation = name;
    const bool commutes = !operation.empty() && (is_integer(type) || type_class(type) == TypeClass::bits) && head->match.vector_size == 1;
    Given given{{Role::cache_policy, "%policy"}};
    const bool is_generic = head->match.space == StateSpace::none || head->match.space == StateSpace::generic;
    if (commutes && !in_function_ && head->match.space != StateSpace::shared && one_in(2)) {
        // One place for each operation: all orders give the same.
        const std::string key = operation + std::string(spelling(type));
        const auto [place, is_new] = common_places_.try_emplace(key, 8 * static_cast<unsigned>(common_places_.size()));
        (void)is_new;
        given[Role::a] = "%common+" + text_of(place->second);
        if (info.opcode == "atom") given[Role::d] = "_";
    } else {
        given[Role::a] = address(region_for(*head, true, true), byte_size(type) * head->match.vector_size, is_generic);
    }
    if (const auto text = writer_.statement(*head, given)) line(guard() + *text);
}

void Builder::addresses() {
    const FormId form = rows_.choose(Use::address, random_);
    const FormInfo& info = form_info(form);
    const bool of_space = info.opcode == "cvta", asks = info.opcode == "isspacep";
    const auto head = writer_.head(form, [&](const Head& h) { return asks || info.opcode == "getctarank" || h.match.types[0] == ScalarType::u64 || h.match.space == StateSpace::shared; });
    if (!head) return;
    static constexpr Region all[] = {Region::input, Region::scratch, Region::shared, Region::local, Region::table, Region::parameters};
    if (asks) {
        const Region region = all[random_.below(std::size(all))];
        if (!reachable(region)) return;
        const std::string place = address(region, 4, true);
        line("add.u64 %a0, %a0, 0;");
        if (const auto text = writer_.statement(*head, {{Role::a, "%a0"}})) line(guard() + *text);
        return;
    }
    if (of_space) {
        if (head->match.types[0] != ScalarType::u64) return;
        Region region = Region::input;
        for (const Region candidate : all)
            if (head->match.space == (candidate == Region::table ? StateSpace::constant : candidate == Region::shared ? StateSpace::shared : candidate == Region::local ? StateSpace::local
                                      : candidate == Region::parameters ? StateSpace::param : StateSpace::global))
                region = candidate;
        if (!reachable(region)) return;
        const bool back = info.syntax.find(".to") != std::string_view::npos;
        const std::string place = address(region, 4, back);
        const std::string read = back ? std::string(".") + space_of(region) : "";
        line("add.u64 %a0, %a0, 0;");
        if (place.find("%a0") != 0) return;
        if (const auto text = writer_.statement(*head, {{Role::d, "%a1"}, {Role::a, "%a0"}})) {
            line(*text);
            line("ld" + read + ".b32 " + word() + ", [%a1" + place.substr(3) + "];");
        }
        return;
    }
    if (in_function_) return;
    // Shared memory of the cluster's CTA of that rank: a launch without clusters has one.
    const bool generic = info.syntax.find("shared::cluster") == std::string_view::npos, narrow = head->match.types[0] == ScalarType::u32;
    if (generic && narrow) return;
    line("add.u32 %x0, %own_shared, " + text_of(4 * random_.below(8)) + "; cvt.u64.u32 %a0, %x0;");
    if (generic) line("cvta.shared.u64 %a0, %a0;");
    const std::string source = narrow ? "%x0" : "%a0", target = narrow ? "%x0" : "%a1";
    if (info.opcode == "getctarank") {
        if (const auto text = writer_.statement(*head, {{Role::a, source}})) line(*text);
        return;
    }
    line("mov.u32 %x1, 0;");
    if (const auto text = writer_.statement(*head, {{Role::d, target}, {Role::a, source}, {Role::b, one_in(2) ? "0" : "%x1"}})) {
        line(*text);
        line(std::string(generic ? "ld.b32 " : "ld.shared::cluster.b32 ") + word() + ", [" + target + "];");
    }
}

/// cp.async into the thread's own shared memory, waited for at once.
void Builder::copy() {
    const FormId form = rows_.choose(Use::copy, random_);
    const auto head = writer_.head(form);
    if (!head || !any(form_info(form).effects, Effects::load)) return;
    line("and.b32 %x0, " + word() + ", 16; add.u32 %x0, %x0, %own_shared;");
    line("and.b32 %x1, " + word() + ", 2032; cvt.u64.u32 %a0, %x1; add.u64 %a0, %a0, %in;");
    line("and.b32 %x1, " + word() + ", 3;");
    Given given{{Role::d, "%x0"}, {Role::a, "%a0"}, {Role::cache_policy, "%policy"}};
    static constexpr const char* sizes[] = {"", "%x1", "4", "%p0", "!%p1"};
    given[Role::src_size] = sizes[random_.below(std::size(sizes))];
    if (const auto text = writer_.statement(*head, given)) {
        line(guard() + *text);
        line(one_in(2) ? "cp.async.wait_all;" : "cp.async.commit_group; cp.async.wait_group 0;");
    }
}

void Builder::stack() {
    const unsigned bytes = 8u << random_.below(3);
    line("stacksave.u64 %a1;");
    line("alloca.u64 %a0, " + text_of(bytes) + (one_in(2) ? ", 16;" : ", 8;"));
    line("st.local.b64 [%a0+" + text_of(bytes - 8) + "], " + wide() + ";");
    line("ld.local.b64 " + wide() + ", [%a0+" + text_of(bytes - 8) + "];");
    line("stackrestore.u64 %a1;");
}

/// Every thread writes 8 bytes of the board and reads another thread's.
void Builder::exchange() {
    const unsigned threads = program_.block_x * program_.block_y;
    line("shl.b32 %x0, %t, 3; mov.u32 %x1, board; add.u32 %x0, %x0, %x1;");
    line("st.shared.b64 [%x0], " + wide() + ";");
    line("bar.sync 0;");
    if (one_in(2)) line("add.u32 %x0, %t, " + text_of(1 + random_.below(threads)) + "; rem.u32 %x0, %x0, %threads;");
    else line("rem.u32 %x0, " + word() + ", %threads;");
    line("shl.b32 %x0, %x0, 3; add.u32 %x0, %x0, %x1;");
    line("ld.shared.b64 " + wide() + ", [%x0];");
    line("bar.sync 0;");
}

} // namespace fuzz
