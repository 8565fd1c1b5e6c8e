// SPDX-License-Identifier: Apache-2.0
// Programs that ask a driver questions, and compare its answers with those of a GPU's driver:
//   PROGRAM LIBCUDA            prints "question TAB answer"; so the file of answers was made
//   PROGRAM LIBCUDA ANSWERS    compares, names what differs; exit status 1 if anything does
// Entries are found by name in the library, so that one source asks both drivers. One thread at a time.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <string>

namespace answers {

inline void* library = nullptr;

template <class... Arguments> int call(const char* name, Arguments... arguments) {
    void* entry = dlsym(library, name);
    if (!entry) {
        std::fprintf(stderr, "no %s\n", name);
        std::_Exit(2);
    }
    return reinterpret_cast<int (*)(Arguments...)>(entry)(arguments...);
}

/// A call of the preparation, which has to succeed.
template <class... Arguments> void must(const char* name, Arguments... arguments) {
    if (int result = call(name, arguments...)) {
        std::fprintf(stderr, "%d from %s\n", result, name);
        std::_Exit(2);
    }
}

/// What was recorded, and what is left of it.
class Answers {
public:
    /// Of the words of main(); ends the process if there is no such library or file.
    Answers(int count, char** words) {
        library = count > 1 ? dlopen(words[1], RTLD_NOW) : nullptr;
        if (!library) {
            std::fprintf(stderr, "%s LIBCUDA [ANSWERS]: %s\n", words[0], count > 1 ? dlerror() : "no library");
            std::_Exit(2);
        }
        if (count != 3) return;
        compares_ = true;
        std::ifstream file(words[2]);
        for (std::string line; std::getline(file, line);)
            if (const std::size_t tab = line.find('\t'); tab != std::string::npos && line[0] != '#')
                recorded_[line.substr(0, tab)] = line.substr(tab + 1);
        if (recorded_.empty()) ++wrong_;
    }
    void give(const std::string& question, const std::string& answer) {
        if (!compares_) {
            std::printf("%s\t%s\n", question.c_str(), answer.c_str());
            std::fflush(stdout); // a driver may crash at the next one
            return;
        }
        const auto expected = recorded_.find(question);
        if (expected == recorded_.end() || expected->second != answer) {
            std::fprintf(stderr, "%s: %s, recorded %s\n", question.c_str(), answer.c_str(),
                         expected == recorded_.end() ? "nothing" : expected->second.c_str());
            ++wrong_;
        }
        if (expected != recorded_.end()) recorded_.erase(expected);
    }
    void give(const std::string& question, long long answer) { give(question, std::to_string(answer)); }
    /// Where we answer `ours` and the driver that was recorded, an older one, `recorded`: both have to be as stated.
    void give_differing(const std::string& question, long long answer, long long ours, long long recorded) {
        const auto known = recorded_.find(question);
        if (compares_ && answer == ours && known != recorded_.end() && known->second == std::to_string(recorded))
            recorded_.erase(known);
        else
            give(question, answer);
    }
    /// Questions with these words are not asked.
    void forget(const std::string& words) {
        std::erase_if(recorded_, [&](const auto& entry) { return entry.first.find(words) != std::string::npos; });
    }
    /// The process's exit status: recorded questions that were not asked count as wrong.
    int finish() const {
        for (const auto& [question, answer] : recorded_) std::fprintf(stderr, "%s: not asked\n", question.c_str());
        return wrong_ != 0 || !recorded_.empty();
    }

private:
    bool compares_ = false;
    int wrong_ = 0;
    std::map<std::string, std::string> recorded_;
};

} // namespace answers
