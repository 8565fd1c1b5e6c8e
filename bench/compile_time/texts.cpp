// SPDX-License-Identifier: Apache-2.0
#include "bench/compile_time/texts.h"

#include "frontend/module_loader.h"
#include "tests/support/library_ptx.h"

#include <stdexcept>
#include <unordered_set>

namespace ptarmigan::bench {
namespace {

bool is_name_part(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%';
}

/// `text` with `suffix` behind each of `names`.
void append_renamed(std::string_view text, const std::unordered_set<std::string>& names, const std::string& suffix,
                    std::string& out) {
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = at;
        while (end < text.size() && is_name_part(text[end])) ++end;
        if (end == at) {
            out += text[at++];
            continue;
        }
        const std::string word(text.substr(at, end - at));
        out += word;
        if (names.count(word) != 0) out += suffix;
        at = end;
    }
}

} // namespace

void add_texts(const std::string& path, std::uint64_t sample, std::vector<std::string>& texts) {
    const test::MappedFile file(path);
    if (file.bytes().empty()) throw std::runtime_error("can't read " + path);
    if (path.ends_with(".ptx")) {
        texts.emplace_back(file.bytes());
        return;
    }
    unsigned damaged = 0;
    const std::vector<test::EmbeddedPtx> found = test::find_embedded_ptx(file.bytes(), damaged);
    std::uint64_t all = 0, passed = 0, taken = 0;
    for (const test::EmbeddedPtx& ptx : found) all += ptx.entry.text_size;
    for (const test::EmbeddedPtx& ptx : found) {
        passed += ptx.entry.text_size;
        const double share = static_cast<double>(passed) / static_cast<double>(all);
        if (static_cast<double>(taken) > share * static_cast<double>(sample)) continue;
        texts.push_back(runtime::unpack_ptx(ptx.entry));
        taken += texts.back().size();
    }
}

std::string large_module(const std::string& path, std::size_t size) {
    std::vector<std::string> texts;
    add_texts(path, 0, texts);
    const auto loader = ptx::ModuleLoader::load(texts.front(), path);
    if (!loader->ok()) throw std::runtime_error(loader->diagnostics().render_all());
    std::unordered_set<std::string> names;
    for (const ptx::Function& function : loader->module().functions) names.insert(function.name);
    for (const ptx::Variable& variable : loader->module().variables) names.insert(variable.name);
    const std::string& text = texts.front();
    const std::size_t directive = text.find(".address_size");
    const std::size_t head = directive == std::string::npos ? 0 : text.find('\n', directive);
    if (head == 0 || head == std::string::npos) throw std::runtime_error(path + " has no .address_size");
    std::string large = text.substr(0, head);
    for (unsigned copy = 0; large.size() < size; ++copy)
        append_renamed(std::string_view(text).substr(head), names, "_" + std::to_string(copy), large);
    return large;
}

} // namespace ptarmigan::bench
