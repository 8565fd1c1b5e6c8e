// SPDX-License-Identifier: Apache-2.0
#include "tests/agreement/ptxas.h"

#include "tests/agreement/statements.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace ptarmigan::test {

namespace {

/// ptxas 13 makes code for sm_75 and later only; older targets are read all the same, and odd suffixes like the last letter alone.
std::string architecture_for(const std::string& target) {
    const std::string name = target.substr(0, target.find(','));
    const std::size_t number = name.find('_');
    const int sm = number == name.npos ? 0 : std::atoi(name.c_str() + number + 1);
    if (sm < 75) return "sm_75";
    const bool has_suffix = name.ends_with('a') || name.ends_with('f');
    return "sm_" + std::to_string(sm) + (has_suffix ? name.substr(name.size() - 1) : "");
}

struct Complaint {
    long statement = -1; ///< -1: none in particular
    std::string message;
};

class Session {
public:
    Session(const std::string& ptxas, const std::string& folder, const std::string& version,
            const std::string& target)
        : ptxas_(ptxas), file_(folder + "/agreement.ptx"), log_(folder + "/agreement.log"),
          version_(version), header_(module_header(version, target)), architecture_(architecture_for(target)) {
        header_lines_ = std::count(header_.begin(), header_.end(), '\n');
    }

    /// Errors of one statement sometimes stick to later ones: `doubtful` are asked again alone.
    void ask_alone(const std::vector<std::string>& statements, std::size_t index,
                   std::vector<Verdict>& verdicts) {
        verdicts[index] = {};
        judge(statements, {index}, verdicts);
    }

    void judge(const std::vector<std::string>& statements, std::vector<std::size_t> rest,
               std::vector<Verdict>& verdicts) {
        while (!rest.empty()) {
            std::vector<Complaint> complaints;
            if (run(statements, rest, complaints)) {
                for (std::size_t i : rest) verdicts[i].accepted = true;
                return;
            }
            std::vector<bool> gone(rest.size());
            bool progress = false;
            for (const Complaint& complaint : complaints) {
                if (complaint.statement < 0 ||
                    complaint.statement >= static_cast<long>(rest.size()))
                    continue;
                const auto at = static_cast<std::size_t>(complaint.statement);
                if (!gone[at]) verdicts[rest[at]].message = complaint.message;
                gone[at] = progress = true;
            }
            if (!progress) return split(statements, rest, complaints, verdicts);
            std::vector<std::size_t> kept;
            for (std::size_t i = 0; i < rest.size(); ++i)
                if (!gone[i]) kept.push_back(rest[i]);
            rest = std::move(kept);
        }
    }

private:
    /// A complaint about none in particular: halves tell which it is about.
    void split(const std::vector<std::string>& statements, const std::vector<std::size_t>& rest,
               const std::vector<Complaint>& complaints, std::vector<Verdict>& verdicts) {
        if (rest.size() == 1) {
            verdicts[rest[0]].message = complaints.empty() ? "?" : complaints[0].message;
            return;
        }
        const auto middle = rest.begin() + static_cast<long>(rest.size() / 2);
        judge(statements, {rest.begin(), middle}, verdicts);
        judge(statements, {middle, rest.end()}, verdicts);
    }

    bool run(const std::vector<std::string>& statements, const std::vector<std::size_t>& rest,
             std::vector<Complaint>& complaints) {
        std::ofstream out(file_);
        out << header_;
        for (std::size_t i = 0; i < rest.size(); ++i) out << wrap(statements[rest[i]], i, version_);
        out.close();
        const std::string command = "'" + ptxas_ + "' -O0 -w -arch=" + architecture_ + " '" + file_ +
                                    "' -o '" + file_ + ".cubin' > '" + log_ + "' 2>&1";
        const int status = std::system(command.c_str());
        if (status == 0) return true;
        if (WEXITSTATUS(status) == 127) throw std::runtime_error("can't run " + ptxas_);
        std::ifstream log(log_);
        std::string line;
        while (std::getline(log, line)) {
            if (line.find("; info") != std::string::npos || line.find("; warning") != std::string::npos)
                continue;
            Complaint complaint;
            const std::size_t at = line.find(", line ");
            const std::size_t entry = line.find("'k");
            if (at != std::string::npos)
                complaint.statement = std::atol(line.c_str() + at + 7) - 1 - header_lines_;
            else if (entry != std::string::npos)
                complaint.statement = std::atol(line.c_str() + entry + 2);
            const std::size_t colon = line.find("; ");
            complaint.message = colon == std::string::npos ? line : line.substr(colon + 2);
            complaints.push_back(complaint);
        }
        return false;
    }

    std::string ptxas_, file_, log_, version_, header_, architecture_;
    long header_lines_ = 0;
};

} // namespace

std::vector<Verdict> ask_ptxas(const std::string& ptxas, const std::string& folder,
                               const std::string& version, const std::string& target,
                               const std::vector<std::string>& statements,
                               const std::function<bool(const std::string&)>& doubtful) {
    Session session(ptxas, folder, version, target);
    std::vector<Verdict> verdicts(statements.size());
    constexpr std::size_t pack = 400;
    for (std::size_t first = 0; first < statements.size(); first += pack) {
        std::vector<std::size_t> indices;
        for (std::size_t i = first; i < std::min(first + pack, statements.size()); ++i)
            indices.push_back(i);
        session.judge(statements, indices, verdicts);
    }
    for (std::size_t i = 0; i < statements.size(); ++i)
        if (!verdicts[i].accepted && doubtful(statements[i]))
            session.ask_alone(statements, i, verdicts);
    return verdicts;
}

} // namespace ptarmigan::test
