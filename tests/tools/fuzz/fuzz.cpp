// SPDX-License-Identifier: Apache-2.0
// Random programs, each run in several ways that must give the same; see README.md. --help says what it takes.
#include "tests/tools/fuzz/coverage.h"
#include "tests/tools/fuzz/recording.h"
#include "tests/tools/fuzz/reduce.h"
#include "tests/tools/fuzz/reference/interpreter.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <string_view>

namespace {

using namespace fuzz;
using ptarmigan::ptx::Target;
using ptarmigan::ptx::Version;

constexpr const char* usage =
    "usage: fuzz_programs LIBCUDA [options]\n"
    "  --seeds A:B              programs A to B - 1 (0:100)\n"
    "  --configurations REGEX   ways to run them (.*); without --compare the first is what the others are compared with\n"
    "  --per-program N          N (further) ones for each program, in turn (3); 0: all\n"
    "  --oracle                 what the reference interpreter says is right; programs have forms that it knows;\n"
    "                           with --compare: the interpreter itself against the recording, of its programs those that it knows (no LIBCUDA)\n"
    "  --forms REGEX            instructions of rows with such names only, where there are any\n"
    "  --flavour own|portable   portable: what a GPU gives, too (portable)\n"
    "  --target NN[a] --version N.N   of the modules (90, 9.0)\n"
    "  --jobs N                 processes at a time (1)\n"
    "  --chunk N                programs for one process (25)\n"
    "  --time-limit S           seconds for one program (60)\n"
    "  --for S                  starts nothing after so many seconds\n"
    "  --minimise               leave out what a difference does not need\n"
    "  --gpu LIBCUDA            with --compare: a GPU's driver; what differs from the recording is written with what differs from that, and minimised by it\n"
    "  --output FOLDER          where programs that differ are written (.)\n"
    "  --record FILE            write what the library gives; --compare FILE: compare with it\n"
    "                           both: run those programs only that are not in the latter, or are others now, and keep the rest\n"
    "  --print SEED, --coverage, --list\n"
    "  --run FILE.ptx           a program from a file; with --registers what each thread leaves, too\n";

struct Options {
    std::string library, gpu, forms, configurations = ".*", record, compare, output = ".", run;
    std::uint32_t from = 0, to = 100;
    unsigned per_program = 3, jobs = 1, chunk = 25, time_limit = 60, seconds = 0;
    Flavour flavour = Flavour::portable;
    Version version{9, 0};
    Target target{90, 0, false, false};
    bool minimise = false, oracle = false, registers = false, coverage = false, list = false;
    long print = -1;
};

Options parse(int argc, char** argv) {
    Options o;
    if (argc < 2) throw std::invalid_argument(usage);
    o.library = argv[1];
    for (int i = 2; i < argc; ++i) {
        const std::string name = argv[i];
        const auto value = [&]() -> std::string {
            if (++i >= argc) throw std::invalid_argument(name + " takes a value");
            return argv[i];
        };
        const auto number = [&] { return static_cast<unsigned>(std::stoul(value())); };
        if (name == "--seeds") {
            const std::string range = value();
            o.from = static_cast<std::uint32_t>(std::stoul(range));
            o.to = static_cast<std::uint32_t>(std::stoul(range.substr(range.find(':') + 1)));
        } else if (name == "--configurations") o.configurations = value();
        else if (name == "--per-program") o.per_program = number();
        else if (name == "--forms") o.forms = value();
        else if (name == "--flavour") o.flavour = value() == "own" ? Flavour::own : Flavour::portable;
        else if (name == "--target") {
            const std::string text = value();
            o.target.sm = static_cast<std::uint32_t>(std::stoul(text));
            if (text.back() == 'a' || text.back() == 'f') o.target.suffix = text.back();
        } else if (name == "--version") {
            const std::string text = value();
            o.version = {static_cast<std::uint8_t>(text.at(0) - '0'), static_cast<std::uint8_t>(text.at(2) - '0')};
        } else if (name == "--jobs") o.jobs = std::max(1u, number());
        else if (name == "--chunk") o.chunk = std::max(1u, number());
        else if (name == "--time-limit") o.time_limit = number();
        else if (name == "--for") o.seconds = number();
        else if (name == "--minimise") o.minimise = true;
        else if (name == "--oracle") o.oracle = true;
        else if (name == "--gpu") o.gpu = value();
        else if (name == "--output") o.output = value();
        else if (name == "--record") o.record = value();
        else if (name == "--compare") o.compare = value();
        else if (name == "--print") o.print = number();
        else if (name == "--run") o.run = value();
        else if (name == "--coverage") o.coverage = true;
        else if (name == "--registers") o.registers = true;
        else if (name == "--list") o.list = true;
        else throw std::invalid_argument(usage);
    }
    if (o.oracle && o.forms.empty() && o.compare.empty()) o.forms = reference::known_forms();
    return o;
}

/// What the interpreter says that a program leaves; `memory`, too.
Result interpreted(const Program& program, std::vector<unsigned char>* memory = nullptr) {
    try {
        const std::vector<unsigned char> left = reference::interpret(program, input_words(input_bytes, 2026), memory_bytes);
        if (memory) *memory = left;
        return result_of(left.data(), left.size());
    } catch (const reference::UnknownForm& form) {
        return "unknown " + form.name;
    } catch (const std::exception& error) {
        return std::string("error: ") + error.what();
    }
}

class Campaign {
public:
    explicit Campaign(const Options& options)
        : o_(options), generator_(o_.flavour, o_.version, o_.target, o_.forms), ways_(o_.record.empty() ? configurations(o_.configurations) : std::vector<Configuration>{{"library", {}}}),
          workers_(o_.library, ways_, o_.time_limit, o_.seconds), gpu_(o_.gpu, {{"gpu", {}}}, o_.time_limit, o_.seconds) {
        if (ways_.empty()) throw std::invalid_argument("no such configuration");
    }

    int run() {
        if (!o_.compare.empty()) recording_ = read_recording(o_.compare);
        const bool compares = !o_.compare.empty() && o_.record.empty();
        const auto begin = std::chrono::steady_clock::now();
        unsigned runs = 0, programs = 0;
        std::map<std::uint32_t, std::map<unsigned, Result>> open;
        workers_.run(tasks(), o_.jobs, [&](std::uint32_t seed) { return generator_.generate(seed); },
                     [&](unsigned way, std::uint32_t seed, const Result& result) {
                         ++runs;
                         auto& results = open[seed];
                         results[way] = result;
                         if (results.size() < ways_of(seed).size()) return;
                         if (++programs % 1000 == 0) std::printf("%u programs so far\n", programs), std::fflush(stdout);
                         judge(seed, results);
                         open.erase(seed);
                     });
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        std::printf("%u programs, %u runs in %.0f s (%.0f programs a minute): %u failed", programs, runs, seconds, 60 * programs / std::max(seconds, 1e-3), failed_);
        if (compares) std::printf("; %u agree with the recording, %u are known to differ, %u are other programs than recorded, %u not recorded", agree_, known_, changed_, missing_);
        if (o_.oracle) std::printf("; %u with forms that the interpreter does not know", unknown_);
        std::printf("\n");
        for (const auto& [form, count] : unknown_forms_) std::printf("  %s: %u\n", form.c_str(), count);
        if (!o_.record.empty()) write_recording(o_.record, recording_, "# What programs of fuzz_programs leave in memory; recording.cpp says how to read it.\n");
        // A recording of other programs compares nothing.
        const bool is_stale = compares && changed_ + missing_ > programs / 3;
        if (is_stale) std::printf("too few programs are the recorded ones: record again\n");
        return failed_ != 0 || is_stale;
    }

    int run_file() {
        std::ifstream file(o_.run);
        if (!file) throw std::runtime_error("cannot read " + o_.run);
        const Program program = program_of(std::string(std::istreambuf_iterator<char>(file), {}));
        std::vector<unsigned char> first, memory;
        Result expected;
        bool differs = false;
        if (o_.oracle) {
            expected = interpreted(program, &first);
            std::printf("%-12s %s\n", "interpreter", expected.c_str());
            if (o_.registers && !first.empty()) std::printf("%s", describe_memory(first, program.threads()).c_str());
        }
        for (unsigned way = 0; way < ways_.size(); ++way) {
            memory.clear();
            const Result result = workers_.run_one(way, program, &memory);
            std::printf("%-12s %s\n", ways_[way].name, result.c_str());
            if (o_.registers && !memory.empty()) std::printf("%s", describe_memory(memory, program.threads()).c_str());
            if (way == 0 && !o_.oracle) expected = result, first = memory;
            if (result == expected) continue;
            differs = true;
            if (!first.empty() && !memory.empty()) std::printf("%s", describe_difference(first, memory, program.threads()).c_str());
        }
        return differs || is_error(expected);
    }

    const Generator& generator() const { return generator_; }

private:
    /// Some ways, in turn; the first one too, unless a recording or the interpreter says what must come out.
    std::vector<unsigned> ways_of(std::uint32_t seed) const {
        const unsigned always = o_.compare.empty() && !o_.oracle ? 1 : 0;
        std::vector<unsigned> chosen(always, 0);
        const unsigned others = static_cast<unsigned>(ways_.size()) - always;
        const unsigned count = o_.per_program == 0 ? others : std::min(o_.per_program, others);
        for (unsigned i = 0; i < count; ++i) chosen.push_back(always + static_cast<unsigned>((std::uint64_t(seed) * count + i) % others));
        return chosen;
    }

    std::vector<Task> tasks() const {
        std::vector<Task> list;
        for (std::uint32_t first = o_.from; first < o_.to; first += o_.chunk * static_cast<unsigned>(ways_.size())) {
            const std::uint32_t end = std::min(o_.to, first + o_.chunk * static_cast<unsigned>(ways_.size()));
            std::map<unsigned, std::vector<Task>> by_way;
            for (std::uint32_t seed = first; seed < end; ++seed) {
                if (is_kept(seed)) continue;
                for (unsigned way : ways_of(seed)) {
                    auto& of_way = by_way[way];
                    if (of_way.empty() || of_way.back().seeds.size() >= o_.chunk) of_way.push_back({way, {}});
                    of_way.back().seeds.push_back(seed);
                }
            }
            for (auto& [way, of_way] : by_way)
                for (Task& task : of_way) list.push_back(std::move(task));
        }
        return list;
    }

    /// Is it recorded anew only if it is another program than `--compare` tells of?
    bool is_kept(std::uint32_t seed) const {
        const auto found = recording_.find(seed);
        return !o_.record.empty() && found != recording_.end() && found->second.text == recorded("", generator_.generate(seed).text).text;
    }

    void judge(std::uint32_t seed, const std::map<unsigned, Result>& results) {
        if (o_.oracle) return judge_by_oracle(seed, results);
        const auto& [first, expected] = *results.begin();
        if (!o_.record.empty()) {
            if (is_error(expected)) fail(seed, "library " + expected);
            recording_[seed] = recorded(expected, generator_.generate(seed).text);
            return;
        }
        for (const auto& [way, result] : results)
            if (is_error(result) || result != expected) {
                fail(seed, std::string(ways_[way].name) + " gives " + result + ", " + ways_[first].name + " " + expected);
                return report(seed, side(workers_, first, ways_[first]), side(workers_, way, ways_[way]), result);
            }
        if (!o_.compare.empty()) compare(seed, first, expected);
    }

    void judge_by_oracle(std::uint32_t seed, const std::map<unsigned, Result>& results) {
        const Result expected = interpreted(generator_.generate(seed));
        if (expected.starts_with("unknown")) {
            ++unknown_;
            ++unknown_forms_[expected];
            return;
        }
        for (const auto& [way, result] : results)
            if (result != expected) {
                fail(seed, std::string(ways_[way].name) + " gives " + result + ", the interpreter " + expected);
                if (!is_error(expected)) report(seed, interpreter_side(), side(workers_, way, ways_[way]), result);
                return;
            }
    }

    void compare(std::uint32_t seed, unsigned way, const Result& result) {
        const auto found = recording_.find(seed);
        if (found == recording_.end() || found->second.result[0] == '-') {
            ++missing_;
            return;
        }
        const Recorded now = recorded(result, generator_.generate(seed).text);
        if (now.text != found->second.text) ++changed_;
        else if ((now.result == found->second.result) == found->second.known_difference) {
            fail(seed, found->second.known_difference ? "agrees although it is marked as a known difference" : "differs from the recording");
            if (!o_.gpu.empty() && !found->second.known_difference) report(seed, side(gpu_, 0, {"gpu", {}}), side(workers_, way, ways_[way]), result);
        } else ++(found->second.known_difference ? known_ : agree_);
    }

    void fail(std::uint32_t seed, const std::string& text) {
        ++failed_;
        std::printf("program %u: %s\n", seed, text.c_str());
        std::fflush(stdout);
    }

    /// One of two that should leave the same in memory.
    struct Side {
        Configuration configuration;
        std::function<Result(const Program&, std::vector<unsigned char>*)> run_with;
        Result run(const Program& program, std::vector<unsigned char>* memory = nullptr) const { return run_with(program, memory); }
    };
    static Side side(const Workers& workers, unsigned way, const Configuration& configuration) {
        return {configuration, [&workers, way](const Program& program, std::vector<unsigned char>* memory) { return workers.run_one(way, program, memory); }};
    }
    static Side interpreter_side() { return {{"interpreter", {}}, interpreted}; }

    /// Writes the program of `seed`, for which `other` gave `result` and `expected` something else.
    void report(std::uint32_t seed, const Side& expected, const Side& other, const Result& result) {
        std::set<unsigned> without;
        const bool errs = is_error(result);
        if (o_.minimise)
            without = reduce(generator_, seed, [&](const Program& program) {
                const Result now = other.run(program);
                if (errs) return is_error(now) && (alike(now, result) || result.find("no end") != Result::npos);
                if (is_error(now)) return false;
                const Result right = expected.run(program);
                return !is_error(right) && right != now;
            });
        const Program program = generator_.generate(seed, without);
        std::vector<unsigned char> a, b;
        const Result again = other.run(program, &b);
        expected.run(program, &a);
        const std::string path = o_.output + "/" + std::to_string(seed) + "_" + other.configuration.name + ".ptx";
        std::filesystem::create_directories(o_.output);
        std::ofstream file(path);
        file << launch_line(program) << "// fuzz_programs LIBCUDA --run " << std::filesystem::path(path).filename().string() << " --configurations '" << expected.configuration.name << "|" << other.configuration.name << "'\n"
             << "// seed " << seed << ", " << other.configuration.name << ":";
        for (const char* variable : other.configuration.environment) file << " " << variable;
        file << "\n// " << again << "\n";
        if (!a.empty() && !b.empty()) file << describe_difference(a, b, program.threads());
        file << program.text;
    }

    const Options& o_;
    Generator generator_;
    std::vector<Configuration> ways_;
    Workers workers_, gpu_;
    Recording recording_;
    std::map<std::string, unsigned> unknown_forms_;
    unsigned unknown_ = 0;
    unsigned failed_ = 0, agree_ = 0, known_ = 0, changed_ = 0, missing_ = 0;
};

/// The interpreter against what a GPU gave.
int judge_interpreter(const Options& o) {
    const Generator generator(o.flavour, o.version, o.target, o.forms);
    const Recording recording = read_recording(o.compare);
    unsigned agree = 0, known = 0, failed = 0;
    std::map<std::string, unsigned> unknown;
    for (std::uint32_t seed = o.from; seed < o.to; ++seed) {
        const auto found = recording.find(seed);
        if (found == recording.end() || found->second.result[0] == '-') continue;
        const Program program = generator.generate(seed);
        const Result result = interpreted(program);
        if (result.starts_with("unknown")) {
            ++unknown[result];
            continue;
        }
        const Recorded now = recorded(result, program.text);
        if (now.text != found->second.text) continue;
        if (now.result == found->second.result) {
            ++agree;
        } else if (found->second.known_difference) {
            ++known;
        } else {
            ++failed;
            std::printf("program %u: the interpreter gives %s\n", seed, result.c_str());
        }
    }
    std::printf("%u agree with the recording, %u are known to differ, %u differ\n", agree, known, failed);
    for (const auto& [form, count] : unknown) std::printf("  %s: %u\n", form.c_str(), count);
    return failed != 0 || agree == 0;
}

int run(const Options& o) {
    if (o.list) {
        for (const Configuration& c : all_configurations()) {
            std::printf("%s", c.name);
            for (const char* variable : c.environment) std::printf(" %s", variable);
            std::printf("\n");
        }
        return 0;
    }
    // Programs are met once; kept code would hide the compiler.
    setenv("PTARMIGAN_CACHE", "off", 1);
    setenv("PTARMIGAN_COMPILE_BUDGET", "15", 0);
    setenv("PTARMIGAN_WORKERS", "2", 0);
    setenv("PTARMIGAN_MEMORY", "64M", 0);
    if (o.target.sm != 90) setenv("PTARMIGAN_CC", (std::to_string(o.target.sm / 10) + "." + std::to_string(o.target.sm % 10)).c_str(), 1);
    if (o.version > Version{9, 0}) setenv("PTARMIGAN_ACCEPT_NEWER_PTX", "1", 1);
    if (o.oracle && !o.compare.empty()) return judge_interpreter(o);
    Campaign campaign(o);
    if (o.print >= 0) {
        const Program program = campaign.generator().generate(static_cast<std::uint32_t>(o.print));
        std::printf("%s%s", launch_line(program).c_str(), program.text.c_str());
        return 0;
    }
    if (o.coverage) return print_coverage(campaign.generator(), o.version, o.target, o.from, o.to) != 0;
    return o.run.empty() ? campaign.run() : campaign.run_file();
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
        std::puts(usage);
        return 0;
    }
    try {
        return run(parse(argc, argv));
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
