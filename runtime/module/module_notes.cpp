// SPDX-License-Identifier: Apache-2.0
#include "runtime/module/module_notes.h"

#include <array>
#include <cstring>

namespace ptarmigan::runtime {
namespace {

constexpr const char* valid_text = "valid text";

std::string facts_of(const std::string& kernel) {
    return "facts of " + kernel;
}

std::string hot_kernel(const std::string& kernel) {
    return "hot kernel " + kernel;
}

using FactNumbers = std::array<std::uint32_t, 5>;

std::span<const std::uint8_t> bytes_of(const void* data, std::size_t size) {
    return {static_cast<const std::uint8_t*>(data), size};
}

} // namespace

std::optional<std::string> recall_valid_text(const TextHash& text) {
    const auto log = KernelCache::process_cache().note(text, valid_text);
    if (!log) return std::nullopt;
    return std::string(log->begin(), log->end());
}

void remember_valid_text(const TextHash& text, const std::string& log) {
    KernelCache::process_cache().keep_note(text, valid_text, bytes_of(log.data(), log.size()));
}

std::optional<KernelFacts> recall_facts(const TextHash& text, const std::string& kernel) {
    const auto note = KernelCache::process_cache().note(text, facts_of(kernel));
    FactNumbers numbers;
    if (!note || note->size() != sizeof numbers) return std::nullopt;
    std::memcpy(&numbers, note->data(), sizeof numbers);
    KernelFacts facts;
    facts.static_shared = numbers[0];
    facts.local = numbers[1];
    facts.registers = numbers[2];
    facts.max_threads = numbers[3];
    facts.statements = numbers[4];
    return facts;
}

void remember_facts(const TextHash& text, const std::string& kernel, const KernelFacts& facts) {
    const FactNumbers numbers{facts.static_shared, facts.local, facts.registers, facts.max_threads, facts.statements};
    KernelCache::process_cache().keep_note(text, facts_of(kernel), bytes_of(&numbers, sizeof numbers));
}

bool recall_hot(const TextHash& text, const std::string& kernel) {
    return KernelCache::process_cache().note(text, hot_kernel(kernel)).has_value();
}

void remember_hot(const TextHash& text, const std::string& kernel) {
    KernelCache::process_cache().keep_note(text, hot_kernel(kernel), {});
}

} // namespace ptarmigan::runtime
