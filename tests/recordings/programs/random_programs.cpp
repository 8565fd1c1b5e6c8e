// SPDX-License-Identifier: Apache-2.0
// Runs random programs and compares a hash of all that they leave in memory with the one recorded on a GPU. Needs only the
// driver API, so the same program records and verifies:
//   random_programs LIBCUDA FORMS RECORDING [--from N] [--count N]   compares; fails if one differs
//   random_programs LIBCUDA FORMS --record N [--from M]              prints the hashes of seeds M to M + N - 1; `record` beside
//                                                                    this file does it for a driver whose compiler may crash
//   random_programs LIBCUDA FORMS --print SEED [--without LIST]      prints the PTX
//   random_programs LIBCUDA FORMS --hash SEED [--without LIST]       prints its hash
//   random_programs LIBCUDA FORMS --registers SEED [--without LIST]  prints the registers of every thread at its end
//   random_programs LIBCUDA FORMS --prefixes SEED                    prints the hashes of its first 0, 1, 2, ... statements
//   random_programs LIBCUDA FORMS --reduce SEED A B                  smallest program whose hashes differ under A and B:
//                                                                    words NAME=VALUE for the environment, LIBCUDA=PATH
#include "tests/recordings/driver.h"
#include "tests/recordings/programs/generator.h"
#include "tests/recordings/programs/reduce.h"
#include "tests/recordings/random.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace {

using namespace random_programs;
using recordings::Address;
using recordings::Driver;

constexpr unsigned form_count = 1134;      ///< of the list, which only grows: others would make other programs
constexpr unsigned programs_per_module = 4; ///< calls through pointers compile all functions of a module
constexpr std::uint64_t not_recorded = 0;  ///< "-": the GPU's driver could not compile it

/// Half edge values of 64, 32 and 16 bits, half anything.
std::vector<std::uint64_t> input_words() {
    static constexpr std::uint64_t edges[] = {
        0, 1, 0x7ff0000000000000, 0xfff8123400000000, 0x000fffffffffffff, 0x8000000000000000, 0x7fffffffffffffff, ~0ull,
        0x3ff00000bf800000, 0x7f80000080000000, 0x7fc12345ff800000, 0x007fffff00800000, 0x3c00bc007c00fc00, 0x7e0103ff7bff8001,
        0x0000000500000003, 0x4330000041e00000};
    recordings::Random random(2026);
    std::vector<std::uint64_t> words(inputs);
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = i % 2 ? edges[random.below(std::size(edges))] ^ (random.below(4) == 0 ? random.bits() & 7 : 0) : random.bits();
    return words;
}

class Runner {
public:
    explicit Runner(const char* library) : driver_(library) {
        const std::vector<std::uint64_t> words = input_words();
        in_ = driver_.allocate(words.size() * 8);
        driver_.upload(in_, words.data(), words.size() * 8);
        memory_ = driver_.allocate(memory_bytes);
    }

    void* load(const std::vector<Program>& programs) {
        std::string text = module_head;
        for (const Program& program : programs) text += program.text;
        return driver_.load(text);
    }
    void unload(void* module) { driver_.unload(module); }

    /// register_words words per thread.
    std::vector<std::uint64_t> registers(void* module, const Program& program, std::uint32_t seed) {
        std::vector<std::uint64_t> words(register_words * max_threads);
        Address out = driver_.allocate(words.size() * 8), scratch = memory_ + 8 * max_threads;
        void* parameters[] = {&in_, &out, &scratch};
        driver_.launch(module, "k" + std::to_string(seed), program.grid, program.block_x, program.block_y, parameters);
        driver_.download(words.data(), out, words.size() * 8);
        return words;
    }

    std::uint64_t hash(void* module, const Program& program, std::uint32_t seed) {
        std::vector<unsigned char> memory(memory_bytes);
        driver_.upload(memory_, memory.data(), memory.size());
        Address out = memory_, scratch = memory_ + 8 * max_threads;
        void* parameters[] = {&in_, &out, &scratch};
        driver_.launch(module, "k" + std::to_string(seed), program.grid, program.block_x, program.block_y, parameters);
        driver_.download(memory.data(), memory_, memory.size());
        return recordings::hash_bytes(memory.data(), memory.size());
    }

private:
    static constexpr std::size_t memory_bytes = 8 * max_threads + scratch_bytes * (max_threads + 1);
    Driver driver_;
    Address in_ = 0, memory_ = 0;
};

struct Recorded {
    std::uint64_t hash = 0;
    bool known_difference = false;
};

std::vector<Recorded> read_hashes(const char* path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error(std::string("cannot read ") + path);
    std::vector<Recorded> hashes;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#') continue;
        const bool known_difference = line[0] == '~';
        hashes.push_back({line[0] == '-' ? not_recorded : std::stoull(line.substr(known_difference), nullptr, 16), known_difference});
    }
    return hashes;
}

/// Calls visit(seed, hash) for seeds [from, from + count).
template <class Visit> void run_all(Runner& runner, const std::vector<Form>& forms, unsigned from, unsigned count, Visit visit) {
    for (unsigned first = from; first < from + count; first += programs_per_module) {
        std::vector<Program> programs;
        for (unsigned seed = first; seed < std::min(first + programs_per_module, from + count); ++seed)
            programs.push_back(generate(seed, forms));
        void* module = runner.load(programs);
        for (unsigned i = 0; i < programs.size(); ++i) visit(first + i, runner.hash(module, programs[i], first + i));
        runner.unload(module);
    }
}

int compare(const char* library, const std::vector<Form>& forms, const char* recording, std::map<std::string, std::string>& options) {
    const std::vector<Recorded> recorded = read_hashes(recording);
    const unsigned from = options.contains("--from") ? unsigned(std::stoul(options["--from"])) : 0;
    unsigned count = options.contains("--count") ? unsigned(std::stoul(options["--count"])) : unsigned(recorded.size());
    if (from >= recorded.size()) throw std::runtime_error("no such program is recorded");
    count = std::min(count, unsigned(recorded.size()) - from);
    Runner runner(library);
    unsigned failed = 0, known = 0;
    run_all(runner, forms, from, count, [&](unsigned seed, std::uint64_t hash) {
        const Recorded& expected = recorded[seed];
        if (expected.hash == not_recorded) return;
        known += expected.known_difference;
        if ((hash == expected.hash) != expected.known_difference) return;
        ++failed;
        std::printf("program %u %s\n", seed, expected.known_difference ? "agrees although it is marked as a known difference" : "differs from the recording");
    });
    std::printf("%u programs agree, %u are known to differ, %u failed\n", count - failed - known, known, failed);
    return failed != 0;
}

void print_registers(Runner& runner, const Program& program, std::uint32_t seed) {
    const std::vector<std::uint64_t> words = runner.registers(runner.load({program}), program, seed);
    const std::vector<std::string> names = register_names();
    for (unsigned thread = 0; thread < program.grid * program.block_x * program.block_y; ++thread) {
        std::printf("%u", thread);
        for (unsigned i = 0; i < names.size(); ++i)
            std::printf(" %s=%llx", names[i].c_str(), static_cast<unsigned long long>(words[thread * register_words + i]));
        std::printf("\n");
    }
}

std::set<unsigned> numbers(const std::string& list) {
    std::set<unsigned> result;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) result.insert(unsigned(std::stoul(word)));
    return result;
}

int run(int argc, char** argv) {
    const std::vector<Form> forms = read_forms(argv[2], form_count);
    const std::string action = argv[3];
    if (action == "--reduce" && argc == 7) return reduce(argv[0], argv[1], argv[2], std::uint32_t(std::stoul(argv[4])), argv[5], argv[6], forms);
    std::map<std::string, std::string> options;
    for (int i = action[0] == '-' ? 3 : 4; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
    if (action[0] != '-') return compare(argv[1], forms, argv[3], options);
    const std::set<unsigned> without = numbers(options["--without"]);
    const std::uint32_t number = std::uint32_t(std::stoul(options.at(action)));
    if (action == "--print") {
        std::printf("%s%s", module_head, generate(number, forms, without).text.c_str());
        return 0;
    }
    Runner runner(argv[1]);
    const auto print = [](unsigned, std::uint64_t hash) {
        std::printf("%016llx\n", static_cast<unsigned long long>(hash));
        std::fflush(stdout);
    };
    if (action == "--record") {
        run_all(runner, forms, options.contains("--from") ? unsigned(std::stoul(options["--from"])) : 0, number, print);
    } else if (action == "--prefixes") {
        const unsigned statements = generate(number, forms).statements;
        for (unsigned count = 0; count <= statements; ++count) {
            std::set<unsigned> rest;
            for (unsigned i = count; i < statements; ++i) rest.insert(i);
            const Program program = generate(number, forms, rest);
            print(number, runner.hash(runner.load({program}), program, number));
        }
    } else if (action == "--registers") {
        print_registers(runner, generate(number, forms, without, Outcome::registers), number);
    } else if (action == "--hash") {
        const Program program = generate(number, forms, without);
        print(number, runner.hash(runner.load({program}), program, number));
    } else {
        return 2;
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: %s LIBCUDA FORMS RECORDING | --record N | --print SEED | --hash SEED | --reduce SEED A B\n", argv[0]);
        return 2;
    }
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
