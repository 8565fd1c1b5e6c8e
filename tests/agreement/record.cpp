// SPDX-License-Identifier: Apache-2.0
// Records which statements ptxas takes: agreement_record PTXAS FOLDER SAMPLE [SEED] > verdicts.txt
// asks about one statement in SAMPLE of those that the documented forms (forms.txt) and the rows of the instruction table give, and about all
// of lines.txt and all uses of special registers. SEED (1) chooses the random words and mutants. See README.md.
#include "frontend/isa/special_registers.h"
#include "frontend/isa/targets.h"
#include "tests/agreement/ptxas.h"
#include "tests/agreement/statements.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <unistd.h>
#include <sstream>

using namespace ptarmigan;
using namespace ptarmigan::test;

namespace {

using Group = std::pair<std::string, std::string>; // version, target

class Generator {
public:
    Generator(const std::string& folder, unsigned sample, unsigned seed) : sample_(sample), random_(seed) {
        documented(folder + "/forms.txt");
        lines(folder + "/lines.txt");
        for (std::size_t i = 0; i < ptx::special_register_count; ++i)
            special_register(static_cast<ptx::SpecialRegister>(i));
        for (const ptx::FormInfo& info : ptx::all_forms()) row(info);
        for (const Group& group : {Group{"7.0", "sm_80"}, Group{"7.8", "sm_90"}, Group{"9.0", "sm_90"}}) conversions(group);
    }
    const std::map<Group, std::set<std::string>>& statements() const { return statements_; }

private:
    /// Keeps one statement in `sample_`, always the same ones.
    void add(const std::string& version, const std::string& target, const std::string& statement) {
        if (statement.empty()) return;
        std::uint32_t hash = 2166136261u;
        for (char c : statement) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
        if ((hash >> 8) % sample_ == 0) statements_[{version, target}].insert(statement);
    }

    /// A target that has all that the row may ask for, at ptxas 13.0's newest version.
    static std::string newest_target(const ptx::FormInfo& info) {
        return newest_target(info.targets) + (takes_sampler(info) ? independent : "");
    }
    /// A sampler of its own is for .texmode_independent: ptxas reads the operands otherwise in other modules.
    static bool takes_sampler(const ptx::FormInfo& info) {
        return info.chapter == "texture" && info.syntax.find("[a, b") != std::string_view::npos;
    }
    static constexpr const char* independent = ", texmode_independent";

    static std::string newest_target(std::string_view targets) {
        for (const char* target : {"90", "100", "120a", "90a", "103a", "100a", "110a", "121a"}) {
            const char last = target[std::string_view(target).size() - 1];
            const char suffix = last >= 'a' ? last : '\0';
            if (ptx::has_target(targets, static_cast<std::uint32_t>(std::atoi(target)), suffix))
                return std::string("sm_") + target;
        }
        return "sm_90";
    }

    /// The first target of the row's list, as early as ptxas knows it.
    static std::string oldest_target(const ptx::FormInfo& info) {
        const std::string_view first = info.targets.substr(0, info.targets.find('|'));
        return "sm_" + std::string(first) + (takes_sampler(info) ? independent : "");
    }

    /// A version's predecessor among those that ptxas 13.0 knows.
    static std::string version_before(unsigned major, unsigned minor) {
        constexpr unsigned last[] = {0, 5, 3, 2, 3, 0, 5, 8, 8};
        if (major == 1 && minor == 0) return {};
        if (minor == 0) {
            --major;
            minor = last[major];
        } else {
            --minor;
        }
        return std::to_string(major) + "." + std::to_string(minor);
    }

    /// Read into registers of every kind, and where it is new.
    void special_register(ptx::SpecialRegister id) {
        const ptx::SpecialRegisterInfo& info = ptx::special_register_info(id);
        const std::string text = ptx::special_register_text(id, 0);
        const std::string plain(spelling(info.type));
        const std::string reg = plain == "pred" ? "pred" : plain == "u64" ? "b64" : "b32";
        auto& newest = statements_[{"9.0", "sm_90"}];
        for (const char* type : {"b16", "u16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "pred"})
            newest.insert("mov." + std::string(type) + " %" + type + "_0, " + text + ";");
        newest.insert("cvt.u32.u32 %b32_0, " + text + ";");
        newest.insert("cvt.u64.u64 %b64_0, " + text + ";");
        newest.insert("add.u32 %b32_0, " + text + ", 1;");
        newest.insert("mov." + plain + " " + text + ", %" + reg + "_0;");
        newest.insert("mov." + plain + " %" + reg + "_0, " + text + "x;");
        if (info.layout == ptx::SpecialRegisterInfo::Layout::vector)
            for (const char* component : {"", ".y", ".w", ".r", ".xy"})
                newest.insert("mov." + plain + " %" + reg + "_0, " + std::string(info.spelling) + component + ";");
        const std::string use = "mov." + plain + " %" + reg + "_0, " + text + ";";
        const unsigned number = info.ptx_major * 10u + info.ptx_minor;
        if (number < 23) {
            statements_[{"2.3", "sm_20"}].insert(use);
            return;
        }
        const std::string version = std::to_string(info.ptx_major) + "." + std::to_string(info.ptx_minor);
        statements_[{version, "sm_" + std::to_string(info.min_sm)}].insert(use);
        const std::string before = version_before(info.ptx_major, info.ptx_minor);
        const bool known_before = info.min_sm != 90 || number > 78;
        if (!before.empty() && known_before)
            statements_[{before, "sm_" + std::to_string(info.min_sm)}].insert(use);
        const char* older = info.min_sm == 90 ? "sm_89" : info.min_sm == 80 ? "sm_75" : info.min_sm == 50 ? "sm_35" : "sm_20";
        if (info.min_sm > 20) statements_[{version, older}].insert(use);
    }

    /// cvt of every pair of types, with words that fit some of them, and with registers of every kind: whether a row has them or not.
    void conversions(const Group& group) {
        constexpr std::pair<const char*, unsigned> types[] = {{"u8", 8}, {"s8", 8}, {"u16", 16}, {"s16", 16}, {"u32", 32}, {"s32", 32},
                                                              {"u64", 64}, {"s64", 64}, {"f16", 16}, {"bf16", 16}, {"f32", 32}, {"f64", 64}};
        const auto is_real = [](std::string_view type) { return type.find('f') != type.npos; };
        const auto usual = [](const std::pair<const char*, unsigned>& type) {
            const std::string_view name = type.first;
            return (name == "f32" || name == "f64" ? "f" : "b") + std::to_string(type.second);
        };
        for (const auto& to : types)
            for (const auto& from : types) {
                const auto statement = [&](const std::string& words, const std::string& d, const std::string& a) {
                    add(group.first, group.second, "cvt" + words + "." + to.first + "." + from.first + " %" + d + "_0, %" + a + "_1;");
                };
                for (const char* words : {"", ".rn", ".rz", ".rm", ".rni", ".rpi", ".sat", ".rni.sat", ".rn.sat", ".ftz", ".rn.ftz", ".rni.ftz", ".rn.relu",
                                          ".rn.satfinite"})
                    statement(words, usual(to), usual(from));
                const bool rounds = is_real(to.first) && (!is_real(from.first) || to.second <= from.second) && to.first != from.first;
                const std::string plain = rounds ? ".rn" : !is_real(to.first) && is_real(from.first) ? ".rni" : "";
                for (const char* reg : {"b8", "s8", "b16", "u16", "b32", "s32", "f32", "b64", "u64", "f64"}) {
                    statement(plain, reg, usual(from));
                    statement(plain, usual(to), reg);
                }
            }
    }

    void lines(const std::string& file) {
        std::ifstream in(file);
        Group group;
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            // `@ 9.0 sm_90`; `@ %p ret;` is a guarded statement.
            if (line.starts_with("@ ") && line.size() > 2 && line[2] >= '0' && line[2] <= '9') {
                const std::size_t space = line.find(' ', 2);
                group = {line.substr(2, space - 2), line.substr(space + 1)};
            } else {
                statements_[group].insert(line);
            }
        }
    }

    void documented(const std::string& forms) {
        std::ifstream in(forms);
        for (std::string line; std::getline(in, line);) {
            if (line.empty() || line[0] == '#') continue;
            const std::string pattern = line.substr(line.rfind('\t') + 1);
            const std::vector<std::string> heads = expand(pattern);
            const std::size_t step = std::max<std::size_t>(1, heads.size() / 24);
            for (std::size_t i = 0; i < heads.size(); i += step) head(heads[i], false);
        }
    }

    void head(const std::string& text, bool variants) {
        for (const ptx::HeadMatch& match : rows_for(matcher_, text)) {
            const ptx::FormInfo& info = ptx::form_info(match.form);
            if (skipped(info)) continue;
            const std::string target = newest_target(info);
            for (const std::string& statement : with_operands(text, match, variants))
                add("9.0", target, statement);
        }
    }

    /// Control flow needs more around it than one statement; and ptxas 13.0 knows PTX up to 9.0.
    static bool skipped(const ptx::FormInfo& info) {
        return info.chapter == "control_flow" || info.ptx_major * 10 + info.ptx_minor > 90;
    }

    void row(const ptx::FormInfo& info) {
        if (skipped(info)) return;
        const ptx::FormPattern& pattern = ptx::FormTable::get().pattern(info.id);
        // Every word once, all other slots at their plainest.
        std::vector<std::string> heads{spell(info, pattern, -1, 0)};
        for (std::size_t slot = 0; slot < pattern.slots.size(); ++slot) {
            const std::size_t choices = pattern.slots[slot].choices.size();
            const std::size_t step = std::max<std::size_t>(1, choices / 16);
            for (std::size_t choice = 0; choice < choices; choice += step)
                heads.push_back(spell(info, pattern, static_cast<int>(slot), choice));
        }
        for (int i = 0; i < 4; ++i) heads.push_back(spell_any(info, pattern));
        // ptxas knows sm_32 from PTX 4.0 on.
        const std::string version = info.min_sm == 32 ? "4.0" :
            std::to_string(info.ptx_major) + "." + std::to_string(info.ptx_minor);
        for (std::size_t i = 0; i < heads.size(); ++i) {
            for (const ptx::HeadMatch& match : rows_for(matcher_, heads[i])) {
                if (match.form != info.id) continue;
                const auto statements = with_operands(heads[i], match, i == 0);
                const std::string newest = newest_target(info);
                for (const std::string& statement : statements) add("9.0", newest, statement);
                gates(info, version, statements[0]);
            }
        }
        mutants(info, pattern, heads);
    }

    /// The statement where the row first has it, and just before.
    void gates(const ptx::FormInfo& info, const std::string& version, const std::string& statement) {
        const int number = info.ptx_major * 10 + info.ptx_minor;
        const std::string oldest = oldest_target(info);
        const bool family = oldest.back() == 'f';
        if (number < 23) {
            add("2.3", takes_sampler(info) ? std::string("sm_20") + independent : "sm_20", statement);
            if (info.min_sm < 20 || number >= 20) add(version, oldest, statement); // sm_20 came with PTX 2.0
            if (number > 10 && (info.min_sm < 20 || number > 20)) add(version_before(info.ptx_major, info.ptx_minor), oldest, statement);
        } else {
            add(family ? "8.8" : version, oldest, statement);
        }
        if (family) add("8.8", oldest.substr(0, oldest.size() - 1), statement);
    }

    /// Words missing, added and exchanged: most of these are wrong.
    void mutants(const ptx::FormInfo& info, const ptx::FormPattern& pattern,
                 const std::vector<std::string>& heads) {
        const auto rows = ptx::FormTable::get().rows_of(info.opcode);
        for (int i = 0; i < 6; ++i) {
            const std::string& head = heads[pick(heads.size())];
            const auto matches = rows_for(matcher_, head);
            if (matches.empty()) continue;
            const std::string operands = with_operands(head, matches[0], false)[0].substr(head.size());
            const ptx::FormPattern& other =
                ptx::FormTable::get().pattern(rows[pick(rows.size())]);
            if (other.slots.empty() || pattern.slots.empty()) continue;
            const auto& slot = other.slots[pick(other.slots.size())];
            const std::string word(ptx::spelling(slot.choices[pick(slot.choices.size())]));
            std::string mutant = head;
            const std::size_t dot = nth_dot(head, pick(pattern.slots.size()));
            const std::size_t next = std::min(head.find('.', dot + 1), head.size());
            switch (i % 3) {
            case 0: mutant = head.substr(0, dot) + head.substr(next); break;
            case 1: mutant = head.substr(0, dot) + "." + word + head.substr(next); break;
            default: mutant = head.substr(0, dot) + "." + word + head.substr(dot); break;
            }
            // ptxas overlooks some words that stand twice: no use in following it.
            if (i % 3 != 0 && ("." + head + ".").find("." + word + ".") != std::string::npos) continue;
            add("9.0", newest_target(info), mutant + operands);
        }
    }
    static std::size_t nth_dot(const std::string& head, std::size_t n) {
        std::size_t dot = head.find('.');
        while (n-- > 0 && head.find('.', dot + 1) != std::string::npos) dot = head.find('.', dot + 1);
        return std::min(dot, head.size());
    }

    static std::string spell(const ptx::FormInfo& info, const ptx::FormPattern& pattern, int slot,
                             std::size_t choice) {
        std::string head(info.opcode);
        for (std::size_t i = 0; i < pattern.slots.size(); ++i) {
            const bool chosen = static_cast<int>(i) == slot;
            if (!chosen && pattern.slots[i].optional) continue;
            head += "." + std::string(ptx::spelling(pattern.slots[i].choices[chosen ? choice : 0]));
        }
        return head;
    }
    std::string spell_any(const ptx::FormInfo& info, const ptx::FormPattern& pattern) {
        std::string head(info.opcode);
        for (const ptx::WordSlot& slot : pattern.slots) {
            if (slot.optional && pick(2) == 0) continue;
            head += "." + std::string(ptx::spelling(slot.choices[pick(slot.choices.size())]));
        }
        return head;
    }
    std::size_t pick(std::size_t count) { return random_() % count; }

    ptx::FormMatcher matcher_;
    unsigned sample_;
    std::mt19937 random_;
    std::map<Group, std::set<std::string>> statements_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 4 && argc != 5) {
        std::cerr << "usage: agreement_record PTXAS FOLDER SAMPLE [SEED] > verdicts.txt\n";
        return 2;
    }
    const unsigned seed = argc == 5 ? static_cast<unsigned>(std::atoi(argv[4])) : 1;
    const Generator generator(argv[2], std::max(1u, static_cast<unsigned>(std::atoi(argv[3]))), seed);
    const std::string folder =
        std::filesystem::temp_directory_path() / ("agreement." + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    for (const auto& [group, set] : generator.statements()) {
        const std::vector<std::string> statements(set.begin(), set.end());
        const auto verdicts =
            ask_ptxas(argv[1], folder, group.first, group.second, statements,
                      [&](const std::string& statement) {
                          return accepted_here(group.first, group.second, statement);
                      });
        std::cout << "@ " << group.first << ' ' << group.second << '\n';
        for (std::size_t i = 0; i < statements.size(); ++i) {
            const std::string& message = verdicts[i].message;
            if (message.find("Segmentation fault") != message.npos || message.find("32-Bit compilation") != message.npos)
                continue; // no verdict
            std::cout << (verdicts[i].accepted ? "+ " : "- ") << statements[i] << '\n';
            if (!verdicts[i].accepted && std::getenv("AGREEMENT_MESSAGES"))
                std::cout << "# " << verdicts[i].message << '\n';
        }
        std::cerr << group.first << ' ' << group.second << ": " << statements.size() << '\n';
    }
    std::filesystem::remove_all(folder);
    return 0;
}
