// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/cache_key.h"

#include "runtime/module/translator_library.h"
#include "translator/kernel_abi_version.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

constexpr std::string_view note_word = "note";

void append(std::string& key, std::uint64_t value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append(std::string& key, std::string_view value) {
    append(key, value.size());
    key.append(value);
}

/// Takes fields from the front; after the first that does not fit, ok() is false and everything is empty.
class KeyReader {
public:
    explicit KeyReader(std::string_view key) : rest_(key) {}
    bool ok() const { return ok_; }
    std::uint64_t number() {
        std::uint64_t value = 0;
        const std::string_view bytes = take(sizeof value);
        if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
        return value;
    }
    std::string text() { return std::string(take(number())); }

private:
    std::string_view take(std::uint64_t size) {
        ok_ = ok_ && size <= rest_.size();
        if (!ok_) return {};
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::string_view rest_;
    bool ok_ = true;
};

} // namespace

std::string kernel_key(const std::string& build_id, const KernelRequest& request) {
    std::string key;
    key.reserve(1024);
    const auto number = [&](std::uint64_t value) { append(key, value); };
    const auto text = [&](std::string_view value) { append(key, value); };
    const translator::CompileOptions& options = request.options;
    // As far as the target, in this order in every version: read_key().
    text(build_id); // stands for our version, LLVM's and the builtins'
    number(abi::kernel_abi_version);
    number(request.text_hash.low);
    number(request.text_hash.high);
    text(request.kernel);
    for (const std::uint32_t extent : request.shape.ntid) number(extent);
    for (const std::uint32_t extent : request.shape.cluster) number(extent);
    number(static_cast<std::uint64_t>(options.target.architecture));
    text(options.target.key());
    number(options.target.avx512);
    number(options.lane_width);
    number(static_cast<std::uint64_t>(options.divergence));
    number(static_cast<std::uint64_t>(options.barriers));
    number(static_cast<std::uint64_t>(options.optimization));
    number(static_cast<std::uint64_t>(options.approximation));
    number(static_cast<std::uint64_t>(options.waiting_loops));
    number(options.small_grid);
    number(options.cooperative);
    number(options.random_schedule);
    number(options.late_copies);
    number(options.aligned_parameters);
    number(options.checked_memory);
    return key;
}

/// The code that finds a note out is the frontend and the runtime, and the frontend is in both.
std::string note_key(const std::string& build_id, const TextHash& text, std::string_view subject) {
    static const auto& own_build_id = *new std::string(runtime_build_id()); // never destroyed: see README.md
    if (own_build_id.empty()) return {};
    std::string key;
    append(key, note_word);
    append(key, build_id);
    append(key, own_build_id);
    append(key, text.low);
    append(key, text.high);
    append(key, subject);
    return key;
}

std::string file_name(const std::string& key) {
    XXH128_canonical_t bytes;
    XXH128_canonicalFromHash(&bytes, XXH3_128bits(key.data(), key.size()));
    std::string name;
    for (const unsigned char byte : bytes.digest) {
        name += "0123456789abcdef"[byte >> 4];
        name += "0123456789abcdef"[byte & 15];
    }
    return name;
}

std::optional<KeyContents> read_key(std::string_view key) {
    KeyContents contents;
    KeyReader reader(key);
    std::string first = reader.text();
    contents.is_note = first == note_word;
    if (contents.is_note) {
        contents.build_id = reader.text();
        reader.text(); // the runtime's
    } else {
        contents.build_id = std::move(first);
        contents.abi_version = reader.number();
    }
    contents.text_hash.low = reader.number();
    contents.text_hash.high = reader.number();
    if (!contents.is_note) {
        contents.kernel = reader.text();
        for (std::uint32_t& extent : contents.shape.ntid) extent = static_cast<std::uint32_t>(reader.number());
        for (std::uint32_t& extent : contents.shape.cluster) extent = static_cast<std::uint32_t>(reader.number());
        reader.number(); // the architecture, which the target names as well
        contents.target = reader.text();
    }
    if (!reader.ok()) return std::nullopt;
    return contents;
}

} // namespace ptarmigan::runtime
