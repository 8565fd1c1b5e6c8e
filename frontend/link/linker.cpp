// SPDX-License-Identifier: Apache-2.0
// Writing of the linked text: one header, all heads, all variables, then the bodies as they were.
#include "frontend/link/linker.h"

#include "frontend/link/link_unit.h"
#include "frontend/link/symbol_resolution.h"
#include "frontend/link/unit_lines.h"
#include "frontend/parse/address_size.h"
#include "frontend/ptx/declaration_printer.h"
#include "frontend/ptx/device_runtime.h"

#include <algorithm>

namespace ptarmigan::ptx {

namespace {

/// Sums over all names and bodies must stay addressable by the loader's 32-bit places.
constexpr std::size_t max_text = std::size_t{1} << 31;

class LinkedText {
public:
    explicit LinkedText(const LinkUnits& units) : units_(units) {}

    std::string write() {
        std::size_t size = 0;
        for (const auto& unit : units_) size += unit->source.text().size();
        text_.reserve(size);
        header();
        files();
        const std::unordered_set<std::string> prototyped = prototyped_entries();
        for (const auto& unit : units_) heads(*unit, prototyped);
        forward_variables();
        for (const auto& unit : units_) variables(*unit);
        for (const auto& unit : units_) aliases(*unit);
        for (const auto& unit : units_) bodies(*unit);
        return std::move(text_);
    }

private:
    void line(const std::string& text) { text_ += text + "\n"; }

    static bool is_kept(const std::unordered_set<std::uint32_t>& kept, std::size_t id) {
        return kept.count(static_cast<std::uint32_t>(id)) != 0;
    }

    /// The newest version and the highest target of all units.
    void header() {
        Module head;
        if (units_.empty()) { // nothing depends on them
            head.version = {6, 0};
            head.target.sm = 50;
        }
        for (const auto& unit : units_) {
            const Module& module = unit->module();
            head.version = std::max(head.version, module.version);
            const Target& target = module.target;
            if (target.sm > head.target.sm)
                head.target = target;
            else if (target.sm == head.target.sm && head.target.suffix != 'a' && target.suffix != 0)
                head.target.suffix = target.suffix;
        }
        if (!units_.empty()) {
            const Target& first = units_.front()->module().target;
            head.target.texmode_independent = first.texmode_independent;
            head.target.debug = first.debug;
        }
        head.address_size = 64;
        version_ = head.version;
        text_ += module_header(head);
    }

    void files() {
        std::uint32_t first = 0;
        for (const auto& unit : units_) {
            unit->first_file = first;
            const std::vector<std::string>& names = unit->module().files;
            for (std::size_t i = 0; i < names.size(); ++i)
                if (!names[i].empty()) line(".file " + std::to_string(first + i) + " \"" + names[i] + "\"");
            first += static_cast<std::uint32_t>(names.size());
        }
    }

    /// Entries that the texts name behind `.entry` more than once (declared in front of a use of their address, here or
    /// in another unit) or that variables point to; by their names in the linked text.
    std::unordered_set<std::string> prototyped_entries() const {
        constexpr std::string_view directive = ".entry", blanks = " \t\r\n";
        std::unordered_set<std::string_view> seen;
        std::unordered_set<std::string> result;
        for (const auto& unit : units_) {
            const std::string_view text = unit->source.text();
            for (std::size_t at = text.find(directive); at != std::string_view::npos; at = text.find(directive, at)) {
                at = std::min(text.find_first_not_of(blanks, at + directive.size()), text.size());
                const std::string_view name = text.substr(at, text.find_first_of(" \t\r\n(;{", at) - at);
                if (seen.insert(name).second) continue;
                result.emplace(name);
                if (const auto renamed = unit->renamed.find(name); renamed != unit->renamed.end())
                    result.insert(renamed->second);
            }
            for (const Variable& variable : unit->module().variables) // variables come before all bodies
                for (const Relocation& r : variable.relocations)
                    if (r.is_function) result.insert(unit->module().functions[r.symbol].name);
        }
        return result;
    }

    void heads(const LinkUnit& unit, const std::unordered_set<std::string>& prototyped) {
        const std::vector<Function>& functions = unit.module().functions;
        for (std::size_t id = 0; id < functions.size(); ++id) {
            if (!is_kept(unit.kept_functions, id)) continue;
            if (functions[id].is_entry && prototyped.count(functions[id].name) == 0) continue;
            line(function_head(functions[id], false) + ";");
        }
    }

    /// Initialisers may name variables of later units; only what others can see needs this.
    void forward_variables() {
        std::unordered_set<std::string_view> named;
        for (const auto& unit : units_)
            for (const Variable& v : unit->module().variables)
                for (const Relocation& r : v.relocations)
                    if (!r.is_function) named.insert(unit->module().variables[r.symbol].name);
        for (const auto& unit : units_)
            for (const std::uint32_t id : sorted(unit->kept_variables)) {
                Variable v = unit->module().variables[id];
                if (v.linkage == Linkage::internal || v.linkage == Linkage::external || named.count(v.name) == 0)
                    continue;
                v.linkage = Linkage::external;
                line(module_variable_declaration(version_, v) + ";");
            }
    }

    static std::vector<std::uint32_t> sorted(const std::unordered_set<std::uint32_t>& ids) {
        std::vector<std::uint32_t> order(ids.begin(), ids.end());
        std::sort(order.begin(), order.end());
        return order;
    }

    void variables(const LinkUnit& unit) {
        const Module& module = unit.module();
        for (const std::uint32_t id : sorted(unit.kept_variables)) {
            const Variable& v = module.variables[id];
            line(module_variable_declaration(version_, v) + variable_initializer(module, v) + ";");
        }
    }

    void aliases(const LinkUnit& unit) {
        const std::vector<Function>& functions = unit.module().functions;
        for (std::size_t id = 0; id < functions.size(); ++id)
            if (!functions[id].alias_of.empty() && is_kept(unit.kept_functions, id))
                line(".alias " + functions[id].name + ", " + functions[id].alias_of + ";");
    }

    void bodies(const LinkUnit& unit) {
        const std::vector<Function>& functions = unit.module().functions;
        for (FunctionId id = 0; id < functions.size(); ++id) {
            if (functions[id].is_declaration || !is_kept(unit.kept_functions, id)) continue;
            text_ += body_origin(unit.name(), unit.context.bodies[id].line);
            line(function_head(functions[id], true));
            text_ += linked_body(unit, id);
            text_ += '\n';
        }
    }

    const LinkUnits& units_;
    std::string text_;
    Version version_; ///< of the linked text
};

/// Names that a unit defines for others, or needs from others.
void collect_names(const Module& module, bool defined, std::unordered_set<std::string_view>& names) {
    for (const Variable& v : module.variables)
        if (v.linkage != Linkage::internal && (v.linkage == Linkage::external) != defined) names.insert(v.name);
    for (const Function& f : module.functions) {
        const bool has_body = !f.is_declaration || !f.alias_of.empty();
        if (has_body == defined && (!defined || f.linkage != Linkage::internal)) names.insert(f.name);
    }
}

/// Drops the members of libraries that define nothing that is missed.
void choose_members(LinkUnits& units) {
    std::unordered_set<std::string_view> defined, missed;
    std::unordered_set<const LinkUnit*> used;
    const auto use = [&](const LinkUnit& unit) {
        used.insert(&unit);
        collect_names(unit.module(), true, defined);
        collect_names(unit.module(), false, missed);
    };
    const auto is_wanted = [&](const LinkUnit& unit) {
        std::unordered_set<std::string_view> offered;
        collect_names(unit.module(), true, offered);
        return std::any_of(offered.begin(), offered.end(),
                           [&](std::string_view name) { return missed.count(name) != 0 && defined.count(name) == 0; });
    };
    for (const auto& unit : units)
        if (!unit->on_demand) use(*unit);
    for (bool found = true; found;) {
        found = false;
        for (const auto& unit : units) {
            if (used.count(unit.get()) != 0 || !is_wanted(*unit)) continue;
            use(*unit);
            found = true;
        }
    }
    std::erase_if(units, [&](const auto& unit) { return used.count(unit.get()) == 0; });
}

/// What no linked text can hold.
void check_units(const LinkUnits& units, std::vector<std::string>& errors) {
    constexpr std::uint32_t first_with_denormals = 20; // before, f32 arithmetic implies .ftz
    if (units.empty()) return;
    const Target& first = units.front()->module().target;
    constexpr Version first_with_lists{1, 4}; // of parameters of entries
    Version newest;
    for (const auto& unit : units) newest = std::max(newest, unit->module().version);
    std::size_t size = 0;
    for (const auto& unit : units) {
        size += unit->source.text().size();
        const Target& target = unit->module().target;
        if ((target.sm < first_with_denormals) != (first.sm < first_with_denormals))
            errors.push_back("'" + unit->name() + "' for sm_" + std::to_string(target.sm) + " and '" +
                             units.front()->name() + "' for sm_" + std::to_string(first.sm) +
                             " can't be linked: targets before sm_20 flush denormals");
        if (unit->module().version < first_with_lists && newest >= first_with_lists)
            errors.push_back("'" + unit->name() +
                             "' is of a PTX version before 1.4 and can't be linked with later ones");
        if (target.texmode_independent != first.texmode_independent)
            errors.push_back("The texture mode of '" + unit->name() + "' differs from that of '" +
                             units.front()->name() + "'");
    }
    if (size > max_text) errors.emplace_back("The texts are too large to be linked");
}

} // namespace

namespace {

/// libcudadevrt: its functions are the runtime's here, and their PTX ends in calls of NVIDIA's driver. A weak
/// definition is the stub that nvcc before CUDA 12 put into each text.
bool is_device_runtime(const Module& module) {
    return std::any_of(module.functions.begin(), module.functions.end(), [](const Function& function) {
        return !function.is_declaration && function.linkage == Linkage::visible &&
               device_runtime_function(function.name);
    });
}

} // namespace

Linker::Linker(std::function<bool(std::string_view)> is_provided)
    : symbols_(std::make_unique<SymbolTable>()), is_provided_(std::move(is_provided)) {}
Linker::~Linker() = default;

bool Linker::add(std::string text, std::string name, std::string& messages, bool on_demand) {
    auto unit = std::make_unique<LinkUnit>(std::move(text), std::move(name));
    unit->on_demand = on_demand;
    if (declares_32_bit_addresses(unit->source.text()))
        unit->diagnostics.error({}, "32-Bit ABI (--machine 32 or 32-Bit addressing) is not supported "
                                    "on sm_90 or higher architectures.");
    messages = unit->diagnostics.render_all();
    if (unit->diagnostics.has_errors()) return false;
    if (is_device_runtime(unit->module())) return true;
    if (!on_demand) symbols_->add(*unit);
    units_.push_back(std::move(unit));
    return true;
}

const std::vector<std::string>& Linker::conflicts() const {
    return symbols_->errors();
}

LinkResult Linker::link() {
    LinkResult result;
    result.errors = conflicts();
    if (!result.errors.empty()) return result;
    choose_members(units_);
    const bool has_members =
        std::any_of(units_.begin(), units_.end(), [](const auto& unit) { return unit->on_demand; });
    if (has_members) { // which stand between the others
        *symbols_ = {};
        for (const auto& unit : units_) symbols_->add(*unit);
        result.errors = conflicts();
    }
    if (result.errors.empty()) check_units(units_, result.errors);
    if (result.errors.empty()) result.errors = resolve_symbols(units_, *symbols_, is_provided_);
    if (!result.errors.empty()) return result;
    result.text = LinkedText(units_).write();
    result.ok = true;
    return result;
}

} // namespace ptarmigan::ptx
