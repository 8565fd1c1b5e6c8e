// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/fuzz/reduce.h"

#include <cctype>
#include <cstring>

namespace fuzz {

std::set<unsigned> reduce(const Generator& generator, std::uint32_t seed, const std::function<bool(const Program&)>& different) {
    const unsigned statements = generator.generate(seed).statements;
    std::set<unsigned> without;
    // Runs of statements, ever shorter; outer statements take those inside along.
    for (unsigned run = (statements + 1) / 2; run > 0; run /= 2)
        for (unsigned first = 0; first < statements; first += run) {
            std::set<unsigned> more = without;
            for (unsigned number = first; number < std::min(first + run, statements); ++number) more.insert(number);
            if (more.size() == without.size()) continue;
            const Program smaller = generator.generate(seed, more);
            if (smaller.text == generator.generate(seed, without).text || different(smaller)) without = std::move(more);
        }
    return without;
}

namespace {

std::string digits(const std::vector<unsigned char>& memory, std::size_t at, unsigned bytes) {
    static constexpr char digit[] = "0123456789abcdef";
    std::string number;
    for (unsigned i = bytes; i-- > 0;) number += {digit[memory[at + i] >> 4], digit[memory[at + i] & 15]};
    return number;
}

/// Of one thread: registers, and behind them its local and its shared memory.
std::vector<Place> places_of_thread() {
    std::vector<Place> places = output_places(Registers::of_kernel());
    for (unsigned at = (places.back().offset + places.back().bytes + 15) / 16 * 16, i = 0; at < output_bytes; at += 8, ++i)
        places.push_back({"memory+" + std::to_string(8 * i), at, 8});
    return places;
}

} // namespace

std::string describe_memory(const std::vector<unsigned char>& memory, unsigned threads) {
    std::string text;
    for (unsigned thread = 0; thread < threads; ++thread) {
        text += std::to_string(thread);
        for (const Place& place : places_of_thread()) text += " " + place.name + "=" + digits(memory, std::size_t(thread) * output_bytes + place.offset, place.bytes);
        text += "\n";
    }
    const std::size_t common = std::size_t(max_threads) * (output_bytes + scratch_bytes);
    for (std::size_t at = std::size_t(max_threads) * output_bytes; at < memory.size(); at += 8)
        if (at >= common || at < std::size_t(max_threads) * output_bytes + std::size_t(threads) * scratch_bytes)
            text += (at % 64 ? " " : "\nscratch+" + std::to_string(at - std::size_t(max_threads) * output_bytes) + " ") + digits(memory, at, 8);
    return text + "\n";
}

std::string describe_difference(const std::vector<unsigned char>& a, const std::vector<unsigned char>& b, unsigned threads) {
    std::string text;
    unsigned shown = 0;
    for (unsigned thread = 0; thread < threads && shown < 4; ++thread) {
        std::string line;
        for (const Place& place : places_of_thread()) {
            const std::size_t at = std::size_t(thread) * output_bytes + place.offset;
            if (std::memcmp(&a[at], &b[at], place.bytes) != 0) line += " " + place.name + "=" + digits(a, at, place.bytes) + "/" + digits(b, at, place.bytes);
        }
        if (line.empty()) continue;
        text += "// thread " + std::to_string(thread) + ":" + line + "\n";
        ++shown;
    }
    for (std::size_t at = std::size_t(max_threads) * output_bytes; shown == 0 && at < a.size(); at += 4)
        if (std::memcmp(&a[at], &b[at], 4) != 0) {
            text += "// scratch+" + std::to_string(at - std::size_t(max_threads) * output_bytes) + ": " + digits(a, at, 4) + "/" + digits(b, at, 4) + "\n";
            break;
        }
    return text;
}

bool alike(const Result& a, const Result& b) {
    const auto kind = [](const Result& result) {
        std::string text;
        // What follows the first comma tells threads and places.
        for (char c : is_error(result) ? result.substr(0, result.find(',')) : std::string())
            if (!std::isdigit(static_cast<unsigned char>(c))) text += c;
        return text;
    };
    return kind(a) == kind(b);
}

} // namespace fuzz
