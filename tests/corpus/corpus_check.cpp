// SPDX-License-Identifier: Apache-2.0
// corpus_check: loads the PTX of files, of shared libraries and of archives with every body, prints
// it and loads it again. One line per file with counts and speed; exit status 1 if anything has
// errors or does not come back equal.
#include "frontend/module_loader.h"
#include "tests/support/library_ptx.h"
#include "tests/support/module_comparison.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <unordered_set>

namespace {

using namespace ptarmigan;

struct Options {
    std::vector<std::string> files;
    std::uint64_t sample_bytes = 0;
    bool round_trip = true;
    bool distinct = true;
    unsigned shown = 10;
    std::string extract;
};

struct Counts {
    std::uint64_t texts = 0, repeated = 0, functions = 0, instructions = 0, bytes = 0;
    std::uint64_t bad = 0, round_trips = 0;
    double load_seconds = 0;

    Counts& operator+=(const Counts& o) {
        texts += o.texts, repeated += o.repeated, functions += o.functions;
        instructions += o.instructions, bytes += o.bytes, bad += o.bad;
        round_trips += o.round_trips, load_seconds += o.load_seconds;
        return *this;
    }
};

double cpu_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

class CorpusCheck {
public:
    explicit CorpusCheck(const Options& options) : options_(options) {}

    bool run() {
        for (const std::string& path : options_.files) {
            const test::MappedFile file(path);
            if (file.bytes().empty()) {
                std::fprintf(stderr, "%s: can't be read\n", path.c_str());
                ++total_.bad;
                continue;
            }
            counts_ = {};
            if (path.ends_with(".ptx"))
                check(std::string(file.bytes()), path);
            else
                library(file.bytes(), path);
            print(path.substr(path.rfind('/') + 1), counts_);
            total_ += counts_;
        }
        if (options_.files.size() > 1) print("all", total_);
        return total_.bad == 0;
    }

private:
    static void print(const std::string& name, const Counts& c) {
        std::printf(
            "%-42s %6llu texts (%llu repeated) %7llu functions %9llu instructions %8.1f MB "
            "%6.1f MB/s  %llu with errors, %llu came back equal\n",
            name.c_str(), static_cast<unsigned long long>(c.texts),
            static_cast<unsigned long long>(c.repeated),
            static_cast<unsigned long long>(c.functions),
            static_cast<unsigned long long>(c.instructions), static_cast<double>(c.bytes) / 1e6,
            c.load_seconds > 0 ? static_cast<double>(c.bytes) / 1e6 / c.load_seconds : 0,
            static_cast<unsigned long long>(c.bad), static_cast<unsigned long long>(c.round_trips));
        std::fflush(stdout);
    }

    void library(std::string_view bytes, const std::string& path) {
        unsigned damaged = 0;
        const std::vector<test::EmbeddedPtx> found = test::find_embedded_ptx(bytes, damaged);
        if (damaged != 0) {
            std::fprintf(stderr, "%s: %u damaged containers\n", path.c_str(), damaged);
            ++counts_.bad;
        }
        // An even sample: a text is taken whenever less than its place in the library asks for was
        // taken before.
        std::uint64_t all = 0, taken = 0, passed = 0;
        const std::uint64_t limit = options_.sample_bytes != 0 ? options_.sample_bytes : UINT64_MAX;
        for (const test::EmbeddedPtx& ptx : found)
            if (size_of(ptx.entry) <= limit) all += size_of(ptx.entry);
        for (const test::EmbeddedPtx& ptx : found) {
            if (size_of(ptx.entry) > limit) continue;
            passed += size_of(ptx.entry);
            if (all > limit && static_cast<double>(taken) / static_cast<double>(limit) >
                                   static_cast<double>(passed) / static_cast<double>(all))
                continue;
            taken += size_of(ptx.entry);
            std::string name = path.substr(path.rfind('/') + 1) + "@" + std::to_string(ptx.offset) +
                               "." + std::to_string(ptx.index) + ".ptx";
            std::string text = runtime::unpack_ptx(ptx.entry);
            if (text.empty()) {
                report(name + ": can't be unpacked\n");
                continue;
            }
            check(std::move(text), std::move(name));
        }
    }

    static std::uint64_t size_of(const runtime::PtxEntry& entry) {
        return entry.text_size != 0 ? entry.text_size : entry.stored_size;
    }

    void report(const std::string& text) {
        ++counts_.bad;
        if (reported_++ < options_.shown) std::fprintf(stderr, "%s", text.c_str());
    }

    void check(std::string text, std::string name) {
        ++counts_.texts;
        if (options_.distinct && !seen_.insert(std::hash<std::string>()(text)).second) {
            ++counts_.repeated;
            return;
        }
        if (!options_.extract.empty()) std::ofstream(options_.extract + "/" + name) << text;
        counts_.bytes += text.size();
        const double start = cpu_seconds();
        const auto loader = ptx::ModuleLoader::load(std::move(text), name,
                                                    {.bind_all_bodies = true, .max_errors = 3});
        counts_.load_seconds += cpu_seconds() - start;
        if (!loader->ok()) return report(loader->diagnostics().render_all());
        for (ptx::FunctionId f = 0; f < loader->module().functions.size(); ++f) {
            if (loader->module().functions[f].is_declaration) continue;
            ++counts_.functions;
            counts_.instructions += loader->body(f).instructions.size();
        }
        if (!options_.round_trip) return;
        const std::string fault = test::round_trip_fault(*loader);
        if (!fault.empty()) return report(name + ": " + fault + "\n");
        ++counts_.round_trips;
    }

    const Options& options_;
    Counts counts_, total_;
    std::unordered_set<std::size_t> seen_;
    unsigned reported_ = 0;
};

} // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app(
        "Loads the PTX of files, shared libraries and archives, prints it and loads it again");
    app.add_option("files", options.files, "PTX texts (*.ptx), or files with fat binaries inside")
        ->required();
    app.add_option(
        "--sample", options.sample_bytes,
        "about so many bytes of PTX of each library, evenly spread, of texts that are no "
        "longer; 0: all, as with "
        "PTARMIGAN_TEST_CORPUS=all in the environment");
    app.add_flag("!--no-round-trip", options.round_trip, "load only");
    app.add_flag("!--repeats", options.distinct, "texts that came before are loaded again");
    app.add_option("--shown", options.shown, "errors shown");
    app.add_option("--extract", options.extract, "folder to write the texts to");
    CLI11_PARSE(app, argc, argv);
    if (const char* all = std::getenv("PTARMIGAN_TEST_CORPUS"); all && std::string_view(all) == "all")
        options.sample_bytes = 0;
    return CorpusCheck(options).run() ? 0 : 1;
}
