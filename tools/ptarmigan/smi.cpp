// SPDX-License-Identifier: Apache-2.0
// `ptarmigan smi`, and this program under the name nvidia-smi: the devices in nvidia-smi's words. Options, messages and
// exit codes are those of nvidia-smi 580.
#include "tools/ptarmigan/commands.h"
#include "tools/ptarmigan/smi/smi_text.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ptarmigan::tool {
namespace {

using Words = std::vector<std::string>;

/// nvidia-smi's.
constexpr int exit_ok = 0, exit_bad_argument = 2, exit_no_device = 6, exit_unknown_option = 255;

constexpr char usage[] = R"(Shows the devices that CUDA programs see, as nvidia-smi does.

  (nothing)                      a table of devices and of the processes that use them
  -L, --list-gpus                a line for each device
  -q, --query                    names and values; -d SECTION,... chooses: MEMORY, UTILIZATION, ECC,
                                 TEMPERATURE, POWER, CLOCK, COMPUTE, PIDS, PERFORMANCE
  --query-gpu=FIELD,...          values of fields; --help-query-gpu lists them
  --query-compute-apps=FIELD,... the same of processes
  --format=csv[,noheader][,nounits]
  topo -m                        how devices lie to each other
  -i, --id=DEVICE,...            only these: number, UUID or PCI bus id
  -f, --filename=FILE            into a file
  -l, --loop=SECONDS, -lms, --loop-ms=MILLISECONDS   again and again
  --version, -h, --help
)";

Words split(const std::string& text) {
    Words words;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        words.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

struct SmiOptions {
    enum class What {
        summary,
        list,
        report,
        devices,
        processes,
        topology,
        fields,
        excluded,
        version,
        help
    } what = What::summary;
    Words fields, sections;
    smi::CsvStyle style;
    std::string ids, file;
    unsigned loop_ms = 0;
};

/// A command line that ends at once, with a message and a code.
struct Misuse {
    std::string message;
    int code;
};

[[noreturn]] void unknown_option(const std::string& word) {
    throw Misuse{"ERROR: Option " + word + " is not recognized. Please run 'nvidia-smi -h'.\n", exit_unknown_option};
}

void read_format(const std::string& text, SmiOptions& options) {
    for (const std::string& word : split(text)) {
        if (word == "noheader")
            options.style.header = false;
        else if (word == "nounits")
            options.style.units = false;
        else if (word != "csv")
            throw Misuse{"Format modifier is not recognized.\n", exit_bad_argument};
    }
}

unsigned number(const std::string& text, const std::string& option) {
    if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos)
        throw Misuse{"Invalid value for " + option + ": " + text + "\n", exit_bad_argument};
    return static_cast<unsigned>(std::stoul(text));
}

/// Takes the words apart. Values follow "=" or come as the next word.
class Reader {
public:
    explicit Reader(const Words& words) : words_(words) {}

    SmiOptions read() {
        while (next_ < words_.size()) read_word();
        check_combination();
        return options_;
    }

private:
    using What = SmiOptions::What;

    void read_word() {
        std::string word = words_[next_++];
        value_.clear();
        has_value_ = false;
        if (word.starts_with("--"))
            if (const std::size_t sign = word.find('='); sign != std::string::npos) {
                value_ = word.substr(sign + 1);
                has_value_ = true;
                word.resize(sign);
            }
        read_option(word);
    }

    void read_option(const std::string& word) {
        if (word == "-L" || word == "--list-gpus")
            options_.what = What::list;
        else if (word == "-q" || word == "--query")
            options_.what = What::report;
        else if (word == "-h" || word == "--help")
            options_.what = What::help;
        else if (word == "--version")
            options_.what = What::version;
        else if (word == "--help-query-gpu")
            options_.what = What::fields;
        else if (word == "topo")
            read_topology();
        else if (word == "-d" || word == "--display")
            read_sections();
        else if (word == "-B" || word == "--list-excluded-gpus")
            options_.what = What::excluded;
        else if (word == "--query-gpu")
            ask(What::devices);
        else if (word == "--query-compute-apps")
            ask(What::processes);
        else if (word == "--format")
            read_format(value(word), options_);
        else if (word == "-i" || word == "--id")
            options_.ids = value(word);
        else if (word == "-f" || word == "--filename")
            options_.file = value(word);
        else if (word == "-l" || word == "--loop")
            options_.loop_ms = 1000 * (next_is_value() ? number(value(word), word) : 5);
        else if (word == "-lms" || word == "--loop-ms")
            options_.loop_ms = number(value(word), word);
        else
            unknown_option(word);
    }

    void check_combination() const {
        if (options_.what == What::list && !options_.ids.empty())
            throw Misuse{"ERROR: Option -i is not valid for this command. Please run 'nvidia-smi -h' for help.\n\n",
                         exit_bad_argument};
        if (options_.what != What::report && !options_.sections.empty())
            throw Misuse{
                "Invalid combination of input arguments. Specify -q/--query and -d/--display to run a filtered "
                "query.  Please run 'nvidia-smi -h' for help.\n\n",
                exit_bad_argument};
    }

    bool next_is_value() const { return has_value_ || (next_ < words_.size() && !words_[next_].starts_with('-')); }

    std::string value(const std::string& option) {
        if (has_value_) return value_;
        if (next_ == words_.size()) throw Misuse{"Missing value for " + option + "\n", exit_bad_argument};
        return words_[next_++];
    }

    void ask(What what) {
        if (options_.what != What::summary)
            throw Misuse{"Only one --query-* switch can be used at a time.\n", exit_bad_argument};
        options_.what = what;
        options_.fields = split(value("--query"));
    }

    void read_sections() {
        options_.sections = split(value("-d"));
        for (const std::string& section : options_.sections)
            if (!smi::is_section(section)) throw Misuse{"Failed to parse --display/-d flags\n", exit_bad_argument};
    }

    void read_topology() {
        if (next_ == words_.size() || words_[next_] != "-m")
            unknown_option(next_ == words_.size() ? "topo" : words_[next_]);
        ++next_;
        options_.what = What::topology;
    }

    const Words& words_;
    std::size_t next_ = 0;
    std::string value_;
    bool has_value_ = false;
    SmiOptions options_;
};

std::string answer(const SmiOptions& options) {
    using What = SmiOptions::What;
    if (options.what == What::help) return usage;
    if (options.what == What::fields) return smi::fields_text();
    if (options.what == What::excluded) return "No excluded devices found.\n";
    smi::SystemState system = smi::read_system();
    if (!options.ids.empty()) smi::select_devices(system, options.ids);
    if (system.devices.empty()) throw Misuse{"No devices were found\n", exit_no_device};
    std::string unknown, text;
    switch (options.what) {
    case What::list: return smi::list_text(system);
    case What::report: return smi::report_text(system, options.sections);
    case What::topology: return smi::topology_text(system);
    case What::version:
        return "PTARMIGAN-SMI version : " + system.driver_version + "\nNVML version          : " + system.nvml_version +
               "\nDRIVER version        : " + system.driver_version +
               "\nCUDA Version          : " + system.cuda_version + "\n";
    case What::devices: text = smi::csv_text(system, options.fields, options.style, unknown); break;
    case What::processes: text = smi::processes_csv_text(system, options.fields, options.style, unknown); break;
    default: return smi::summary_text(system);
    }
    if (!unknown.empty())
        throw Misuse{"Field \"" + unknown + "\" is not a valid field to query.\n\n", exit_bad_argument};
    return text;
}

void write(const std::string& text, const std::string& path) {
    std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "w");
    if (!file) throw Misuse{"Failed to open " + path + "\n", exit_bad_argument};
    std::fputs(text.c_str(), file);
    if (file == stdout)
        std::fflush(file);
    else
        std::fclose(file);
}

} // namespace

int run_smi(const std::vector<std::string>& words) {
    try {
        const SmiOptions options = Reader(words).read();
        for (;;) {
            write(answer(options), options.file);
            if (options.loop_ms == 0) return exit_ok;
            std::this_thread::sleep_for(std::chrono::milliseconds(options.loop_ms));
        }
    } catch (const Misuse& misuse) {
        std::fputs(misuse.message.c_str(), stdout); // where nvidia-smi says it
        return misuse.code;
    }
}

void add_smi_command(CLI::App& app) {
    app.add_subcommand("smi",
                       "Show devices, their memory and processes as nvidia-smi does"); // main() has taken its words
}

} // namespace ptarmigan::tool
