// SPDX-License-Identifier: Apache-2.0
// Records which statements ptxas takes: agreement_record PTXAS forms.txt SAMPLE > verdicts.txt
// asks about one statement in SAMPLE. They come from the documented forms (forms.txt) and from the rows of the instruction table; see README.md.
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
    Generator(const char* forms, unsigned sample) : sample_(sample) {
        documented(forms);
        for (const ptx::FormInfo& info : ptx::all_forms()) row(info);
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
        return "sm_" + std::string(first);
    }

    void documented(const char* forms) {
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
            const std::string target = newest_target(info.targets);
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
                const std::string newest = newest_target(info.targets);
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
        if (number < 23) // 64-bit addresses came with PTX 2.3
            add("2.3", "sm_20", statement);
        else
            add(family ? "8.8" : version, oldest, statement);
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
            add("9.0", newest_target(info.targets), mutant + operands);
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
    std::mt19937 random_{1};
    std::map<Group, std::set<std::string>> statements_;
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: agreement_record PTXAS forms.txt SAMPLE > verdicts.txt\n";
        return 2;
    }
    const Generator generator(argv[2], std::max(1u, static_cast<unsigned>(std::atoi(argv[3]))));
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
            if (verdicts[i].message.find("Segmentation fault") != std::string::npos) continue;
            std::cout << (verdicts[i].accepted ? "+ " : "- ") << statements[i] << '\n';
            if (!verdicts[i].accepted && std::getenv("AGREEMENT_MESSAGES"))
                std::cout << "# " << verdicts[i].message << '\n';
        }
        std::cerr << group.first << ' ' << group.second << ": " << statements.size() << '\n';
    }
    std::filesystem::remove_all(folder);
    return 0;
}
