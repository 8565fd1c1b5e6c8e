// SPDX-License-Identifier: Apache-2.0
#include "tests/recordings/programs/reduce.h"

#include <cstdio>
#include <sstream>
#include <stdexcept>

namespace random_programs {
namespace {

std::string joined(const std::set<unsigned>& numbers) {
    std::string text;
    for (unsigned number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
    return text;
}

class Reducer {
public:
    Reducer(std::string self, std::string library, std::string forms, std::uint32_t seed)
        : self_(std::move(self)), library_(std::move(library)), forms_(std::move(forms)), seed_(seed) {}

    /// What the program prints under an environment; errors count as an answer too.
    std::string answer(const std::string& environment, const std::set<unsigned>& without, const char* action = "--hash") const {
        std::string library = library_, variables;
        std::istringstream words(environment);
        for (std::string word; words >> word;) {
            if (word.rfind("LIBCUDA=", 0) == 0) library = word.substr(8);
            else variables += word + " ";
        }
        std::string command = "env " + variables + " '" + self_ + "' '" + library + "' '" + forms_ + "' " + action + " " + std::to_string(seed_);
        if (!without.empty()) command += " --without " + joined(without);
        FILE* pipe = popen((command + " 2>&1").c_str(), "r");
        if (!pipe) throw std::runtime_error("cannot run " + command);
        std::string output;
        for (char buffer[256]; std::fgets(buffer, sizeof buffer, pipe);) output += buffer;
        pclose(pipe);
        return output;
    }

private:
    std::string self_, library_, forms_;
    std::uint32_t seed_;
};

} // namespace

int reduce(const char* self, const char* library, const char* forms_path, std::uint32_t seed, const std::string& a,
           const std::string& b, const std::vector<Form>& forms) {
    const Reducer reducer(self, library, forms_path, seed);
    const unsigned statements = generate(seed, forms).statements;
    std::set<unsigned> without;
    const auto differs = [&](const std::set<unsigned>& left_out) { return reducer.answer(a, left_out) != reducer.answer(b, left_out); };
    if (!differs(without)) {
        std::printf("program %u gives the same under both\n", seed);
        return 1;
    }
    // Runs of statements, ever shorter; outer statements take those inside along.
    for (unsigned run = (statements + 1) / 2; run > 0; run /= 2)
        for (unsigned first = 0; first < statements; first += run) {
            std::set<unsigned> more = without;
            for (unsigned number = first; number < std::min(first + run, statements); ++number) more.insert(number);
            if (more.size() > without.size() && differs(more)) without = std::move(more);
        }
    std::printf("%s%s// --without %s\n", module_head, generate(seed, forms, without).text.c_str(), joined(without).c_str());
    std::istringstream in_a(reducer.answer(a, without, "--registers")), in_b(reducer.answer(b, without, "--registers"));
    unsigned shown = 0;
    for (std::string line_a, line_b; std::getline(in_a, line_a) && std::getline(in_b, line_b) && shown < 4;) {
        if (line_a == line_b) continue;
        std::printf("// A: %s\n// B: %s\n", line_a.c_str(), line_b.c_str());
        ++shown;
    }
    return 0;
}

} // namespace random_programs
